//! A teacher's logits on disk: written once, sequence by sequence, then memory-mapped.
//!
//! Files: `logits.json` (a [`LogitsHeader`]), `train.logits` and `holdout.logits`: for each sequence in the order of its index, for each of
//! `context` positions (zeros where padded) little-endian either V log-probabilities as f32, or K tokens as u32 and K + 1
//! log-probabilities as f32, the last that of all other tokens together. Invariant: a cache is refused under any other vocabulary,
//! context, truncation or temperature than its own, and before it is trusted its teacher is asked again about some of its sequences.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::streamed::{Streamed, batches};
use super::teacher::OnlineTeacher;
use super::{disk, imported, refused};
use crate::budget::params::vocabulary;
use crate::budget::speaking::{grouped, together};
use crate::data::corpus::Part;
use crate::data::{Batch, Reader};
use crate::plan::node::TeacherLogits;
use crate::run::worker::{Desk, Failure, Outcome, Progress, Stop};
use crate::study::Cache;
use crate::tensor::{Device, Home, Param, Real, TeacherRows};

const HEADER: &str = "logits.json";
const PROGRESS: &str = "progress.json";

/// `logits.json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogitsHeader {
    /// V.
    pub vocabulary: usize,
    /// Positions of a sequence.
    pub context: usize,
    /// K, below V; `None` keeps all.
    pub top: Option<usize>,
    /// What becomes of the mass of the tokens that are not kept.
    pub missing: Missing,
    /// Softening.
    pub temperature: f64,
    /// Sequences of the training part.
    pub train: u64,
    /// Sequences of the holdout.
    pub holdout: u64,
}

/// How the mass of tokens that are not kept is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// All of them are one more outcome.
    OneOutcome,
}

impl LogitsHeader {
    fn token_bytes(&self) -> usize {
        Cache::bytes(self.top, self.vocabulary)
    }
    fn sequence_bytes(&self) -> usize {
        self.context * self.token_bytes()
    }
    /// File and sequences of a part.
    fn part(&self, part: Part) -> (&'static str, u64) {
        match part {
            Part::Train => ("train.logits", self.train),
            Part::Holdout => ("holdout.logits", self.holdout),
        }
    }
}

/// A cache that is read.
#[derive(Debug)]
pub struct Logits {
    header: LogitsHeader,
    train: Option<Mmap>,
    holdout: Option<Mmap>,
}

impl Logits {
    /// Opens the cache in `folder` for a model of `vocabulary` under a loss of `temperature`; `cache` says what it has to keep.
    pub fn open(folder: &Path, vocabulary: usize, context: usize, cache: Cache, temperature: f64) -> Result<Self, Failure> {
        let damaged = |what: String| Failure::Input(format!("the cache of the teacher's logits is damaged: {what}"));
        let text = std::fs::read(folder.join(HEADER)).map_err(disk("cannot read the cache of the teacher's logits"))?;
        let header: LogitsHeader = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let own = (header.vocabulary, header.context, header.top, header.temperature);
        let wanted = (vocabulary, context, cache.kept(vocabulary), temperature);
        if own != wanted {
            let told = |(vocabulary, context, top, temperature): (usize, usize, Option<usize>, f64)| {
                let kept = top.map_or_else(|| "all tokens".to_owned(), |top| format!("{top} tokens"));
                format!("{kept} of {vocabulary} at temperature {temperature} in sequences of {context}")
            };
            return Err(Failure::Input(format!(
                "the cache of the teacher's logits keeps {}, expected {}",
                told(own),
                told(wanted)
            )));
        }
        let map = |name: &str, sequences: u64| -> Result<Option<Mmap>, Failure> {
            if sequences == 0 {
                return Ok(None);
            }
            let file = File::open(folder.join(name)).map_err(disk(format!("cannot open {name}")))?;
            // SAFETY: the file belongs to a finished node, which nobody writes to any more; its length is compared below, and all
            // reads go through bounds-checked slices.
            let map = unsafe { Mmap::map(&file) }.map_err(disk(format!("cannot map {name}")))?;
            let expected = header.sequence_bytes() as u64 * sequences;
            if map.len() as u64 == expected {
                Ok(Some(map))
            } else {
                Err(damaged(format!("{name} has {} bytes, expected {expected}", map.len())))
            }
        };
        Ok(Self { train: map("train.logits", header.train)?, holdout: map("holdout.logits", header.holdout)?, header })
    }

