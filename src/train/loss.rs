//! The loss: Σ factor × term, each term the mean over the counted tokens of the whole batch.
//!
//! A micro-batch contributes its share of that mean, so that the sum over micro-batches is the loss of the batch, however it is cut.

use crate::study::{Loss, LossTerm};
use crate::tensor::Divergence;

/// A term with all that multiplies it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// Cross entropy.
    CrossEntropy {
        /// Its factor.
        factor: f64,
    },
    /// How far teacher and student are apart at a temperature.
    Apart {
        /// Its factor, τ² included: the gradient's size then does not depend on τ (1503.02531).
        factor: f64,
        /// By which measure.
        divergence: Divergence,
        /// τ.
        temperature: f64,
    },
    /// Squares of differences of logits.
    Squares {
        /// Its factor.
        factor: f64,
    },
}

impl Term {
    /// Whether a teacher has a say in it.
    pub fn is_taught(&self) -> bool {
        !matches!(self, Term::CrossEntropy { .. })
    }
}

/// The terms of a loss.
pub fn terms(loss: &Loss) -> Vec<Term> {
    let term = |(factor, term): &(f64, LossTerm)| {
        let apart =
            |divergence, temperature: f64| Term::Apart { factor: factor * temperature * temperature, divergence, temperature };
        match *term {
            LossTerm::CrossEntropy => Term::CrossEntropy { factor: *factor },
            LossTerm::Kl { temperature, .. } => apart(Divergence::Kl, temperature),
            LossTerm::ReverseKl { temperature, .. } => apart(Divergence::ReverseKl, temperature),
            LossTerm::Jsd { temperature, beta, .. } => apart(Divergence::Jsd { beta }, temperature),
            LossTerm::Mse { .. } => Term::Squares { factor: *factor },
        }
    };
    loss.terms.iter().map(term).collect()
}
