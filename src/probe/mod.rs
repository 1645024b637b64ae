//! Close looks at a checkpoint: boundary RMS and block removal.
//!
//! Owns what a probe computes and writes as `probe.json`. Deliberately knows no optimizer. Invariant: a probe reads, and changes nothing.

mod block_removal;
mod boundary_rms;

use std::path::Path;

use crate::budget::params::parameters;
use crate::data::Reader;
use crate::model::Network;
use crate::plan::node::Probe;
use crate::run::record::ProbeRecord;
use crate::run::worker::{Desk, Failure, Outcome};
use crate::study::ProbeKind;
use crate::tensor::Home;
use crate::train::{CHECKPOINT, Checkpoint, State};

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
    let state: State<f32, D> = State::load(device, &checkpoint)?;
    let network: Network<'_, f32, D, D::Operations> =
        Network::new(&probe.model, stack, block_ends, &state.params, checkpoint.meta.step);
    let batch = reader.probe_batch(probe.sequences, probe.tokens as usize);
    let record = match probe.kind {
        ProbeKind::BoundaryRms => boundary_rms::probe(device, &network, &batch)?,
        ProbeKind::BlockRemoval => block_removal::probe(device, &network, &batch)?,
    };
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
