//! The loss: Σ factor × term, each term the mean over the counted tokens of the whole batch.
//!
//! A micro-batch contributes its share of that mean, so that the sum over micro-batches is the loss of the batch, however it is cut.

use crate::study::{Loss, LossTerm};
use crate::tensor::{Device, Fault, Matrix, Operations, Real, Scalar, Tape, Targets, TeacherRows};

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

/// A micro-batch's share of the loss. `teacher` is asked once for each KL term, at its temperature.
pub(super) fn share<E: Real, D: Device<E>, O: Operations<E, D>, T: Tape<E, D>>(
    tape: &mut T,
    terms: &[Term],
    logits: &Matrix<E, D>,
    targets: &Targets<E, D>,
    mut teacher: impl FnMut(f64) -> Result<TeacherRows<E, D>, Fault<D>>,
) -> Result<Scalar<E, D>, Fault<D>> {
    let ops = O::default();
    let mut shares = Vec::with_capacity(terms.len());
    for term in terms {
        let (factor, each) = match *term {
            Term::CrossEntropy { factor } => (factor, ops.cross_entropy(tape, logits, targets)?),
            Term::Kl { factor, temperature } => (factor, ops.kl(tape, logits, &teacher(temperature)?, temperature)?),
        };
        shares.push((factor, ops.weighted_sum(tape, &each, targets)?));
    }
    ops.combine(tape, &shares)
}
