//! The interaction plot: the metric over schedules, one line for each placement; beside it the differences that it is about.

use crate::report::model::Figure;
use crate::report::number;
use crate::report::reading::{At, Paired, Reading, contrast, difference};
use crate::report::tables::{placements, primary, schedules, with_unit};
use crate::stats::LEVEL;
use crate::study::Linear;

use super::WIDTH;
use super::drawing::{Anchor, Drawing, Panel};
use super::frame::{Bottom, Frame, width_of};
use super::scale::Scale;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let metric = primary(reading)?;
    let (rows, columns) = (placements(reading.study())?, schedules(reading.study())?);
    if rows.values.len() < 2 || columns.values.len() < 2 {
        return None;
    }
    let arms = |row: &str, column: &str| reading.cells(&[(&rows.name, row), (&columns.name, column)]);
    let cells: Vec<Vec<Paired>> = rows
        .values
        .iter()
        .map(|row| {
            columns.values.iter().map(|column| reading.over_seeds(&arms(&row.label, &column.label), metric, At::End)).collect()
        })
        .collect();
    let ends = |paired: &Paired| {
        let estimate = paired.estimate();
        let (low, high) = estimate.and_then(|estimate| estimate.interval(LEVEL)).unwrap_or((f64::NAN, f64::NAN));
        [estimate.map_or(f64::NAN, |estimate| estimate.mean), low, high]
    };
    if !cells.iter().flatten().any(|paired| !paired.values.is_empty()) {
        return None;
    }
    let y = Scale::around(cells.iter().flatten().flat_map(ends));
    let names: Vec<String> = columns.values.iter().map(|value| value.label.clone()).collect();
    let labels: Vec<String> = rows.values.iter().map(|value| value.label.clone()).collect();
    let mut frame = Frame::new("At the end", &with_unit(metric), "", y, Bottom::Names(names), &labels);
    let mut beside = Vec::new();
    for (row, line) in cells.iter().enumerate() {
        let colour = row % super::cast::COLOURS;
        let shift = (row as f64 - (cells.len() - 1) as f64 / 2.0) * 7.0;
        let mut track = Vec::new();
        for (column, paired) in line.iter().enumerate() {
            let Some(estimate) = paired.estimate() else { continue };
            let x = frame.name_at(column) + shift;
            let at = (x, frame.y(estimate.mean));
            if let Some((low, high)) = estimate.interval(LEVEL) {
                let (low, high) = (frame.y(low), frame.y(high));
                frame.drawing.line(&format!("whisker c{colour}"), (x, low), (x, high));
            }
            let title = format!(
                "{}, {}: {} ({})",
                labels[row],
                columns.values[column].label,
                number::fixed(estimate.mean, 4),
                paired.count
            );
            frame.drawing.dot(&format!("dot c{colour}"), at, 4.0, &title);
            track.push(at);
        }
        frame.drawing.path(&format!("curve c{colour}"), &track);
        beside.extend(track.last().map(|(_, at)| (*at, labels[row].clone(), colour)));
    }
    frame.labels(&beside);
    let mut panels = vec![frame.drawing.finish(&format!("{} over schedules by placement", metric.name()))];
    let delta = |other: &str, column: &str| -> Option<Linear> {
        let (of, minus) = (arms(other, column), arms(&rows.values[0].label, column));
        (!of.is_empty() && !minus.is_empty()).then(|| contrast(metric, &of, &minus))
    };
    let first = &columns.values[0].label;
    for other in &rows.values[1..] {
        let mut lines: Vec<(String, Paired)> = Vec::new();
        for column in &columns.values {
            lines.extend(
                delta(&other.label, &column.label).map(|sum| (format!("Δ {}", column.label), reading.combination(&sum, At::End))),
            );
        }
        for column in &columns.values[1..] {
            let sum = delta(&other.label, &column.label)
                .zip(delta(&other.label, first))
                .map(|(grown, joint)| difference(&grown, &joint));
            lines.extend(sum.map(|sum| (format!("I = Δ {} − Δ {first}", column.label), reading.combination(&sum, At::End))));
        }
        panels.extend(forest(&format!("Δ = {} − {}", other.label, rows.values[0].label), &with_unit(metric), &lines));
    }
    Some(Figure {
        name: "interaction".to_owned(),
        title: "Interaction of placement and schedule".to_owned(),
        caption: "At the end: mean over seeds with its 95 % interval. Δ: differences paired by seed with their 95 % intervals, small dots the \
                  seeds."
            .to_owned(),
        panels,
    })
}

/// One line for each difference: interval, mean, seeds, and the number.
fn forest(title: &str, unit: &str, lines: &[(String, Paired)]) -> Option<Panel> {
    const ROW: f64 = 34.0;
    let estimates: Vec<_> = lines.iter().filter_map(|(name, paired)| Some((name, paired, paired.estimate()?))).collect();
    if estimates.is_empty() {
        return None;
    }
    let halves: Vec<f64> = estimates.iter().filter_map(|(_, _, estimate)| estimate.half_width(LEVEL)).collect();
    let decimals = number::decimals(&halves, 4);
    let numbers: Vec<String> = estimates
        .iter()
        .map(|(_, _, estimate)| {
            let mean = number::signed(estimate.mean, decimals).replace('-', "−");
            estimate.half_width(LEVEL).map_or(mean.clone(), |half| format!("{mean} ± {}", number::fixed(half, decimals)))
        })
        .collect();
    let ends = estimates.iter().flat_map(|(_, paired, estimate)| {
        let (low, high) = estimate.interval(LEVEL).unwrap_or((estimate.mean, estimate.mean));
        paired.numbers().into_iter().chain([low, high])
    });
    let scale = Scale::around(ends.chain([0.0]));
    let left = 6.0;
    let right = WIDTH - numbers.iter().map(|text| width_of(text)).fold(0.0, f64::max) - 14.0;
    let (top, height) = (40.0, 74.0 + ROW * estimates.len() as f64);
    let x = |value: f64| left + scale.place(value) * (right - left);
    let mut drawing = Drawing::new(WIDTH, height);
    drawing.text("title", (0.0, 14.0), Anchor::Start, title);
    drawing.text("label", (0.0, 31.0), Anchor::Start, unit);
    let base = height - 30.0;
    for (value, text) in scale.ticks(4) {
        drawing.line("grid", (x(value), top), (x(value), base));
        drawing.text("tick", (x(value), base + 16.0), Anchor::Middle, &text);
    }
    drawing.line("zero", (x(0.0), top), (x(0.0), base));
    for (row, ((name, paired, estimate), text)) in estimates.iter().zip(&numbers).enumerate() {
        let at = top + 22.0 + ROW * row as f64;
        let colour = if name.starts_with('I') { "c1" } else { "c0" };
        drawing.text("tick halo", (left, at - 9.0), Anchor::Start, name);
        if let Some((low, high)) = estimate.interval(LEVEL) {
            drawing.line(&format!("whisker {colour}"), (x(low), at), (x(high), at));
        }
        for (seed, value) in &paired.values {
            drawing.dot(
                &format!("seed {colour}"),
                (x(*value), at + 5.0),
                1.8,
                &format!("seed {seed}: {}", number::signed(*value, 4)),
            );
        }
        drawing.dot(&format!("dot {colour}"), (x(estimate.mean), at), 4.2, &format!("{name}: {text} ({})", paired.count));
        drawing.text("tick", (WIDTH, at + 4.0), Anchor::End, text);
    }
    Some(drawing.finish(title))
}
