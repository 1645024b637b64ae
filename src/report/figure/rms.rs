//! Boundary RMS over blocks: one panel for each arm, one line for each phase, structural tokens dashed.

use crate::report::model::Figure;
use crate::report::number;
use crate::report::reading::Reading;
use crate::report::tables::{Of, moments, number_of, regular, structural};

use super::cast::groups;
use super::frame::{Bottom, Frame};
use super::scale::Scale;

/// Mean over seeds at each block.
type Line = Vec<(usize, f64)>;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let mut arms = Vec::new();
    for group in groups(reading) {
        for member in group.members {
            let class = member.class();
            let lines: Vec<(u64, Line, Line)> = moments(reading, member.arm)
                .into_iter()
                .map(|(step, blocks)| {
                    let line = |of: Of| -> Line {
                        let mean = |block| {
                            number_of(reading, member.arm, step, block, of).estimate().map(|estimate| (block, estimate.mean))
                        };
                        (0..blocks).filter_map(mean).collect()
                    };
                    (step, line(regular), line(structural))
                })
                .collect();
            if !lines.is_empty() {
                arms.push((member.arm, class, lines));
            }
        }
    }
    let values =
        arms.iter().flat_map(|(_, _, lines)| lines).flat_map(|(_, regular, structural)| regular.iter().chain(structural));
    let y = Scale::log(values.map(|(_, value)| *value));
    let panels = arms.iter().map(|(arm, class, lines)| {
        let blocks = lines.iter().map(|(_, regular, _)| regular.len()).max().unwrap_or_default();
        let names = (0..blocks).map(|block| format!("block {block}")).collect();
        let steps: Vec<String> = lines.iter().map(|(step, _, _)| format!("step {}", number::exact(*step))).collect();
        let mut labels = steps.clone();
        labels.push("structural".to_owned());
        let name = &reading.study().arms[*arm].name;
        let mut frame = Frame::new(name, "RMS of the residual stream", "", y, Bottom::Names(names), &labels);
        let mut beside = Vec::new();
        for (place, ((_, regular, structural), step)) in lines.iter().zip(&steps).enumerate() {
            // Later phases are drawn stronger.
            let age = if place + 1 == lines.len() {
                "now"
            } else if place + 2 == lines.len() {
                "recent"
            } else {
                "old"
            };
            let track = |frame: &Frame, line: &Line| {
                line.iter().map(|(block, value)| (frame.name_at(*block), frame.y(*value))).collect::<Vec<_>>()
            };
            for (line, kind) in [(regular, "curve"), (structural, "curve dashed")] {
                let points = track(&frame, line);
                frame.drawing.path(&format!("{kind} {age} c{class}"), &points);
                for (at, (block, value)) in points.iter().zip(line) {
                    frame.drawing.dot(
                        &format!("dot {age} c{class}"),
                        *at,
                        2.6,
                        &format!("{step}, block {block}: {}", number::fixed(*value, 3)),
                    );
                }
            }
            beside.extend(regular.last().map(|(_, value)| (frame.y(*value), step.clone(), *class)));
            if age == "now" {
                beside.extend(structural.last().map(|(_, value)| (frame.y(*value), "structural".to_owned(), *class)));
            }
        }
        frame.labels(&beside);
        frame.drawing.finish(&format!("boundary RMS of {name}"))
    });
    Some(Figure {
        name: "boundary_rms".to_owned(),
        title: "Size of the residual stream".to_owned(),
        caption: "Mean RMS over regular tokens (solid) and over structural tokens, which end a document (dashed), after each block and \
                  phase; mean over seeds, logarithmic."
            .to_owned(),
        panels: panels.collect(),
    })
}
