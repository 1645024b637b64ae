//! A `data` declaration together with what is known of its text.
//!
//! Owns what sequences there are for a plan. Deliberately counts no run: that is `budget`'s. Invariant: without the text there is only
//! what the declaration says.

use std::sync::Arc;

use super::error::PlanError;
use super::key;
use super::node::Key;
use crate::budget::tokens::Count;
use crate::data::facts::{Corpus, CorpusFacts};
use crate::data::pack::{Shards, Windows};
use crate::study::{Batch, Data, Holdout, Layout, Model, Shard, Vocabulary};
use crate::timeline::{DataPosition, Declared, StepTokens, Timeline};

/// Data and its text.
#[derive(Debug)]
pub(super) struct World {
    pub(super) data: Arc<Data>,
    pub(super) corpus: Corpus,
    pub(super) key: Key,
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    windows: Windows,
    shards: Shards,
    holdout: Windows,
}

impl World {
    pub(super) fn new(data: &Arc<Data>, corpus: Corpus) -> Result<Self, PlanError> {
        let lay = |documents: &[u32]| Windows::new(data.layout, data.context, documents);
        let seen = match &corpus {
            Corpus::Absent(_) => None,
            Corpus::Known(facts) => {
                let windows = lay(&facts.train_documents);
                if windows.sequences() == 0 {
                    return Err(PlanError::NoSequence { data: data.name.clone(), context: data.context });
                }
                Some(Seen { shards: Shards::of(data, &windows), windows, holdout: lay(&facts.holdout_documents) })
            }
        };
        let key = key::corpus(data, content(&corpus));
        Ok(Self { data: Arc::clone(data), corpus, key, seen })
    }
    /// The node that trains its tokenizer, where one does.
    pub(super) fn tokenizer(&self) -> Option<Key> {
        key::tokenizer(&self.data, self.content())
    }
    /// What the text is known by.
    pub(super) fn content(&self) -> Option<&str> {
        content(&self.corpus)
    }
    /// Tokens of the corpus.
    pub(super) fn tokens(&self) -> Option<u64> {
        let Corpus::Known(CorpusFacts { train_documents, holdout_documents, .. }) = &self.corpus else { return None };
        Some(train_documents.iter().chain(holdout_documents.iter()).map(|tokens| u64::from(*tokens)).sum())
    }
    /// How many shards there are.
    pub(super) fn shards(&self) -> Option<u64> {
        self.seen.as_ref().map(|seen| seen.shards.count())
    }
    /// Refuses a run that reads of a shard in which no sequence of its length lies.
    pub(super) fn lays(&self, timeline: &Timeline) -> Result<(), PlanError> {
        let Some(seen) = &self.seen else { return Ok(()) };
        for DataPosition { shard, context, .. } in timeline.segments.iter().map(|segment| segment.data) {
            let Some(context) = context else { continue };
            if seen.shards.relaid(&seen.windows, &seen.windows.relaid(context)).sequences(shard).is_empty() {
                return Err(PlanError::NoSequence { data: self.data.name.clone(), context });
            }
        }
        Ok(())
    }
    /// Held-out sequences.
    pub(super) fn holdout(&self) -> Option<u64> {
        self.seen.as_ref().map(|seen| seen.holdout.sequences())
    }
    /// All sequences of so many shards from the first, and of the holdout.
    pub(super) fn covered(&self, shards: u64, batch: Batch) -> Option<Count> {
        let Some(seen) = &self.seen else { return self.declared(shards, batch) };
        let train = (0..shards.min(seen.shards.count())).flat_map(|shard| seen.shards.sequences(shard));
        let (mut sequences, mut tokens) = (0, 0);
        let real = train.map(|sequence| seen.windows.real_tokens(sequence));
        for each in real.chain((0..seen.holdout.sequences()).map(|sequence| seen.holdout.real_tokens(sequence))) {
            sequences += 1;
            tokens += each;
        }
        Some(Count { sequences, tokens, ..Count::default() })
    }
    /// As many as the declaration says, for a training of that batch; held-out documents where a sequence is one and they are counted.
    fn declared(&self, shards: u64, batch: Batch) -> Option<Count> {
        let Shard::Tokens(shard) = self.data.shard else { return None };
        let of = |sequences: u64| Declared::of(&self.data, batch).tokens(DataPosition::START, sequences, 1);
        let a_sequence = of(batch.sequences)? as f64 / batch.sequences.max(1) as f64;
        let held = match (self.data.holdout, self.data.layout) {
            (Holdout::Documents(documents), Layout::Padded) => documents,
            (Holdout::Documents(_) | Holdout::Fraction(_), _) => 0,
        };
        let tokens = u128::from(shards) * u128::from(shard) + of(held)?;
        Some(Count {
            sequences: (tokens as f64 / a_sequence).ceil() as u64,
            tokens: u64::try_from(tokens).ok()?,
            ..Count::default()
        })
    }
    /// Token types, where they are known.
    pub(super) fn vocabulary(&self) -> Option<usize> {
        match (&self.corpus, &self.data.tokenizer) {
            (Corpus::Known(facts), _) => Some(facts.vocabulary),
            (Corpus::Absent(_), tokenizer) => tokenizer.size(),
        }
    }
    /// The model with a vocabulary of a known size, as far as it can be known.
    pub(super) fn with_vocabulary(&self, model: &Arc<Model>) -> Result<Arc<Model>, PlanError> {
        match (model.vocabulary, self.vocabulary()) {
            (Vocabulary::OfTokenizer, Some(size)) => {
                Ok(Arc::new(Model { vocabulary: Vocabulary::Size(size), ..(**model).clone() }))
            }
            (Vocabulary::Size(size), Some(needed)) if size < needed => {
                Err(PlanError::Vocabulary { model: model.name.clone(), size, data: self.data.name.clone(), needed })
            }
            (Vocabulary::Size(_), _) | (Vocabulary::OfTokenizer, None) => Ok(Arc::clone(model)),
        }
    }
}

fn content(corpus: &Corpus) -> Option<&str> {
    match corpus {
        Corpus::Known(facts) => Some(&facts.content),
        Corpus::Absent(_) => None,
    }
}
