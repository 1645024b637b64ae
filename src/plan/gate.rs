//! The last look at a plan before anyone works by it, also at one that comes from a file.
//!
//! Owns what every plan keeps to: keys are keys and unique, what is needed is there and comes first, what a node reads it also needs,
//! nothing needs itself, runs know only nodes of the plan, frozen layers are layers of the stack.

use std::collections::BTreeSet;

use super::error::PlanError;
use super::node::{Key, Node, TeacherUse, Work};
use super::{Plan, key};
use crate::timeline::Segment;

/// Refuses a plan that contradicts itself.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    let mut seen: BTreeSet<&Key> = BTreeSet::new();
    for (node, _) in plan.graph.all() {
        let refuse = |what: &str| Err(PlanError::Damaged(format!("{} ({}) {what}", node.label, node.key)));
        if node.key.0.len() != 32 || !node.key.0.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return refuse("has no proper key");
        }
        if !node.needs.iter().all(|need| seen.contains(need)) {
            return refuse("needs what does not come before it");
        }
        if !reads(node).into_iter().all(|key| node.needs.contains(key)) {
            return refuse("reads what it does not need");
        }
        if let Work::Corpus { data, content } = &node.work
            && key::tokenizer(data, content.as_deref()).is_some_and(|key| !node.needs.contains(&key))
        {
            return refuse("has a tokenizer that it does not need");
        }
        if segment(node).is_some_and(|segment| !sound(segment)) {
            return refuse("has a stack that cannot be");
        }
        if !seen.insert(&node.key) {
            return refuse("is there twice");
        }
    }
    if plan.graph.is_cyclic() {
        return Err(PlanError::Damaged("something needs itself".to_owned()));
    }
    for run in &plan.runs {
        let refuse = |what: &str| Err(PlanError::Damaged(format!("{}, seed {}, {what}", run.name, run.seed)));
        let mut named = run
            .phases
            .iter()
            .chain(&run.nodes)
            .chain(run.teachers.iter().filter_map(|(_, node)| node.as_ref()))
            .chain(run.probes.iter().map(|(_, _, key)| key));
        if !named.all(|key| seen.contains(key)) {
            return refuse("has a node that is not there");
        }
        if run.phases.len() != run.timeline.segments.len() {
            return refuse("has not a phase for each segment");
        }
        if plan.study.arms.get(run.arm).is_none_or(|arm| arm.name != run.name) {
            return refuse("is of no arm");
        }
    }
    Ok(())
}

/// Keys that the work of a node names.
fn reads(node: &Node) -> Vec<&Key> {
    match &node.work {
        // Its tokenizer it does not name.
        Work::Corpus { .. } | Work::Tokenizer { .. } => Vec::new(),
        Work::Teacher(phase) | Work::Phase(phase) => {
            let teachers = phase.teachers.iter().flat_map(TeacherUse::nodes);
            [&phase.corpus].into_iter().chain(&phase.parent).chain(teachers).collect()
        }
        Work::Checkpoint(checkpoint) => vec![&checkpoint.corpus],
        Work::TeacherLogits(logits) => vec![&logits.corpus, &logits.teacher],
        Work::Probe(probe) => vec![&probe.corpus, &probe.phase],
    }
}

/// The segment that a node is about.
pub(super) fn segment(node: &Node) -> Option<&Segment> {
    match &node.work {
        Work::Teacher(phase) | Work::Phase(phase) => Some(&phase.segment),
        Work::Probe(probe) => Some(&probe.segment),
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) => None,
    }
}

fn sound(segment: &Segment) -> bool {
    let layers: BTreeSet<_> = segment.stack.iter().collect();
    segment.steps.start < segment.steps.end
        && !segment.stack.is_empty()
        && layers.len() == segment.stack.len()
        && segment.block_ends.last() == Some(&segment.stack.len())
        && segment.frozen.prefix <= segment.stack.len()
        && segment.frozen.layers.iter().all(|layer| layers.contains(layer))
}
