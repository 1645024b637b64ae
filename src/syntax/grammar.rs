//! The parser that pest makes from `grammar/exp.pest`.

#![allow(missing_docs, reason = "the derive writes items without documentation; the grammar file documents its rules")]

/// Reads texts by the rules of the grammar.
#[derive(pest_derive::Parser)]
#[grammar = "../grammar/exp.pest"]
pub struct Grammar;
