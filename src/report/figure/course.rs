//! The plan of one seed: phases as boxes over steps, as high as the layers that run, shared ones once, with what hangs on what.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::model::Figure;
use crate::report::number;
use crate::report::reading::Reading;
use crate::report::story::{RunState, RunStory};

use super::WIDTH;
use super::cast::groups;
use super::drawing::{Anchor, Drawing, Panel};
use super::frame::width_of;
use super::scale::Scale;

/// Rows of a panel; a printed page holds three panels of so many.
const ROWS: usize = 12;
/// Distance of rows, and the height of a box of all layers.
const ROW: f64 = 31.0;
const BOX: f64 = 22.0;
/// Where the first row begins.
const TOP: f64 = 44.0;

pub fn draw(reading: &Reading<'_>) -> Option<Figure> {
    let rows = rows(reading);
    let layers = rows.iter().flat_map(|row| &row.run.segments).map(|segment| segment.stack.len()).max()?;
    let end = rows.iter().map(|row| row.run.planned.steps).max().filter(|end| *end > 0)?;
    let panels: Vec<Panel> = rows.chunks(ROWS).map(|rows| panel(reading, rows, layers, end)).collect();
    let of = |count: usize, what: &str| number::plural(count as u64, what);
    let keys = || rows.iter().flat_map(|row| &row.run.phase_keys);
    let (nodes, all) = (keys().collect::<BTreeSet<_>>(), keys().count());
    let shared = if nodes.len() < all { format!(", {} in place of {all}", nodes.len()) } else { String::new() };
    Some(Figure {
        name: "plan".to_owned(),
        title: "The plan of one seed".to_owned(),
        caption: format!(
            "{} of {}{shared}: what several arms begin with is trained once, and they part where lines lead down. A box is as high as the layers that \
             run, pale where they are frozen; dots are close looks. Behind a name stands how many seeds have finished, where not all have.",
            of(all, "phase"),
            of(rows.len(), "arm")
        ),
        panels,
    })
}

struct Row<'a> {
    name: String,
    class: usize,
    run: &'a RunStory,
}

/// Arms in the order of the study; those that share phases follow one another.
fn rows<'a>(reading: &Reading<'a>) -> Vec<Row<'a>> {
    let colours: BTreeMap<usize, usize> =
        groups(reading).iter().flat_map(|group| &group.members).map(|member| (member.arm, member.class())).collect();
    let seeds = reading.study().seeds.len();
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (arm, named) in reading.study().arms.iter().enumerate() {
        let Some(run) = reading.runs_of(arm).next().filter(|run| !run.segments.is_empty()) else { continue };
        let finished = reading.runs_of(arm).filter(|run| run.state == RunState::Finished).count();
        let name = if finished == seeds { named.name.clone() } else { format!("{} ({finished}/{seeds})", named.name) };
        let row = Row { name, class: colours.get(&arm).copied().unwrap_or_default(), run };
        let place = (0..rows.len())
            .max_by_key(|place| (common(rows[*place].run, run), *place))
            .filter(|place| common(rows[*place].run, run) > 0);
        rows.insert(place.map_or(rows.len(), |place| place + 1), row);
    }
    rows
}

/// How many phases two runs begin with in common.
fn common(a: &RunStory, b: &RunStory) -> usize {
    a.phase_keys.iter().zip(&b.phase_keys).take_while(|(a, b)| a == b).count()
}

