//! How a number is printed.
//!
//! Owns rounding, signs, plurals and magnitudes. Deliberately knows no table. Invariant: counts below a magnitude are exact at any size,
//! nothing prints as `-0.0000`, and what is not finite prints as a word.

/// Digits after the point with which values of one column are printed, given the half-widths of their intervals: two significant
/// digits of the middle one, and at least one of the smallest; `otherwise` where no value has an interval.
pub fn decimals(half_widths: &[f64], otherwise: usize) -> usize {
    let mut errors: Vec<f64> = half_widths.iter().copied().filter(|error| error.is_finite() && *error > 0.0).collect();
    errors.sort_by(f64::total_cmp);
    let (Some(smallest), Some(middle)) = (errors.first(), errors.get(errors.len() / 2)) else { return otherwise };
    let digits = |error: f64, significant: i32| significant - 1 - error.log10().floor() as i32;
    digits(*middle, 2).max(digits(*smallest, 1)).clamp(0, 7) as usize
}

/// With so many digits after the point; `diverged` for what is not a number.
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "diverged".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| matches!(c, '0' | '.')) => digits.to_owned(),
        _ => text,
    }
}

/// Like [`fixed`], with a plus sign before what prints as positive: for differences.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    let positive = value > 0.0 && text.chars().any(|c| matches!(c, '1'..='9'));
    if positive { format!("+{text}") } else { text }
}

/// Exactly, in groups of three: `9,007,199,254,740,993`.
pub fn exact(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// To two digits after the point in the largest magnitude that fits: `3.11B`; below a million exactly.
pub fn short(count: u64) -> String {
    const MAGNITUDES: [(u64, char); 3] = [(1_000_000_000_000, 'T'), (1_000_000_000, 'B'), (1_000_000, 'M')];
    for (size, letter) in MAGNITUDES {
        // In integers, so that 999,999,999 is 1.00B and not 1000.00M.
        let hundredths = (u128::from(count) * 100 + u128::from(size) / 2) / u128::from(size);
        if count >= 1_000_000 && hundredths >= 100 {
            return format!("{}.{:02}{letter}", hundredths / 100, hundredths % 100);
        }
    }
    exact(count)
}

/// To three significant digits with a power of ten: `1.24e18`.
pub fn scientific(value: f64) -> String {
    if value.is_finite() { format!("{value:.2e}") } else { fixed(value, 0) }
}

/// A probability: `0.031`, `< 0.001`.
pub fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { fixed(p, 3) }
}

/// `1 seed`, `5 seeds`.
pub fn plural(count: u64, singular: &str) -> String {
    if count == 1 { format!("1 {singular}") } else { format!("{} {singular}s", exact(count)) }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
