//! Schedules as written: moments and actions, parameters filled in. `timeline` works out what they amount to.

use serde::{Deserialize, Serialize};

use super::Loss;

/// A `schedule` with its parameters filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name: `grow`.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Depth at step 0.
    pub start: Start,
    /// In the order of the file.
    pub events: Vec<EventSpec>,
    /// When the run is over.
    pub end: Moment,
}

/// `start with 1 block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Start {
    /// All layers.
    All,
    /// This many blocks.
    Blocks(usize),
    /// This many layers.
    Layers(usize),
}

/// A moment and what happens then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSpec {
    /// When.
    pub moment: Moment,
    /// What, in order.
    pub actions: Vec<Action>,
}

/// When. An event at step N happens after N steps are done and before the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Moment {
    /// `at step N`.
    Step(u64),
    /// `at token N`: after the first step that brings the tokens trained on to N or more.
    Token(u64),
    /// `at P%` of the end, as a fraction.
    Fraction(f64),
    /// `after N steps` since the moment before.
    After(u64),
    /// `every N steps`, or `every N steps K times`.
    Every {
        /// The distance; the first is N steps after the moment before.
        steps: u64,
        /// How often; `None`: until the model is whole if the event grows it, else until the end.
        times: Option<u64>,
    },
}

/// What an event does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// `grow N blocks|layers …`.
    Grow {
        /// How many layers.
        layers: usize,
        /// Where they go.
        at: Insert,
        /// How they start.
        from: GrowFrom,
    },
    /// `drop N layers`, from the top.
    Drop {
        /// How many.
        layers: usize,
    },
    /// `freeze …`.
    Freeze(Layers),
    /// `thaw …`.
    Thaw(Layers),
    /// `reset optimizer`: moments and step counts are dropped.
    ResetOptimizer,
    /// `restart lr`: warm-up and shape begin anew.
    RestartLr,
    /// `rewarm lr over N steps`: linear from 0 to the shape's value, which goes on as it was.
    RewarmLr {
        /// Length of the ramp.
        steps: u64,
    },
    /// `rewind data`: back to the first sequence of the shard.
    RewindData,
    /// `fresh data`: on to the next shard.
    FreshData,
    /// `set lr V`: the peak from here on.
    SetLr(f64),
    /// `set batch N sequences`.
    SetBatch(u64),
    /// `set context N tokens`: the length of sequences from here on.
    SetContext(usize),
    /// `set loss …`: what is minimised from here on.
    SetLoss(Loss),
    /// `save "name"`.
    Save(String),
}

/// Where grown layers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Insert {
    /// On top of the stack, below `exit` and the head.
    Top,
    /// Below all layers.
    Bottom,
    /// Above the layer at this place, from 1.
    After(usize),
    /// In the middle, rounded down.
    Middle,
    /// One new layer above each group of old ones.
    Interleaved,
}

/// How grown layers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GrowFrom {
    /// The model's `init`.
    Init,
    /// The last layers of the stack, as many as grow.
    CopyLast,
    /// Layers `first..=last` by place, from 1, repeated as needed.
    CopyLayers {
        /// First place.
        first: usize,
        /// Last place.
        last: usize,
    },
    /// The whole stack, repeated as needed.
    CopyAll,
    /// The model's `init` with output projections (`o`, `down`) at zero.
    Identity,
}

/// What is frozen or thawed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layers {
    /// Every layer below the newest block, and all that lies below them: entry norm, an own embedding.
    Prefix,
    /// Layers `first..=last` by place, from 1.
    Range {
        /// First place.
        first: usize,
        /// Last place.
        last: usize,
    },
    /// The embedding.
    Embedding,
    /// The head.
    Head,
    /// All norms.
    Norms,
    /// Everything.
    All,
}
