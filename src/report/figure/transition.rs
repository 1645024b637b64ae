//! Close-ups of growth: the training loss around each event that grows, one panel for each, one curve for each arm.

use crate::report::curves::{point, thinned};
use crate::report::model::{CurvePoint, Figure};
use crate::report::reading::{Reading, events, grows};
use crate::stats::{Estimate, Windows};
use crate::study::Metric;

use super::cast::Member;
use super::drawing::Values;
use super::frame::{Bottom, Frame};
use super::scale::Scale;

/// Steps before and after an event, and how many are averaged.
struct Window {
    before: u64,
    after: u64,
    smooth: u64,
}

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let every = reading.every(Metric::TrainLoss)?;
    let most = (0..reading.study().arms.len()).filter_map(|arm| reading.runs_of(arm).next()).map(|run| grows(run).len()).max()?;
    let mut panels = Vec::new();
    for number in 0..most {
        let mut tracks: Vec<(Member, Vec<(f64, CurvePoint)>)> = Vec::new();
        let mut reach = (0_u64, 0_u64);
        for (arm, named) in reading.study().arms.iter().enumerate() {
            let Some(run) = reading.runs_of(arm).next() else { continue };
            let Some(event) = grows(run).get(number).copied() else { continue };
            let until = events(run).into_iter().find(|later| *later > event).unwrap_or(run.planned.steps);
            let windows = Windows::of_phase(until - event, every);
            let window =
                Window { before: windows.long.min(event), after: windows.long.min(until - event), smooth: windows.smooth };
            let points = around(reading, arm, event, &window);
            if points.len() > 1 {
                reach = (reach.0.max(window.before), reach.1.max(window.after));
                tracks.push((Member { arm, label: named.name.clone(), colour: tracks.len() }, points));
            }
        }
        if tracks.is_empty() {
            continue;
        }
        let y = Scale::around(tracks.iter().flat_map(|(_, points)| points).flat_map(|(_, point)| [point.low, point.high]));
        let x = Scale::linear(-(reach.0 as f64), reach.1 as f64);
        let labels: Vec<String> = tracks.iter().map(|(member, _)| member.label.clone()).collect();
        let title = format!("Grow {}", number + 1);
        let mut frame = Frame::new(&title, "train_loss (nats/token)", "steps since the event", y, Bottom::Numbers(x), &labels);
        frame.upright("boundary", 0.0);
        let mut beside = Vec::new();
        for (member, points) in &tracks {
            let class = member.class();
            // The curve is broken at the event: a mean over both sides would hide the jump.
            for side in points.chunk_by(|a, b| (a.0 < 0.0) == (b.0 < 0.0)) {
                let place = |frame: &Frame, at: f64, value: f64| (frame.x(at), frame.y(value));
                let upper = side.iter().map(|(at, point)| place(&frame, *at, point.high));
                let lower = side.iter().rev().map(|(at, point)| place(&frame, *at, point.low));
                let band: Vec<_> = upper.chain(lower).collect();
                let middle: Vec<_> = side.iter().map(|(at, point)| place(&frame, *at, point.mean)).collect();
                let values = side.iter().map(|(_, point)| (point.step, point.mean)).collect();
                frame.drawing.area(&format!("band c{class}"), &band);
                frame.drawing.curve(&format!("curve c{class}"), &middle, Values { name: member.label.clone(), values });
            }
            beside.extend(points.last().map(|(_, point)| (frame.y(point.mean), member.label.clone(), class)));
        }
        frame.labels(&beside);
        panels.push(frame.drawing.finish(&format!("training loss around grow {}", number + 1)));
    }
    Some(Figure {
        name: "transition".to_owned(),
        title: "Response to growth".to_owned(),
        caption: "Training loss before and after each growth, smoothed as in the table of the same name on each side by itself; mean over seeds, \
                  the band is their range."
            .to_owned(),
        panels,
    })
}

/// Smoothed loss over steps since the event: a mean over the window that ends at a step, and lies on its side of the event.
fn around(reading: &Reading<'_>, arm: usize, event: u64, window: &Window) -> Vec<(f64, CurvePoint)> {
    let series: Vec<Vec<(u64, f64)>> = reading
        .runs_of(arm)
        .map(|run| reading.series(arm, run.seed, Metric::TrainLoss))
        .filter(|series| !series.is_empty())
        .collect();
    let Some(first) = series.first() else { return Vec::new() };
    let steps = first.iter().map(|(step, _)| *step).filter(|step| *step + window.before >= event && *step < event + window.after);
    let mut points = Vec::new();
    for step in thinned(steps.collect(), &[event]) {
        let side = if step < event { event - window.before } else { event };
        let from = side.max((step + 1).saturating_sub(window.smooth));
        let means: Vec<f64> = series
            .iter()
            .filter_map(|series| {
                let (low, high) = (series.partition_point(|(at, _)| *at < from), series.partition_point(|(at, _)| *at <= step));
                Estimate::of(&series[low..high].iter().map(|(_, value)| *value).collect::<Vec<_>>())
            })
            .map(|estimate| estimate.mean)
            .collect();
        points.extend(point(step, &means).map(|point| (step as f64 - event as f64, point)));
    }
    points
}
