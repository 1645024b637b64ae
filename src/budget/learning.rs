//! What of a model learns in a segment.
//!
//! Owns the reading of the timeline's frozen sets for parameters: the planner counts by it, the engine trains by it. Invariant: a tied
//! embedding counts once and learns unless embedding or head is frozen; below a frozen prefix nothing learns.

use serde::{Deserialize, Serialize};

use super::params::{Group, ParamSpec, tied};
use crate::study::Model;
use crate::timeline::Segment;

/// What becomes of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learns {
    /// It learns.
    Yes,
    /// It would, but a frozen prefix lets no gradient pass to it: it keeps its optimizer state.
    Unreached,
    /// It is frozen.
    No,
}

/// Whether a parameter learns.
pub fn learns(model: &Model, spec: &ParamSpec, segment: &Segment) -> Learns {
    let frozen = &segment.frozen;
    let place = spec.layer.and_then(|layer| segment.stack.iter().position(|other| *other == layer));
    let stopped = match spec.group {
        Group::Embedding if tied(model) => frozen.embedding || frozen.head,
        Group::Embedding => frozen.embedding,
        Group::Head => frozen.head,
        Group::Norm => frozen.norms || (place.is_none() && frozen.ends),
        Group::Matrix | Group::Gain => place.is_none() && frozen.ends,
    };
    if stopped || place.is_some_and(|place| !segment.learns(place)) {
        Learns::No
    } else if frozen.prefix > 0 && is_below(model, spec) {
        Learns::Unreached
    } else {
        Learns::Yes
    }
}

/// Whether gradients reach a parameter only through all layers: that of the entry equation, or an embedding that no head shares.
fn is_below(model: &Model, spec: &ParamSpec) -> bool {
    spec.name.starts_with("entry.") || (spec.group == Group::Embedding && !tied(model))
}

/// The lowest layer, by place, that gradients reach; the stack's length if none.
pub fn lowest(model: &Model, specs: &[ParamSpec], segment: &Segment) -> usize {
    // A tied embedding is below too, by its input side.
    let below = |spec: &ParamSpec| spec.group == Group::Embedding || spec.name.starts_with("entry.");
    let mut learning = specs.iter().filter(|spec| learns(model, spec, segment) == Learns::Yes);
    if segment.frozen.prefix == 0 && learning.any(below) {
        return 0;
    }
    (0..segment.depth()).find(|place| segment.learns(*place)).unwrap_or(segment.depth())
}

/// 1 if the head's matrix learns, else 0: passes for its gradient.
pub(super) fn head(model: &Model, segment: &Segment) -> f64 {
    let stopped = segment.frozen.head || (tied(model) && segment.frozen.embedding);
    if stopped { 0.0 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::params::parameters;
    use crate::budget::testing::{grow, model, training};
    use crate::study::Action;
    use crate::study::schedule::Layers;
    use crate::timeline::{Declared, build};

    #[test]
    fn what_grows_after_freeze_all_learns_whole_and_alone() {
        let mut schedule = grow(10);
        schedule.events[0].actions.insert(0, Action::Freeze(Layers::All));
        let timeline = build(&schedule, &model(), &training(), &Declared::Unknown, None).expect("a schedule");
        let segment = &timeline.segments[1];
        let specs = parameters(&model(), &segment.stack, &segment.block_ends);
        let new = |spec: &ParamSpec| spec.layer.is_some_and(|layer| segment.stack[3..6].contains(&layer));
        for spec in &specs {
            assert_eq!(learns(&model(), spec, segment) == Learns::Yes, new(spec), "{}", spec.name);
        }
        assert!(specs.iter().any(|spec| new(spec) && spec.group == Group::Norm));
    }
}
