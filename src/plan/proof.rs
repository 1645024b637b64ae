//! Whether the keys of a plan are those of its nodes.
//!
//! Owns the way back from a node to its key, for plans that come from a file: a result must never be stored under the key of another.
//! Invariant: a plan that `build` made passes.

use std::collections::BTreeMap;

use super::Plan;
use super::error::PlanError;
use super::key::{self, Taught};
use super::memo::digest;
use super::node::{Key, Node, Phase, Work};
use super::shape::shape;
use crate::budget::params::whole;
use crate::study::{Cache, Model, TeacherSource};
use crate::timeline::Segment;

/// Refuses a plan with a node whose key is not its own.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    let mut caches = BTreeMap::new();
    for (node, _) in plan.graph.all() {
        if let Work::TeacherLogits(logits) = &node.work {
            caches.insert(&node.key, logits.cache);
        }
        if !candidates(plan, node, &caches).contains(&node.key) {
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

/// The keys that a node may have: one, unless a checkpoint that is not at hand is its teacher, which a phase does not name.
fn candidates(plan: &Plan, node: &Node, caches: &BTreeMap<&Key, Cache>) -> Vec<Key> {
    match &node.work {
        Work::Corpus { data, content } => vec![key::corpus(data, content.as_deref())],
        Work::Teacher(phase) => vec![key::phase("teacher", phase, &shape_of(&phase.model, &phase.segment), None)],
        Work::Checkpoint(checkpoint) => vec![key::checkpoint(checkpoint, &shape_whole(&checkpoint.model))],
        Work::TeacherLogits(logits) => {
            vec![key::logits(&logits.corpus, &logits.data, &logits.teacher, logits.cache, logits.temperature, logits.shards)]
        }
        Work::Phase(phase) => {
            let shape = shape_of(&phase.model, &phase.segment);
            taught(plan, phase, caches).into_iter().map(|taught| key::phase("phase", phase, &shape, taught)).collect()
        }
        Work::Probe(probe) => {
            let (shape, ends) = (shape_of(&probe.model, &probe.segment), &probe.segment.block_ends);
            vec![key::probe(probe.kind, (probe.sequences, probe.tokens), &probe.data, &probe.phase, &shape, ends)]
        }
    }
}

fn taught<'a>(plan: &'a Plan, phase: &'a Phase, caches: &BTreeMap<&Key, Cache>) -> Vec<Option<Taught<'a>>> {
    if let Some(teacher) = &phase.teacher {
        let cache = teacher.logits.as_ref().and_then(|key| caches.get(key)).copied();
        return vec![Some(Taught::Trained(&teacher.node, cache.unwrap_or(Cache::None)))];
    }
    let mut taught = vec![None];
    for teacher in plan.study.arms.iter().filter_map(|arm| arm.recipe.teacher.as_ref()) {
        let TeacherSource::Checkpoint(path) = &teacher.source else { continue };
        for cache in [teacher.cache, Cache::None] {
            let known = |other: &Option<Taught<'_>>| matches!(other, Some(Taught::Checkpoint(p, c)) if *p == path && *c == cache);
            if !taught.iter().any(known) {
                taught.push(Some(Taught::Checkpoint(path, cache)));
            }
        }
    }
    taught
}
