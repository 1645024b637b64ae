//! Why a schedule cannot be worked out.
//!
//! Owns the words; `check` finds the place in the text by the event's number.

/// A fault of a schedule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct TimelineError {
    /// Index into [`crate::study::Schedule::events`]; `None`: the start, or where [`Fault::at_end`] the end.
    pub event: Option<usize>,
    /// What is wrong.
    pub kind: Fault,
}

/// What is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// More layers at the start than the model has.
    #[error("the schedule starts with {wanted} layers, and the model has {layers}")]
    StartTooDeep {
        /// At the start.
        wanted: usize,
        /// Of the model.
        layers: usize,
    },
    /// `start with 0 blocks`.
    #[error("the schedule starts without a layer")]
    StartEmpty,
    /// A moment that is not after the one before it.
    #[error("step {step} is not after the moment before it, step {before}")]
    NotAfter {
        /// The moment.
        step: u64,
        /// The one before; 0 is the start of the run.
        before: u64,
    },
    /// A token that was read before the event before it.
    #[error("token {token} is read before the moment before it, step {before}")]
    TokenNotAfter {
        /// The token.
        token: u64,
        /// The moment before.
        before: u64,
    },
    /// An event that would never happen.
    #[error("step {step} is not before the end of the schedule, step {end}")]
    NotBeforeEnd {
        /// The moment.
        step: u64,
        /// The end.
        end: u64,
    },
    /// An end that is not after the last event, or a run without steps.
    #[error("the schedule ends at step {end}, which is not after the moment before it, step {before}")]
    EndNotAfter {
        /// The end.
        end: u64,
        /// The last event.
        before: u64,
    },
    /// `every` without an end to stop it.
    #[error("this goes on for ever: the end counts from the last event, and nothing stops `every`")]
    Endless,
    /// `end every …`.
    #[error("an end happens once")]
    EndRepeats,
    /// A percentage of an end that depends on it.
    #[error("a percentage of the end needs an end that does not count from it")]
    PercentOfItself,
    /// More events than any experiment has.
    #[error("more than {0} events")]
    TooManyEvents(usize),
    /// More steps than can be counted with.
    #[error("more than {0} steps")]
    TooManySteps(u64),
    /// A token's step cannot be known before the data is at hand.
    #[error("the step of a token is not known while the data is not at hand; declare `tokens per step N`")]
    TokensUnknown,
    /// More layers than the model has.
    #[error("the stack grows to {wanted} layers, and the model has {layers}")]
    GrowsPast {
        /// After the event.
        wanted: usize,
        /// Of the model.
        layers: usize,
    },
    /// `grow 0 layers`.
    #[error("nothing grows")]
    GrowsNothing,
    /// New layers under a frozen prefix would never get a gradient.
    #[error("new layers below a frozen prefix would never learn")]
    GrowsBelowPrefix,
    /// More new layers than old ones to put them between.
    #[error("{new} layers cannot be interleaved with {old}")]
    Interleaved {
        /// How many grow.
        new: usize,
        /// How many there are.
        old: usize,
    },
    /// A place that the stack does not have.
    #[error("there is no layer {place} in a stack of {depth}")]
    NoSuchLayer {
        /// From 1.
        place: usize,
        /// Layers of the stack then.
        depth: usize,
    },
    /// `layers 3..1`.
    #[error("layers {first}..{last} are none")]
    EmptyRange {
        /// First place.
        first: usize,
        /// Last place.
        last: usize,
    },
    /// Nothing would be left of the stack.
    #[error("{layers} layers cannot be dropped from a stack of {depth}")]
    DropsAll {
        /// How many.
        layers: usize,
        /// Layers of the stack then.
        depth: usize,
    },
    /// Everything is frozen.
    #[error("nothing would learn from here on")]
    NothingLearns,
}

impl Fault {
    /// Whether a fault without an event is one of the end rather than of the start.
    pub fn at_end(&self) -> bool {
        !matches!(self, Fault::StartTooDeep { .. } | Fault::StartEmpty)
    }
}
