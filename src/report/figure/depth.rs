//! What is seen at each depth of a model, at its last probe: one line for each arm, panels by schedule.

use crate::report::model::Figure;
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::report::tables::{layer_gradients, lens};

use super::cast::{Member, groups};
use super::drawing::Panel;
use super::frame::{Bottom, Frame};
use super::scale::Scale;

/// What an arm's probes saw from the bottom up, by step.
type Of = fn(&Reading<'_>, usize) -> Vec<(u64, Vec<Paired>)>;

/// One kind of probe.
struct Look {
    of: Of,
    /// What is counted along the bottom, and the name of each place.
    along: (&'static str, fn(usize) -> String),
    /// What stands along the side.
    value: &'static str,
    /// How values are laid out.
    scale: fn(Vec<f64>) -> Scale,
}

/// Cross entropy of the head after each block.
pub fn lens_over_blocks(reading: &Reading<'_>) -> Option<Figure> {
    let place = |place: usize| place.checked_sub(1).map_or_else(|| "embedding".to_owned(), |block| block.to_string());
    let look = Look {
        of: lens,
        along: ("after block", place),
        value: "cross entropy, nats/token",
        scale: |values| Scale::around(values),
    };
    Some(Figure {
        name: "logit_lens".to_owned(),
        title: "Logit lens".to_owned(),
        caption: "Cross entropy of the head, behind the exit equation, on the stream before the first block and after each, at the last \
                  probe; mean over seeds."
            .to_owned(),
        panels: panels(reading, &look),
    })
}

/// Norm of the gradient in each layer.
pub fn gradients_over_layers(reading: &Reading<'_>) -> Option<Figure> {
    let place = |place: usize| (place + 1).to_string();
    let look =
        Look { of: layer_gradients, along: ("layer", place), value: "norm of the gradient", scale: |values| Scale::log(values) };
    Some(Figure {
        name: "gradient_norms".to_owned(),
        title: "Gradient by layer".to_owned(),
        caption: "L2 norm of the gradient of the cross entropy over all parameters of each layer, counted from 1 at the bottom, at the \
                  last probe; mean over seeds, logarithmic."
            .to_owned(),
        panels: panels(reading, &look),
    })
}

/// An arm of a panel.
struct Line {
    member: Member,
    /// Place, value, and how many seeds it rests on.
    points: Vec<(usize, f64, String)>,
}

/// The points of an arm that have a value.
fn points(reading: &Reading<'_>, look: &Look, arm: usize) -> Vec<(usize, f64, String)> {
    let Some((_, row)) = (look.of)(reading, arm).pop() else { return Vec::new() };
    let point = |(place, paired): (usize, &Paired)| Some((place, paired.estimate()?.mean, paired.count.to_string()));
    row.iter().enumerate().filter_map(point).collect()
}

fn panels(reading: &Reading<'_>, look: &Look) -> Vec<Panel> {
    let mut drawn = Vec::new();
    for group in groups(reading) {
        let lines = group.members.into_iter().map(|member| Line { points: points(reading, look, member.arm), member });
        let lines: Vec<Line> = lines.filter(|line| !line.points.is_empty()).collect();
        if !lines.is_empty() {
            drawn.push((group.title, lines));
        }
    }
    let all = || drawn.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.points);
    let y = (look.scale)(all().map(|(_, value, _)| *value).collect());
    let places = all().map(|(place, _, _)| place + 1).max().unwrap_or_default();
    let (along, name) = look.along;
    let panel = |(title, lines): &(String, Vec<Line>)| {
        let labels: Vec<String> = lines.iter().map(|line| line.member.label.clone()).collect();
        let names = Bottom::Names((0..places).map(name).collect());
        let mut frame = Frame::new(title, look.value, along, y, names, &labels);
        let mut beside = Vec::new();
        for Line { member, points } in lines {
            let class = member.class();
            let track: Vec<(f64, f64)> =
                points.iter().map(|(place, value, _)| (frame.name_at(*place), frame.y(*value))).collect();
            frame.drawing.path(&format!("curve c{class}"), &track);
            for (at, (place, value, count)) in track.iter().zip(points) {
                let title = format!("{}, {along} {}: {} ({count})", member.label, name(*place), number::fixed(*value, 4));
                frame.drawing.dot(&format!("dot c{class}"), *at, 2.6, &title);
            }
            beside.extend(track.last().map(|(_, height)| (*height, member.label.clone(), class)));
        }
        frame.labels(&beside);
        frame.drawing.finish(&format!("{} {title}", look.value))
    };
    drawn.iter().map(panel).collect()
}
