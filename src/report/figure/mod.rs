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

use super::model::Figure;
use super::reading::Reading;

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
    drawn.into_iter().flatten().filter(|figure| !figure.panels.is_empty()).collect()
}

/// The width of a panel in its own units: at this width or more its text is as large as the page's small text.
const WIDTH: f64 = 366.0;
/// Points of print for each of these units: a panel is as wide as a column, 84 mm, and its text has seven points or more.
const POINTS: f64 = 0.65;