    /// What the teacher says about each token of a batch, padded ones included.
    pub fn rows<E: Real, D: Device<E>>(&self, device: &D, batch: &Batch, part: Part) -> Result<TeacherRows<E, D>, Failure> {
        let map = match part {
            Part::Train => self.train.as_deref(),
            Part::Holdout => self.holdout.as_deref(),
        };
        let map = map.unwrap_or(&[]);
        let bytes = self.header.sequence_bytes();
        let mut cells = Vec::with_capacity(batch.rows * batch.context * self.header.token_bytes());
        for sequence in &batch.sequences {
            let start = *sequence as usize * bytes;
            let end = start + batch.context * self.header.token_bytes();
            let cell = map.get(start..end);
            let missing = || Failure::Input(format!("the cache of the teacher's logits lacks sequence {sequence}"));
            cells.extend_from_slice(cell.ok_or_else(missing)?);
        }
        let words: Vec<[u8; 4]> = cells.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]).collect();
        let vocabulary = self.header.vocabulary;
        match self.header.top {
            None => {
                let values = words.into_iter().map(|word| E::of(f64::from(f32::from_le_bytes(word)))).collect();
                match Param::new(device, values, &[batch.rows * batch.context, vocabulary]).map_err(refused)? {
                    Param::Matrix(matrix) => Ok(TeacherRows::Full(matrix)),
                    Param::Vector(_) => unreachable!("two sides make a matrix"),
                }
            }
            Some(top) => {
                let (mut tokens, mut logs) = (Vec::new(), Vec::new());
                for cell in words.chunks_exact(2 * top + 1) {
                    let own = cell[..top].iter().map(|word| u32::from_le_bytes(*word).min(vocabulary as u32 - 1));
                    tokens.extend(own);
                    logs.extend(cell[top..].iter().map(|word| f32::from_le_bytes(*word)));
                }
                TeacherRows::top(device, top, vocabulary, &tokens, &logs).map_err(refused)
            }
        }
    }
}

impl Logits {
    /// By how much the log-probabilities of a token differ at most from those that are kept.
    fn apart(&self, part: Part, sequence: u64, position: usize, logs: &[f32]) -> f64 {
        let map = match part {
            Part::Train => self.train.as_deref(),
            Part::Holdout => self.holdout.as_deref(),
        };
        let at = sequence as usize * self.header.sequence_bytes() + position * self.header.token_bytes();
        let cell = map.and_then(|map| map.get(at..at + self.header.token_bytes())).unwrap_or(&[]);
        let words: Vec<[u8; 4]> = cell.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]).collect();
        let of = |token: usize, kept: &[u8; 4]| -> f64 {
            let own = logs.get(token).copied().unwrap_or(f32::NAN);
            let apart = f64::from((f32::from_le_bytes(*kept) - own).abs());
            // What has no mass has no difference either.
            if own == f32::NEG_INFINITY && f32::from_le_bytes(*kept) == own { 0.0 } else { apart }
        };
        let most = |differences: &mut dyn Iterator<Item = f64>| {
            differences.fold(0.0, |most: f64, next| if next.is_nan() { next } else { most.max(next) })
        };
        match self.header.top {
            None => most(&mut words.iter().enumerate().map(|(token, kept)| of(token, kept))),
            Some(top) => {
                let tokens = words.iter().take(top).map(|word| u32::from_le_bytes(*word) as usize);
                most(&mut tokens.zip(words.iter().skip(top)).map(|(token, kept)| of(token, kept)))
            }
        }
    }
}

/// The K most likely tokens of each row (ties: the smaller token first) with their log-probabilities, and that of the rest.
pub fn truncate(logs: &[f32], top: usize) -> (Vec<u32>, Vec<f32>) {
    let before = |a: &u32, b: &u32| logs[*b as usize].total_cmp(&logs[*a as usize]).then(a.cmp(b));
    let mut order: Vec<u32> = (0..logs.len() as u32).collect();
    if top < order.len() {
        order.select_nth_unstable_by(top, before);
    }
    // In the order of tokens, whatever the selection did to it.
    let rest = order.split_off(top.min(order.len()));
    let mut left = vec![false; logs.len()];
    rest.iter().for_each(|token| left[*token as usize] = true);
    // Less the largest, so that even what no f64 can hold has a logarithm.
    let rest = || logs.iter().zip(&left).filter(|(_, left)| **left).map(|(log, _)| f64::from(*log));
    let most = rest().fold(f64::NEG_INFINITY, f64::max);
    let shift = if most.is_finite() { most } else { 0.0 };
    let rest: f64 = rest().map(|log| libm::exp(log - shift)).sum();
    order.sort_unstable_by(before);
    let mut kept: Vec<f32> = order.iter().map(|token| logs[*token as usize]).collect();
    kept.push((shift + libm::log(rest)) as f32);
    (order, kept)
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Written {
    train: u64,
    holdout: u64,
}

impl Written {
    fn part(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::Train => &mut self.train,
            Part::Holdout => &mut self.holdout,
        }
    }
}

