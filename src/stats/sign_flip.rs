//! The exact sign-flip test: could differences whose signs are chance be so far from a value?
//!
//! Source: Fisher (1935), The Design of Experiments, §21, for paired differences. Where the two arms of a pair are exchangeable, each of the
//! 2ⁿ patterns of signs is as likely, and no normal distribution is assumed. Its smallest two-sided p is 2/2ⁿ: six pairs for 5 %.

/// With more pairs the patterns are too many to count.
const MOST: usize = 16;

/// Is the mean another than `from`? The share of patterns whose |Σ| reaches the observed |Σ (x − from)|; `None` for fewer than two values or too
/// many.
pub fn sign_flip(values: &[f64], from: f64) -> Option<f64> {
    share(values, from, |sum, observed, slack| sum.abs() >= observed.abs() - slack)
}

/// Is the mean above `from`? The share of patterns whose Σ reaches the observed Σ (x − from).
pub fn sign_flip_upper(values: &[f64], from: f64) -> Option<f64> {
    share(values, from, |sum, observed, slack| sum >= observed - slack)
}

fn share(values: &[f64], from: f64, reaches: fn(f64, f64, f64) -> bool) -> Option<f64> {
    if values.len() < 2 || values.len() > MOST {
        return None;
    }
    let distances: Vec<f64> = values.iter().map(|x| x - from).collect();
    let patterns = 1_u32 << distances.len();
    let sum = |pattern: u32| {
        distances.iter().enumerate().map(|(place, x)| if (pattern >> place) & 1 == 1 { -x } else { *x }).sum::<f64>()
    };
    // Sums that are equal but for their rounding are equal.
    let slack = 1e-12 * distances.iter().map(|x| x.abs()).sum::<f64>();
    let count = (0..patterns).filter(|pattern| reaches(sum(*pattern), sum(0), slack)).count();
    Some(count as f64 / f64::from(patterns))
}
