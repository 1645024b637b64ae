//! Does what is missing of a plan, in the order of its dependencies, several nodes at a time.
//!
//! Invariant: a node is worked on by one holder of its lock at a time; a failed node stops only what needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::event::Event;
use super::history::{self, History};
use super::lock::{Holder, Lock, Observer, Taken};
use super::profile::{Part, Profile};
use super::record::FailureRecord;
use super::store::{Published, State, Store, StoreError};
use super::stream::{Listener, Stream, Telling};
use super::worker::{Desk, Failure, Outcome, Progress, Stop, Worker};
use crate::plan::node::{Key, Node};
use crate::plan::{Inputs, Why};

/// How to execute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Nodes at a time, at least 1.
    pub jobs: usize,
    /// Threads of the machine, which nodes that run at the same time share.
    pub threads: usize,
    /// Time between periodic checkpoints.
    pub save_every: Duration,
    /// A holder of a lock that shows no life for so long is taken for dead ([`super::lock::PATIENCE`]).
    pub patience: Duration,
    /// When the program was asked: what lies between that and the first node was planning.
    pub asked: Instant,
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
    /// Parallel to the nodes.
    places: Vec<Place>,
    /// Nodes that wait for nothing but a thread.
    ready: BTreeSet<usize>,
    running: usize,
    /// Nodes that another process works on: others come first, and these are looked at again then.
    elsewhere: BTreeMap<usize, Instant>,
    summary: Summary,
    error: Option<StoreError>,
}

struct Place {
    status: Status,
    /// Nodes that it needs and that are not done.
    lacks: usize,
    /// Nodes that need it.
    needed_by: Vec<usize>,
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

impl<'a> Board<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        let place = |node: &Node| Place { status: Status::Waiting, lacks: node.needs.len(), needed_by: Vec::new() };
        let mut places: Vec<Place> = nodes.iter().map(place).collect();
        let at: BTreeMap<&Key, usize> = (0..).zip(nodes).map(|(at, node)| (&node.key, at)).collect();
        for (number, node) in nodes.iter().enumerate() {
            // One that is not there is never done.
            for need in node.needs.iter().filter_map(|need| at.get(need)) {
                places[*need].needed_by.push(number);
            }
        }
        let ready = (0..nodes.len()).filter(|number| places[*number].lacks == 0).collect();
        let (elsewhere, summary) = (BTreeMap::new(), Summary::default());
        Self { nodes, places, ready, running: 0, elsewhere, summary, error: None }
    }
    /// The first node all of whose needs are done.
    fn next(&self) -> Next {
        let now = Instant::now();
        let free = |at: &&usize| self.elsewhere.get(at).is_none_or(|again| *again <= now);
        match self.ready.iter().find(free) {
            Some(at) => Next::Node(*at),
            None if self.running > 0 || !self.ready.is_empty() => Next::Wait,
            None => Next::Nothing,
        }
    }
    /// Nodes that run, and those that could be begun beside them, as far as there are jobs.
    fn at_once(&self, jobs: usize) -> usize {
        (self.running + self.ready.len()).min(jobs).max(1)
    }
    fn set(&mut self, at: usize, status: Status) {
        self.running -= usize::from(self.places[at].status == Status::Running);
        self.running += usize::from(status == Status::Running);
        self.places[at].status = status;
        match status {
            Status::Waiting => _ = self.ready.insert(at),
            Status::Running | Status::Failed => _ = self.ready.remove(&at),
            Status::Done => {
                for by in std::mem::take(&mut self.places[at].needed_by) {
                    self.places[by].lacks -= 1;
                    if self.places[by].lacks == 0 {
                        self.ready.insert(by);
                    }
                }
            }
        }
    }
}

/// What all threads of a run share.
struct Run<'a> {
    store: &'a Store,
    worker: &'a dyn Worker,
    options: &'a Options,
    stop: &'a AtomicBool,
    stream: Stream<'a>,
    profile: Profile,
    observer: Observer,
    /// What was done before this run.
    history: History,
}

