//! Numbers to places and back to ticks.

use crate::report::number;

/// A range of values that is laid onto a range of places.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Linear, over at least a tiny range.
    pub fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        let least = 1e-12_f64.max(low.abs().max(high.abs()) * 1e-9);
        if high - low < least {
            Self { low: low - least, high: high + least, log: false }
        } else {
            Self { low, high, log: false }
        }
    }

    /// Linear over what these values span, with room at both ends.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = span(values);
        let room = (high - low) * 0.08;
        Self::linear(low - room, high + room)
    }

    /// Logarithmic over what these values span; values at or below 0 are not shown.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = span(values.into_iter().filter(|value| *value > 0.0));
        if !(low.is_finite() && high.is_finite()) {
            return Self { low: 1.0, high: 10.0, log: true };
        }
        Self { low: low / 1.25, high: high * 1.25, log: true }
    }

    /// The place of a value, as a fraction of the range.
    pub fn place(&self, value: f64) -> f64 {
        if self.log { (value / self.low).ln() / (self.high / self.low).ln() } else { (value - self.low) / (self.high - self.low) }
    }

    /// About `wanted` round values with their texts.
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.log {
            return self.log_ticks();
        }
        let rough = (self.high - self.low) / wanted.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * 0.75)
            .unwrap_or(rough);
        // 2.5 needs a digit more than its power of ten.
        let decimals = (-step.log10().floor()).max(0.0) as usize + usize::from((step / power - 2.5).abs() < 1e-9 && power < 10.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first + 50)).map(|k| k as f64 * step).map(|value| (value, text(value, decimals))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let wide = self.high / self.low > 1e3;
        let digits: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let values = decades.flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)));
        let inside = values.filter(|value| *value >= self.low && *value <= self.high);
        inside.map(|value| (value, text(value, (-value.log10().floor()).max(0.0) as usize))).collect()
    }
}

/// With a true minus sign; steps in thousands by groups.
fn text(value: f64, decimals: usize) -> String {
    if decimals == 0 && value.abs() >= 1_000.0 && value.abs() < 1e15 {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", number::exact(value.abs().round() as u64));
    }
    number::fixed(value, decimals).replace('-', "−")
}

fn span(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
