//! Block removal as bars: one group for each block, one bar for each arm, panels by schedule.

use crate::report::model::Figure;
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::report::tables::removals;
use crate::stats::LEVEL;

use super::cast::{Group, groups};
use super::frame::{Bottom, Frame};
use super::scale::Scale;

/// ΔCE and angle of a block.
type Block = (Paired, Paired);
/// One of the two.
type Pick = fn(&Block) -> &Paired;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let measured: Vec<(Group, Vec<Vec<Block>>)> = groups(reading)
        .into_iter()
        .map(|mut group| {
            group.members.retain(|member| !removals(reading, member.arm).is_empty());
            let rows = group.members.iter().map(|member| removals(reading, member.arm)).collect();
            (group, rows)
        })
        .filter(|(group, _)| !group.members.is_empty())
        .collect();
    let kinds: [(&str, &str, Pick); 2] =
        [("ΔCE without the block", "nats/token", |row| &row.0), ("angle across the block", "fraction of π", |row| &row.1)];
    let mut panels = Vec::new();
    for (what, unit, pick) in kinds {
        let all = measured.iter().flat_map(|(_, rows)| rows).flatten().map(pick).filter_map(Paired::estimate);
        let ends = all.flat_map(|estimate| {
            let (low, high) = estimate.interval(LEVEL).unwrap_or((estimate.mean, estimate.mean));
            // A wide interval of few seeds must not flatten the bars.
            [estimate.mean, low.max(estimate.mean - estimate.mean.abs()), high.min(estimate.mean + estimate.mean.abs())]
        });
        let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let y = Scale::linear(low * 1.08, high * 1.08);
        for (group, rows) in &measured {
            let blocks = rows.iter().map(Vec::len).max().unwrap_or_default();
            let names = (0..blocks).map(|block| format!("block {block}")).collect();
            let labels: Vec<String> = group.members.iter().map(|member| member.label.clone()).collect();
            let title = if group.title.is_empty() { what.to_owned() } else { format!("{}: {what}", group.title) };
            let mut frame = Frame::new(&title, unit, "", y, Bottom::Names(names), &labels);
            bars(&mut frame, group, rows, pick);
            panels.push(frame.drawing.finish(&title));
        }
    }
    Some(Figure {
        name: "block_removal".to_owned(),
        title: "Block removal".to_owned(),
        caption: "Mean over seeds with its 95 % interval; blocks counted from 0 at the bottom.".to_owned(),
        panels,
    })
}

fn bars(frame: &mut Frame, group: &Group, rows: &[Vec<Block>], pick: Pick) {
    let width = (frame.slot() * 0.72 / group.members.len() as f64).min(34.0);
    let mut beside = Vec::new();
    for (place, (member, blocks)) in group.members.iter().zip(rows).enumerate() {
        let class = member.class();
        for (block, row) in blocks.iter().enumerate() {
            let paired = pick(row);
            let Some(estimate) = paired.estimate() else { continue };
            let x = frame.name_at(block) + (place as f64 - group.members.len() as f64 / 2.0) * width;
            let (top, bottom) = (frame.y(estimate.mean.max(0.0)), frame.y(estimate.mean.min(0.0)));
            frame.drawing.rect(&format!("bar c{class}"), (x + 1.0, top), (width - 2.0, bottom - top));
            if let Some((low, high)) = estimate.interval(LEVEL) {
                let middle = x + width / 2.0;
                let (low, high) = (frame.y(low), frame.y(high));
                frame.clipped(|drawing| drawing.line("error", (middle, low), (middle, high)));
            }
            let title = format!("{}, block {block}: {} ({})", member.label, number::fixed(estimate.mean, 3), paired.count);
            frame.drawing.dot("hover", (x + width / 2.0, top), width / 2.0, &title);
        }
        beside.push((frame.base() - 14.0 * (group.members.len() - place) as f64, member.label.clone(), class));
    }
    frame.level("axis", 0.0);
    frame.labels(&beside);
}
