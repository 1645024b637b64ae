//! Does a finished node again in a folder of its own and compares, to the byte: what [`super::worker::Worker`] promises, put to the test.
//!
//! Deliberately writes nothing into the store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::machine;
use super::profile::Profile;
use super::record::{METRICS, MetricLine, Record};
use super::store::{Store, copy_files};
use super::worker::{Desk, Failure, Outcome, Progress, Stop, Worker};
use crate::plan::node::{Key, Node};

/// How to do it again.
pub struct Again<'a> {
    /// Where inputs are, and what it is compared with.
    pub store: &'a Store,
    /// Who does it.
    pub worker: &'a dyn Worker,
    /// Killed after so many units (steps, sequences, documents) and taken up again, one after the other; a checkpoint is made after each unit then.
    pub kills: &'a [u64],
    /// Metrics that tell of the machine: their values are not compared.
    pub clocks: &'a [&'a str],
    /// Set when it should end soon.
    pub stop: &'a AtomicBool,
}

impl Again<'_> {
    /// What is different in a node from its record; nothing in one that keeps the promise. `None`: stopped on request.
    pub fn differences(&self, node: &Node, record: &Record) -> Result<Option<Vec<String>>, Failure> {
        let scratch = tempfile::tempdir().map_err(disk("cannot make a folder"))?;
        let (folder, killed) = (scratch.path().join("node"), scratch.path().join("killed"));
        fs::create_dir(&folder).map_err(disk("cannot make a folder"))?;
        for after in self.kills {
            if self.attempt(node, &folder, Some((*after, &killed)))? != Outcome::Interrupted {
                break;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if killed.exists() {
                // What a kill leaves is what lay on the disk at that moment; what was saved after it never was.
                let context = || disk("cannot lay out what the kill left");
                fs::remove_dir_all(&folder).map_err(context())?;
                fs::rename(&killed, &folder).map_err(context())?;
            }
        }
        match self.attempt(node, &folder, None)? {
            Outcome::Interrupted => Ok(None),
            Outcome::Done(counts) => {
                let mut found = self.compare(&folder, &self.store.node(&node.key), record)?;
                if counts != record.counts {
                    found.push(format!("it counts {counts:?}, its record {:?}", record.counts));
                }
                Ok(Some(found))
            }
        }
    }

    /// One attempt, which a kill may end: then `killed` is what it leaves.
    fn attempt(&self, node: &Node, folder: &Path, kill: Option<(u64, &Path)>) -> Result<Outcome, Failure> {
        let halt = AtomicBool::new(false);
        let mut fault = None;
        let mut tell = |progress: Progress| {
            let is_killed = kill.filter(|(after, killed)| progress.done >= *after && !killed.exists());
            if let Some((_, killed)) = is_killed {
                fault = copy_files(folder, killed).err();
            }
            halt.fetch_or(is_killed.is_some() || self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
        };
        let finished = |key: &Key| self.store.node(key);
        let save_every = if self.kills.is_empty() { Duration::MAX } else { Duration::ZERO };
        let (stop, threads, profile) = (Stop::of(&halt), machine::threads(), Profile::default());
        let mut desk = Desk { folder, finished: &finished, stop, save_every, tell: &mut tell, threads, profile: &profile };
        let outcome = self.worker.work(node, &mut desk);
        match fault {
            Some(fault) => Err(disk("cannot keep what the kill leaves")(fault)),
            None => outcome,
        }
    }

    fn compare(&self, own: &Path, kept: &Path, record: &Record) -> Result<Vec<String>, Failure> {
        let mut names: BTreeSet<String> = record.files.keys().cloned().collect();
        for entry in fs::read_dir(own).map_err(disk("cannot list the files"))?.flatten() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
        let mut found = Vec::new();
        for name in names {
            match (fs::read(own.join(&name)), fs::read(kept.join(&name))) {
                (Ok(own), Ok(kept)) if own == kept => {}
                (Ok(own), Ok(kept)) if name == METRICS => found.extend(self.first_apart(&own, &kept)),
                (Ok(own), Ok(kept)) => {
                    let at = own.iter().zip(&kept).take_while(|(own, kept)| own == kept).count();
                    found.push(format!("`{name}` is another from byte {at} on ({} bytes, {} kept)", own.len(), kept.len()));
                }
                (Ok(_), Err(_)) => found.push(format!("`{name}` was not kept")),
                (Err(_), _) => found.push(format!("`{name}` is not made again")),
            }
        }
        Ok(found)
    }

    /// The first line of two that differs in more than the machine's own speed.
    fn first_apart(&self, own: &[u8], kept: &[u8]) -> Option<String> {
        let lines = |bytes: &[u8]| -> Vec<Option<MetricLine>> {
            let plain = |line: &str| {
                let mut line: MetricLine = serde_json::from_str(line).ok()?;
                line.values.retain(|name, _| !self.clocks.contains(&name.as_str()));
                Some(line)
            };
            String::from_utf8_lossy(bytes).lines().map(plain).collect()
        };
        let (own, kept) = (lines(own), lines(kept));
        // By text: what is not a number is not equal to itself.
        let text = |line: Option<&Option<MetricLine>>| line.map(|line| serde_json::to_string(line).unwrap_or_default());
        let apart = (0..own.len().max(kept.len())).find(|at| text(own.get(*at)) != text(kept.get(*at)))?;
        Some(format!(
            "`{METRICS}` is another from line {} on: {} and not {}",
            apart + 1,
            text(own.get(apart)).unwrap_or_else(|| "nothing".to_owned()),
            text(kept.get(apart)).unwrap_or_else(|| "nothing".to_owned())
        ))
    }
}

fn disk(context: &str) -> impl FnOnce(std::io::Error) -> Failure {
    let context = context.to_owned();
    move |source| Failure::Io { context, source }
}
