//! Loss over steps: one panel for each schedule, mean and range over seeds, phase boundaries.

use crate::report::curves::arm_curve;
use crate::report::model::{Curve, Figure};
use crate::report::reading::Reading;
use crate::report::tables::{primary, with_unit};

use super::cast::{Member, groups};
use super::drawing::Values;
use super::frame::{Bottom, Frame};
use super::scale::Scale;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let metric = primary(reading)?;
    let groups: Vec<_> = groups(reading)
        .into_iter()
        .map(|group| {
            let curves = group.members.into_iter().map(|member| (arm_curve(reading, member.arm, metric), member));
            (group.title, curves.filter(|(curve, _)| curve.points.len() > 1).collect::<Vec<(Curve, Member)>>())
        })
        .filter(|(_, curves)| !curves.is_empty())
        .collect();
    let y = height(groups.iter().flat_map(|(_, curves)| curves).map(|(curve, _)| curve));
    let panels = groups.iter().map(|(title, curves)| {
        let end = curves.iter().filter_map(|(curve, _)| curve.points.last()).map(|point| point.step).max().unwrap_or(1);
        let labels: Vec<String> = curves.iter().map(|(_, member)| member.label.clone()).collect();
        let x = Scale::linear(0.0, end as f64);
        let mut frame = Frame::new(title, &with_unit(metric), "steps", y, Bottom::Numbers(x), &labels);
        let events: std::collections::BTreeSet<u64> = curves.iter().flat_map(|(curve, _)| curve.events.iter().copied()).collect();
        for event in events {
            frame.boundary(event);
        }
        line(&mut frame, curves);
        frame.drawing.finish(&format!("{} over steps, {title}", metric.name()))
    });
    Some(Figure {
        name: "loss".to_owned(),
        title: format!("{} while training", metric.name()),
        caption: "Mean over seeds; the band is their range. Dashed lines are events. High values at the start are cut off."
            .to_owned(),
        panels: panels.collect(),
    })
}

/// Draws curves with their bands and names.
pub fn line(frame: &mut Frame, curves: &[(Curve, Member)]) {
    let place = |frame: &Frame, step: u64, value: f64| (frame.x(step as f64), frame.y(value));
    let drawn: Vec<_> = curves
        .iter()
        .map(|(curve, member)| {
            let points = &curve.points;
            let upper = points.iter().map(|point| place(frame, point.step, point.high));
            let lower = points.iter().rev().map(|point| place(frame, point.step, point.low));
            let middle: Vec<_> = points.iter().map(|point| place(frame, point.step, point.mean)).collect();
            let values = points.iter().map(|point| (point.step, point.mean)).collect();
            (upper.chain(lower).collect::<Vec<_>>(), middle, member.class(), Values { name: member.label.clone(), values })
        })
        .collect();
    frame.clipped(|drawing| {
        for (band, _, class, _) in &drawn {
            drawing.area(&format!("band c{class}"), band);
        }
        for (_, middle, class, values) in &drawn {
            drawing.curve(&format!("curve c{class}"), middle, values.clone());
        }
    });
    let names: Vec<_> = drawn
        .iter()
        .zip(curves)
        .filter_map(|((_, middle, class, _), (_, member))| Some((middle.last()?.1, member.label.clone(), *class)))
        .collect();
    frame.labels(&names);
}

/// From the lowest value to what is reached soon after the start and after each event.
fn height<'a>(curves: impl Iterator<Item = &'a Curve>) -> Scale {
    let mut shown = Vec::new();
    for curve in curves {
        let end = curve.points.last().map_or(0, |point| point.step);
        let settled = curve.points.iter().filter(|point| point.step * 20 >= end);
        let mut means: Vec<f64> = settled.clone().map(|point| point.mean).collect();
        means.sort_by(f64::total_cmp);
        shown.extend(settled.map(|point| point.low).reduce(f64::min));
        shown.extend(means.get(means.len().saturating_sub(1) * 17 / 20));
    }
    Scale::around(shown)
}
