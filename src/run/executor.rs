//! Does what is missing of a plan, in the order of its dependencies, several nodes at a time.
//!
//! Invariant: a node is worked on by one holder of its lock at a time; a failed node stops only what needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::record::FailureRecord;
use super::store::{State, Store, StoreError};
use super::worker::{Desk, Failure, Outcome, Progress, Worker};
use crate::plan::node::{Key, Node};

/// How to execute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Nodes at a time, at least 1.
    pub jobs: usize,
    /// Time between periodic checkpoints.
    pub save_every: Duration,
}

/// Hears what happens; calls come from several threads.
pub trait Listener: Sync {
    /// A node is taken up; `why` it is not taken from the store.
    fn started(&self, node: &Node, why: &str);
    /// It is further.
    fn progress(&self, node: &Node, progress: &Progress);
    /// It is in the store.
    fn finished(&self, node: &Node, seconds: f64);
    /// It failed.
    fn failed(&self, node: &Node, reason: &str);
}

/// How it went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Nodes done now.
    pub done: usize,
    /// Nodes that were there.
    pub found: usize,
    /// Nodes that failed, with reasons.
    pub failed: Vec<(Key, String)>,
    /// Nodes that could not be tried since one that they need failed.
    pub blocked: usize,
    /// Stopped on request before all was done.
    pub interrupted: bool,
}

/// How long to wait before looking again at a node that another process works on.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, PartialEq)]
enum Status {
    Waiting,
    Running,
    Done,
    Failed,
}

struct Board<'a> {
    nodes: &'a [Node],
    status: BTreeMap<&'a Key, Status>,
    summary: Summary,
    error: Option<StoreError>,
}

impl Board<'_> {
    /// The first node all of whose needs are done, or whether there is anything left to wait for.
    fn next(&mut self) -> Option<usize> {
        self.nodes.iter().position(|node| {
            self.status.get(&node.key) == Some(&Status::Waiting)
                && node.needs.iter().all(|need| self.status.get(need) == Some(&Status::Done))
        })
    }
    fn set(&mut self, at: usize, status: Status) {
        if let Some(slot) = self.status.get_mut(&self.nodes[at].key) {
            *slot = status;
        }
    }
    fn running(&self) -> bool {
        self.status.values().any(|status| *status == Status::Running)
    }
}

/// Executes `nodes`, which come in an order in which every node follows what it needs.
pub fn execute(
    nodes: &[Node],
    store: &Store,
    worker: &dyn Worker,
    options: &Options,
    stop: &AtomicBool,
    listener: &dyn Listener,
) -> Result<Summary, StoreError> {
    store.create()?;
    let status = nodes.iter().map(|node| (&node.key, Status::Waiting)).collect();
    let board = Mutex::new(Board { nodes, status, summary: Summary::default(), error: None });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| work(&board, &changed, store, worker, options, stop, listener));
        }
    });
    let mut board = board.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = board.error {
        return Err(error);
    }
    let waiting = board.status.values().filter(|status| **status == Status::Waiting).count();
    board.summary.interrupted = waiting > 0 && stop.load(Ordering::Relaxed);
    if !board.summary.interrupted {
        board.summary.blocked = waiting;
    }
    Ok(board.summary)
}

fn hold<'a, 'b>(board: &'a Mutex<Board<'b>>) -> MutexGuard<'a, Board<'b>> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(
    board: &Mutex<Board<'_>>,
    changed: &Condvar,
    store: &Store,
    worker: &dyn Worker,
    options: &Options,
    stop: &AtomicBool,
    listener: &dyn Listener,
) {
    // Nodes that another process works on: they are looked at again later, others first.
    let mut elsewhere = BTreeSet::new();
    loop {
        let mut held = hold(board);
        let at = loop {
            if stop.load(Ordering::Relaxed) || held.error.is_some() {
                return;
            }
            match held.next() {
                Some(at) => break at,
                None if held.running() => {
                    held =
                        changed.wait_timeout(held, LOOK_AGAIN).map_or_else(|poisoned| poisoned.into_inner().0, |(held, _)| held);
                }
                None => return,
            }
        };
        held.set(at, Status::Running);
        let node = &held.nodes[at];
        drop(held);
        let result = attempt(node, store, worker, options, stop, listener);
        let mut held = hold(board);
        match result {
            Ok(Attempt::Done) => {
                held.set(at, Status::Done);
                held.summary.done += 1;
            }
            Ok(Attempt::Found) => {
                held.set(at, Status::Done);
                held.summary.found += 1;
            }
            Ok(Attempt::Failed(reason)) => {
                held.set(at, Status::Failed);
                held.summary.failed.push((node.key.clone(), reason));
            }
            Ok(Attempt::Interrupted) => held.set(at, Status::Waiting),
            Ok(Attempt::Elsewhere) => {
                held.set(at, Status::Waiting);
                elsewhere.insert(at);
            }
            Err(error) => held.error = Some(error),
        }
        drop(held);
        changed.notify_all();
        if elsewhere.remove(&at) {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

enum Attempt {
    Done,
    Found,
    Failed(String),
    Interrupted,
    /// Another process works on it.
    Elsewhere,
}

fn attempt(
    node: &Node,
    store: &Store,
    worker: &dyn Worker,
    options: &Options,
    stop: &AtomicBool,
    listener: &dyn Listener,
) -> Result<Attempt, StoreError> {
    if let State::Finished(_) = store.state(&node.key) {
        return Ok(Attempt::Found);
    }
    let Some(_lock) = store.lock(&node.key)? else { return Ok(Attempt::Elsewhere) };
    // Looked at again under the lock: another process may have finished it in between.
    let why = match store.state(&node.key) {
        State::Finished(_) => return Ok(Attempt::Found),
        State::Damaged(reason) => format!("damaged: {reason}"),
        State::Absent => "missing".into(),
    };
    let folder = store.begin(&node.key)?;
    listener.started(node, &why);
    let began = Instant::now();
    let mut tokens = 0;
    let mut tell = |progress: Progress| {
        tokens += progress.tokens;
        listener.progress(node, &progress);
    };
    let finished = |key: &Key| store.node(key);
    let mut desk = Desk { folder: &folder, finished: &finished, stop, save_every: options.save_every, tell: &mut tell };
    match worker.work(node, &mut desk) {
        Ok(Outcome::Done(counts)) => {
            store.finish(&node.key, node.work.kind(), counts)?;
            let seconds = began.elapsed().as_secs_f64();
            store.note_time(
                &serde_json::json!({ "key": node.key.0, "kind": node.work.kind(), "seconds": seconds, "tokens": tokens }),
            );
            listener.finished(node, seconds);
            Ok(Attempt::Done)
        }
        Ok(Outcome::Interrupted) => Ok(Attempt::Interrupted),
        Err(failure) => {
            let reason = failure.to_string();
            let diverged_at = match failure {
                Failure::Diverged { step, .. } => Some(step),
                Failure::Input(_) | Failure::Io { .. } => None,
            };
            store.fail(&node.key, &FailureRecord { label: node.label.clone(), reason: reason.clone(), diverged_at })?;
            listener.failed(node, &reason);
            Ok(Attempt::Failed(reason))
        }
    }
}
