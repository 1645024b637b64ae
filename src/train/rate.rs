//! The learning rate of a step, from the pieces that the timeline worked out.

use crate::timeline::{Rate, RateFormula};

/// The rate at a step of the run; 0 outside the segment.
pub(super) fn rate_at(rate: &Rate, step: u64) -> f64 {
    let Some(piece) = rate.pieces.iter().find(|piece| piece.steps.contains(&step)) else { return 0.0 };
    let part = |from: u64, span: u64| step.saturating_sub(from) as f64 / span.max(1) as f64;
    let value = match piece.formula {
        RateFormula::Warmup { from, over, peak } => peak * (step - from + 1) as f64 / over as f64,
        RateFormula::Constant { rate } => rate,
        RateFormula::Linear { from, span, high, low } => high + (low - high) * part(from, span),
        RateFormula::Cosine { from, span, high, low } => {
            low + (high - low) * (1.0 + libm::cos(std::f64::consts::PI * part(from, span))) / 2.0
        }
    };
    let ramp = piece.ramp.map_or(1.0, |(from, over)| ((step - from + 1) as f64 / over.max(1) as f64).min(1.0));
    value * ramp
}
