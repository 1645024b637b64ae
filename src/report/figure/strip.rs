//! A claim's interval on a line, with zero, its margin and its seeds.

use crate::report::number;
use crate::report::reading::Paired;
use crate::stats::{LEVEL, Verdict};

use super::drawing::{Anchor, Drawing, Panel};
use super::scale::Scale;

/// The drawing; `None` without an estimate.
pub fn draw(paired: &Paired, margin: Option<f64>, verdict: Verdict) -> Option<Panel> {
    let estimate = paired.estimate()?;
    const WIDTH: f64 = 300.0;
    const MIDDLE: f64 = 18.0;
    let (low, high) = estimate.interval(LEVEL).unwrap_or((estimate.mean, estimate.mean));
    let margins = margin.map_or_else(Vec::new, |margin| vec![-margin, margin]);
    let seeds = paired.numbers();
    // Two seeds can have an interval a hundred times their distance; what is cut off ends at the edge.
    let reach = seeds.iter().map(|value| value.abs()).chain(margins.iter().copied()).fold(0.0, f64::max) * 4.0;
    let scale =
        Scale::around(seeds.iter().copied().chain([0.0, low.max(-reach), high.min(reach)]).chain(margins.iter().copied()));
    let x = |value: f64| (8.0 + scale.place(value) * (WIDTH - 16.0)).clamp(1.0, WIDTH - 1.0);
    let class = verdict.name();
    let mut drawing = Drawing::new(WIDTH, 46.0);
    if let Some(margin) = margin {
        drawing.rect("margin", (x(-margin), 5.0), (x(margin) - x(-margin), 26.0));
    }
    drawing.line("zero", (x(0.0), 4.0), (x(0.0), 32.0));
    drawing.text("tick", (x(0.0), 44.0), Anchor::Middle, "0");
    if estimate.n > 1 {
        drawing.line(&format!("whisker {class}"), (x(low), MIDDLE), (x(high), MIDDLE));
    }
    for (seed, value) in &paired.values {
        drawing.dot(
            &format!("seed {class}"),
            (x(*value), MIDDLE + 8.0),
            2.0,
            &format!("seed {seed}: {}", number::signed(*value, 5)),
        );
    }
    drawing.dot(&format!("dot {class}"), (x(estimate.mean), MIDDLE), 4.6, &number::signed(estimate.mean, 5));
    Some(drawing.finish("estimate and 95 % interval"))
}
