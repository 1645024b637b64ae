//! What is frozen, and how `freeze` and `thaw` change it.
//!
//! Owns the meaning of "prefix": every layer below the newest block stops learning, and no gradient passes below it. Deliberately
//! knows no parameters: which of them a frozen prefix leaves without a gradient follows from [`Frozen`] and the model.
//! Invariant: layers of the prefix are the bottom of the stack and are all frozen.

use std::collections::BTreeSet;

use super::error::Fault;
use super::stack::Stack;
use super::{Frozen, LayerId};
use crate::study::{Embedding, Layers, Model};

/// What is frozen, by the words that froze it.
#[derive(Debug, Clone)]
pub(super) struct Sets {
    /// By `freeze layers` and `freeze all`.
    layers: BTreeSet<LayerId>,
    /// By `freeze prefix`: its highest layer.
    wall: Option<LayerId>,
    embedding: bool,
    head: bool,
    norms: bool,
    ends: bool,
    /// What the model itself freezes: embedding, head.
    own: (bool, bool),
}

impl Sets {
    /// What the model itself freezes.
    pub(super) fn of(model: &Model) -> Self {
        let frozen = |part: Embedding| matches!(part, Embedding::Teacher { frozen: true });
        let own = (frozen(model.embedding), frozen(model.head));
        Self { layers: BTreeSet::new(), wall: None, embedding: own.0, head: own.1, norms: false, ends: false, own }
    }

    pub(super) fn freeze(&mut self, what: Layers, stack: &Stack) -> Result<(), Fault> {
        match what {
            Layers::Prefix => self.wall = stack.layers[..stack.below_newest()].last().copied(),
            Layers::Range { first, last } => self.layers.extend(stack.range(first, last)?),
            Layers::Embedding => self.embedding = true,
            Layers::Head => self.head = true,
            Layers::Norms => self.norms = true,
            Layers::All => {
                self.layers.extend(&stack.layers);
                (self.embedding, self.head, self.ends) = (true, true, true);
            }
        }
        Ok(())
    }

    pub(super) fn thaw(&mut self, what: Layers, stack: &Stack) -> Result<(), Fault> {
        match what {
            Layers::Prefix => self.wall = None,
            Layers::Range { first, last } => self.thaw_range(first, last, stack)?,
            Layers::Embedding => self.embedding = false,
            Layers::Head => self.head = false,
            Layers::Norms => (self.norms, self.ends) = (false, false),
            Layers::All => {
                self.layers.clear();
                self.wall = None;
                (self.embedding, self.head) = self.own;
                (self.norms, self.ends) = (false, false);
            }
        }
        Ok(())
    }

    /// A prefix that a thawed layer lies in ends below it; what it froze above stays frozen, with a gradient passing through.
    fn thaw_range(&mut self, first: usize, last: usize, stack: &Stack) -> Result<(), Fault> {
        let thawed = stack.range(first, last)?;
        let prefix = self.prefix(stack);
        if first <= prefix {
            self.layers.extend(&stack.layers[first - 1..prefix]);
            self.wall = stack.layers[..first - 1].last().copied();
        }
        for layer in thawed {
            self.layers.remove(layer);
        }
        Ok(())
    }

    fn prefix(&self, stack: &Stack) -> usize {
        self.wall.and_then(|wall| stack.layers.iter().position(|layer| *layer == wall)).map_or(0, |place| place + 1)
    }

    /// Layers that have left the stack leave the sets; a prefix whose highest layer was dropped ends at the highest one left.
    pub(super) fn dropped(&mut self, before: &[LayerId], stack: &Stack) {
        self.layers.retain(|layer| stack.layers.contains(layer));
        if self.wall.is_some_and(|wall| before.contains(&wall) && !stack.layers.contains(&wall)) {
            self.wall = stack.layers.last().copied();
        }
    }

    /// What does not learn.
    pub(super) fn frozen(&self, stack: &Stack) -> Result<Frozen, Fault> {
        let prefix = self.prefix(stack);
        let mut layers: BTreeSet<LayerId> = self.layers.clone();
        layers.extend(&stack.layers[..prefix]);
        if layers.len() == stack.layers.len() && self.embedding && self.head && (self.norms || self.ends) {
            return Err(Fault::NothingLearns);
        }
        Ok(Frozen { layers, prefix, embedding: self.embedding, head: self.head, norms: self.norms, ends: self.ends })
    }
}
