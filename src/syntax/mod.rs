//! Text to tree and back: `parse` makes an [`ast::File`] from a text, `print` lays one out again.
//!
//! Owns the shape of the text only. Deliberately knows no field, no unit and no keyword of a declaration's body: `check` does.
//! Invariant: a tree may be incomplete, never invalid; what could not be read is a diagnostic beside it.

mod align;
pub mod ast;
mod grammar;
mod number;
pub mod parse;
mod print;
mod scan;
mod symbols;
mod tokens;

pub use parse::parse;
pub use print::{one_line, print};
