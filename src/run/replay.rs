//! Reads streams of events: one that still grows, or all of a store and what they say together.
//!
//! Owns how streams are put together. Deliberately reads no node. Invariant: a node that finished is told by the attempt that finished it, one that
//! did not by the latest; the order in which streams are read does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::event::{Event, Line, VERSION};
use super::record::{DocumentsRecord, FailureRecord, MetricLine, ProbeRecord};
use crate::plan::node::Key;

/// The files of streams in the store's folder `events`, the oldest first; none where there is no such folder.
pub fn streams(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    found.sort();
    found
}

/// Reads a stream that may still grow.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    at: u64,
    next: u64,
    fault: Option<String>,
}

impl Tail {
    /// From its beginning.
    pub fn new(path: PathBuf) -> Self {
        Self { path, at: 0, next: 0, fault: None }
    }
    /// Why it is read no further, if so: a line that is none, or is another than belongs there.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
    /// Hands on whole lines that came since it was last asked; half a line is left for the next time.
    pub fn read(&mut self, each: impl FnMut(Line)) {
        self.skim(&|_, _| true, each);
    }
    /// As [`Tail::read`], without lines that nobody wants by their kind and the node that they are about: those are passed over quickly.
    pub fn skim(&mut self, wanted: Wanted<'_>, mut each: impl FnMut(Line)) {
        if self.fault.is_some() {
            return;
        }
        if let Err(error) = self.whole_lines(wanted, &mut each) {
            self.fault = Some(format!("`{}`: {error}", self.path.display()));
        }
    }
    fn whole_lines(&mut self, wanted: Wanted<'_>, each: &mut impl FnMut(Line)) -> std::io::Result<()> {
        let mut file = std::fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.at))?;
        let mut file = BufReader::new(file);
        let mut text = Vec::new();
        loop {
            text.clear();
            // Longer than any event is: what is no stream is not read into memory.
            let length = file.by_ref().take(LONGEST).read_until(b'\n', &mut text)?;
            if text.last() != Some(&b'\n') {
                return if length as u64 == LONGEST { Err(std::io::Error::other("a line without an end")) } else { Ok(()) };
            }
            self.at += length as u64;
            if head(&text).is_some_and(|(kind, key)| !wanted(kind, key.as_ref())) {
                self.next += 1;
                continue;
            }
            let fault = |reason: String| std::io::Error::other(format!("event {}: {reason}", self.next));
            let line: Line = serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
            if line.v > VERSION {
                return Err(fault(format!("of version {}, this xrun reads {VERSION}", line.v)));
            }
            if line.seq != self.next {
                return Err(fault(format!("event {} stands in its place", line.seq)));
            }
            self.next += 1;
            each(line);
        }
    }
}

/// Whether a line is wanted: by the word of its event and the node that it is about, where it is about one.
pub type Wanted<'a> = &'a dyn Fn(&str, Option<&Key>) -> bool;

/// The word and the node of a line that begins as this program writes it.
fn head(text: &[u8]) -> Option<(&str, Option<Key>)> {
    /// Before the end of the key: version, number, moment and kind.
    const HEAD: usize = 180;
    let head = std::str::from_utf8(&text[..text.len().min(HEAD)]).ok()?;
    let (word, rest) = head.split_once(r#","event":""#)?.1.split_once('"')?;
    let key = rest.strip_prefix(r#","key":""#).and_then(|rest| rest.split_once('"'));
    Some((word, key.map(|(key, _)| Key(key.to_owned()))))
}

/// Bytes of a line at most. An event holds the lines of at most 500 steps, or the documents of a holdout.
const LONGEST: u64 = 1 << 28;

/// An attempt at a node, as its stream tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempt {
    /// When it began, by the clock of its machine.
    pub began: f64,
    /// Units done, units in all.
    pub progress: (u64, u64),
    /// Units that were done when its progress was told first.
    pub from: u64,
    /// Real tokens, and the time that they took.
    pub tokens: u64,
    /// Time that it has taken.
    pub seconds: f64,
    /// What was measured, by steps.
    pub lines: Vec<MetricLine>,
    /// When the stream told of it, by the clock of its machine; parallel to `lines`.
    pub times: Vec<f64>,
    /// The evaluation at its end.
    pub documents: Option<DocumentsRecord>,
    /// What a probe saw.
    pub probe: Option<ProbeRecord>,
    /// How it ended, if it has.
    pub end: Option<End>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It is in the store.
    Finished,
    /// It was stopped, or taken over.
    Interrupted,
    /// It failed.
    Failed(FailureRecord),
}

/// What streams say of nodes.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// By the stream that tells of it.
    attempts: BTreeMap<Key, BTreeMap<usize, Attempt>>,
    found: BTreeSet<Key>,
}

