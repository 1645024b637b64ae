//! Runs: an arm under a seed, as the table of a plan tells it.
//!
//! Owns the figures of one run on its own, shared or not. Invariant: `None` is "cannot be known before the data is at hand", never 0.

use serde::{Deserialize, Serialize};

use super::node::Key;
use crate::study::{Action, ProbeKind, Quantity};
use crate::timeline::Timeline;

/// One arm under one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Index into [`crate::study::Study::arms`].
    pub arm: usize,
    /// Its name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// Its schedule worked out, cut where a probe is taken.
    pub timeline: Timeline,
    /// Its phases, one for each segment of the timeline.
    pub phases: Vec<Key>,
    /// Every node that it needs, itself included, needs first.
    pub nodes: Vec<Key>,
    /// What is looked at, after how many steps, and the node that does it.
    pub probes: Vec<(ProbeKind, u64, Key)>,
    /// Its teachers, as losses name them, and their nodes; a checkpoint that is not at hand has none.
    pub teachers: Vec<(String, Option<Key>)>,
    /// Optimizer steps.
    pub steps: u64,
    /// Real tokens trained on.
    pub tokens: Option<u64>,
    /// Distinct ones among them.
    pub unique_tokens: Option<u64>,
    /// Σ tokens × layers run.
    pub active_layer_tokens: Option<u64>,
    /// Σ tokens × layers that learn.
    pub trained_layer_tokens: Option<u64>,
    /// FLOPs of training, without the head.
    pub flops_student: Option<f64>,
    /// FLOPs of training.
    pub flops_student_with_head: Option<f64>,
    /// FLOPs of its teacher: training it, its cache, its passes beside the student.
    pub flops_teacher: Option<f64>,
    /// FLOPs of the run if it were the only one: nothing shared, its teachers beside it in every step. A teacher's own training is not in it.
    pub flops_alone: Option<f64>,
    /// Parameters at the end.
    pub params_total: u64,
    /// Those without the head's own matrix.
    pub params_without_head: u64,
    /// Those of the layers alone.
    pub params_stack: u64,
    /// For a control whose length is solved.
    pub mismatch: Option<Mismatch>,
}

/// A checkpoint to which a schedule gives a name: `save "name"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Saved<'a> {
    /// The name.
    pub name: &'a str,
    /// Steps of the run that are done then.
    pub step: u64,
    /// The phase that ends there.
    pub phase: &'a Key,
}

impl PlannedRun {
    /// The checkpoints that its schedule names, in the order of their steps. An event begins a phase: named is what the
    /// phase before it ends in.
    pub fn saved(&self) -> impl Iterator<Item = Saved<'_>> {
        let ends = self.phases.iter().zip(self.timeline.segments.iter().skip(1));
        ends.flat_map(|(phase, next)| {
            next.actions.iter().filter_map(move |action| match action {
                Action::Save(name) => Some(Saved { name, step: next.steps.start, phase }),
                _ => None,
            })
        })
    }
}

/// How well a control agrees with the arm that it is matched to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Name of that arm.
    pub to: String,
    /// What agrees.
    pub on: Quantity,
    /// Steps that the control has for it.
    pub end: u64,
    /// What the other arm has.
    pub wanted: f64,
    /// What the control has.
    pub reached: f64,
    /// (reached − wanted) / wanted: what rounding to steps leaves.
    pub relative: f64,
}
