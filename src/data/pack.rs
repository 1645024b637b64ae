//! How documents are laid into sequences, and sequences into shards. Pure: the planner counts by it, the reader reads by it.

use std::ops::Range;
use std::sync::Arc;

use crate::study::{Data, Layout, Shard};

/// The sequences of one part (training or holdout) of a corpus.
///
/// *Packed*: documents one after the other, each with its boundary token; sequence i reads tokens `iT .. iT + T` and predicts
/// `iT + 1 .. iT + T + 1`; what is left at the end is not read. *Padded*: sequence i is document i; with n tokens it has
/// min(n, T + 1) − 1 predictions; documents of a single token have none and are left out.
#[derive(Debug, Clone)]
pub struct Windows {
    layout: Layout,
    context: u64,
    /// Where each document starts, and where the last one ends.
    starts: Arc<Vec<u64>>,
    /// Padded: documents with at least one prediction.
    rows: Arc<Vec<u32>>,
}

impl Windows {
    /// Lays documents of so many tokens each (boundary included) into sequences.
    pub fn new(layout: Layout, context: usize, documents: &[u32]) -> Self {
        let starts = std::iter::once(0)
            .chain(documents.iter().scan(0u64, |end, tokens| {
                *end += u64::from(*tokens);
                Some(*end)
            }))
            .collect();
        let rows = match layout {
            Layout::Packed => Vec::new(),
            Layout::Padded => (0u32..).zip(documents).filter(|(_, tokens)| **tokens > 1).map(|(at, _)| at).collect(),
        };
        Self { layout, context: context as u64, starts: Arc::new(starts), rows: Arc::new(rows) }
    }
    /// The same documents in sequences of `context` tokens.
    pub fn relaid(&self, context: usize) -> Self {
        Self { context: context as u64, ..self.clone() }
    }
    /// How many sequences there are.
    pub fn sequences(&self) -> u64 {
        match self.layout {
            Layout::Packed => self.starts.last().map_or(0, |tokens| tokens.saturating_sub(1) / self.context),
            Layout::Padded => self.rows.len() as u64,
        }
    }
    /// Tokens of the part that a sequence reads: its inputs, and one more as the last label.
    pub fn tokens(&self, sequence: u64) -> Range<u64> {
        match self.layout {
            Layout::Packed => sequence * self.context..(sequence + 1) * self.context + 1,
            Layout::Padded => {
                let document = self.rows[sequence as usize] as usize;
                let (start, end) = (self.starts[document], self.starts[document + 1]);
                start..end.min(start + self.context + 1)
            }
        }
    }
    /// Real tokens of a sequence: its predictions.
    pub fn real_tokens(&self, sequence: u64) -> u64 {
        let tokens = self.tokens(sequence);
        tokens.end - tokens.start - 1
    }
    /// The document that a token belongs to.
    pub fn document(&self, token: u64) -> usize {
        self.starts.partition_point(|start| *start <= token) - 1
    }
    /// One past the last token of a document.
    pub fn document_end(&self, document: usize) -> u64 {
        self.starts[document + 1]
    }
}

/// Consecutive stretches of sequences, cycled through one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    ranges: Vec<Range<u64>>,
    /// Tokens of a sequence where the shards of others were laid anew, and a sequence is not what it was.
    context: Option<u64>,
}

