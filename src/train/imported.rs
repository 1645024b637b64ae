//! Teachers that others have trained: a look at one before it is used, and parameters by our names.

use std::collections::BTreeMap;
use std::path::Path;

use super::metrics::Metrics;
use super::phase::only;
use super::streamed::{Streamed, batches};
use crate::budget::hub::names;
use crate::budget::params::vocabulary;
use crate::budget::speaking::grouped;
use crate::data::hub::{Hub, HubError, Tensors, Values};
use crate::data::{Batch, Reader};
use crate::plan::node::Checkpoint;
use crate::run::record::{METRICS, MetricLine, Real};
use crate::run::worker::{Desk, Failure, Outcome, Progress};
use crate::study::Metric;
use crate::tensor::Home;

/// A parameter by our name from tensors under ours or theirs.
pub(super) fn values(tensors: &Tensors, name: &str) -> Result<Values, Failure> {
    let found = std::iter::once(name.to_owned()).chain(names(name)).find_map(|name| tensors.values(&name));
    found.ok_or_else(|| Failure::Input(format!("there is no `{name}`")))?.map_err(unread)
}

/// Rows of a matrix by our name.
pub(super) fn rows(tensors: &Tensors, name: &str, rows: &[u32]) -> Result<Vec<f32>, Failure> {
    let found = names(name).iter().find_map(|name| tensors.rows(name, rows));
    found.ok_or_else(|| Failure::Input(format!("there is no `{name}`")))?.map_err(unread)
}

/// The model in a folder, for a plan that has compared its names and shapes.
pub(super) fn open(folder: &Path) -> Result<Hub, Failure> {
    Hub::open(folder, "teacher").map_err(unread)
}

fn unread(error: HubError) -> Failure {
    Failure::Input(format!("the weights of others cannot be read: {error}"))
}

/// Does the work of a node that looks at a checkpoint: its weights are those of the plan; what it makes of the holdout is written down, as
/// after the last step of a teacher that was trained here.
pub(super) fn look<D: Home>(device: &D, node: &Checkpoint, folder: &Path, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
    let hub = open(&folder.join(&node.folder))?;
    if Some(hub.tensors.content().map_err(unread)?) != node.content {
        let text = format!("the weights in \"{}\" have changed since the plan was made; plan again", node.folder);
        return Err(Failure::Input(text));
    }
    let reader = Reader::open(&(desk.finished)(&node.corpus), &node.data)
        .map_err(|error| Failure::Input(format!("the corpus: {error}")))?;
    let teacher = Streamed::new(device, &node.model, hub.tensors)?;
    let (all, at_once) = (reader.holdout_sequences(), grouped(&node.model, node.data.context));
    let (mut ce, mut tokens) = (0.0, 0);
    for start in (0..all).step_by(at_once as usize) {
        let end = (start + at_once).min(all);
        let batches = batches(start..end, node.data.context).map(|chunk| reader.holdout(chunk)).collect::<Vec<_>>();
        let mut cells = batches.iter().flat_map(|batch| batch.labels.iter().zip(&batch.counted));
        let spoken = teacher.speak(device, &batches, 1.0, desk.stop, |logs| {
            for logs in logs.chunks_exact(vocabulary(&node.model)) {
                if let Some((label, true)) = cells.next() {
                    ce -= f64::from(logs[*label as usize]);
                }
            }
        })?;
        if !spoken {
            return Ok(Outcome::Interrupted);
        }
        let read: u64 = batches.iter().map(Batch::tokens).sum();
        tokens += read;
        (desk.tell)(Progress { done: end, total: all, tokens: read, measured: None });
    }
    let mut metrics = Metrics::open(desk.folder, 0)?;
    let values = BTreeMap::from([(Metric::ValidationCe.name().to_owned(), Real(ce / tokens as f64))]);
    let line = MetricLine { step: 0, values };
    metrics.push(&line)?;
    (desk.tell)(Progress { done: all, total: all, tokens: 0, measured: Some(line) });
    metrics.sync()?;
    only(desk.folder, &[METRICS])?;
    Ok(Outcome::Done(BTreeMap::from([("holdout_tokens".to_owned(), tokens)])))
}
