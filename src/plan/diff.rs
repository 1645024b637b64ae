//! What an edit did to a plan: `xrun plan --against`.
//!
//! Owns which nodes belong together. Nodes are the same if their keys are; a node that is not in the other plan is told as changed where the
//! other has one with its label. Invariant: a changed node names at least one input.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Plan;
use super::inputs::Inputs;
use super::node::{Key, Node};

/// The difference of two plans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Nodes of both.
    pub same: usize,
    /// Nodes of the new plan in the place of one of the old: label, key, inputs that differ.
    pub changed: Vec<(String, Key, Vec<String>)>,
    /// Nodes of the new plan alone.
    pub added: Vec<(String, Key)>,
    /// Nodes of the old plan alone.
    pub gone: Vec<(String, Key)>,
}

/// What `new` has that `old` has not, and the other way round.
pub fn diff(new: &Plan, old: &Plan) -> Difference {
    let mut before: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in old.nodes().into_iter().filter(|node| new.node(&node.key).is_none()) {
        before.entry(&node.label).or_insert(node);
    }
    let mut difference = Difference::default();
    let mut replaced = BTreeSet::new();
    for node in new.nodes() {
        let (label, key) = (node.label.clone(), node.key.clone());
        if old.node(&key).is_some() {
            difference.same += 1;
        } else if let Some(other) = before.get(node.label.as_str()) {
            replaced.insert(&other.key);
            difference.changed.push((label, key, Inputs::of(node).differing(&Inputs::of(other))));
        } else {
            difference.added.push((label, key));
        }
    }
    let gone = old.nodes().into_iter().filter(|node| new.node(&node.key).is_none() && !replaced.contains(&node.key));
    difference.gone = gone.map(|node| (node.label.clone(), node.key.clone())).collect();
    difference
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (changed, added, gone) = (self.changed.len(), self.added.len(), self.gone.len());
        writeln!(f, "{} nodes the same, {changed} changed, {added} new, {gone} gone", self.same)?;
        for (label, _, inputs) in &self.changed {
            writeln!(f, "  ~ {}: {}", label.escape_debug(), inputs.join(", "))?;
        }
        for (label, _) in &self.added {
            writeln!(f, "  + {}", label.escape_debug())?;
        }
        for (label, _) in &self.gone {
            writeln!(f, "  - {}", label.escape_debug())?;
        }
        Ok(())
    }
}
