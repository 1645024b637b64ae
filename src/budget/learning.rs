//! What learns in a segment, as far as counting needs it.
//!
//! Owns no rule of its own: these are the timeline's frozen sets read for a model's parameters. Invariant: a tied embedding counts
//! once and learns unless embedding or head is frozen; below a frozen prefix nothing learns.

use super::params::{Group, ParamSpec, tied};
use crate::study::Model;
use crate::timeline::Segment;

/// Whether a parameter learns.
pub(super) fn learns(model: &Model, spec: &ParamSpec, segment: &Segment) -> bool {
    let frozen = &segment.frozen;
    let place = spec.layer.and_then(|layer| segment.stack.iter().position(|other| *other == layer));
    let below_all = spec.name.starts_with("entry.") || (spec.group == Group::Embedding && !tied(model));
    let stopped = match spec.group {
        Group::Embedding if tied(model) => frozen.embedding || frozen.head,
        Group::Embedding => frozen.embedding,
        Group::Head => frozen.head,
        Group::Norm => frozen.norms,
        Group::Matrix | Group::Gain => false,
    };
    !stopped && place.is_none_or(|place| segment.learns(place)) && !(below_all && frozen.prefix > 0)
}

/// The lowest layer, by place, that gradients reach; the stack's length if none.
pub(super) fn lowest(model: &Model, specs: &[ParamSpec], segment: &Segment) -> usize {
    let below = |spec: &ParamSpec| spec.group == Group::Embedding || spec.name.starts_with("entry.");
    let learning = || specs.iter().filter(|spec| learns(model, spec, segment));
    if segment.frozen.prefix == 0 && learning().any(below) {
        return 0;
    }
    (0..segment.depth()).find(|place| segment.learns(*place)).unwrap_or(segment.depth())
}

/// 1 if the head's matrix learns, else 0: passes for its gradient.
pub(super) fn head(model: &Model, segment: &Segment) -> f64 {
    let stopped = segment.frozen.head || (tied(model) && segment.frozen.embedding);
    if stopped { 0.0 } else { 1.0 }
}
