//! What a schedule does at every step: depth, learning rate, what learns, what is read.
//!
//! Owns all arithmetic on steps: the planner counts from it, the engine trains by it, the report draws phase boundaries from it.
//! Deliberately knows no store, no tensor, no syntax. Invariant: segments tile `[0, end)` without a gap; an event at step N acts
//! after N steps are done and before the next; none acts at the end.

pub mod build;
pub mod error;
pub mod moment;
mod rate;
mod sets;
mod stack;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::build::build;
pub use self::error::{Fault, TimelineError};
pub use self::moment::{Declared, StepTokens};
use crate::study::{Action, Data, Loss};

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

impl Timeline {
    /// The segment that a step of the run belongs to; the last one for steps at or after the end.
    pub fn at(&self, step: u64) -> &Segment {
        let at = self.segments.partition_point(|segment| segment.steps.end <= step);
        &self.segments[at.min(self.segments.len() - 1)]
    }

    /// Steps of the events that grow the stack, in order.
    pub fn grows(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().filter(|segment| segment.grows()).map(|segment| segment.steps.start)
    }

    /// Begins a new segment after `step` steps, where nothing else happens: a checkpoint to look at. Does nothing at an event or outside
    /// the run.
    pub fn cut(&mut self, step: u64) {
        let Some(at) = self.segments.iter().position(|segment| segment.steps.start < step && step < segment.steps.end) else {
            return;
        };
        let first = &mut self.segments[at];
        let second = Segment {
            steps: step..first.steps.end,
            actions: Vec::new(),
            new_layers: Vec::new(),
            reset_optimizer: false,
            rate: first.rate.within(step..first.steps.end),
            data: first.position(step),
            ..first.clone()
        };
        first.rate = first.rate.within(first.steps.start..step);
        first.steps.end = step;
        self.segments.insert(at + 1, second);
    }
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
    /// What is minimised.
    pub loss: Loss,
    /// Sequences of one step.
    pub batch: u64,
    /// Where in the data its first step reads.
    pub data: DataPosition,
}

impl Segment {
    /// How many steps it has.
    pub fn length(&self) -> u64 {
        self.steps.end - self.steps.start
    }

    /// Layers that run.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Whether a layer of the stack, by place from 0, learns.
    pub fn learns(&self, place: usize) -> bool {
        place >= self.frozen.prefix && self.stack.get(place).is_some_and(|layer| !self.frozen.layers.contains(layer))
    }

    /// Layers that learn.
    pub fn trained_layers(&self) -> usize {
        (0..self.depth()).filter(|place| self.learns(*place)).count()
    }

    /// Whether the event at its start grew the stack.
    pub fn grows(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Grow { .. }))
    }

    /// Tokens of a sequence.
    pub fn context(&self, data: &Data) -> usize {
        self.data.context.unwrap_or(data.context)
    }

    /// Where the step `step` of the run, which is one of this segment's, reads.
    pub fn position(&self, step: u64) -> DataPosition {
        let read = (step - self.steps.start).saturating_mul(self.batch);
        DataPosition { sequence: self.data.sequence.saturating_add(read), ..self.data }
    }
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
    /// All norms, those of layers that are yet to come too.
    pub norms: bool,
    /// What belongs to no layer besides embedding and head: norms, gains and scalars of entry and exit, by `freeze all`.
    pub ends: bool,
}

/// Where a step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataPosition {
    /// Which shard, from 0.
    pub shard: u64,
    /// How many sequences of this shard have been read, over all its epochs.
    pub sequence: u64,
    /// Tokens of a sequence, where `set context` has made them others than the data's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<usize>,
}

impl DataPosition {
    /// Where every run begins.
    pub const START: Self = Self { shard: 0, sequence: 0, context: None };
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
