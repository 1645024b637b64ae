//! What a plan has to be told about the world: plain types, filled in by [`super::gather()`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::study::Data;

/// Everything outside the file that a plan depends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// One entry for each different [`Data`] of the study's arms.
    pub corpora: Vec<(Arc<Data>, Corpus)>,
    /// FLOPs per second of this machine; `None` leaves times unknown.
    pub flops_per_second: Option<f64>,
}

/// A corpus as far as it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Corpus {
    /// It has been read.
    Known(CorpusFacts),
    /// It is not at hand (or needs a tokenizer that is not); says why.
    Absent(String),
}

/// What is known of a corpus. Independent of context, layout and shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorpusFacts {
    /// BLAKE3 over the texts and the tokenizer's bytes: no path, no locale, no thread count.
    pub content: String,
    /// Token types.
    pub vocabulary: usize,
    /// Tokens of each training document with its boundary, in the order of the corpus.
    pub train_documents: Arc<Vec<u32>>,
    /// Tokens of each held-out document with its boundary, in the order of the corpus.
    pub holdout_documents: Arc<Vec<u32>>,
}
