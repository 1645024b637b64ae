//! Trains a phase: batches in, a checkpoint and its metrics out.
//!
//! Owns steps, losses, the optimizer, checkpoints and the teacher's logits. Deliberately knows no arm, no claim and no other node's
//! reason. Invariants: the same node gives the same bytes, however often it was interrupted and however many threads there were; a
//! step happens whole or not at all; what does not learn stays the same to the bit; looking (evaluation, progress) changes nothing.

pub mod bench;
mod checkpoint;
mod documents;
mod evaluate;
mod imported;
mod logits;
mod loss;
mod metrics;
mod optimizer;
mod phase;
mod sets;
mod start;
mod step;
mod streamed;
mod teacher;
mod transition;
mod worker;

pub use crate::run::record::CHECKPOINT;
pub use checkpoint::{Checkpoint, CheckpointError, Meta};
pub(crate) use evaluate::counted;
pub use evaluate::{Evaluation, evaluate};
pub use logits::{Logits, LogitsHeader, Missing, truncate};
pub use loss::{Term, terms};
pub use optimizer::{Moments, Optimizer};
pub use sets::Learning;
pub use start::{Lies, Sources, begin};
pub use step::{ByName, Setting, State, Stepped, gradients, groups, step};
pub use teacher::{OnlineTeacher, Teacher};
pub use worker::TrainWorker;

use crate::run::worker::Failure;

/// Sequences of `context` tokens that run together where nothing learns: 2,048 tokens (an assumption), so that logits take little
/// memory and the desk is looked at often. A function of the context alone: an interruption changes no bit.
pub(crate) fn together(context: usize) -> usize {
    (2_048 / context.max(1)).max(1)
}

/// A device that refuses: in practice its memory is full.
pub(crate) fn refused(fault: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("the device refuses: {fault}"))
}

/// The disk refuses.
pub(crate) fn disk(context: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
    let context = context.into();
    move |source| Failure::Io { context, source }
}
