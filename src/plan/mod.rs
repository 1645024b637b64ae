//! The plan: what has to be done, once each, in which order and at what cost.
//!
//! Owns the graph, its keys and its faces (text, JSON, RON, DOT, Mermaid). Plan = f(Study, Facts) and nothing else. Deliberately
//! knows no syntax, no path and no clock. Invariant: a node's key is a hash of all that determines its result and of nothing else.

mod build;
pub mod cost;
pub mod diff;
pub mod dot;
pub mod error;
mod gate;
mod graph;
mod inputs;
pub mod json;
mod key;
mod measure;
mod memo;
pub mod mermaid;
pub mod node;
mod pace;
mod proof;
pub mod run;
mod settle;
mod shape;
mod stored;
mod teach;
pub mod text;
pub mod totals;
mod warn;
pub mod why;
mod world;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use build::build;
pub use cost::Cost;
pub use error::PlanError;
pub use inputs::Inputs;
pub use key::{corpus, tokenizer};
pub use node::{Key, Node};
pub use run::{Mismatch, PlannedRun, Saved};
pub use totals::Totals;
pub use why::Why;

use crate::study::Study;
use graph::Graph;

/// A study, worked out into nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "stored::Stored", into = "stored::Stored")]
pub struct Plan {
    /// What is planned.
    pub study: Study,
    /// Arm by arm, seed by seed.
    pub runs: Vec<PlannedRun>,
    graph: Graph,
    /// Sums.
    pub totals: Totals,
    /// What a person should know before running it.
    pub warnings: Vec<String>,
}

impl Plan {
    /// All nodes; each follows what it needs.
    pub fn nodes(&self) -> Vec<&Node> {
        self.graph.all().map(|(node, _)| node).collect()
    }
    /// The nodes that the runs of arms need, told by their indices into [`Study::arms`], under all seeds; each follows what it needs.
    pub fn nodes_of_arms(&self, arms: &[usize]) -> Vec<Node> {
        let runs = self.runs.iter().filter(|run| arms.contains(&run.arm));
        let wanted: BTreeSet<&Key> = runs.flat_map(|run| &run.nodes).collect();
        self.nodes().into_iter().filter(|node| wanted.contains(&node.key)).cloned().collect()
    }
    /// A node and all that it needs; each follows what it needs. `None`: there is no such node.
    pub fn nodes_for(&self, key: &Key) -> Option<Vec<Node>> {
        self.graph.get(key)?;
        let mut wanted = BTreeSet::from([key]);
        let mut nodes: Vec<Node> = Vec::new();
        for node in self.nodes().into_iter().rev() {
            if wanted.contains(&node.key) {
                wanted.extend(&node.needs);
                nodes.push(node.clone());
            }
        }
        nodes.reverse();
        Some(nodes)
    }
    /// The node with a key.
    pub fn node(&self, key: &Key) -> Option<&Node> {
        self.graph.get(key).map(|(node, _)| node)
    }
    /// What a node costs.
    pub fn cost(&self, key: &Key) -> Option<&Cost> {
        self.graph.cost(key)
    }
    /// Whether this plan can be executed here and now; if not, why.
    pub fn runnable(&self) -> Result<(), String> {
        match warn::obstacles(&self.study, &self.graph).as_slice() {
            [] => Ok(()),
            reasons => Err(format!("cannot run: {}", reasons.join("; "))),
        }
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        (&self.study, &self.runs, &self.totals, &self.warnings) == (&other.study, &other.runs, &other.totals, &other.warnings)
            && self.graph.all().eq(other.graph.all())
    }
}
