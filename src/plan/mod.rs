//! The plan: what has to be done, once each, in which order and at what cost.
//!
//! Owns the graph, its keys and its faces (text, JSON, RON, DOT, Mermaid). Plan = f(Study, Facts) and nothing else. Deliberately
//! knows no syntax, no path and no clock. Invariant: a node's key is a hash of all that determines its result and of nothing else.

pub mod facts;
pub mod node;
