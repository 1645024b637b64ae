//! A model as a network: its parameters by name, their first values, and the way from tokens to logits.
//!
//! Owns how an architecture and a stack of layers become operations. Deliberately knows no loss, no optimizer and no file. Invariants:
//! names and shapes are those of [`crate::budget::params::parameters`] and of nothing else; a parameter's first value is a function
//! of seed and name, so that adding a layer changes no other tensor.

mod equation;
mod first;
mod network;
mod params;

pub use first::{Teacher, first_values};
pub use network::{Network, Without};
pub use params::Params;
