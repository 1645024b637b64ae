//! Claims: inequalities between linear combinations of metrics, decided on differences that are paired by seed.

use serde::{Deserialize, Serialize};

use super::Metric;

/// One `claim NAME: …`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// As written, white space folded.
    pub text: String,
    /// The metrics are read after this many steps; `None` is the end of each run.
    pub at_step: Option<u64>,
    /// What must hold.
    pub relation: Relation,
    /// Left side.
    pub left: Linear,
    /// Right side.
    pub right: Linear,
}

/// How the sides of a claim compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Relation {
    /// `left < right`.
    Less,
    /// `left > right`.
    Greater,
    /// `left ~ right within d`: |left − right| < `within`, shown by two one-sided tests.
    Equivalent {
        /// The margin, in the metric's unit.
        within: f64,
    },
    /// `left overtakes right after grow K`: worse at the evaluation before event K, better from some evaluation after it until the end.
    Overtakes {
        /// The number of the grow event, from 1.
        after_grow: u32,
    },
}

/// Σ factor × term + constant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Linear {
    /// Factors and terms in the order written.
    pub terms: Vec<(f64, Term)>,
    /// In the metric's unit.
    pub constant: f64,
}

/// A metric of some arms: `validation_ce[post, grow]`, averaged over the axes that are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// What is read.
    pub metric: Metric,
    /// Of which arms.
    pub arms: ArmSet,
}

/// The arms that a reference names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSet {
    /// As written: `post, grow`.
    pub text: String,
    /// Indices into [`super::Study::arms`], at least one.
    pub arms: Vec<usize>,
}
