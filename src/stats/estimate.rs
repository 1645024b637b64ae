//! A mean over seeds with its spread and interval.
//!
//! Owns the convention of every interval in a report: two-sided, Student's t with n − 1 degrees of freedom, 95 % unless said
//! otherwise. The half-width in units of the sd is t(0.975, n − 1)/√n: n = 3 2.48, 4 1.59, 5 1.24, 6 1.05, 8 0.84, 10 0.715.

use super::student;

/// The level of intervals.
pub const LEVEL: f64 = 0.95;

/// A mean over n independent values, in their unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// How many values.
    pub n: usize,
    /// x̄ = Σ x / n.
    pub mean: f64,
    /// s = sqrt(Σ (x − x̄)² / (n − 1)); `None` for a single value.
    pub sd: Option<f64>,
}

impl Estimate {
    /// Of these values; `None` where there is none. Values that are not finite must be kept out, and counted, by the caller.
    pub fn of(values: &[f64]) -> Option<Self> {
        let first = *values.first()?;
        let n = values.len();
        // Relative to the first value, so that equal values have exactly their own mean and a spread of exactly zero.
        let mean = first + values.iter().map(|x| x - first).sum::<f64>() / n as f64;
        let sd = (n > 1).then(|| (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt());
        Some(Self { n, mean, sd })
    }

    /// n − 1.
    pub fn degrees(&self) -> f64 {
        self.n as f64 - 1.0
    }

    /// s/√n.
    pub fn standard_error(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.n as f64).sqrt())
    }

    /// t((1 + level)/2, n − 1) · s/√n.
    pub fn half_width(&self, level: f64) -> Option<f64> {
        self.standard_error().map(|se| student::quantile((1.0 + level) / 2.0, self.degrees()) * se)
    }

    /// x̄ ± half-width.
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        self.half_width(level).map(|half| (self.mean - half, self.mean + half))
    }

    /// t = (x̄ − from)/(s/√n); infinite, or 0 for equal values, where the spread is zero.
    pub fn t(&self, from: f64) -> Option<f64> {
        let distance = self.mean - from;
        self.standard_error().map(|se| if distance == 0.0 { 0.0 } else { distance / se })
    }
}

/// Σ x with the rounding error of each addition carried along (Neumaier 1974), so that a − b − a + b is exactly zero.
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0_f64);
    for x in values {
        let next = total + x;
        lost += if total.abs() >= x.abs() { (total - next) + x } else { (x - next) + total };
        total = next;
    }
    total + lost
}

/// The middle value, or the mean of the two middle ones; infinite values sort to the end. `None` where there is none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(lower + (upper - lower) / 2.0)
}
