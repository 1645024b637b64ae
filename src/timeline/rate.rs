//! The learning rate: pieces from a shape, and their value at a step.
//!
//! Owns the formulas. With r steps since the restart, span S to the next restart or the end, and warm-up w:
//! r < w: peak · (r + 1)/w; then constant: peak; linear: peak + (floor − peak) · x; cosine: floor + (peak − floor) · (1 + cos πx)/2
//! (1608.03983), x = (r − w)/max(1, S − w); wsd(decay: d): peak, then a line to 0 over the last d · S steps (2404.06395). The first
//! step of a warm-up is not 0, as in the nanoGPT family; others start from 0. Invariant: the same bytes on every platform (libm),
//! and equal rates have equal pieces.

use std::ops::Range;

use super::moment::share;
use super::{Rate, RateFormula, RatePiece};
use crate::study::training::Shape;
use crate::study::{Floor, RateShape, Warmup};

impl Rate {
    /// The rate of step `step` of the run; 0 outside the pieces.
    pub fn at(&self, step: u64) -> f64 {
        self.pieces.iter().find(|piece| piece.steps.contains(&step)).map_or(0.0, |piece| piece.at(step))
    }

    /// The part of it in `steps`.
    pub(super) fn within(&self, steps: Range<u64>) -> Rate {
        let cut = |piece: &RatePiece| RatePiece { steps: overlap(&piece.steps, &steps), ..piece.clone() };
        Rate { pieces: self.pieces.iter().map(cut).filter(|piece| !piece.steps.is_empty()).collect() }
    }
}

impl RatePiece {
    fn at(&self, step: u64) -> f64 {
        // Steps are far below 2^53: exact as f64.
        let since = |from: u64| step.saturating_sub(from) as f64;
        let rate = match self.formula {
            RateFormula::Warmup { from, over, peak } => peak * ((since(from) + 1.0) / over as f64),
            RateFormula::Constant { rate } => rate,
            RateFormula::Linear { from, span, high, low } => high + (low - high) * (since(from) / span as f64),
            RateFormula::Cosine { from, span, high, low } => {
                low + (high - low) * (1.0 + libm::cos(std::f64::consts::PI * (since(from) / span as f64))) / 2.0
            }
        };
        self.ramp.map_or(rate, |(from, over)| rate * ((since(from) + 1.0) / over as f64).min(1.0))
    }
}

/// What determines the rate of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Course {
    /// Step of the last restart, or 0.
    pub(super) restart: u64,
    /// Step of the next, or the end.
    pub(super) next: u64,
    /// The peak in force.
    pub(super) peak: f64,
    /// Step and length of the last re-warm-up.
    pub(super) ramp: Option<(u64, u64)>,
}

/// The rate of `steps` under a shape.
pub(super) fn rate(shape: &RateShape, course: Course, steps: &Range<u64>) -> Rate {
    let mut pieces: Vec<RatePiece> = Vec::new();
    for (range, formula) in formulas(shape, course) {
        let range = overlap(&range, steps);
        // (s − from + 1)/over is below 1 for s < from + over − 1; from there on no ramp is left, and none is written.
        let ramp_end = course.ramp.map_or(range.start, |(from, over)| from.saturating_add(over).saturating_sub(1));
        let cut = ramp_end.clamp(range.start, range.end.max(range.start));
        for (range, ramp) in [(range.start..cut, course.ramp), (cut..range.end, None)] {
            if range.is_empty() {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.formula == formula && last.ramp == ramp => last.steps.end = range.end,
                _ => pieces.push(RatePiece { steps: range, formula: formula.clone(), ramp }),
            }
        }
    }
    Rate { pieces }
}

