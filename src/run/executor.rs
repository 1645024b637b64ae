//! Does what is missing of a plan, in the order of its dependencies, several nodes at a time.
//!
//! Invariant: a node is worked on by one holder of its lock at a time; a failed node stops only what needs it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::history::{History, Line};
use super::lock::{Holder, Lock, Observer, Taken};
use super::record::FailureRecord;
use super::store::{Published, State, Store, StoreError};
use super::worker::{Desk, Failure, Outcome, Progress, Stop, Worker};
use crate::plan::node::{Key, Node};
use crate::plan::{Inputs, Why};

/// How to execute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Nodes at a time, at least 1.
    pub jobs: usize,
    /// Time between periodic checkpoints.
    pub save_every: Duration,
    /// A holder of a lock that shows no life for so long is taken for dead ([`super::lock::PATIENCE`]).
    pub patience: Duration,
}

/// Hears what happens; calls come from several threads.
pub trait Listener: Sync {
    /// A node is taken up; `why` it is not taken from the store.
    fn started(&self, node: &Node, why: &Why);
    /// It is further.
    fn progress(&self, node: &Node, progress: &Progress);
    /// It is in the store.
    fn finished(&self, node: &Node, seconds: f64);
    /// Another process works on it, first heard of now; `None` if that cannot be told.
    fn elsewhere(&self, node: &Node, holder: Option<&Holder>);
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
    /// Nodes that another process works on: others come first, and these are looked at again then.
    elsewhere: BTreeMap<usize, Instant>,
    summary: Summary,
    error: Option<StoreError>,
}

/// What a thread may do now.
enum Next {
    /// This node.
    Node(usize),
    /// Nothing, but perhaps later.
    Wait,
    /// Nothing any more.
    Nothing,
}

impl Board<'_> {
    /// The first node all of whose needs are done.
    fn next(&self) -> Next {
        let now = Instant::now();
        let mut later = self.running();
        for (at, node) in self.nodes.iter().enumerate() {
            let is = |key: &Key, status| self.status.get(key) == Some(&status);
            if is(&node.key, Status::Waiting) && node.needs.iter().all(|need| is(need, Status::Done)) {
                if self.elsewhere.get(&at).is_none_or(|again| *again <= now) {
                    return Next::Node(at);
                }
                later = true;
            }
        }
        if later { Next::Wait } else { Next::Nothing }
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

/// What all threads of a run share.
struct Run<'a> {
    store: &'a Store,
    worker: &'a dyn Worker,
    options: &'a Options,
    stop: &'a AtomicBool,
    listener: &'a dyn Listener,
    observer: Observer,
    /// What was done before this run.
    history: History,
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
    let board = Mutex::new(Board { nodes, status, elsewhere: BTreeMap::new(), summary: Summary::default(), error: None });
    let changed = Condvar::new();
    let (observer, history) = (Observer::new(options.patience), History::of(store));
    let run = Run { store, worker, options, stop, listener, observer, history };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| run.work(&board, &changed));
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

enum Attempt {
    Done,
    Found,
    Failed(String),
    Interrupted,
    /// Another process works on it; `None` if that one cannot be told.
    Elsewhere(Option<Holder>),
    /// Another process took it over meanwhile.
    Lost,
}

impl Run<'_> {
    fn work(&self, board: &Mutex<Board<'_>>, changed: &Condvar) {
        loop {
            let mut held = hold(board);
            let at = loop {
                if self.stop.load(Ordering::Relaxed) || held.error.is_some() {
                    return;
                }
                match held.next() {
                    Next::Node(at) => break at,
                    Next::Wait => {
                        let woken = changed.wait_timeout(held, LOOK_AGAIN / 2);
                        held = woken.map_or_else(|poisoned| poisoned.into_inner().0, |(held, _)| held);
                    }
                    Next::Nothing => return,
                }
            };
            held.set(at, Status::Running);
            let node = &held.nodes[at];
            drop(held);
            let result = self.attempt(node);
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
                Ok(Attempt::Elsewhere(holder)) => {
                    held.set(at, Status::Waiting);
                    if held.elsewhere.insert(at, Instant::now() + LOOK_AGAIN).is_none() {
                        self.listener.elsewhere(node, holder.as_ref());
                    }
                }
                Ok(Attempt::Lost) => {
                    held.set(at, Status::Waiting);
                    held.elsewhere.insert(at, Instant::now() + LOOK_AGAIN);
                    self.listener.elsewhere(node, None);
                }
                Err(error) => held.error = Some(error),
            }
            drop(held);
            changed.notify_all();
        }
    }

    fn attempt(&self, node: &Node) -> Result<Attempt, StoreError> {
        let store = self.store;
        if let State::Finished(_) = store.state(&node.key) {
            store.clear(&node.key, &self.observer);
            return Ok(Attempt::Found);
        }
        let lock = match store.lock(&node.key, &self.observer)? {
            Taken::Ours(lock) => lock,
            Taken::Held(holder) => return Ok(Attempt::Elsewhere(holder)),
        };
        let attempt = self.under(node, &lock);
        store.release(&node.key, lock);
        attempt
    }

    fn under(&self, node: &Node, lock: &Lock) -> Result<Attempt, StoreError> {
        let Self { store, worker, options, listener, .. } = self;
        // Looked at again under the lock: another process may have finished it in between.
        let why = match store.state(&node.key) {
            State::Finished(_) => return Ok(Attempt::Found),
            State::Damaged(reason) => Why::Damaged(reason),
            State::Absent => self.history.why_absent(store, node),
        };
        let folder = store.begin(&node.key, lock)?;
        let from_start = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        listener.started(node, &why);
        let began = Instant::now();
        let mut tokens = 0;
        let mut tell = |progress: Progress| {
            tokens += progress.tokens;
            listener.progress(node, &progress);
        };
        let finished = |key: &Key| store.node(key);
        let stop = Stop::of(self.stop).or_lost(lock.lost());
        let mut desk = Desk { folder: &folder, finished: &finished, stop, save_every: options.save_every, tell: &mut tell };
        match worker.work(node, &mut desk) {
            Ok(Outcome::Done(counts)) => {
                if store.finish(&node.key, lock, node.work.kind(), counts)? == Published::ByAnother {
                    return Ok(Attempt::Lost);
                }
                let seconds = began.elapsed().as_secs_f64();
                let (key, kind, label) = (node.key.clone(), node.work.kind().to_owned(), node.label.clone());
                store.remember(&Line { key, kind, label, seconds, tokens, from_start, inputs: Inputs::of(node) });
                listener.finished(node, seconds);
                Ok(Attempt::Done)
            }
            // Whatever went wrong after another took over is no fault of the node.
            Ok(Outcome::Interrupted) | Err(_) if !lock.is_ours() => Ok(Attempt::Lost),
            Ok(Outcome::Interrupted) => Ok(Attempt::Interrupted),
            Err(failure) => {
                let reason = failure.to_string();
                let diverged_at = match failure {
                    Failure::Diverged { step, .. } => Some(step),
                    Failure::Input(_) | Failure::Io { .. } => None,
                };
                listener.failed(node, &reason);
                // Said first: where the disk is full, this fails as well.
                store.fail(&node.key, &FailureRecord { label: node.label.clone(), reason: reason.clone(), diverged_at })?;
                Ok(Attempt::Failed(reason))
            }
        }
    }
}
