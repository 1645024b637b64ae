//! Ties the runner to those who do its work: data writes corpora, training does the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::data::bpe;
use crate::data::corpus::{self, Written};
use crate::plan::node::{Node, Work};
use crate::plan::tokenizer;
use crate::run::Device;
use crate::run::profile::Part;
use crate::run::worker::{Desk, Failure, Outcome, Progress, Worker};

/// Works on every kind of node.
pub struct Everything {
    /// The folder of the `.exp` file: what `files "…"` is relative to.
    pub folder: PathBuf,
    /// Where it trains.
    pub device: Device,
}

impl Worker for Everything {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        match &node.work {
            Work::Corpus { data, content } => {
                let trained = tokenizer(data, content.as_deref()).map(|key| (desk.finished)(&key).join(bpe::FILE));
                let Desk { folder, stop, tell, profile, .. } = desk;
                let mut go_on = |Written { done, total, tokens }| {
                    tell(Progress { done, total, tokens, measured: None });
                    !stop.is_asked_for()
                };
                let write = || corpus::write(data, content.as_deref(), &self.folder, trained.as_deref(), folder, &mut go_on);
                let header = profile.time(Part::Looking, write).map_err(|error| Failure::Input(error.to_string()))?;
                let Some(header) = header else { return Ok(Outcome::Interrupted) };
                let counts = [("train_tokens", header.train_tokens), ("holdout_tokens", header.holdout_tokens)];
                Ok(Outcome::Done(counts.map(|(name, count)| (name.to_owned(), count)).into_iter().collect::<BTreeMap<_, _>>()))
            }
            Work::Tokenizer { data, content } => {
                let Desk { folder, stop, tell, profile, .. } = desk;
                let mut go_on = |Written { done, total, tokens }| {
                    tell(Progress { done, total, tokens, measured: None });
                    !stop.is_asked_for()
                };
                let write = || bpe::write(data, content.as_deref(), &self.folder, folder, &mut go_on);
                let size = profile.time(Part::Looking, write).map_err(|error| Failure::Input(error.to_string()))?;
                let counts = |size| Outcome::Done([("vocabulary".to_owned(), size as u64)].into_iter().collect());
                Ok(size.map_or(Outcome::Interrupted, counts))
            }
            Work::Teacher(_) | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Phase(_) | Work::Probe(_) => {
                self.train(node, desk)
            }
        }
    }
}

impl Everything {
    #[cfg(feature = "train")]
    fn train(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        crate::train::TrainWorker { folder: self.folder.clone(), device: self.device }.work(node, desk)
    }

    #[cfg(not(feature = "train"))]
    fn train(&self, _: &Node, _: &mut Desk<'_>) -> Result<Outcome, Failure> {
        Err(Failure::Input(self.device.available().err().unwrap_or_default()))
    }
}

/// The store of a file: beside it, unless said otherwise.
pub fn store_of(file: &Path, chosen: Option<&Path>) -> PathBuf {
    chosen.map_or_else(|| folder_of(file).join(".xrun"), Path::to_path_buf)
}

/// The folder that a file lies in.
pub fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.into(),
        _ => PathBuf::from("."),
    }
}