/// The formulas from one restart to the next.
fn formulas(shape: &RateShape, course: Course) -> Vec<(Range<u64>, RateFormula)> {
    let Course { restart, next, peak, .. } = course;
    let span = next - restart;
    let warmup = match shape.warmup {
        Warmup::Steps(steps) => steps,
        Warmup::Fraction(fraction) => share(fraction, span),
    };
    let warm = restart.saturating_add(warmup).min(next);
    let rest = (next - warm).max(1);
    let floor = |to: Floor| match to {
        Floor::OfPeak(fraction) => peak * fraction,
        Floor::Rate(rate) => rate,
    };
    let constant = RateFormula::Constant { rate: peak };
    // A warm-up of one step is at the peak at once.
    let rising = if warmup > 1 { RateFormula::Warmup { from: restart, over: warmup, peak } } else { constant.clone() };
    let mut formulas = vec![(restart..warm, rising)];
    match shape.shape {
        Shape::Constant => formulas.push((warm..next, constant)),
        Shape::Linear { to } => formulas.push((warm..next, falling(warm, rest, peak, floor(to)))),
        Shape::Cosine { to } if floor(to) == peak => formulas.push((warm..next, constant)),
        Shape::Cosine { to } => {
            formulas.push((warm..next, RateFormula::Cosine { from: warm, span: rest, high: peak, low: floor(to) }));
        }
        Shape::Wsd { decay } => {
            let fall = next - share(decay, span).min(next - warm);
            formulas.push((warm..fall, constant));
            formulas.push((fall..next, falling(fall, (next - fall).max(1), peak, 0.0)));
        }
    }
    formulas
}

fn falling(from: u64, span: u64, high: f64, low: f64) -> RateFormula {
    if high == low { RateFormula::Constant { rate: high } } else { RateFormula::Linear { from, span, high, low } }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(shape: Shape, warmup: Warmup, course: Course) -> Rate {
        rate(&RateShape { warmup, shape }, course, &(course.restart..course.next))
    }
    const COURSE: Course = Course { restart: 100, next: 200, peak: 2.0, ramp: None };

    #[test]
    fn warm_up_then_cosine_as_the_conventions_have_it() {
        let rate = shaped(Shape::Cosine { to: Floor::OfPeak(0.1) }, Warmup::Steps(10), COURSE);
        assert_eq!(rate.at(100), 2.0 * (1.0 / 10.0));
        assert_eq!(rate.at(109), 2.0);
        assert_eq!(rate.at(110), 2.0);
        let middle = 0.2 + 1.8 * (1.0 + libm::cos(std::f64::consts::PI * (45.0 / 90.0))) / 2.0;
        assert_eq!(rate.at(155), middle);
        assert!(rate.at(199) > 0.2 && rate.at(199) < 0.202);
        assert_eq!((rate.at(99), rate.at(200)), (0.0, 0.0));
    }

    #[test]
    fn wsd_falls_over_the_last_part_of_the_span() {
        let rate = shaped(Shape::Wsd { decay: 0.2 }, Warmup::Fraction(0.05), COURSE);
        assert_eq!((rate.at(100), rate.at(104), rate.at(179), rate.at(180), rate.at(190)), (0.4, 2.0, 2.0, 2.0, 1.0));
    }

    #[test]
    fn a_ramp_multiplies_and_ends() {
        let rate = shaped(Shape::Constant, Warmup::Steps(0), Course { ramp: Some((120, 4)), ..COURSE });
        let rate = rate.within(120..200);
        assert_eq!([120, 121, 122, 123, 124].map(|step| rate.at(step)), [0.5, 1.0, 1.5, 2.0, 2.0]);
        assert_eq!(rate.pieces.len(), 2);
    }

    #[test]
    fn equal_rates_have_equal_pieces() {
        let constant = shaped(Shape::Constant, Warmup::Steps(1), COURSE);
        assert_eq!(constant.pieces.len(), 1);
        assert_eq!(shaped(Shape::Cosine { to: Floor::Rate(2.0) }, Warmup::Steps(0), COURSE), constant);
        assert_eq!(shaped(Shape::Linear { to: Floor::OfPeak(1.0) }, Warmup::Steps(0), COURSE), constant);
    }
}
