//! The program as its user meets it: arguments, streams, exit codes, files.

mod bench;
mod corpus;
mod data;
#[cfg(feature = "train")]
mod events;
mod export;
#[cfg(all(feature = "train", target_os = "linux"))]
mod faults;
mod filled;
mod hub;
mod lsp;
mod plan;
mod report;
#[cfg(feature = "train")]
mod run;
#[cfg(all(feature = "train", unix))]
mod slurm;
#[cfg(feature = "train")]
mod speed;
#[cfg(feature = "train")]
mod store;
#[cfg(all(feature = "train", target_os = "linux"))]
mod streamed;
#[cfg(all(feature = "train", target_os = "linux"))]
mod teacher;
