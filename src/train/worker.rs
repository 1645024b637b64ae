//! The worker for everything that touches tensors.

use std::path::PathBuf;

use super::{logits, phase};
use crate::plan::node::{Node, Work};
use crate::run::worker::{Desk, Failure, Outcome, Worker};
use crate::tensor::Cpu;

/// Trains teachers and phases, caches logits, probes. A `corpus` node is not its work.
#[derive(Debug, Clone, Default)]
pub struct TrainWorker {
    /// The folder of the `.exp` file: `init from "…"` reads beside it.
    pub folder: PathBuf,
}

impl Worker for TrainWorker {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        // A device for each node: dfdx's is a handle, and nodes that run side by side share nothing.
        let device = Cpu::default();
        match &node.work {
            Work::Teacher(phase) | Work::Phase(phase) => phase::run(&device, phase, &self.folder, desk),
            Work::TeacherLogits(cache) => logits::write(&device, cache, desk),
            Work::Probe(probe) => crate::probe::run(&device, probe, desk),
            Work::Corpus { .. } => Err(Failure::Input("a corpus is not trained".to_owned())),
        }
    }
}
