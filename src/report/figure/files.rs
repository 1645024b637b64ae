//! Figures as files: each panel as wide as a column of a paper, and where there are several, all of them side by side on two columns.
//!
//! Owns their names and how panels lie beside one another. Invariant: a page of panels is no longer than a page of paper.

use super::WIDTH;
use super::drawing::{At, Drawing, Panel};
use crate::report::model::Figure;

/// Between two columns, in units of a drawing: 6 mm.
const GAP: f64 = 27.0;
/// Around a file, for strokes that lie on its edge.
const MARGIN: f64 = 2.0;
/// Rows of panels of a page.
const ROWS: usize = 4;

/// What is written of a figure: names of files and what is in them. `loss-1.svg` has its first panel, `loss-wide.svg` all of them, `loss-wide-2.svg` what
/// had no room there; the same as PDF and PNG with the feature `figures`.
pub fn files(figure: &Figure) -> impl Iterator<Item = (String, Vec<u8>)> {
    let single = (1..)
        .zip(&figure.panels)
        .map(|(number, panel)| (format!("{}-{number}", figure.name), beside(std::slice::from_ref(panel), &panel.label)));
    let pages = figure.panels.chunks(2 * ROWS).filter(|_| figure.panels.len() > 1).zip(1..).map(|(panels, number)| {
        let behind = if number == 1 { String::new() } else { format!("-{number}") };
        (format!("{}-wide{behind}", figure.name), beside(panels, &figure.title))
    });
    single
        .chain(pages)
        .flat_map(|(name, panel)| forms(&panel).map(|(ending, bytes)| (format!("{name}.{ending}"), bytes)).collect::<Vec<_>>())
}

fn forms(panel: &Panel) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let svg = std::iter::once(("svg", panel.file().into_bytes()));
    #[cfg(feature = "figures")]
    let svg = svg.chain([("pdf", super::pdf::file(panel)), ("png", super::png::file(panel))]);
    svg
}

/// Panels in rows of two.
fn beside(panels: &[Panel], label: &str) -> Panel {
    let (mut shapes, mut top) = (Vec::new(), MARGIN);
    for row in panels.chunks(2) {
        for (column, panel) in row.iter().enumerate() {
            let by: At = (MARGIN + column as f64 * (WIDTH + GAP), top);
            shapes.extend(panel.drawing.shapes.iter().map(|shape| shape.moved(by)));
        }
        top += row.iter().map(|panel| panel.drawing.size.1).fold(0.0, f64::max) + GAP / 2.0;
    }
    let width = if panels.len() > 1 { 2.0 * WIDTH + GAP } else { panels.first().map_or(WIDTH, |panel| panel.drawing.size.0) };
    Panel { label: label.to_owned(), drawing: Drawing { size: (width + 2.0 * MARGIN, top - GAP / 2.0 + MARGIN), shapes } }
}
