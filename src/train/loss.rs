//! The loss: Σ factor × term, each term the mean over the counted tokens of the whole batch.
//!
//! A micro-batch contributes its share of that mean, so that the sum over micro-batches is the loss of the batch, however it is cut.

use crate::study::{Loss, LossTerm};

/// A term with all that multiplies it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// Cross entropy.
    CrossEntropy {
        /// Its factor.
        factor: f64,
    },
    /// KL(teacher ‖ student) at a temperature.
    Kl {
        /// Its factor, τ² included: the gradient's size then does not depend on τ (1503.02531).
        factor: f64,
        /// τ.
        temperature: f64,
    },
}

/// The terms of a loss.
pub fn terms(loss: &Loss) -> Vec<Term> {
    let term = |(factor, term): &(f64, LossTerm)| match *term {
        LossTerm::CrossEntropy => Term::CrossEntropy { factor: *factor },
        LossTerm::Kl { temperature, .. } => Term::Kl { factor: factor * temperature * temperature, temperature },
    };
    loss.terms.iter().map(term).collect()
}

/// The temperature of the loss' KL; 1 where it has none.
pub(super) fn temperature(loss: &Loss) -> f64 {
    let of = |term: Term| match term {
        Term::Kl { temperature, .. } => Some(temperature),
        Term::CrossEntropy { .. } => None,
    };
    terms(loss).into_iter().find_map(of).unwrap_or(1.0)
}
