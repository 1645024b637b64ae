//! What a plan costs as a whole, and what sharing saves.
//!
//! Owns the sums. Without sharing, every run trains all its phases itself, with its teachers beside it in every step and no cache; corpora
//! and the training of teachers are counted once either way, since nobody would do them anew for each arm. Invariant: a sum with an unknown part is unknown.

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::graph::Graph;
use super::node::Work;
use super::run::PlannedRun;

/// Sums over a plan.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Nodes.
    pub nodes: u64,
    /// Runs: arms times seeds.
    pub runs: u64,
    /// Optimizer steps, teachers' included.
    pub steps_planned: u64,
    /// As many if every run trained all its phases itself.
    pub steps_if_unshared: u64,
    /// Real tokens trained on.
    pub tokens_planned: Option<u64>,
    /// As many without sharing.
    pub tokens_if_unshared: Option<u64>,
    /// FLOPs of students (with the head) and teachers.
    pub flops_planned: Option<f64>,
    /// As many without sharing and without caches.
    pub flops_if_unshared: Option<f64>,
    /// Bytes that stay in the store.
    pub disk: Option<u64>,
    /// Memory of the largest node.
    pub memory: Option<u64>,
    /// Wall-clock in seconds, one node at a time.
    pub seconds: Option<f64>,
}

impl Totals {
    pub(super) fn of(graph: &Graph, runs: &[PlannedRun]) -> Self {
        let all = || {
            graph
                .all()
                .filter(|(node, _)| !matches!(node.work, Work::Corpus { .. } | Work::Tokenizer { .. }))
                .map(|(_, cost)| cost)
        };
        let once = graph.all().filter(|(node, _)| matches!(node.work, Work::Teacher(_) | Work::Checkpoint(_)));
        let once: Vec<&Cost> = once.map(|(_, cost)| cost).collect();
        let own = runs.iter().flat_map(|run| &run.phases).filter_map(|key| graph.cost(key));
        let unshared: Vec<&Cost> = once.iter().copied().chain(own).collect();
        let alone = runs.iter().map(|run| run.flops_alone);
        Self {
            nodes: graph.len() as u64,
            runs: runs.len() as u64,
            steps_planned: all().map(|cost| cost.steps).sum(),
            steps_if_unshared: unshared.iter().map(|cost| cost.steps).sum(),
            tokens_planned: all().map(|cost| cost.tokens).sum(),
            tokens_if_unshared: unshared.iter().map(|cost| cost.tokens).sum(),
            flops_planned: all().map(Cost::flops).sum(),
            flops_if_unshared: once.iter().map(|cost| cost.flops()).chain(alone).sum(),
            disk: graph.all().map(|(_, cost)| cost.disk).sum(),
            memory: graph.all().map(|(_, cost)| cost.memory).max().flatten(),
            seconds: all().map(|cost| cost.seconds).sum(),
        }
    }
}
