//! The graph of nodes: what needs what.
//!
//! Owns the look-up by key. Invariant: nodes keep the order in which they were laid; an edge leads from what is needed to what needs it.

use std::collections::BTreeMap;

use petgraph::algo::is_cyclic_directed;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};

use super::cost::Cost;
use super::node::{Key, Node};

/// Nodes with what they cost.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    graph: StableDiGraph<(Node, Cost), ()>,
    at: BTreeMap<Key, NodeIndex>,
}

impl Graph {
    /// Whether there is such a node.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.at.contains_key(key)
    }
    /// Lays a node and the edges from those of its needs that are there. A key that is there already stays as it is, and the answer is
    /// `false`.
    pub(super) fn add(&mut self, node: Node, cost: Cost) -> bool {
        if self.has(&node.key) {
            return false;
        }
        let (key, needs) = (node.key.clone(), node.needs.clone());
        let at = self.graph.add_node((node, cost));
        for need in needs.iter().filter_map(|need| self.at.get(need)) {
            self.graph.add_edge(*need, at, ());
        }
        self.at.insert(key, at);
        true
    }
    /// A node and its cost.
    pub(super) fn get(&self, key: &Key) -> Option<&(Node, Cost)> {
        self.graph.node_weight(*self.at.get(key)?)
    }
    /// What a node costs.
    pub(super) fn cost(&self, key: &Key) -> Option<&Cost> {
        self.get(key).map(|(_, cost)| cost)
    }
    /// All of them in the order in which they were laid.
    pub(super) fn all(&self) -> impl Iterator<Item = &(Node, Cost)> {
        self.graph.node_weights()
    }
    /// As [`Graph::all`], to say more of what they cost.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut (Node, Cost)> {
        self.graph.node_weights_mut()
    }
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.graph.node_count()
    }
    /// Whether something needs itself in the end.
    pub(super) fn is_cyclic(&self) -> bool {
        is_cyclic_directed(&self.graph)
    }
}
