//! Moments: steps, tokens and percentages into one another.
//!
//! Owns the rounding of a share of a run and the search for a token's step. Deliberately knows no events. Invariant: a share is
//! rounded in decimal, half up, so that 14.5 % of 100 is 15 whatever binary makes of 0.145.

use super::DataPosition;
use crate::study::{Batch, Data, Layout};

/// A share of a whole, rounded half up.
///
/// The share is taken as the decimal of twelve places that is nearest to it: what a person wrote, not its binary neighbour.
pub fn share(fraction: f64, whole: u64) -> u64 {
    const ONE: u128 = 1_000_000_000_000;
    // `as` saturates, and turns NaN into 0.
    let parts = libm::round(fraction * ONE as f64) as u128;
    u64::try_from((parts.saturating_mul(u128::from(whole)).saturating_add(ONE / 2)) / ONE).unwrap_or(u64::MAX)
}

/// Real tokens of steps.
pub trait StepTokens {
    /// Real tokens of `steps` steps of `batch` sequences from `position` on; `None` while they cannot be known.
    fn tokens(&self, position: DataPosition, batch: u64, steps: u64) -> Option<u128>;

    /// Where reading goes on in sequences of `context` tokens; see [`relaid`].
    fn relaid(&self, position: DataPosition, context: usize) -> DataPosition;

    /// The fewest steps of `batch` sequences from `position` on that read `wanted` tokens or more.
    fn steps_to(&self, position: DataPosition, batch: u64, wanted: u64) -> Option<u64> {
        let enough = |steps: u64| self.tokens(position, batch, steps).map(|tokens| tokens >= u128::from(wanted));
        let mut high = 1u64;
        while !enough(high)? {
            high = high.checked_mul(2)?;
        }
        let mut low = high / 2;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if enough(middle)? { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Where reading goes on once sequences have `context` tokens, for data that is declared with `own`.
///
/// Packed: behind as many tokens of the shard as were read before, rounded up to a whole sequence. Padded: at the next document.
pub fn relaid(position: DataPosition, layout: Layout, own: usize, context: usize) -> DataPosition {
    let sequence = match layout {
        Layout::Packed => {
            let tokens = u128::from(position.sequence) * position.context.unwrap_or(own) as u128;
            u64::try_from(tokens.div_ceil(context.max(1) as u128)).unwrap_or(u64::MAX)
        }
        Layout::Padded => position.sequence,
    };
    DataPosition { sequence, context: (context != own).then_some(context), ..position }
}

/// What a `data` declaration says of the tokens of a step without a look at the documents.
///
/// Packed: context × batch, exactly. Padded: `tokens per step N` for the batch of the training, in proportion for another; without
/// it, and for another context than the data's own, unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// Each sequence has as many as the context.
    Packed {
        /// The data's own.
        context: usize,
    },
    /// Each step of `batch` sequences has this many tokens.
    PerStep {
        /// Tokens.
        tokens: u64,
        /// Sequences.
        batch: u64,
    },
    /// Only the documents can tell.
    Unknown,
}

impl Declared {
    /// For a declaration and the batch that its `tokens per step` counts.
    pub fn of(data: &Data, batch: Batch) -> Self {
        match (data.layout, data.tokens_per_step) {
            (Layout::Packed, _) => Declared::Packed { context: data.context },
            (Layout::Padded, Some(tokens)) => Declared::PerStep { tokens, batch: batch.sequences.max(1) },
            (Layout::Padded, None) => Declared::Unknown,
        }
    }
}

impl StepTokens for Declared {
    fn tokens(&self, position: DataPosition, batch: u64, steps: u64) -> Option<u128> {
        match *self {
            Declared::Packed { context } => {
                Some(position.context.unwrap_or(context) as u128 * u128::from(batch) * u128::from(steps))
            }
            Declared::PerStep { tokens, batch: whole } if position.context.is_none() => {
                Some(u128::from(tokens) * u128::from(batch) / u128::from(whole) * u128::from(steps))
            }
            Declared::PerStep { .. } | Declared::Unknown => None,
        }
    }

    fn relaid(&self, position: DataPosition, context: usize) -> DataPosition {
        match *self {
            Declared::Packed { context: own } => relaid(position, Layout::Packed, own, context),
            Declared::PerStep { .. } | Declared::Unknown => relaid(position, Layout::Padded, 0, context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_written() {
        assert_eq!(share(0.66, 30), 20);
        assert_eq!(share(14.5 / 100.0, 100), 15);
        assert_eq!(share(2.5 / 100.0, 20), 1);
        assert_eq!(share(0.333, 9_007_199_254_740_993), 2_999_397_351_828_751);
        assert_eq!((share(1.0, u64::MAX), share(f64::NAN, 5), share(-1.0, 5)), (u64::MAX, 0, 0));
    }

    #[test]
    fn a_token_is_reached_by_the_first_step_that_reads_it() {
        let source = Declared::PerStep { tokens: 10, batch: 2 };
        let start = DataPosition::START;
        let steps = |batch, wanted| source.steps_to(start, batch, wanted);
        assert_eq!(
            (steps(2, 1), steps(2, 10), steps(2, 11), steps(4, 40), steps(4, 41)),
            (Some(1), Some(1), Some(2), Some(2), Some(3))
        );
        assert_eq!(Declared::Unknown.steps_to(start, 1, 1), None);
        assert_eq!(Declared::PerStep { tokens: 0, batch: 1 }.steps_to(start, 1, 1), None);
    }
}
