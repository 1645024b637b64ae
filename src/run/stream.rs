//! Writes the stream of a run: numbers events, keeps them in a file of the run's own, hands them on.
//!
//! Owns `events/RUN.jsonl` of the store. Deliberately reads nothing back. Invariant: listeners hear exactly what the file keeps, in its order; what a
//! kill cuts short is its last line. No two runs write into one file. A disk that refuses a line ends the file with a warning, and never a run.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::event::{Event, Line, VERSION};
use super::machine;
use super::record::{DOCUMENTS, METRICS, MetricLine, PROBE};
use super::worker::Progress;
use crate::plan::node::{Key, Node};

/// Progress of a node is told once in this time: often enough for a bar that moves.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// Memory is told once in this time.
const TAKES_EVERY: Duration = Duration::from_secs(1);
/// Lines of metrics in one event at most.
const LINES: usize = 500;

/// Hears every line of the stream in its order, one at a time; calls come from several threads.
pub trait Listener: Sync {
    /// It happened.
    fn hear(&self, line: &Line);
    /// The stream cannot be kept any longer: why.
    fn unkept(&self, reason: &str) {
        let _ = reason;
    }
}

/// The stream of one run.
pub(super) struct Stream<'a> {
    folder: PathBuf,
    listener: &'a dyn Listener,
    inner: Mutex<Inner>,
}

struct Inner {
    seq: u64,
    file: Kept,
    taken: Option<Instant>,
}

enum Kept {
    /// Nothing was taken up yet: a run that finds everything done leaves no file.
    Waiting(String),
    Open(File),
    /// The disk refused.
    Broken,
}

impl<'a> Stream<'a> {
    /// A stream into a file of its own in `folder`, which is made when there is something to keep.
    pub(super) fn new(folder: PathBuf, listener: &'a dyn Listener) -> Self {
        Self { folder, listener, inner: Mutex::new(Inner { seq: 0, file: Kept::Waiting(String::new()), taken: None }) }
    }

    /// It happened.
    pub(super) fn say(&self, event: Event) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep(&mut inner, event);
    }

    fn keep(&self, inner: &mut Inner, event: Event) {
        let begins = matches!(event, Event::NodeStarted { .. });
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let line = Line { v: VERSION, seq: inner.seq, at, event };
        inner.seq += 1;
        if let Err(error) = self.write(&mut inner.file, &line, begins) {
            inner.file = Kept::Broken;
            self.listener.unkept(&format!("events are not kept any longer in `{}`: {error}", self.folder.display()));
        }
        self.listener.hear(&line);
    }

    /// In one go: whoever reads meanwhile sees whole lines.
    fn write(&self, kept: &mut Kept, line: &Line, begins: bool) -> std::io::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        match kept {
            Kept::Broken => Ok(()),
            Kept::Open(file) => file.write_all(text.as_bytes()),
            Kept::Waiting(before) => {
                before.push_str(&text);
                if begins {
                    let mut file = self.open(line.at)?;
                    file.write_all(before.as_bytes())?;
                    *kept = Kept::Open(file);
                }
                Ok(())
            }
        }
    }

    /// A file that nobody else has: its name is the moment in milliseconds and a number that is drawn.
    fn open(&self, at: f64) -> std::io::Result<File> {
        std::fs::create_dir_all(&self.folder)?;
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let name = format!("{:013}-{:08x}.jsonl", (at * 1e3) as u64, hasher.finish() as u32);
        OpenOptions::new().append(true).create_new(true).open(self.folder.join(name))
    }

    /// Puts what was said on the disk, before what it is about appears there.
    pub(super) fn sync(&self) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Kept::Open(file) = &inner.file {
            // The stream is no result: a disk that refuses here refuses the node too, and says so.
            let _ = file.sync_data();
        }
    }

    /// What the process takes, if it is time to say it.
    fn say_memory(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.taken.is_some_and(|last| last.elapsed() < TAKES_EVERY) {
            return;
        }
        inner.taken = Some(Instant::now());
        if let Some((memory, most)) = machine::resident() {
            self.keep(&mut inner, Event::RunTakes { memory, most });
        }
    }
}

/// What one attempt at a node tells.
pub(super) struct Telling<'a> {
    stream: &'a Stream<'a>,
    key: &'a Key,
    began: Instant,
    told: Option<Instant>,
    latest: Option<(u64, u64)>,
    tokens: u64,
    lines: Vec<MetricLine>,
}

impl<'a> Telling<'a> {
    /// It begins, in a folder where an attempt before may have left something.
    pub(super) fn begin(stream: &'a Stream<'a>, node: &'a Node, why: String, folder: &Path) -> Self {
        let (key, label, kind) = (&node.key, node.label.clone(), node.work.kind().to_owned());
        stream.say(Event::NodeStarted { key: key.clone(), label, kind, why });
        let text = std::fs::read_to_string(folder.join(METRICS)).unwrap_or_default();
        let lines = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        let mut telling = Self { stream, key, began: Instant::now(), told: None, latest: None, tokens: 0, lines };
        telling.flush();
        telling
    }
    /// It is further.
    pub(super) fn hear(&mut self, progress: Progress) {
        self.tokens += progress.tokens;
        self.latest = Some((progress.done, progress.total));
        self.lines.extend(progress.measured);
        let due = self.told.is_none_or(|last| last.elapsed() >= TOLD_EVERY) || progress.done == progress.total;
        if due || self.lines.len() >= LINES {
            self.told = Some(Instant::now());
            self.flush();
            self.stream.say_memory();
        }
    }
    /// Says what has not been said yet.
    pub(super) fn flush(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        while !lines.is_empty() {
            let rest = lines.split_off(lines.len().min(LINES));
            self.stream.say(Event::NodeMeasured { key: self.key.clone(), lines });
            lines = rest;
        }
        if let Some((done, total)) = self.latest.take() {
            let (tokens, seconds) = (self.tokens, self.seconds());
            self.stream.say(Event::NodeProgress { key: self.key.clone(), done, total, tokens, seconds });
        }
    }
    /// Says what its files hold beside metrics, and puts all of it on the disk: before the node is published.
    pub(super) fn seal(&mut self, folder: &Path) {
        self.flush();
        if let Some(documents) = read(&folder.join(DOCUMENTS)) {
            self.stream.say(Event::NodeEvaluated { key: self.key.clone(), documents });
        }
        if let Some(probe) = read(&folder.join(PROBE)) {
            self.stream.say(Event::NodeProbed { key: self.key.clone(), probe });
        }
        self.stream.sync();
    }
    /// Real tokens worked on in this attempt.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }
    /// Time that this attempt has taken.
    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
