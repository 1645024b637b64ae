//! Figures: panels of shapes, which a page takes as SVG in its own colours, LaTeX as TikZ, and a file of its own as SVG, PDF or PNG in full.
//!
//! Owns what is drawn and where. Drawn by hand and not by a plotting library, because a panel has to follow the page into dark mode, to
//! stay readable at the width of a telephone, and to carry its labels beside its lines. Deliberately knows no page: the names of
//! colours are the only link to it. Invariant: every text in a panel is escaped, and a panel refers to nothing outside itself.

mod cast;
mod course;
mod delta;
mod depth;
pub mod drawing;
mod files;
mod frame;
mod interaction;
#[cfg(feature = "figures")]
mod letters;
mod loss;
pub mod paint;
#[cfg(feature = "figures")]
mod pdf;
#[cfg(feature = "figures")]
mod png;
mod removal;
mod rms;
mod scale;
pub mod strip;
mod svg;
mod tikz;
mod transition;

pub use files::files;

use super::model::{Count, Figure};
use super::number;
use super::reading::Reading;
use super::story::RunState;

/// All figures that the story has data for.
pub fn all(reading: &Reading<'_>) -> Vec<Figure> {
    let drawn = [
        interaction::draw(reading),
        loss::draw(reading),
        delta::draw(reading),
        transition::draw(reading),
        removal::draw(reading),
        rms::draw(reading),
        depth::lens_over_blocks(reading),
        depth::gradients_over_layers(reading),
        course::draw(reading),
    ];
    let rests = rests_on(reading);
    let told = |mut figure: Figure| {
        // What is planned rests on no seed.
        if figure.name != "plan" {
            figure.caption = format!("{} {rests}", figure.caption);
        }
        figure
    };
    drawn.into_iter().flatten().filter(|figure| !figure.panels.is_empty()).map(told).collect()
}

/// How many seeds means are over, and of which arms fewer: `n = 5 seeds, but for [post, grow] (n = 4 of 5, 1 diverged), …`.
fn rests_on(reading: &Reading<'_>) -> String {
    const SHOWN: usize = 6;
    let seeds = &reading.study().seeds;
    let mut fewer: Vec<String> = Vec::new();
    for (index, arm) in reading.study().arms.iter().enumerate() {
        let mut count = Count { planned: seeds.len(), ..Count::default() };
        for seed in seeds {
            match reading.run(index, *seed).map_or(RunState::Missing, |run| run.state) {
                RunState::Finished => count.used += 1,
                RunState::Partial => count.partial += 1,
                RunState::Diverged { .. } => count.diverged += 1,
                RunState::Missing => count.missing += 1,
            }
        }
        if count.used < count.planned {
            fewer.push(format!("{} ({count})", arm.name));
        }
    }
    let more = fewer.len().saturating_sub(SHOWN);
    fewer.truncate(SHOWN);
    if more > 0 {
        fewer.push(number::plural(more as u64, "more arm"));
    }
    let n = format!("n = {}", number::plural(seeds.len() as u64, "seed"));
    match fewer.as_slice() {
        [] => format!("{n}."),
        fewer => format!("{n}, but for {}; what is not finished counts as far as it came.", number::listed(fewer)),
    }
}

/// The width of a panel in its own units: at this width or more its text is as large as the page's small text.
const WIDTH: f64 = 366.0;
/// Points of print for each of these units: a panel is as wide as a column, 84 mm, and its text has seven points or more.
const POINTS: f64 = 0.65;
