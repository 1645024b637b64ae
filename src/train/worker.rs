//! The worker for everything that touches tensors.

use std::path::PathBuf;

use super::{logits, phase};
use crate::plan::node::{Node, Work};
use crate::run::worker::{Desk, Failure, Outcome, Worker};
use crate::tensor::{Cpu, Home};

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// A CUDA device by its number; refused by a build without the feature `cuda`.
    Cuda(usize),
}

/// Trains teachers and phases, caches logits, probes. A `corpus` node is not its work.
#[derive(Debug, Clone, Default)]
pub struct TrainWorker {
    /// Where it trains.
    pub device: DeviceChoice,
    /// The folder of the `.exp` file: `init from "…"` reads beside it.
    pub folder: PathBuf,
}

impl Worker for TrainWorker {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        // A device for each node: nodes that run side by side share nothing.
        match self.device {
            DeviceChoice::Cpu => self.on(&Cpu::default(), node, desk),
            #[cfg(feature = "cuda")]
            DeviceChoice::Cuda(number) => {
                let device = crate::tensor::Cuda::try_build(number, 0).map_err(super::refused)?;
                self.on(&device, node, desk)
            }
            #[cfg(not(feature = "cuda"))]
            DeviceChoice::Cuda(_) => Err(Failure::Input("this xrun was built without the feature `cuda`".to_owned())),
        }
    }
}

impl TrainWorker {
    fn on<D: Home>(&self, device: &D, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        match &node.work {
            Work::Teacher(phase) | Work::Phase(phase) => phase::run(device, phase, &self.folder, desk),
            Work::TeacherLogits(cache) => logits::write(device, cache, desk),
            Work::Probe(probe) => crate::probe::run(device, probe, desk),
            Work::Corpus { .. } => Err(Failure::Input("a corpus is not trained".to_owned())),
        }
    }
}
