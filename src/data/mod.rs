//! From text to batches: documents, tokens, sequences, shards, order.
//!
//! Owns the reading of data. `pack` and `order` are pure and serve the planner too; the rest is the rim. Deliberately knows no model.
//! Invariant: which tokens a step reads is a function of the corpus, the `data` declaration, the seed and the position alone.

pub mod batch;
pub mod bpe;
mod columns;
pub mod corpus;
pub mod documents;
pub mod facts;
mod files;
mod gather;
pub mod hub;
pub mod order;
pub mod pack;
mod pretokenised;
pub mod reader;
pub mod tales;
mod texts;
pub mod tokenize;

pub use batch::Batch;
pub use corpus::{Corpus, CorpusError};
pub use gather::{Reach, gather};
pub use reader::Reader;
