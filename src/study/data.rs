//! What is read: texts, documents, tokens, windows, shards.

use serde::{Deserialize, Serialize};

/// A `data` declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Its name in the file.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Where the text comes from.
    pub text: Text,
    /// What one document is.
    pub documents: Documents,
    /// How text becomes tokens.
    pub tokenizer: Tokenizer,
    /// Tokens of one sequence.
    pub context: usize,
    /// How documents are laid into sequences.
    pub layout: Layout,
    /// How much of the corpus is cycled through.
    pub shard: Shard,
    /// What is never trained on.
    pub holdout: Holdout,
    /// Real tokens of a step, declared with `tokens per step N`: used for planning while the documents are not at hand.
    pub tokens_per_step: Option<u64>,
}

/// Where text comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Text {
    /// `files "corpus/*.txt"`: glob patterns relative to the folder of the `.exp` file.
    Files(Vec<String>),
    /// `generate tales(documents: 4_000, seed: 1)`: text that xrun writes itself.
    Tales {
        /// How many documents.
        documents: u64,
        /// Which ones.
        seed: u64,
    },
}

/// `document file | line | paragraph | field "text"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Documents {
    /// A file is a document.
    File,
    /// A line is a document.
    Line,
    /// Blank lines separate documents.
    Paragraph,
    /// A field of each JSON line, or a column of Parquet.
    Field(String),
}

/// `tokenizer bytes | bpe(4_096) | teacher | "path/tokenizer.json"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tokenizer {
    /// One token a byte, 0 to 255, and [`Tokenizer::BYTE_BOUNDARY`] after each document.
    Bytes,
    /// Byte-pair encoding of so many tokens, trained on the training part of the corpus.
    Bpe(usize),
    /// That of the teacher's checkpoint.
    Teacher,
    /// A `tokenizer.json`, relative to the folder of the `.exp` file.
    File(String),
}

impl Tokenizer {
    /// The token that ends a document under [`Tokenizer::Bytes`].
    pub const BYTE_BOUNDARY: u32 = 256;
    /// Tokens of the smallest [`Tokenizer::Bpe`]: 256 bytes and the boundary.
    pub const SMALLEST_BPE: usize = 257;
    /// Vocabulary of [`Tokenizer::Bytes`]: 256 bytes and the boundary.
    pub const BYTE_VOCABULARY: usize = 257;
    /// Token types, where no file has to say.
    pub fn size(&self) -> Option<usize> {
        match self {
            Tokenizer::Bytes => Some(Self::BYTE_VOCABULARY),
            Tokenizer::Bpe(size) => Some(*size),
            Tokenizer::Teacher | Tokenizer::File(_) => None,
        }
    }
}

/// How documents are laid into sequences of `context` tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// Documents one after the other, cut into sequences; documents of one sequence do not see each other.
    Packed,
    /// One document a row, cut at the context and right-padded; padding is not counted.
    Padded,
}

/// `shard 2M tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Shard {
    /// The whole training part is one shard.
    Whole,
    /// Whole sequences of about this many tokens; `fresh data` moves on to the next shard.
    Tokens(u64),
}

/// `holdout 5%`, `holdout 4_833 documents`: whole documents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Holdout {
    /// A fraction of the documents, in [0, 1).
    Fraction(f64),
    /// A number of documents.
    Documents(u64),
}
