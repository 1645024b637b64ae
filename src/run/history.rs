//! What was done in a store, and so why a node will run.
//!
//! Owns `history.jsonl`: a line for each node that was finished, with its label, its inputs and its wall-clock. It is of this machine and no
//! part of any result: where it is lost, nodes are called new that are not, and
//! plans know no times. Invariant: reading it writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::store::{Standing, State, Store};
use crate::plan::node::{Key, Node};
use crate::plan::{Inputs, Why};

/// Of these many bytes at the end of the file, not more, is made use: a hundred thousand nodes.
const READ_BACK: u64 = 64 << 20;

/// A node that was finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its key.
    pub key: Key,
    /// Its kind's word.
    pub kind: String,
    /// What it was called.
    pub label: String,
    /// From when it was taken up until it was in the store.
    pub seconds: f64,
    /// Real tokens that were worked on meanwhile.
    pub tokens: u64,
    /// Whether nothing of it was there when it was taken up.
    #[serde(default)]
    pub from_start: bool,
    /// What it was made from.
    pub inputs: Inputs,
}

/// What was finished, as the store remembers it.
#[derive(Debug, Clone, Default)]
pub struct History {
    keys: BTreeSet<Key>,
    /// By kind and label, the oldest first.
    named: BTreeMap<(String, String), Vec<(Key, Inputs)>>,
    seconds: BTreeMap<String, f64>,
}

impl History {
    /// Of a store; lines that cannot be read are left out.
    pub fn of(store: &Store) -> Self {
        let mut history = Self::default();
        for text in store.history(READ_BACK).lines() {
            let Ok(Line { key, kind, label, inputs, seconds, from_start, .. }) = serde_json::from_str(text) else { continue };
            if from_start {
                history.seconds.insert(key.0.clone(), seconds);
            }
            history.keys.insert(key.clone());
            history.named.entry((kind, label)).or_default().push((key, inputs));
        }
        history
    }
    /// Seconds that nodes took when they were last done from their start, by their keys.
    pub fn seconds(self) -> BTreeMap<String, f64> {
        self.seconds
    }
    /// What is to be done about a node, at a glance: see [`Store::glance`].
    pub fn why(&self, store: &Store, node: &Node) -> Why {
        match store.glance(&node.key) {
            State::Finished(_) => return Why::Done,
            State::Damaged(reason) => return Why::Damaged(reason),
            State::Absent => {}
        }
        match store.standing(&node.key) {
            Standing::Running(holder) => Why::Running(holder.to_string()),
            Standing::Failed(failure) => Why::Failed(failure.reason),
            Standing::Begun => Why::Begun,
            Standing::Done | Standing::Missing => self.why_absent(store, node),
        }
    }
    /// Why a node is not in the store.
    pub(super) fn why_absent(&self, store: &Store, node: &Node) -> Why {
        if self.keys.contains(&node.key) {
            return Why::Gone;
        }
        let Some(named) = self.named.get(&(node.work.kind().to_owned(), node.label.clone())) else { return Why::New };
        let there = named.iter().filter(|(key, _)| store.has(key));
        let inputs = Inputs::of(node);
        // Several studies may have used the name: the nearest tells most, and of equally near ones the last.
        let differing = there.rev().map(|(key, other)| (key, inputs.differing(other)));
        match differing.min_by_key(|(_, inputs)| inputs.len()) {
            Some((key, inputs)) => Why::Changed { from: key.clone(), inputs },
            None => Why::New,
        }
    }
}
