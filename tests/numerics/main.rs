//! Numbers of the engine: against finite differences, against PyTorch, and against themselves.
#![cfg(feature = "train")]

mod batches;
mod build;
mod caches;
mod factors;
mod fused;
mod gradients;
mod growth;
mod hub;
mod inherits;
mod kills;
mod library;
mod losses;
mod norms;
mod optimizer;
mod phases;
mod published;
mod reference;
mod resume;
mod rules;
mod traps;