/// Who speaks: a teacher of ours from memory, one of others layer by layer.
enum Speaker<'a, D: Home> {
    Whole(Box<OnlineTeacher<f32, D>>),
    Streamed(Streamed<'a, D>),
}

impl<'a, D: Home> Speaker<'a, D> {
    fn open(device: &D, node: &'a TeacherLogits, lies: &Path, desk: &Desk<'_>) -> Result<Self, Failure> {
        Ok(match &node.folder {
            Some(folder) => Self::Streamed(Streamed::new(device, &node.model, imported::open(&lies.join(folder))?.tensors)?),
            None => {
                let trained = (desk.finished)(&node.teacher);
                Self::Whole(Box::new(OnlineTeacher::load(device, &node.model, &trained, None)?))
            }
        })
    }
    /// Sequences that are worked on together.
    fn grouped(&self, node: &TeacherLogits) -> u64 {
        match self {
            Self::Whole(_) => together(node.data.context) as u64,
            Self::Streamed(_) => grouped(&node.model, node.data.context),
        }
    }
    /// As [`Streamed::speak`].
    fn speak(
        &self,
        device: &D,
        group: &[Batch],
        temperature: f64,
        stop: Stop<'_>,
        mut hear: impl FnMut(&[f32]),
    ) -> Result<bool, Failure> {
        match self {
            Self::Streamed(teacher) => teacher.speak(device, group, temperature, stop, hear),
            Self::Whole(teacher) => {
                for batch in group {
                    teacher.speak::<D::Operations>(device, batch, temperature, &mut hear)?;
                }
                Ok(!stop.is_asked_for())
            }
        }
    }
}

/// Does the work of a `teacher_logits` node; `lies` is the folder of the `.exp` file.
pub(super) fn write<D: Home>(device: &D, node: &TeacherLogits, lies: &Path, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
    let folder = desk.folder.to_owned();
    let reader = Reader::open(&(desk.finished)(&node.corpus), &node.data)
        .map_err(|error| Failure::Input(format!("the corpus: {error}")))?;
    let speaker = Speaker::open(device, node, lies, desk)?;
    let vocabulary = vocabulary(&node.model);
    let shards = reader.shards();
    let train = (0..node.shards.min(shards.count())).map(|shard| shards.sequences(shard).end).max().unwrap_or(0);
    let header = LogitsHeader {
        vocabulary,
        context: node.data.context,
        top: node.cache.kept(vocabulary),
        missing: Missing::OneOutcome,
        temperature: node.temperature,
        train,
        holdout: reader.holdout_sequences(),
    };
    let read = |part: Part, range: Range<u64>| match part {
        Part::Train => reader.train_sequences(&range.collect::<Vec<_>>()),
        Part::Holdout => reader.holdout(range),
    };
    let mut written: Written =
        std::fs::read(folder.join(PROGRESS)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    for part in [Part::Train, Part::Holdout] {
        let (name, total) = header.part(part);
        let context = || disk(format!("cannot write {name}"));
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name)).map_err(context())?;
        let mut at = *written.part(part);
        if file.metadata().map_err(context())?.len() < at * header.sequence_bytes() as u64 {
            at = 0;
        }
        file.set_len(at * header.sequence_bytes() as u64).map_err(context())?;
        file.seek(SeekFrom::End(0)).map_err(context())?;
        let mut saved = std::time::Instant::now();
        while at < total {
            let end = (at + speaker.grouped(node)).min(total);
            let group: Vec<Batch> = batches(at..end, header.context).map(|range| read(part, range)).collect();
            let mut into = Cells::new(&header, &group, BufWriter::new(&mut file));
            let spoken = speaker.speak(device, &group, node.temperature, desk.stop, |logs| into.add(logs))?;
            into.finish().map_err(context())?;
            if spoken {
                at = end;
                let done = at + if part == Part::Holdout { header.train } else { 0 };
                let tokens = group.iter().map(Batch::tokens).sum();
                (desk.tell)(Progress { done, total: header.train + header.holdout, tokens, measured: None });
            }
            if desk.stopping() || saved.elapsed() >= desk.save_every {
                file.sync_all().map_err(context())?;
                *written.part(part) = at;
                save(&folder, PROGRESS, &written)?;
                saved = std::time::Instant::now();
                if desk.stopping() {
                    return Ok(Outcome::Interrupted);
                }
            }
        }
        file.sync_all().map_err(context())?;
        *written.part(part) = at;
    }
    save(&folder, HEADER, &header)?;
    for part in [Part::Train, Part::Holdout] {
        let (_, total) = header.part(part);
        let mut sample = vec![0, total / 2, total.saturating_sub(1)];
        sample.dedup();
        sample.retain(|sequence| *sequence < total);
        let group: Vec<Batch> = sample.iter().map(|sequence| read(part, *sequence..*sequence + 1)).collect();
        let cache = Logits::open(&folder, header.vocabulary, header.context, node.cache, header.temperature)?;
        let mut rows = group.iter().flat_map(|batch| (0..batch.context).map(|position| (batch.sequences[0], position)));
        let mut apart = 0.0f64;
        let spoken = speaker.speak(device, &group, node.temperature, desk.stop, |logs| {
            for (logs, (sequence, position)) in logs.chunks_exact(vocabulary).zip(&mut rows) {
                apart = apart.max(cache.apart(part, sequence, position, logs));
            }
        })?;
        if !spoken {
            return Ok(Outcome::Interrupted);
        }
        // Sequences that run alone are summed as in company, but for products in blocks of other sizes.
        if apart.is_nan() || apart > 1e-3 {
            return Err(Failure::Input(format!("the teacher says something else when it is asked again: by {apart:e} nats")));
        }
    }
    super::phase::only(&folder, &[HEADER, "train.logits", "holdout.logits"])?;
    Ok(Outcome::Done(Default::default()))
}

