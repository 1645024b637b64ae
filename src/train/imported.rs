//! Teachers that others have trained: a look at one before it is used, and parameters by our names.

use std::collections::BTreeMap;
use std::path::Path;

use super::metrics::Metrics;
use super::phase::only;
use super::teacher::OnlineTeacher;
use super::together;
use crate::budget::hub::names;
use crate::data::Reader;
use crate::data::hub::{Hub, Tensors};
use crate::plan::node::Checkpoint;
use crate::run::record::{METRICS, Real};
use crate::run::worker::{Desk, Failure, Outcome, Progress};
use crate::study::Metric;
use crate::tensor::Home;

/// A parameter by our name from tensors under ours or theirs.
pub(super) fn values(tensors: &Tensors, name: &str) -> Option<(Vec<usize>, Vec<f32>)> {
    let found = std::iter::once(name.to_owned()).chain(names(name)).find_map(|name| tensors.values(&name));
    found.map(|(shape, values)| (shape.to_vec(), values))
}

/// The model in a folder, for a plan that has compared its names and shapes.
pub(super) fn open(folder: &Path) -> Result<Hub, Failure> {
    Hub::open(folder, "teacher").map_err(|error| Failure::Input(format!("the teacher cannot be read: {error}")))
}

/// Does the work of a node that looks at a checkpoint: its weights are those of the plan; what it makes of the holdout is written down, as
/// after the last step of a teacher that was trained here.
pub(super) fn look<D: Home>(device: &D, node: &Checkpoint, folder: &Path, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
    let hub = open(&folder.join(&node.folder))?;
    if hub.tensors.content() != node.content {
        let text = format!("the weights in \"{}\" have changed since the plan was made; plan again", node.folder);
        return Err(Failure::Input(text));
    }
    let reader = Reader::open(&(desk.finished)(&node.corpus), &node.data)
        .map_err(|error| Failure::Input(format!("the corpus: {error}")))?;
    let teacher: OnlineTeacher<f32, D> = OnlineTeacher::read(device, &node.model, |name| values(&hub.tensors, name), 0)?;
    let (all, at_once) = (reader.holdout_sequences(), together(node.data.context) as u64);
    let (stop, tell) = (desk.stop, &mut desk.tell);
    let starts = (0..all).step_by(at_once as usize);
    let batches = starts.take_while(|_| !stop.load(std::sync::atomic::Ordering::Relaxed)).map(|start| {
        let batch = reader.holdout(start..(start + at_once).min(all));
        tell(Progress { done: start, total: all, tokens: batch.tokens(), loss: None });
        batch
    });
    let seen = teacher.evaluate::<D::Operations>(device, batches)?;
    if desk.stopping() {
        return Ok(Outcome::Interrupted);
    }
    let mut metrics = Metrics::open(desk.folder, 0)?;
    metrics.push(0, BTreeMap::from([(Metric::ValidationCe.name().to_owned(), Real(seen.ce))]))?;
    metrics.sync()?;
    only(desk.folder, &[METRICS])?;
    Ok(Outcome::Done(BTreeMap::from([("holdout_tokens".to_owned(), seen.tokens)])))
}
