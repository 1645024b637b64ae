//! What a schedule does at every step: depth, learning rate, what learns, what is read.
//!
//! Owns all arithmetic on steps: the planner counts from it, the engine trains by it, the report draws phase boundaries from it.
//! Deliberately knows no store, no tensor, no syntax. Invariant: segments tile `[0, end)` without a gap; an event at step N acts
//! after N steps are done and before the next; none acts at the end.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::study::Action;

/// A layer by its identity, counted from 0 in the order of creation: stable under insertion, part of its parameters' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LayerId(pub u32);

/// A schedule worked out for one recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Steps of the run.
    pub end: u64,
    /// Phases in order.
    pub segments: Vec<Segment>,
}

/// One phase: a stretch without events. All fields hold from its first step to its last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Steps of the run, end exclusive.
    pub steps: Range<u64>,
    /// What happened at its start, in order; empty for the first.
    pub actions: Vec<Action>,
    /// The stack from bottom to top.
    pub stack: Vec<LayerId>,
    /// Ends of blocks: after how many layers of the stack each block ends; the last is the stack's length.
    pub block_ends: Vec<usize>,
    /// Layers that appear at its start (for the first segment: the whole stack) and how they start.
    pub new_layers: Vec<NewLayer>,
    /// What learns and what does not.
    pub frozen: Frozen,
    /// All moments and step counts are dropped at its start.
    pub reset_optimizer: bool,
    /// The learning rate.
    pub rate: Rate,
    /// Sequences of one step.
    pub batch: u64,
    /// Where in the data its first step reads.
    pub data: DataPosition,
}

/// A layer that appears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewLayer {
    /// Which.
    pub layer: LayerId,
    /// How its parameters start.
    pub first: FirstValues,
}

/// How the parameters of a new layer start. Moments and step counts always start empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FirstValues {
    /// By the model's init.
    Init,
    /// By the model's init, output projections (`o`, `down`) at zero.
    Identity,
    /// As another layer of the stack before the event.
    CopyOf(LayerId),
}

/// What does not learn: no gradient, no decay, no optimizer state, no part in the clipping norm.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Frozen {
    /// Layers.
    pub layers: BTreeSet<LayerId>,
    /// So many layers at the bottom of the stack run without a tape: no gradient passes below them, so an own embedding and the
    /// entry norm stop too, and a tied embedding learns from the head's side alone.
    pub prefix: usize,
    /// The embedding, by `freeze embedding` or by the model.
    pub embedding: bool,
    /// The head, by `freeze head` or by the model.
    pub head: bool,
    /// All norms.
    pub norms: bool,
}

/// Where a step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataPosition {
    /// Which shard, from 0.
    pub shard: u64,
    /// How many sequences of this shard have been read, over all its epochs.
    pub sequence: u64,
}

/// The learning rate of a segment as pieces that tile its steps. Two segments that train under equal rates have equal pieces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// In order.
    pub pieces: Vec<RatePiece>,
}

/// A stretch of steps with one formula. A ramp that is still under way (`rewarm`) multiplies it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatePiece {
    /// Steps of the run.
    pub steps: Range<u64>,
    /// The formula.
    pub formula: RateFormula,
    /// `rewarm lr over n` at step `from`: times (s − from + 1) / n while that is below 1.
    pub ramp: Option<(u64, u64)>,
}

/// Formulas of a learning rate at step s of the run; all rates absolute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RateFormula {
    /// peak · (s − from + 1) / over.
    Warmup {
        /// Step of the restart.
        from: u64,
        /// Length.
        over: u64,
        /// Rate at its end.
        peak: f64,
    },
    /// The same rate throughout.
    Constant {
        /// The rate.
        rate: f64,
    },
    /// high + (low − high) · x, x = (s − from) / span.
    Linear {
        /// Where x is 0.
        from: u64,
        /// Where x is 1, after `from`.
        span: u64,
        /// Rate at 0.
        high: f64,
        /// Rate at 1.
        low: f64,
    },
    /// low + (high − low) · (1 + cos πx) / 2, x = (s − from) / span.
    Cosine {
        /// Where x is 0.
        from: u64,
        /// Where x is 1, after `from`.
        span: u64,
        /// Rate at 0.
        high: f64,
        /// Rate at 1.
        low: f64,
    },
}
