//! How much of an estimate is due to which documents were held out.
//!
//! Owns the pairing by document: a combination is worked out for each document, as a sum over its tokens and a mean over seeds, from runs that were
//! evaluated on the same tokens. Invariant: where one of them was not, nothing is said.

use crate::stats::OverDocuments;
use crate::study::{Linear, Metric, Term};

use super::reading::{At, Paired, Reading, step_of};
use super::story::Evaluated;

/// The mean of a combination of cross entropies over the documents of the holdout, under the seeds that `paired` has; without the combination's constant.
pub fn over_documents(reading: &Reading<'_>, sum: &Linear, at: At, paired: &Paired) -> Option<OverDocuments> {
    let mut tokens: Option<&[u64]> = None;
    let mut sums: Vec<f64> = Vec::new();
    for (seed, _) in &paired.values {
        for (factor, Term { metric, arms }) in &sum.terms {
            if *metric != Metric::ValidationCe {
                return None;
            }
            let share = factor / (arms.arms.len() * paired.values.len()) as f64;
            for arm in &arms.arms {
                let run = reading.run(*arm, *seed)?;
                let Evaluated { step, tokens: own, ce } = run.evaluated.as_deref()?;
                if step_of(run, at) != Some(*step) || own != tokens.get_or_insert(own) || ce.len() != own.len() {
                    return None;
                }
                sums.resize(own.len(), 0.0);
                sums.iter_mut().zip(ce).for_each(|(sum, ce)| *sum += share * ce);
            }
        }
    }
    OverDocuments::of(&sums, tokens?)
}