/// Writes what is kept of rows of log-probabilities; a padded batch may be shorter than the context.
struct Cells<'a, W: Write> {
    header: &'a LogitsHeader,
    /// Tokens of each sequence that is not begun yet.
    lengths: std::vec::IntoIter<usize>,
    /// Rows of this one that are not written yet, and how many it has.
    left: (usize, usize),
    into: W,
    said: std::io::Result<()>,
}

impl<'a, W: Write> Cells<'a, W> {
    fn new(header: &'a LogitsHeader, group: &[Batch], into: W) -> Self {
        let lengths: Vec<usize> = group.iter().flat_map(|batch| std::iter::repeat_n(batch.context, batch.rows)).collect();
        Self { header, lengths: lengths.into_iter(), left: (0, 0), into, said: Ok(()) }
    }
    fn add(&mut self, logs: &[f32]) {
        for logs in logs.chunks_exact(self.header.vocabulary) {
            if self.left.0 == 0 {
                let next = self.lengths.next().unwrap_or(0);
                self.left = (next, next);
            }
            let mut bytes = Vec::with_capacity(self.header.token_bytes());
            encode(self.header, logs, &mut bytes);
            self.left.0 -= 1;
            if self.left.0 == 0 {
                bytes.resize(bytes.len() + (self.header.context - self.left.1) * self.header.token_bytes(), 0);
            }
            if self.said.is_ok() {
                self.said = self.into.write_all(&bytes);
            }
        }
    }
    fn finish(mut self) -> std::io::Result<()> {
        self.said.and_then(|()| self.into.flush())
    }
}

/// Adds what is kept of a row of log-probabilities.
fn encode(header: &LogitsHeader, logs: &[f32], into: &mut Vec<u8>) {
    match header.top {
        None => into.extend(logs.iter().flat_map(|log| log.to_le_bytes())),
        Some(top) => {
            let (tokens, logs) = truncate(logs, top);
            into.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
            into.extend(logs.iter().flat_map(|log| log.to_le_bytes()));
        }
    }
}

fn save(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), Failure> {
    let context = || disk(format!("cannot write {name}"));
    let text = serde_json::to_vec(value).map_err(|error| Failure::Input(error.to_string()))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(context())?;
    temporary.write_all(&text).map_err(context())?;
    temporary.as_file().sync_all().map_err(context())?;
    temporary.persist(folder.join(name)).map_err(|error| context()(error.error))?;
    Ok(())
}
