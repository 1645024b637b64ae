//! Which parameters learn, which lose their optimizer state, and from where on a tape is kept.

use std::collections::BTreeSet;

use crate::budget::learning::{Learns, learns, lowest};
use crate::budget::params::{Group, ParamSpec};
use crate::study::Model;
use crate::timeline::Segment;

/// What a segment's [`Frozen`](crate::timeline::Frozen) amounts to for a model's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learning {
    /// Names of the parameters that learn.
    pub names: BTreeSet<String>,
    /// Names of those that do not learn only because a frozen prefix lets no gradient pass to them: they keep their optimizer state.
    pub unreached: BTreeSet<String>,
    /// Something learns below the first layer: the embedding's input side, or the entry equation.
    pub below: bool,
    /// The first layer, by place, that needs a tape; the stack's length if none does.
    pub from: usize,
}

impl Learning {
    /// For all parameters `specs` of `model` in a segment.
    pub fn new(model: &Model, specs: &[ParamSpec], segment: &Segment) -> Self {
        let mut this =
            Self { names: BTreeSet::new(), unreached: BTreeSet::new(), below: false, from: lowest(model, specs, segment) };
        for spec in specs {
            match learns(model, spec, segment) {
                Learns::Yes => {
                    let is_below = spec.group == Group::Embedding || spec.name.starts_with("entry.");
                    this.below |= segment.frozen.prefix == 0 && is_below;
                    this.names.insert(spec.name.clone());
                }
                Learns::Unreached => {
                    this.unreached.insert(spec.name.clone());
                }
                Learns::No => {}
            }
        }
        this
    }

    /// Whether a parameter may have optimizer state.
    pub fn keeps_state(&self, name: &str) -> bool {
        self.names.contains(name) || self.unreached.contains(name)
    }
}
