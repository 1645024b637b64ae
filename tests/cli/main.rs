//! The program as its user meets it: arguments, streams, exit codes, files.

mod bench;
mod hub;
mod lsp;
mod plan;
#[cfg(feature = "train")]
mod run;