/// Executes `nodes`, which come in an order in which every node follows what it needs; tells the listener of all that happens.
pub fn execute(
    nodes: &[Node],
    store: &Store,
    worker: &dyn Worker,
    options: &Options,
    stop: &AtomicBool,
    listener: &dyn Listener,
) -> Result<Summary, StoreError> {
    store.create()?;
    let board = Mutex::new(Board::new(nodes));
    let changed = Condvar::new();
    let (profile, observer, history) = (Profile::default(), Observer::new(options.patience), History::of(store));
    profile.add(Part::Planning, options.asked.elapsed());
    let run = Run { store, worker, options, stop, stream: Stream::new(store.events(), listener), profile, observer, history };
    let (me, program) = (Holder::me(false), env!("CARGO_PKG_VERSION").to_owned());
    let jobs = options.jobs.max(1);
    run.say(Event::RunStarted { host: me.host, pid: me.pid, program, jobs, nodes: nodes.len() });
    let lived = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let began = Instant::now();
                run.work(&board, &changed);
                let nanoseconds = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                lived.fetch_add(nanoseconds, Ordering::Relaxed);
            });
        }
    });
    run.profile.close(Duration::from_nanos(lived.into_inner()));
    let mut board = board.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = board.error {
        return Err(error);
    }
    let waiting = board.places.iter().filter(|place| place.status == Status::Waiting).count();
    board.summary.interrupted = waiting > 0 && stop.load(Ordering::Relaxed);
    if !board.summary.interrupted {
        board.summary.blocked = waiting;
    }
    let Summary { done, found, blocked, interrupted, ref failed } = board.summary;
    let (failed, seconds) = (failed.len(), options.asked.elapsed().as_secs_f64());
    run.say(Event::RunFinished { done, found, failed, blocked, interrupted, seconds, spent: run.profile.seconds() });
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
    fn say(&self, event: Event) {
        self.profile.time(Part::Events, || self.stream.say(event));
    }

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
                        let began = Instant::now();
                        let woken = changed.wait_timeout(held, LOOK_AGAIN / 2);
                        held = woken.map_or_else(|poisoned| poisoned.into_inner().0, |(held, _)| held);
                        self.profile.add(Part::Waiting, began.elapsed());
                    }
                    Next::Nothing => return,
                }
            };
            held.set(at, Status::Running);
            let node = &held.nodes[at];
            // The rest of a division is left over: a thread more for one arm makes no other sooner.
            let threads = (self.options.threads / held.at_once(self.options.jobs)).max(1);
            drop(held);
            let result = self.attempt(node, threads);
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
                        self.say_elsewhere(node, holder.as_ref());
                    }
                }
                Ok(Attempt::Lost) => {
                    held.set(at, Status::Waiting);
                    held.elsewhere.insert(at, Instant::now() + LOOK_AGAIN);
                    self.say_elsewhere(node, None);
                }
                Err(error) => held.error = Some(error),
            }
            drop(held);
            changed.notify_all();
        }
    }

    fn say_elsewhere(&self, node: &Node, holder: Option<&Holder>) {
        let (key, label) = (node.key.clone(), node.label.clone());
        self.say(Event::NodeElsewhere { key, label, holder: holder.map(Holder::to_string) });
    }

    fn attempt(&self, node: &Node, threads: usize) -> Result<Attempt, StoreError> {
        let Self { store, profile, .. } = self;
        if let State::Finished(_) = profile.time(Part::Store, || store.state(&node.key)) {
            profile.time(Part::Locks, || store.clear(&node.key, &self.observer));
            self.say(Event::NodeFound { key: node.key.clone() });
            return Ok(Attempt::Found);
        }
        let lock = match profile.time(Part::Locks, || store.lock(&node.key, &self.observer))? {
            Taken::Ours(lock) => lock,
            Taken::Held(holder) => return Ok(Attempt::Elsewhere(holder)),
        };
        let attempt = self.under(node, &lock, threads);
        profile.time(Part::Locks, || store.release(&node.key, lock));
        attempt
    }

    fn under(&self, node: &Node, lock: &Lock, threads: usize) -> Result<Attempt, StoreError> {
        let Self { store, worker, options, profile, .. } = self;
        // Looked at again under the lock: another process may have finished it in between.
        let why = match profile.time(Part::Store, || store.state(&node.key)) {
            State::Finished(_) => {
                self.say(Event::NodeFound { key: node.key.clone() });
                return Ok(Attempt::Found);
            }
            State::Damaged(reason) => Why::Damaged(reason),
            State::Absent => self.history.why_absent(store, node),
        };
        let folder = profile.time(Part::Store, || store.begin(&node.key, lock))?;
        let from_start = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        let why = why.to_string();
        let mut telling = profile.time(Part::Events, || Telling::begin(&self.stream, node, why, &folder));
        let mut tell = |progress: Progress| profile.time(Part::Events, || telling.hear(progress));
        let finished = |key: &Key| store.node(key);
        let stop = Stop::of(self.stop).or_lost(lock.lost());
        let save_every = options.save_every;
        let mut desk = Desk { folder: &folder, finished: &finished, stop, save_every, tell: &mut tell, threads, profile };
        let outcome = worker.work(node, &mut desk);
        let (key, label) = (node.key.clone(), node.label.clone());
        match outcome {
            Ok(Outcome::Done(counts)) => {
                profile.time(Part::Events, || telling.seal(&folder));
                let published = profile.time(Part::Store, || store.finish(&node.key, lock, node.work.kind(), counts))?;
                if published == Published::ByAnother {
                    self.say(Event::NodeInterrupted { key });
                    return Ok(Attempt::Lost);
                }
                let (seconds, tokens) = (telling.seconds(), telling.tokens());
                let (kind, inputs) = (node.work.kind().to_owned(), Inputs::of(node));
                let line = history::Line { key: key.clone(), kind, label: label.clone(), seconds, tokens, from_start, inputs };
                profile.time(Part::Store, || store.remember(&line));
                self.say(Event::NodeFinished { key, label, seconds, tokens });
                Ok(Attempt::Done)
            }
            // Whatever went wrong after another took over is no fault of the node.
            Ok(Outcome::Interrupted) | Err(_) if !lock.is_ours() => {
                self.say(Event::NodeInterrupted { key });
                Ok(Attempt::Lost)
            }
            Ok(Outcome::Interrupted) => {
                telling.flush();
                self.say(Event::NodeInterrupted { key });
                Ok(Attempt::Interrupted)
            }
            Err(failure) => {
                let reason = failure.to_string();
                let diverged_at = match failure {
                    Failure::Diverged { step, .. } => Some(step),
                    Failure::Input(_) | Failure::Io { .. } => None,
                };
                telling.flush();
                self.say(Event::NodeFailed { key, label: label.clone(), reason: reason.clone(), diverged_at });
                // Said first: where the disk is full, this fails as well.
                store.fail(&node.key, &FailureRecord { label, reason: reason.clone(), diverged_at })?;
                Ok(Attempt::Failed(reason))
            }
        }
    }
}
