//! The program as its user meets it: arguments, streams, exit codes, files.

mod bench;
mod lsp;
mod plan;
#[cfg(feature = "train")]
mod run;
