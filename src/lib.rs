//! xrun: a language and a runner for controlled experiments on how transformers are built and grown.
//!
//! ```text
//! text ──syntax──▶ Ast ──check──▶ Study ──plan──▶ Plan ──run──▶ records ──report──▶ tables, figures, verdicts
//! ```
//!
//! Each arrow has one input type and one output type, and no later stage looks into an earlier one: the planner knows no
//! syntax, the runner no arms, the report no tensors. Modules are listed in the order of the pipeline; `ARCHITECTURE.md`
//! says who may import whom, and `tests/tidy.rs` holds it.

// The language: text to meaning.
pub mod check;
pub mod diagnostic;
pub mod source;
pub mod syntax;
// The science: nouns and arithmetic.
pub mod budget;
pub mod stats;
pub mod study;
pub mod timeline;
// The plan.
pub mod plan;
// The machine.
pub mod data;
#[cfg(feature = "train")]
pub mod kernel;
#[cfg(feature = "train")]
pub mod model;
#[cfg(feature = "train")]
pub mod probe;
#[cfg(feature = "train")]
pub mod tensor;
#[cfg(feature = "train")]
pub mod train;
// The run and its story.
pub mod cli;
pub mod export;
pub mod lsp;
pub mod report;
pub mod run;
