//! The worker for everything that touches tensors.

use std::path::PathBuf;

use super::{imported, logits, phase};
use crate::plan::node::{Node, Work};
use crate::run::Device;
use crate::run::profile::Part;
use crate::run::worker::{Desk, Failure, Outcome, Worker};
use crate::tensor::{Cpu, Home};

/// Trains teachers and phases, caches logits, probes. A `corpus` node is not its work.
#[derive(Debug, Clone, Default)]
pub struct TrainWorker {
    /// Where it trains.
    pub device: Device,
    /// The folder of the `.exp` file: `init from "…"` and `checkpoint "…"` are relative to it.
    pub folder: PathBuf,
}

impl Worker for TrainWorker {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        // Threads for each node: it begins nothing that another's threads might take up, and neither waits for the other.
        let threads = rayon::ThreadPoolBuilder::new().num_threads(desk.threads).thread_name(|number| format!("train {number}"));
        let threads = threads.build().map_err(super::refused)?;
        threads.install(|| self.at(node, desk))
    }
}

impl TrainWorker {
    fn at(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        // A device for each node: nodes that run side by side share nothing.
        match self.device {
            Device::Cpu => self.on(&Cpu::default(), node, desk),
            #[cfg(feature = "cuda")]
            Device::Cuda(number) => {
                let device = crate::tensor::Cuda::try_build(number, 0).map_err(super::refused)?;
                self.on(&device, node, desk)
            }
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => Err(Failure::Input(self.device.available().err().unwrap_or_default())),
        }
    }

    fn on<D: Home>(&self, device: &D, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        let profile = desk.profile;
        match &node.work {
            Work::Teacher(phase) | Work::Phase(phase) => phase::run(device, phase, &self.folder, desk),
            Work::Checkpoint(checkpoint) => {
                profile.time(Part::Looking, || imported::look(device, checkpoint, &self.folder, desk))
            }
            Work::TeacherLogits(cache) => profile.time(Part::Looking, || logits::write(device, cache, &self.folder, desk)),
            Work::Probe(probe) => profile.time(Part::Looking, || crate::probe::run(device, probe, desk)),
            Work::Corpus { .. } | Work::Tokenizer { .. } => Err(Failure::Input("this worker reads no text".to_owned())),
        }
    }
}
