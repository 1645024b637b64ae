//! How much of an estimate is due to which documents were held out: the noise of evaluation, beside that of seeds.
//!
//! A mean over tokens, whose tokens come by documents: Δ = Σ x_d / Σ t_d, with t_d counted tokens of document d and x_d the sum over them of
//! what is compared. It is a ratio of two sums over documents, with the variance se² = D/(D − 1) · Σ (x_d − Δ t_d)² / (Σ t_d)² (Cochran 1977,
//! *Sampling Techniques*, section 6.3, for a population that is large beside the sample); the same as of a mean over tokens with errors clustered by
//! document (Liang and Zeger 1986). Tested against statsmodels.

use super::student;

/// A mean over the tokens of a sample of documents, in nats a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverDocuments {
    /// Documents that have tokens.
    pub n: usize,
    /// Δ.
    pub mean: f64,
    /// se.
    pub standard_error: f64,
}

impl OverDocuments {
    /// From x_d and t_d; documents without a token are left out. `None` for fewer than two, or where anything is not finite.
    pub fn of(sums: &[f64], tokens: &[u64]) -> Option<Self> {
        let with = || sums.iter().zip(tokens).filter(|(_, tokens)| **tokens > 0).map(|(x, t)| (*x, *t as f64));
        let n = with().count();
        let all: f64 = with().map(|(_, t)| t).sum();
        let mean = super::sum(with().map(|(x, _)| x)) / all;
        let squares: f64 = with().map(|(x, t)| (x - mean * t).powi(2)).sum();
        let standard_error = (n as f64 / (n as f64 - 1.0) * squares).sqrt() / all;
        (n > 1 && mean.is_finite() && standard_error.is_finite()).then_some(Self { n, mean, standard_error })
    }

    /// t((1 + level)/2, D − 1) · se.
    pub fn half_width(&self, level: f64) -> f64 {
        student::quantile((1.0 + level) / 2.0, self.n as f64 - 1.0) * self.standard_error
    }
}