impl Told {
    /// What the streams of a folder say of some nodes, and which streams cannot be read to their end.
    pub fn read(folder: &Path, wanted: &dyn Fn(&Key) -> bool) -> (Self, Vec<String>) {
        let wanted = |_: &str, key: Option<&Key>| key.is_none_or(wanted);
        let (mut told, mut faults) = (Self::default(), Vec::new());
        for (number, path) in streams(folder).into_iter().enumerate() {
            let mut tail = Tail::new(path);
            tail.skim(&wanted, |line| told.hear(number, line));
            faults.extend(tail.fault().map(str::to_owned));
        }
        (told, faults)
    }
    /// One more line of a stream.
    pub fn hear(&mut self, stream: usize, line: Line) {
        let Line { at, event, .. } = line;
        match event {
            Event::NodeStarted { key, .. } => {
                self.attempts.entry(key).or_default().insert(stream, Attempt { began: at, ..Attempt::default() });
            }
            Event::NodeFound { key } => _ = self.found.insert(key),
            Event::NodeProgress { key, done, total, tokens, seconds } => self.of(stream, &key, |attempt| {
                if attempt.progress == (0, 0) {
                    attempt.from = done;
                }
                (attempt.progress, attempt.tokens, attempt.seconds) = ((done, total), tokens, seconds);
            }),
            Event::NodeMeasured { key, lines } => self.of(stream, &key, |attempt| {
                // What is done again is said again: it stands for what was said before.
                if let Some(first) = lines.first() {
                    let kept = attempt.lines.partition_point(|line| line.step < first.step);
                    attempt.lines.truncate(kept);
                    attempt.times.truncate(kept);
                }
                attempt.times.resize(attempt.lines.len() + lines.len(), at);
                attempt.lines.extend(lines);
            }),
            Event::NodeEvaluated { key, documents } => self.of(stream, &key, |attempt| attempt.documents = Some(documents)),
            Event::NodeProbed { key, probe } => self.of(stream, &key, |attempt| attempt.probe = Some(probe)),
            Event::NodeFinished { key, seconds, tokens, .. } => self.of(stream, &key, |attempt| {
                (attempt.seconds, attempt.tokens, attempt.end) = (seconds, tokens, Some(End::Finished));
            }),
            Event::NodeInterrupted { key } => self.of(stream, &key, |attempt| attempt.end = Some(End::Interrupted)),
            Event::NodeFailed { key, label, reason, diverged_at } => self.of(stream, &key, |attempt| {
                attempt.end = Some(End::Failed(FailureRecord { label, reason, diverged_at }));
            }),
            Event::RunStarted { .. }
            | Event::NodeElsewhere { .. }
            | Event::RunTakes { .. }
            | Event::RunFinished { .. }
            | Event::Unknown => {}
        }
    }
    fn of(&mut self, stream: usize, key: &Key, change: impl FnOnce(&mut Attempt)) {
        if let Some(attempt) = self.attempts.get_mut(key).and_then(|attempts| attempts.get_mut(&stream)) {
            change(attempt);
        }
    }
    /// The attempt that tells of a node.
    pub fn attempt(&self, key: &Key) -> Option<&Attempt> {
        let rank = |attempt: &&Attempt| (attempt.end == Some(End::Finished), attempt.began);
        let order = |a: &&Attempt, b: &&Attempt| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        self.attempts.get(key)?.values().max_by(order)
    }
    /// Whether a node is in the store, as far as streams say.
    pub fn is_finished(&self, key: &Key) -> bool {
        self.found.contains(key) || self.attempt(key).is_some_and(|attempt| attempt.end == Some(End::Finished))
    }
}
