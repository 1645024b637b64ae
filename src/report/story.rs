//! What a report reads: the study, and for each of its runs what is planned and what has been recorded so far.
//!
//! Owns the input types of the report. Deliberately independent of how plans and stores keep these things: whoever gathers a story
//! walks a run's chain of phases and joins their records. Invariant: nothing in a story is computed over more than one run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::record::{ProbeRecord, Real};
use crate::study::{ProbeKind, Study};
use crate::timeline::Segment;

use super::series::Measured;

/// A study and what is known of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Story {
    /// What is compared.
    pub study: Study,
    /// One for each arm and seed; the order does not matter. A run that is not here counts as [`RunState::Missing`].
    pub runs: Vec<RunStory>,
    /// The teachers that the study uses, in any order.
    pub teachers: Vec<TeacherStory>,
}

/// One arm under one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStory {
    /// Index into [`Study::arms`].
    pub arm: usize,
    /// The seed.
    pub seed: u64,
    /// How far it came.
    pub state: RunState,
    /// Its phases as planned, whether or not they have run.
    pub segments: Vec<Segment>,
    /// Key of the node of each planned phase, parallel to `segments`.
    pub phase_keys: Vec<String>,
    /// What its phases measured so far. At an event's step there are two values: the model before it, then the model after it.
    pub metrics: Measured,
    /// Its last evaluation document by document, where that is known and a claim compares the arm.
    pub evaluated: Option<Arc<Evaluated>>,
    /// Probes that have run, in any order.
    pub probes: Vec<ProbeStory>,
    /// What the plan says it costs.
    pub planned: Planned,
}

/// An evaluation document by document.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluated {
    /// Steps of the run done.
    pub step: u64,
    /// Counted tokens of each document of the holdout.
    pub tokens: Vec<u64>,
    /// Σ of their cross entropies in nats; parallel to `tokens`.
    pub ce: Vec<f64>,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// All its phases are in the store.
    Finished,
    /// Some of its phases are.
    Partial,
    /// Its loss stopped being finite.
    Diverged {
        /// After so many steps of the run.
        step: u64,
    },
    /// None of its phases is.
    Missing,
}

/// One probe of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeStory {
    /// Which.
    pub kind: ProbeKind,
    /// Steps of the run done on the model that it looked at; at an event's step, the model before it.
    pub step: u64,
    /// Key of its node.
    pub key: String,
    /// What it saw.
    pub record: ProbeRecord,
}

/// Exact counts of one run, from the plan. `None`: not known before the data is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Planned {
    /// Optimizer steps.
    pub steps: u64,
    /// Real tokens trained on.
    pub tokens: Option<u64>,
    /// Distinct tokens among them.
    pub unique_tokens: Option<u64>,
    /// Σ tokens × layers run.
    pub active_layer_tokens: Option<u64>,
    /// Σ tokens × layers that learn.
    pub trained_layer_tokens: Option<u64>,
    /// Student FLOPs with the head, where known.
    pub flops_student_with_head: Option<f64>,
    /// Parameters at the final depth, embedding and head included.
    pub params_total: u64,
}

/// What is known of a teacher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeacherStory {
    /// Its name in the file.
    pub name: String,
    /// Key of the node that trained it; `None` for one that was loaded.
    pub key: Option<String>,
    /// Its cross entropy on the holdout, where measured.
    pub validation_ce: Option<Real>,
}
