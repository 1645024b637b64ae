//! Δ(t): the difference between placements over steps, mean and 95 % interval, one line for each schedule.

use crate::report::curves::contrasts;
use crate::report::model::{Curve, Figure};
use crate::report::number;
use crate::report::reading::Reading;
use crate::report::tables::{primary, with_unit};
use crate::stats::last_crossing;

use super::cast::Member;
use super::drawing::Anchor;
use super::frame::{Bottom, Frame};
use super::loss::line;
use super::scale::Scale;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let metric = primary(reading)?;
    let contrasts = contrasts(reading);
    let mut kinds: Vec<&str> = contrasts.iter().map(|contrast| contrast.what.as_str()).collect();
    kinds.dedup();
    kinds.sort_unstable();
    kinds.dedup();
    let mut panels = Vec::new();
    for kind in kinds {
        let alike = contrasts.iter().filter(|contrast| contrast.what == kind).enumerate();
        let curves: Vec<(Curve, Member)> = alike
            .map(|(place, contrast)| {
                let label = if contrast.schedule.is_empty() { contrast.what.clone() } else { contrast.schedule.clone() };
                // Colours of schedules, apart from those of placements.
                (contrast.curve(reading, metric), Member { arm: 0, label, colour: 2 + place })
            })
            .filter(|(curve, _)| curve.points.len() > 1)
            .collect();
        let Some(end) = curves.iter().filter_map(|(curve, _)| curve.points.last()).map(|point| point.step).max() else {
            continue;
        };
        let labels: Vec<String> = curves.iter().map(|(_, member)| member.label.clone()).collect();
        let settled = |curve: &Curve| {
            let end = curve.points.last().map_or(0, |point| point.step);
            curve
                .points
                .iter()
                .filter(|point| point.step * 20 >= end)
                .flat_map(|point| [point.low, point.high])
                .collect::<Vec<_>>()
        };
        let y = Scale::around(curves.iter().flat_map(|(curve, _)| settled(curve)).chain([0.0]));
        let x = Bottom::Numbers(Scale::linear(0.0, end as f64));
        let mut frame = Frame::new(&format!("Δ = {kind}"), &with_unit(metric), "steps", y, x, &labels);
        let events: std::collections::BTreeSet<u64> = curves.iter().flat_map(|(curve, _)| curve.events.iter().copied()).collect();
        for event in events {
            frame.boundary(event);
        }
        frame.level("zero", 0.0);
        line(&mut frame, &curves);
        for (curve, member) in &curves {
            // At an event the model before it counts, as in the table.
            let mut means: Vec<(u64, f64)> = curve.points.iter().map(|point| (point.step, point.mean)).collect();
            means.dedup_by_key(|(step, _)| *step);
            let Some(step) = last_crossing(&means) else { continue };
            let at = (frame.x(step as f64), frame.y(0.0));
            let text = format!("{}: the mean keeps its sign from step {}", member.label, number::exact(step));
            frame.drawing.dot(&format!("dot c{}", member.class()), at, 3.6, &text);
            frame.drawing.text("tick halo", (at.0, at.1 - 7.0), Anchor::Middle, &number::exact(step));
        }
        panels.push(frame.drawing.finish(&format!("difference {kind} over steps")));
    }
    Some(Figure {
        name: "delta".to_owned(),
        title: "The difference over time".to_owned(),
        caption: "Paired by seed: mean and 95 % interval at common evaluations. Dashed lines are events; a dot on the line of zero, with its step, is where the mean changes its sign for good.".to_owned(),
        panels,
    })
}
