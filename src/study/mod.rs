//! The nouns: a [`Study`] with everything resolved, as `check` makes it and every later stage reads it.
//!
//! Owns plain data. Deliberately knows no syntax, no store and no tensor. Invariant: `check` is the only maker of a [`Study`]
//! from text; a value in it never means "default", and no text in it still needs interpretation.

pub mod arm;
pub mod claim;
pub mod data;
pub mod equation;
pub mod metric;
pub mod model;
pub mod placement;
pub mod schedule;
pub mod seed;
pub mod teacher;
pub mod training;

use serde::{Deserialize, Serialize};

pub use arm::{Arm, Axis, AxisValue, Control, Matched, Recipe};
pub use claim::{ArmSet, Claim, Linear, Relation, Term};
pub use data::{Data, Documents, Holdout, Layout, Shard, Text, Tokenizer};
pub use metric::{Measure, Metric, Probe, ProbeKind, ProbeMoment, Quantity};
pub use model::{Embedding, Ffn, Head, Init, Model, Norm, NormKind, Positions, Vocabulary};
pub use placement::Placement;
pub use schedule::{Action, EventSpec, Layers, Moment, Schedule, Start};
pub use teacher::{Cache, Teacher, TeacherSource};
pub use training::{Batch, Floor, Loss, LossTerm, Optimizer, Precision, RateShape, Training, Warmup};

/// What is compared, how, and what is claimed of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Its name in the file.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// The factors that vary, in the order of the file.
    pub axes: Vec<Axis>,
    /// One for every cell of the axes that is not excepted (the last axis fastest), then the controls.
    pub arms: Vec<Arm>,
    /// Each arm is run once for each of them.
    pub seeds: Vec<u64>,
    /// What is measured while training.
    pub measures: Vec<Measure>,
    /// What is looked at more closely, and when.
    pub probes: Vec<Probe>,
    /// What is asserted.
    pub claims: Vec<Claim>,
    /// The tables asked for.
    pub reports: Vec<Ablation>,
    /// Every value that the file did not give, for `check --defaults` and the plan.
    pub defaults: Vec<Filled>,
}

/// `report ablation(rows: placement, columns: schedule)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ablation {
    /// Names of the axes down the side.
    pub rows: Vec<String>,
    /// Names of the axes along the top; empty for a list.
    pub columns: Vec<String>,
}

/// A default that was filled in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Filled {
    /// Whose: `model student`.
    pub owner: String,
    /// Which field: `norm`.
    pub field: String,
    /// The value as it would be written: `rms(eps: 1e-6)`.
    pub value: String,
    /// Why this one: a convention or its source.
    pub reason: String,
}
