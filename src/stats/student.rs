//! Student's t distribution: quantiles and tail probabilities.
//!
//! Owns the only use of `statrs`. Source: Student (1908), Biometrika 6; tested against published quantiles in `tests/stats.rs`.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// The value that a t variable with `df` degrees of freedom stays below with probability `p`; NaN outside 0 < p < 1, df > 0.
///
/// The library's inverse is refined by Newton steps on its distribution function, which is accurate to about 1e-14.
pub fn quantile(p: f64, df: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, df) else { return f64::NAN };
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    let mut x = -t.inverse_cdf(tail);
    for _ in 0..3 {
        let density = t.pdf(x);
        if density > 0.0 {
            x += (t.sf(x) - tail) / density;
        }
    }
    if p < 0.5 { -x } else { x }
}

/// P(T > t) for T with `df` degrees of freedom.
pub fn upper_p(t: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(distribution) if !t.is_nan() => distribution.sf(t),
        _ => f64::NAN,
    }
}

/// P(|T| > |t|) for T with `df` degrees of freedom.
pub fn two_sided_p(t: f64, df: f64) -> f64 {
    (2.0 * upper_p(t.abs(), df)).min(1.0)
}
