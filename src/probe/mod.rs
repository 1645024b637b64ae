//! Close looks at a checkpoint.
//!
//! Owns what a probe computes and writes as `probe.json`. Deliberately knows no optimizer. Invariant: a probe reads, and changes nothing.

mod block_removal;
mod boundary_rms;
mod gradient_norms;
mod identity;
mod logit_lens;

use std::path::Path;

use crate::budget::params::parameters;
use crate::data::{Batch, Reader};
use crate::model::Network;
use crate::plan::node::Probe;
use crate::run::record::{CHECKPOINT, ProbeRecord};
use crate::run::worker::{Desk, Failure, Outcome, Stop};
use crate::study::ProbeKind;
use crate::tensor::Home;
use crate::train::{Checkpoint, State, together};

/// A network and the sequences that it is looked at with.
struct View<'a, D: Home> {
    device: &'a D,
    network: Network<'a, f32, D, D::Operations>,
    batch: Batch,
    stop: Stop<'a>,
}

impl<D: Home> View<'_, D> {
    /// A few sequences after the other; ends early once the run should end, and what was seen then means nothing.
    fn parts(&self) -> impl Iterator<Item = Batch> {
        let (rows, few) = (self.batch.rows, together(self.batch.context));
        let starts = (0..rows).step_by(few).take_while(|_| !self.stop.is_asked_for());
        starts.map(move |start| self.batch.slice(start..(start + few).min(rows)))
    }
}

/// Does the work of a `probe` node.
pub fn run<D: Home>(device: &D, probe: &Probe, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
    let input = |text: String| Failure::Input(text);
    let reader =
        Reader::open(&(desk.finished)(&probe.corpus), &probe.data).map_err(|error| input(format!("the corpus: {error}")))?;
    let checkpoint = Checkpoint::load(&(desk.finished)(&probe.phase).join(CHECKPOINT))
        .map_err(|error| input(format!("the checkpoint of the phase cannot be read: {error}")))?;
    let (stack, block_ends) = (&probe.segment.stack, &probe.segment.block_ends);
    checkpoint
        .check(&parameters(&probe.model, stack, block_ends))
        .map_err(|error| input(format!("the checkpoint of the phase does not fit its model: {error}")))?;
    let step = checkpoint.meta.step;
    let state: State<f32, D> = State::load(device, checkpoint)?;
    let network = Network::new(&probe.model, stack, block_ends, &state.params, step);
    let view = View { device, network, batch: reader.probe_batch(probe.sequences, probe.tokens as usize), stop: desk.stop };
    let record = match probe.kind {
        ProbeKind::BoundaryRms => boundary_rms::probe(&view)?,
        ProbeKind::BlockRemoval => block_removal::probe(&view)?,
        ProbeKind::Identity => identity::probe(&view)?,
        ProbeKind::LogitLens => logit_lens::probe(&view)?,
        ProbeKind::GradientNorms => gradient_norms::probe(&view)?,
    };
    if desk.stopping() {
        return Ok(Outcome::Interrupted);
    }
    save(desk.folder, &record)?;
    Ok(Outcome::Done(Default::default()))
}

fn save(folder: &Path, record: &ProbeRecord) -> Result<(), Failure> {
    let text = serde_json::to_vec(record).map_err(|error| Failure::Input(error.to_string()))?;
    let path = folder.join("probe.json");
    std::fs::write(&path, text)
        .and_then(|()| std::fs::File::open(&path)?.sync_all())
        .map_err(|source| Failure::Io { context: "cannot write probe.json".to_owned(), source })
}
