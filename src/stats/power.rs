//! What a study of this size can see, and what size it would have needed.
//!
//! Source: Zar, Biostatistical Analysis, one-sample t-test, "minimum detectable difference": (t_α(2) + t_β(1)) · s/√n, both
//! quantiles with n − 1 degrees of freedom: a close and conservative stand-in for the noncentral t.

use super::{Estimate, LEVEL, student};

/// The probability with which a difference of the detectable size would be shown.
pub const POWER: f64 = 0.8;

/// The smallest true difference that this many seeds with this spread would show with probability [`POWER`].
pub fn minimum_detectable(estimate: &Estimate) -> Option<f64> {
    let df = estimate.degrees();
    estimate.standard_error().map(|se| (student::quantile((1.0 + LEVEL) / 2.0, df) + student::quantile(POWER, df)) * se)
}

/// How many seeds it would take until the 95 % interval excludes 0, if mean and spread stayed as they are; `None` beyond 1,000.
pub fn seeds_needed(estimate: &Estimate) -> Option<usize> {
    let sd = estimate.sd?;
    (2..=1_000).find(|n| {
        let n = *n as f64;
        student::quantile((1.0 + LEVEL) / 2.0, n - 1.0) * sd / n.sqrt() < estimate.mean.abs()
    })
}