fn panel(reading: &Reading<'_>, rows: &[Row<'_>], layers: usize, end: u64) -> Panel {
    let teachers: Vec<&str> = reading.story.teachers.iter().map(|teacher| teacher.name.as_str()).collect();
    let lessons = teachers.iter().map(|name| width_of(name) + 12.0).fold(0.0, f64::max).min(90.0);
    let left = if teachers.is_empty() { 4.0 } else { lessons + 26.0 };
    let names = rows.iter().map(|row| width_of(&row.name)).fold(0.0, f64::max).min(150.0);
    let right = WIDTH - names - 12.0;
    let base = TOP + ROW * rows.len() as f64;
    let mut drawing = Drawing::new(WIDTH, base + 36.0);
    let scale = Scale::linear(0.0, end as f64);
    let x = |step: u64| left + scale.place(step as f64) * (right - left);
    let y = |row: usize| TOP + ROW * (row as f64 + 1.0) - 4.0;
    let height = |layers_: usize| BOX * layers_ as f64 / layers.max(1) as f64;
    drawing.text("title", (0.0, 14.0), Anchor::Start, "Phases");
    drawing.text("label", (0.0, 31.0), Anchor::Start, "height: layers that run");
    drawing.line("axis", (left, base), (right, base));
    let mut until = f64::NEG_INFINITY;
    for (value, text) in scale.ticks(4) {
        let at = left + scale.place(value) * (right - left);
        drawing.line("axis", (at, base), (at, base + 4.0));
        if at - width_of(&text) / 2.0 > until {
            drawing.text("tick", (at, base + 17.0), Anchor::Middle, &text);
            until = at + width_of(&text) / 2.0 + 8.0;
        }
    }
    drawing.text("label", (right, base + 32.0), Anchor::End, "steps");
    for (place, row) in rows.iter().enumerate() {
        let owner = |phase: usize| {
            rows[..place].iter().position(|other| other.run.phase_keys.get(phase) == row.run.phase_keys.get(phase))
        };
        let first = (0..row.run.segments.len()).find(|phase| owner(*phase).is_none());
        match first {
            Some(0) => {
                for (number, _) in teachers.iter().enumerate() {
                    let from = (lessons, lesson(number, teachers.len(), rows.len()));
                    drawing.line("edge", from, (left, y(place) - height(row.run.segments[0].stack.len()) / 2.0));
                }
            }
            Some(phase) => {
                let (at, from) = (x(row.run.segments[phase].steps.start), owner(phase - 1).unwrap_or(place));
                drawing.line("edge", (at, y(from)), (at, y(place)));
            }
            None => drawing.text("tick", (x(0) + 4.0, y(place) - 6.0), Anchor::Start, "as the row above"),
        }
        for (segment, key) in row.run.segments.iter().zip(&row.run.phase_keys).skip(first.unwrap_or(usize::MAX)) {
            let (from, to, depth) = (x(segment.steps.start), x(segment.steps.end), segment.stack.len());
            let frozen = depth - segment.trained_layers().min(depth);
            let (bottom, wide) = (y(place), (to - from - 1.0).max(0.5));
            drawing.rect(&format!("band c{}", row.class), (from, bottom - height(frozen)), (wide, height(frozen)));
            drawing.rect(&format!("bar c{}", row.class), (from, bottom - height(depth)), (wide, height(depth - frozen)));
            let text = number::plural(depth as u64, "layer");
            let text = if width_of(&text) + 4.0 < wide { text } else { depth.to_string() };
            if width_of(&text) < wide && height(depth - frozen) > 10.0 {
                drawing.text(
                    "inverse",
                    (from + wide / 2.0, bottom - height(depth) + height(depth - frozen) / 2.0 + 3.8),
                    Anchor::Middle,
                    &text,
                );
            }
            let learn = if frozen > 0 { format!(", {frozen} frozen") } else { String::new() };
            let title = format!(
                "{}, steps {} to {}: {}{learn}; node {}",
                row.name,
                number::exact(segment.steps.start),
                number::exact(segment.steps.end),
                number::plural(depth as u64, "layer"),
                key.get(..12).unwrap_or(key)
            );
            drawing.dot("hover", (from + wide / 2.0, bottom - height(depth) / 2.0), (wide / 2.0).min(BOX / 2.0), &title);
        }
        for probe in row.run.probes.iter() {
            let title = format!("{} after step {}", probe.kind.name(), number::exact(probe.step));
            drawing.dot("dot", (x(probe.step), y(place)), 2.4, &title);
        }
        drawing.text(&format!("name c{}", row.class), (right + 8.0, y(place) - 6.0), Anchor::Start, &row.name);
    }
    for (number, name) in teachers.iter().enumerate() {
        let middle = lesson(number, teachers.len(), rows.len());
        drawing.rect("margin", (0.0, middle - 11.0), (lessons, 22.0));
        drawing.text("tick", (lessons / 2.0, middle + 3.8), Anchor::Middle, name);
    }
    drawing.finish("phases of every arm over steps")
}

/// The middle of a teacher's box.
fn lesson(number: usize, teachers: usize, rows: usize) -> f64 {
    TOP + ROW * rows as f64 * (number as f64 + 0.5) / teachers.max(1) as f64
}