impl Shards {
    /// Cuts sequences into whole shards of about the tokens asked for. Sequences left over at the end belong to none; where there are
    /// too few for one shard, all of them are one.
    pub fn new(shard: Shard, windows: &Windows) -> Self {
        let all = windows.sequences();
        let of = |ranges| Self { ranges, context: None };
        let Shard::Tokens(wanted) = shard else { return of(std::iter::once(0..all).collect()) };
        let mut shards = Vec::new();
        match windows.layout {
            Layout::Packed => {
                let each = (wanted / windows.context).max(1);
                shards.extend((0..all / each).map(|at| at * each..(at + 1) * each));
            }
            Layout::Padded => {
                let (mut start, mut tokens) = (0, 0);
                for sequence in 0..all {
                    tokens += windows.real_tokens(sequence);
                    if tokens >= wanted {
                        shards.push(start..sequence + 1);
                        (start, tokens) = (sequence + 1, 0);
                    }
                }
            }
        }
        if shards.is_empty() {
            shards.push(0..all);
        }
        of(shards)
    }
    /// The same stretches of the corpus in the sequences of `windows`, where these shards are of those of `own`. A packed sequence that does
    /// not lie in one stretch belongs to none, so that a stretch may have none.
    pub fn relaid(&self, own: &Windows, windows: &Windows) -> Self {
        match windows.layout {
            Layout::Packed if own.context != windows.context => {
                let anew = |range: &Range<u64>| {
                    let start = (range.start * own.context).div_ceil(windows.context);
                    start..(range.end * own.context / windows.context).max(start)
                };
                Self { ranges: self.ranges.iter().map(anew).collect(), context: Some(windows.context) }
            }
            Layout::Packed | Layout::Padded => self.clone(),
        }
    }
    /// Tokens of a sequence where these are not the data's own sequences.
    pub fn context(&self) -> Option<u64> {
        self.context
    }
    /// The shards of a `data` declaration over its training part.
    pub fn of(data: &Data, windows: &Windows) -> Self {
        Self::new(data.shard, windows)
    }
    /// How many there are, at least one.
    pub fn count(&self) -> u64 {
        self.ranges.len() as u64
    }
    /// The sequences of a shard; numbers past the last begin again at the first.
    pub fn sequences(&self, shard: u64) -> Range<u64> {
        self.ranges[(shard % self.count()) as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_sequences_overlap_in_one_token_only() {
        let windows = Windows::new(Layout::Packed, 4, &[5, 3, 2]);
        assert_eq!(windows.sequences(), 2);
        assert_eq!((windows.tokens(0), windows.tokens(1)), (0..5, 4..9));
        assert_eq!((windows.document(4), windows.document(5), windows.document(8)), (0, 1, 2));
    }

    #[test]
    fn padded_sequences_are_documents_cut_at_the_context() {
        let windows = Windows::new(Layout::Padded, 4, &[9, 1, 3]);
        assert_eq!(windows.sequences(), 2);
        assert_eq!((windows.tokens(0), windows.real_tokens(0)), (0..5, 4));
        assert_eq!((windows.tokens(1), windows.real_tokens(1)), (10..13, 2));
    }

    /// Three shards of 12 tokens: in sequences of 5, those that lie in one; in sequences of 2, all; of padded documents, the same ones.
    #[test]
    fn shards_laid_anew_hold_the_same_stretches() {
        let own = Windows::new(Layout::Packed, 4, &[41]);
        let shards = Shards::new(Shard::Tokens(12), &own);
        let anew = |context| {
            let laid = shards.relaid(&own, &own.relaid(context));
            (0..3).map(|shard| laid.sequences(shard)).collect::<Vec<_>>()
        };
        assert_eq!(anew(5), [0..2, 3..4, 5..7]);
        assert_eq!(anew(2), [0..6, 6..12, 12..18]);
        assert_eq!(anew(4), [0..3, 3..6, 6..9]);
        assert!(anew(13)[0].is_empty());
        let own = Windows::new(Layout::Padded, 4, &[9, 1, 3, 5]);
        let shards = Shards::new(Shard::Tokens(5), &own);
        assert_eq!(shards.relaid(&own, &own.relaid(2)), shards);
    }

    #[test]
    fn shards_hold_whole_sequences_and_wrap() {
        let windows = Windows::new(Layout::Packed, 4, &[41]);
        let shards = Shards::new(Shard::Tokens(13), &windows);
        assert_eq!(shards.count(), 3);
        assert_eq!((shards.sequences(1), shards.sequences(3)), (3..6, 0..3));
        assert_eq!(Shards::new(Shard::Tokens(1_000), &windows).sequences(0), 0..10);
    }
}
