//! What a plan has to be told about the world: plain types, filled in by [`super::gather()`] and, where something has run, by the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::study::{Data, Model};

/// Everything outside the file that a plan depends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// One entry for each different [`Data`] of the study's arms.
    pub corpora: Vec<(Arc<Data>, Corpus)>,
    /// One entry for each folder that is a teacher of the study.
    pub checkpoints: Vec<(String, Found<Checkpoint>)>,
    /// One entry for each file that a model of the study starts from.
    pub starts: Vec<(String, Found<Weights>)>,
    /// Seconds that finished nodes took, by their keys; without any that the plan knows, times are those of the speed that was
    /// measured.
    pub seconds: BTreeMap<String, f64>,
    /// FLOPs a second of training as it was measured, for nodes like none that has finished.
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

/// Weights of others as far as they are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Found<T> {
    /// They have been looked at.
    Known(T),
    /// They are not at hand; says why.
    Absent(String),
    /// They are there and cannot be used; says why.
    Broken(String),
}

/// A model of Hugging Face's format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its architecture.
    pub model: Model,
    /// Tokens of the longest text that it was made for.
    pub context: Option<usize>,
    /// Its tensors.
    pub weights: Weights,
}

/// Tensors in files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// BLAKE3 over names, types, shapes and values: not over paths, nor over how they are spread over files.
    pub content: String,
    /// Names, as in the files, and shapes.
    pub tensors: Vec<(String, Vec<usize>)>,
}
