//! The program as its user meets it: arguments, streams, exit codes, files.

mod bench;
mod data;
mod export;
mod corpus;
#[cfg(all(feature = "train", target_os = "linux"))]
mod faults;
mod filled;
mod hub;
mod lsp;
mod plan;
mod report;
#[cfg(feature = "train")]
mod run;
#[cfg(feature = "train")]
mod store;
