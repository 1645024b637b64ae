//! From an estimate to a verdict.
//!
//! Owns the three questions that a claim can ask (a direction, an equivalence, an overtaking), each reduced to the side that the
//! data lean to and one p-value for that side, so that claims of different kinds can share one error rate ([`super::holm()`]).
//! Invariant: without correction, p < 0.05 exactly where the interval named beside the question excludes the other answer.

use super::{Estimate, LEVEL, student};

/// What is concluded of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The data show it.
    Supported,
    /// The data show its contrary.
    Refuted,
    /// The data show neither.
    Undecided,
}

impl Verdict {
    /// As printed.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Supported => "supported",
            Verdict::Refuted => "refuted",
            Verdict::Undecided => "undecided",
        }
    }
}

/// The side that the data lean to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lean {
    /// To the claim.
    For,
    /// To its contrary.
    Against,
}

/// A side and how surprising the data would be if that side were wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The side.
    pub lean: Lean,
    /// Two-sided where the question is.
    pub p: f64,
}

impl Evidence {
    /// The verdict at 5 %, given a p-value corrected for the other claims.
    pub fn verdict(&self, corrected: f64) -> Verdict {
        match self.lean {
            _ if corrected.is_nan() || corrected >= 1.0 - LEVEL => Verdict::Undecided,
            Lean::For => Verdict::Supported,
            Lean::Against => Verdict::Refuted,
        }
    }
}

/// Is the mean difference below 0? Two-sided one-sample t-test of the differences: p < 0.05 where the 95 % interval excludes 0.
///
/// Source: Student (1908); the paired test of any textbook. `None` for fewer than two differences.
pub fn directional(difference: &Estimate) -> Option<Evidence> {
    let t = difference.t(0.0)?;
    let lean = if t < 0.0 { Lean::For } else { Lean::Against };
    Some(Evidence { lean, p: student::two_sided_p(t, difference.degrees()) })
}

/// Is the mean difference within ±`margin`? Two one-sided tests at 5 % each.
///
/// Leaning for: p is the larger of the two one-sided p-values, below 0.05 exactly where the **90 %** interval lies inside ±margin
/// (Schuirmann 1987, J. Pharmacokin. Biopharm. 15; Lakens 2017, doi 10.1177/1948550617697177). Leaning against: p is that of the
/// two-sided test at the nearer margin, below 0.05 exactly where the **95 %** interval lies outside ±margin.
pub fn equivalence(difference: &Estimate, margin: f64) -> Option<Evidence> {
    let df = difference.degrees();
    let (below, above) = (difference.t(-margin)?, difference.t(margin)?);
    if difference.mean.abs() < margin {
        let p = student::upper_p(below, df).max(student::upper_p(-above, df));
        Some(Evidence { lean: Lean::For, p })
    } else {
        let nearer = if difference.mean > 0.0 { above } else { below };
        Some(Evidence { lean: Lean::Against, p: student::two_sided_p(nearer, df) })
    }
}

/// Was the mean difference above 0 `before`, and is it below 0 at the `end`? Both must be shown.
///
/// Leaning for: p is the larger of the two p-values (an intersection–union test: Berger 1982, Technometrics 24), below 0.05 exactly
/// where both 95 % intervals lie on their sides. Leaning against: at least one mean lies on the wrong side; p is the smallest of
/// those, times their number.
pub fn overtaking(before: &Estimate, end: &Estimate) -> Option<Evidence> {
    let mirrored = Estimate { mean: -before.mean, ..*before };
    let parts = [directional(&mirrored)?, directional(end)?];
    let against: Vec<f64> = parts.iter().filter(|part| part.lean == Lean::Against).map(|part| part.p).collect();
    Some(match against.iter().copied().reduce(f64::min) {
        Some(least) => Evidence { lean: Lean::Against, p: (least * against.len() as f64).min(1.0) },
        None => Evidence { lean: Lean::For, p: parts[0].p.max(parts[1].p) },
    })
}
