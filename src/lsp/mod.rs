//! What an editor asks about a text: a language server over standard input and output.
//!
//! Owns the protocol (LSP 3.17) and the answers. Deliberately knows no store and trains nothing. Invariant: an answer is a function of the
//! text as the editor has it, of the files beside it, and of nothing else; what is not understood is answered with nothing.

mod answer;
mod completion;
mod document;
mod hover;
mod server;

pub use server::serve;
