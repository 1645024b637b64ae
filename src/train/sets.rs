//! Which parameters learn, which lose their optimizer state, and from where on a tape is kept.

use std::collections::BTreeSet;

use crate::budget::params::{Group, ParamSpec, tied};
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
        let frozen = &segment.frozen;
        let place = |spec: &ParamSpec| spec.layer.and_then(|layer| segment.stack.iter().position(|other| *other == layer));
        let mut this = Self { names: BTreeSet::new(), unreached: BTreeSet::new(), below: false, from: segment.stack.len() };
        for spec in specs {
            let stopped = match spec.group {
                Group::Embedding if tied(model) => frozen.embedding || frozen.head,
                Group::Embedding => frozen.embedding,
                Group::Head => frozen.head,
                Group::Norm => frozen.norms,
                Group::Matrix | Group::Gain => false,
            };
            let entry = spec.name.starts_with("entry.");
            if stopped {
                continue;
            }
            if spec.layer.is_some() {
                let place = place(spec).unwrap_or(0);
                if segment.learns(place) {
                    this.names.insert(spec.name.clone());
                    this.from = this.from.min(place);
                }
            } else if frozen.prefix > 0 && (entry || (spec.group == Group::Embedding && !tied(model))) {
                this.unreached.insert(spec.name.clone());
            } else {
                this.names.insert(spec.name.clone());
                this.below |= frozen.prefix == 0 && (entry || spec.group == Group::Embedding);
            }
        }
        if this.below {
            this.from = 0;
        }
        this
    }

    /// Whether a parameter may have optimizer state.
    pub fn keeps_state(&self, name: &str) -> bool {
        self.names.contains(name) || self.unreached.contains(name)
    }
}
