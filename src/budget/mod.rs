//! What things cost: parameters, tokens, FLOPs, memory, and the length at which two arms agree.
//!
//! Owns counts. Invariant: parameter shapes are one function of the architecture ([`params::parameters`]), used to price, to
//! allocate, to load and to export.

pub mod flops;
mod learning;
pub mod matching;
pub mod memory;
pub mod params;
#[cfg(test)]
mod testing;
pub mod tokens;
