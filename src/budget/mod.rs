//! What things cost: parameters, tokens, FLOPs, memory, and the length at which two arms agree.
//!
//! Owns counts. A planner makes one [`tokens::Counter`] for data, corpus and seed, works timelines out with it, and counts their
//! segments by it; [`flops`], [`memory`] and [`speaking`] estimate from these counts; [`transition`] says what an event does to each parameter; [`matching::solve`] finds the end of a matched control.
//! Deliberately knows no plan and no store. Invariant: parameter shapes are one function of the architecture
//! ([`params::parameters`]), used to price, to allocate, to load and to export.

pub mod flops;
pub mod hub;
pub mod identity;
pub mod learning;
pub mod matching;
pub mod memory;
pub mod params;
pub mod speaking;
#[cfg(test)]
pub(crate) mod testing;
pub mod tokens;
pub mod transition;
