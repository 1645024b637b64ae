//! Why a study cannot be planned.
//!
//! Owns the words. What only forbids running (a corpus that is not at hand) is no error: see [`super::Plan::runnable`].

use crate::timeline::TimelineError;

/// Why a study cannot be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Its schedule cannot be worked out.
    #[error("the schedule of {arm}: {error}")]
    Timeline {
        /// Whose.
        arm: String,
        /// Why.
        error: TimelineError,
    },
    /// The schedule of a teacher.
    #[error("the schedule of the teacher `{teacher}`: {error}")]
    Teacher {
        /// Whose.
        teacher: String,
        /// Why.
        error: TimelineError,
    },
    /// A control is matched to itself, directly or through others.
    #[error("the length of {0} depends on itself")]
    Circle(String),
    /// Tokens cannot be counted yet.
    #[error(
        "the length of {arm} cannot be solved while the tokens of {of} are not known; declare `tokens per step N` or provide the text"
    )]
    Uncounted {
        /// The control.
        arm: String,
        /// Whose.
        of: String,
    },
    /// No length reaches what is wanted.
    #[error("no length of {arm} reaches the {quantity} of {to}")]
    Unreached {
        /// The control.
        arm: String,
        /// The arm that it is matched to.
        to: String,
        /// What should agree.
        quantity: &'static str,
    },
    /// A plan lists them one by one.
    #[error("more than {} million evaluations in all: measure less often", .0 / 1_000_000)]
    TooManyEvaluations(u64),
    /// The text is too short.
    #[error("the training part of `{data}` has not one sequence of {context} tokens")]
    NoSequence {
        /// Name of the declaration.
        data: String,
        /// Tokens of a sequence.
        context: usize,
    },
    /// Tokens that a model does not know.
    #[error("the model `{model}` has {size} token types, and `{data}` has {needed}")]
    Vocabulary {
        /// Name of the model.
        model: String,
        /// Its vocabulary.
        size: usize,
        /// Name of the declaration.
        data: String,
        /// Token types of the corpus.
        needed: usize,
    },
    /// Their distributions cannot be compared.
    #[error("the student `{student}` has {own} token types, its teacher `{teacher}` has {its}")]
    Vocabularies {
        /// Name of the student's model.
        student: String,
        /// Its vocabulary.
        own: usize,
        /// Name of the teacher.
        teacher: String,
        /// Its vocabulary.
        its: usize,
    },
    /// The teacher has no such tensor, or one of another shape.
    #[error("the student `{student}` takes `{tensor}` of shape {shape:?} from its teacher `{teacher}`, which has {its}")]
    Inheritance {
        /// Name of the student's model.
        student: String,
        /// The student's parameter.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Name of the teacher.
        teacher: String,
        /// What the teacher has in its place.
        its: String,
    },
    /// Weights of others that cannot be used.
    #[error("{of} cannot be read: {reason}")]
    Weights {
        /// Whose.
        of: String,
        /// Why.
        reason: String,
    },
    /// A plan that contradicts itself: never from a study, perhaps from a file.
    #[error("the plan is damaged: {0}")]
    Damaged(String),
}
