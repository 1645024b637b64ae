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
        /// Which of those that are heard.
        teacher: usize,
    },
    /// Squares of differences of logits.
    Squares {
        /// Its factor.
        factor: f64,
        /// As above.
        teacher: usize,
    },
}

impl Term {
    /// The teacher that has a say in it.
    pub fn teacher(&self) -> Option<usize> {
        match self {
            Term::CrossEntropy { .. } => None,
            Term::Apart { teacher, .. } | Term::Squares { teacher, .. } => Some(*teacher),
        }
    }
}

/// The terms of a loss; `heard`: the names of the teachers that are heard, the loss' own among them.
pub fn terms(loss: &Loss, heard: &[&str]) -> Vec<Term> {
    let term = |(factor, term): &(f64, LossTerm)| {
        let teacher = term.teacher().and_then(|name| heard.iter().position(|heard| *heard == name)).unwrap_or(heard.len());
        let apart = |divergence, temperature: f64| {
            let factor = factor * temperature * temperature;
            Term::Apart { factor, divergence, temperature, teacher }
        };
        match *term {
            LossTerm::CrossEntropy => Term::CrossEntropy { factor: *factor },
            LossTerm::Kl { temperature, .. } => apart(Divergence::Kl, temperature),
            LossTerm::ReverseKl { temperature, .. } => apart(Divergence::ReverseKl, temperature),
            LossTerm::Jsd { temperature, beta, .. } => apart(Divergence::Jsd { beta }, temperature),
            LossTerm::Mse { .. } => Term::Squares { factor: *factor, teacher },
        }
    };
    loss.terms.iter().map(term).collect()
}
