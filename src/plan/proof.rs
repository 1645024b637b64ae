//! Whether the keys of a plan are those of its nodes.
//!
//! Owns the way back from a node to its key, for plans that come from a file: a result must never be stored under the key of another.
//! Invariant: a plan that `build` made passes.

use super::Plan;
use super::error::PlanError;
use super::key;
use super::memo::digest;
use super::node::{Key, Node, Work};
use super::shape::shape;
use crate::budget::params::whole;
use crate::study::Model;
use crate::timeline::Segment;

/// Refuses a plan with a node whose key is not its own.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    for (node, _) in plan.graph.all() {
        if own(node) != node.key {
            return Err(PlanError::Damaged(format!("the key {} is not that of {}", node.key, node.label)));
        }
    }
    Ok(())
}

/// Digest of a model under a segment's stack.
pub(super) fn shape_of(model: &Model, segment: &Segment) -> String {
    digest("xrun 2026 plan shape v1", &shape(model, &segment.stack, &segment.block_ends)).to_hex().to_string()
}

/// Digest of a model with all its layers.
pub(super) fn shape_whole(model: &Model) -> String {
    let (stack, block_ends) = whole(model);
    digest("xrun 2026 plan shape v1", &shape(model, &stack, &block_ends)).to_hex().to_string()
}

/// The key that a node has.
fn own(node: &Node) -> Key {
    match &node.work {
        Work::Corpus { data, content } => key::corpus(data, content.as_deref()),
        Work::Tokenizer { data, content } => key::tokenizer(data, content.as_deref()).unwrap_or_else(|| key::corpus(data, None)),
        Work::Teacher(phase) => key::phase("teacher", phase, &shape_of(&phase.model, &phase.segment)),
        Work::Checkpoint(checkpoint) => key::checkpoint(checkpoint, &shape_whole(&checkpoint.model)),
        Work::TeacherLogits(logits) => {
            key::logits(&logits.corpus, &logits.data, &logits.teacher, logits.cache, logits.temperature, logits.shards)
        }
        Work::Phase(phase) => key::phase("phase", phase, &shape_of(&phase.model, &phase.segment)),
        Work::Probe(probe) => {
            let (shape, ends) = (shape_of(&probe.model, &probe.segment), &probe.segment.block_ends);
            key::probe(probe.kind, (probe.sequences, probe.tokens), &probe.data, &probe.phase, &shape, ends)
        }
    }
}
