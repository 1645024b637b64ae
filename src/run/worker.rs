//! The seam between the runner and whoever does the work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::profile::Profile;
use super::record::MetricLine;
use crate::plan::node::{Key, Node};

/// Does the work of one node. Same node and same inputs give the same bytes in the folder, whatever happened in between.
pub trait Worker: Sync {
    /// Works in `desk.folder` until the node's files are whole there.
    ///
    /// What an earlier attempt left in the folder is taken up again: a phase goes on from its last periodic checkpoint.
    /// The worker leaves no file there but the node's own when it is done.
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure>;
}

/// Where a node's work is done.
pub struct Desk<'a> {
    /// A folder of its own; kept between attempts.
    pub folder: &'a Path,
    /// Folders of finished nodes, by key.
    pub finished: &'a (dyn Fn(&Key) -> PathBuf + Sync),
    /// Asked for when the work should end soon: save and return [`Outcome::Interrupted`].
    pub stop: Stop<'a>,
    /// A periodic checkpoint is due after this much time, or later where it takes long; zero: after every step.
    pub save_every: Duration,
    /// Hears of progress; may be ignored by everyone.
    pub tell: &'a mut (dyn FnMut(Progress) + Send),
    /// Threads that it may keep busy, at least 1: its share of the machine. No result depends on it.
    pub threads: usize,
    /// Where its time goes.
    pub profile: &'a Profile,
}

impl Desk<'_> {
    /// Whether the work should end soon.
    pub fn stopping(&self) -> bool {
        self.stop.is_asked_for()
    }
}

/// Who may ask for an early end: whoever ends the run, and whoever takes the node over.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    run: &'a AtomicBool,
    lost: Option<&'a AtomicBool>,
}

impl<'a> Stop<'a> {
    /// Of work that nobody takes over.
    pub fn of(run: &'a AtomicBool) -> Self {
        Self { run, lost: None }
    }
    /// Also once the node's lock is lost.
    pub fn or_lost(self, lost: &'a AtomicBool) -> Self {
        Self { lost: Some(lost), ..self }
    }
    /// Whether anybody asks.
    pub fn is_asked_for(self) -> bool {
        self.run.load(Ordering::Relaxed) || self.lost.is_some_and(|lost| lost.load(Ordering::Relaxed))
    }
}

/// How far a node is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Units done since the node's beginning (steps, sequences, bytes of text).
    pub done: u64,
    /// Units in all.
    pub total: u64,
    /// Real tokens worked on since the last report.
    pub tokens: u64,
    /// What was measured since the last report: the next line of the node's `metrics.jsonl`, where it has one.
    pub measured: Option<MetricLine>,
}

/// How an attempt ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The node's files are whole; counts for its record (`steps`, `tokens`, `active_layer_tokens`, `trained_layer_tokens`).
    Done(BTreeMap<String, u64>),
    /// Stopped on request; all progress is kept.
    Interrupted,
}

/// How an attempt ended badly.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The loss is not finite any more. The last good checkpoint is kept.
    #[error("diverged at step {step}: {what}")]
    Diverged {
        /// The step of the run.
        step: u64,
        /// The first tensor at fault, or `loss`.
        what: String,
    },
    /// An input is not what the plan says.
    #[error("{0}")]
    Input(String),
    /// The disk.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// Why it failed.
        source: std::io::Error,
    },
}
