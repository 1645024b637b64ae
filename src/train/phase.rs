//! Runs a phase at a desk: from the parent's checkpoint to its own.
//!
//! Files while it works: `metrics.jsonl` and now and then `partial.safetensors`; when it is done: `metrics.jsonl`,
//! `checkpoint.safetensors` and, where it is evaluated at its end, `documents.json`, nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::checkpoint::CheckpointError;
use super::documents::Documents;
use super::logits::Logits;
use super::loss::{Term, terms};
use super::metrics::Metrics;
use super::optimizer::Optimizer;
use super::sets::Learning;
use super::start::{Lies, Sources, agrees, begin, goes_on};
use super::step::{Setting, State, groups, step};
use super::teacher::{OnlineTeacher, Teacher, load_checkpoint};
use super::transition::{holds, reads_on};
use super::{Checkpoint, Meta, disk, evaluate};
use crate::budget::params::{parameters, vocabulary};
use crate::data::{Batch, Reader};
use crate::model::{Network, Without};
use crate::plan::node::{Phase, TeacherAt, TeacherUse};
use crate::run::profile::Part;
use crate::run::record::{CHECKPOINT, DOCUMENTS, METRICS, MetricLine, Real};
use crate::run::worker::{Desk, Failure, Outcome, Progress};
use crate::study::Metric;
use crate::tensor::Home;

const PARTIAL: &str = "partial.safetensors";
/// Periodic checkpoints take at most one part in so many of the time: large ones are made less often than the desk asks for.
const SAVE_SHARE: u32 = 50;

/// Does the work of a `phase` or `teacher` node. `folder`: that of the `.exp` file.
pub(super) fn run<D: Home>(device: &D, phase: &Phase, folder: &Path, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
    desk.profile.time(Part::Checkpoints, || Run::open(device, phase, folder, desk))?.go(desk)
}

struct Run<'a, D: Home> {
    device: &'a D,
    phase: &'a Phase,
    reader: Reader,
    /// Those that are heard, and their names.
    teachers: Vec<Teacher<f32, D>>,
    heard: Vec<&'a str>,
    terms: Vec<Term>,
    learning: Learning,
    groups: indexmap::IndexMap<String, crate::budget::params::Group>,
    state: State<f32, D>,
    step: u64,
    counts: Counts,
    pace: Pace,
    metrics: Metrics,
}

/// Training since the pace was last told: evaluation and saving take none of it.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    tokens: u64,
    time: Duration,
}

/// What was done in this phase so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    tokens: u64,
    active_layer_tokens: u64,
    trained_layer_tokens: u64,
}

impl<'a, D: Home> Run<'a, D> {
    fn open(device: &'a D, phase: &'a Phase, folder: &Path, desk: &Desk<'_>) -> Result<Self, Failure> {
        let segment = &phase.segment;
        let specs = parameters(&phase.model, &segment.stack, &segment.block_ends);
        let learning = Learning::new(&phase.model, &specs, segment);
        let (groups, optimizer) = (groups(&specs), optimizer(phase));
        let reader = Reader::open(&(desk.finished)(&phase.corpus), &phase.data)
            .map_err(|error| Failure::Input(format!("the corpus: {error}")))?
            .relaid(segment.data.context);
        let heard = heard(phase)?;
        let teachers =
            heard.iter().map(|teacher| open_teacher(device, phase, teacher, folder, desk)).collect::<Result<_, _>>()?;
        let heard: Vec<&str> = heard.into_iter().map(|teacher| teacher.name.as_str()).collect();
        let terms = terms(&segment.loss, &heard);
        let resumed = match Checkpoint::load(&desk.folder.join(PARTIAL)) {
            // A partial that does not fit is one that the disk has damaged: the phase starts over.
            Ok(partial) => Some(partial).filter(|partial| {
                partial.check(&specs).is_ok()
                    && goes_on(segment, &learning, partial)
                    && optimizer.fits(&groups, partial)
                    && Metrics::holds(desk.folder, partial.meta.metrics_bytes)
            }),
            Err(CheckpointError::Io(_) | CheckpointError::Damaged(_) | CheckpointError::Mismatch(_)) => None,
        };
        let (state, step, counts, metrics) = match resumed {
            Some(partial) => {
                let count = |name: &str| partial.meta.counts.get(name).copied().unwrap_or(0);
                let counts = Counts {
                    tokens: count("tokens"),
                    active_layer_tokens: count("active_layer_tokens"),
                    trained_layer_tokens: count("trained_layer_tokens"),
                };
                let metrics = Metrics::open(desk.folder, partial.meta.metrics_bytes)?;
                let step = partial.meta.step;
                (State::load(device, partial)?, step, counts, metrics)
            }
            None => {
                let parent = match &phase.parent {
                    Some(key) => Some(load_checkpoint(&(desk.finished)(key), "the phase before")?),
                    None => None,
                };
                agrees(segment, parent.as_ref())?;
                reads_on(&phase.transition, segment, parent.as_ref())?;
                if parent.as_ref().is_some_and(|parent| !optimizer.fits(&groups, parent)) {
                    return Err(Failure::Input("the phase before was trained by another optimizer".to_owned()));
                }
                let lies = |teacher: &TeacherUse| match &teacher.at {
                    TeacherAt::Node { folder: Some(lies), .. } => Some(Lies::Folder(folder.join(lies))),
                    TeacherAt::Node { node, .. } => Some(Lies::Node((desk.finished)(node))),
                    TeacherAt::Absent(_) => None,
                };
                let sources = Sources::new(phase.teachers.first().and_then(lies), folder.to_owned());
                let state = begin(device, phase.seed, &specs, segment, &learning, parent, &sources)?;
                holds(&phase.transition, segment, &specs, &learning, &state)?;
                (state, segment.steps.start, Counts::default(), Metrics::open(desk.folder, 0)?)
            }
        };
        Ok(Self {
            device,
            phase,
            reader,
            teachers,
            heard,
            terms,
            learning,
            groups,
            state,
            step,
            counts,
            pace: Pace::default(),
            metrics,
        })
    }

    fn go(mut self, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        let (phase, segment) = (self.phase, &self.phase.segment);
        let mut order = self.reader.order(phase.seed);
        let (mut saved, mut pause) = (Instant::now(), desk.save_every);
        while self.step < segment.steps.end {
            let mut values = desk.profile.time(Part::Looking, || self.measures(desk, |_, _| ()))?;
            if desk.stopping() {
                return self.interrupted(desk);
            }
            self.tell_pace(&mut values);
            let began = Instant::now();
            let batch = self.reader.train(&mut order, segment.position(self.step), segment.batch);
            let data = began.elapsed();
            let lr = segment.rate.at(self.step);
            let setting = Setting {
                device: self.device,
                model: &phase.model,
                segment,
                learning: &self.learning,
                groups: &self.groups,
                terms: &self.terms,
                optimizer: optimizer(phase),
                micro: phase.training.batch.micro as usize,
                stop: desk.stop,
            };
            let teachers = &self.teachers;
            let seen = step::<f32, D, D::Operations>(&setting, &mut self.state, teachers, &batch, (self.step, lr))?;
            let Some(seen) = seen else { return self.interrupted(desk) };
            values.insert(Metric::TrainLoss.name().to_owned(), Real(seen.loss));
            values.insert(Metric::GradNorm.name().to_owned(), Real(seen.grad_norm));
            values.insert("lr".to_owned(), Real(lr));
            let measured = MetricLine { step: self.step, values };
            self.metrics.push(&measured)?;
            self.step += 1;
            let (tokens, took) = (batch.tokens(), began.elapsed());
            desk.profile.add(Part::Data, data);
            desk.profile.add(Part::Training, took.saturating_sub(data));
            self.counts.tokens += tokens;
            self.pace = Pace { tokens: self.pace.tokens + tokens, time: self.pace.time + took };
            self.counts.active_layer_tokens += tokens * segment.depth() as u64;
            self.counts.trained_layer_tokens += tokens * segment.trained_layers() as u64;
            let (done, total) = (self.step - segment.steps.start, segment.length());
            (desk.tell)(Progress { done, total, tokens, measured: Some(measured) });
            if saved.elapsed() >= pause && self.step < segment.steps.end {
                let began = Instant::now();
                self.save(desk, PARTIAL)?;
                saved = Instant::now();
                if !desk.save_every.is_zero() {
                    pause = desk.save_every.max(began.elapsed() * SAVE_SHARE);
                }
            }
        }
        let mut documents = Documents::of(&self.reader, self.step);
        let look = || self.measures(desk, |batch, ce| documents.add(&self.reader, batch, ce));
        let mut values = desk.profile.time(Part::Looking, look)?;
        if desk.stopping() {
            return self.interrupted(desk);
        }
        self.tell_pace(&mut values);
        if values.contains_key(Metric::ValidationCe.name()) {
            documents.write(desk.folder)?;
        }
        if !values.is_empty() {
            let measured = MetricLine { step: self.step, values };
            self.metrics.push(&measured)?;
            let all = segment.length();
            (desk.tell)(Progress { done: all, total: all, tokens: 0, measured: Some(measured) });
        }
        let counts = self.save(desk, CHECKPOINT)?;
        only(desk.folder, &[CHECKPOINT, METRICS, DOCUMENTS])?;
        Ok(Outcome::Done(counts))
    }

    fn interrupted(&mut self, desk: &Desk<'_>) -> Result<Outcome, Failure> {
        self.save(desk, PARTIAL)?;
        Ok(Outcome::Interrupted)
    }

    /// Saves where it is; what it has counted by then.
    fn save(&mut self, desk: &Desk<'_>, name: &str) -> Result<BTreeMap<String, u64>, Failure> {
        desk.profile.time(Part::Checkpoints, || self.write(desk.folder, name))
    }

    fn write(&mut self, folder: &Path, name: &str) -> Result<BTreeMap<String, u64>, Failure> {
        let metrics_bytes = self.metrics.sync()?;
        let Counts { tokens, active_layer_tokens, trained_layer_tokens } = self.counts;
        let counts = [
            ("steps", self.step - self.phase.segment.steps.start),
            ("tokens", tokens),
            ("active_layer_tokens", active_layer_tokens),
            ("trained_layer_tokens", trained_layer_tokens),
        ];
        let counts: BTreeMap<String, u64> = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        let meta = Meta {
            version: Meta::VERSION,
            step: self.step,
            data: self.phase.segment.position(self.step),
            stack: self.phase.segment.stack.clone(),
            updates: BTreeMap::new(),
            counts: counts.clone(),
            metrics_bytes,
        };
        self.state.save(meta, folder, name).map_err(unsaved)?;
        Ok(counts)
    }

    /// Whether a metric is to be taken after the steps done so far.
    fn is_due(&self, metric: Metric) -> bool {
        let mut measures = self.phase.measures.iter();
        measures.any(|(other, steps)| *other == metric && steps.binary_search(&self.step).is_ok())
    }

    /// Tokens per second since this was last told; a phase that has not trained yet has none.
    fn tell_pace(&mut self, values: &mut BTreeMap<String, Real>) {
        if self.pace.tokens > 0 && self.is_due(Metric::TokensPerSecond) {
            let Pace { tokens, time } = std::mem::take(&mut self.pace);
            let name = Metric::TokensPerSecond.name().to_owned();
            values.insert(name, Real(tokens as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE)));
        }
    }

    /// What is to be measured after the steps done so far; means nothing once the desk is stopping, which ends it early.
    fn measures(&self, desk: &Desk<'_>, each: impl FnMut(&Batch, &[f32])) -> Result<BTreeMap<String, Real>, Failure> {
        let (ce, perplexity, kl) = (self.is_due(Metric::ValidationCe), self.is_due(Metric::Perplexity), self.is_due(Metric::Kl));
        let mut values = BTreeMap::new();
        if !(ce || perplexity || kl) {
            return Ok(values);
        }
        let segment = &self.phase.segment;
        let network: Network<'_, f32, D, D::Operations> =
            Network::new(&self.phase.model, &segment.stack, &segment.block_ends, &self.state.params, self.step);
        let (all, at_once) = (self.reader.holdout_sequences(), self.phase.training.batch.micro.max(1));
        let starts = (0..all).step_by(at_once as usize);
        let batches = starts.take_while(|_| !desk.stopping()).map(|start| self.reader.holdout(start..(start + at_once).min(all)));
        let teacher = match self.phase.teachers.first().filter(|_| kl) {
            Some(first) => {
                let heard = self.heard.iter().position(|name| *name == first.name).and_then(|place| self.teachers.get(place));
                heard.map(|teacher| (teacher, segment.loss.temperature_of(&first.name)))
            }
            None => None,
        };
        let seen = evaluate(&network, self.device, batches, teacher, Without::Nothing, each)?;
        let mut add = |metric: Metric, wanted: bool, value: f64| {
            if wanted {
                values.insert(metric.name().to_owned(), Real(value));
            }
        };
        add(Metric::ValidationCe, ce, seen.ce);
        add(Metric::Perplexity, perplexity, libm::exp(seen.ce));
        add(Metric::Kl, kl, seen.kl.unwrap_or(f64::NAN));
        Ok(values)
    }
}

fn optimizer(phase: &Phase) -> Optimizer {
    Optimizer { rule: phase.training.optimizer, clip: phase.training.clip }
}

/// The teachers that a phase hears: those of its loss, and the first where its KL is measured.
fn heard(phase: &Phase) -> Result<Vec<&TeacherUse>, Failure> {
    let missing = |what: &str| Failure::Input(format!("{what}, but there is no teacher"));
    let mut names = phase.segment.loss.teachers();
    if phase.measures.iter().any(|(metric, _)| *metric == Metric::Kl) {
        let first = phase.teachers.first().ok_or_else(|| missing("kl is measured"))?.name.as_str();
        if !names.contains(&first) {
            names.push(first);
        }
    }
    let known = |name: &str| phase.teachers.iter().find(|teacher| teacher.name == name);
    names.into_iter().map(|name| known(name).ok_or_else(|| missing("the loss has a teacher's term"))).collect()
}

fn open_teacher<D: Home>(
    device: &D,
    phase: &Phase,
    teacher: &TeacherUse,
    folder: &Path,
    desk: &Desk<'_>,
) -> Result<Teacher<f32, D>, Failure> {
    let (node, model, lies) = match &teacher.at {
        TeacherAt::Node { node, model, folder } => (node, model, folder),
        TeacherAt::Absent(path) => return Err(Failure::Input(format!("the teacher, the checkpoint \"{path}\", is not at hand"))),
    };
    let (own, its) = (vocabulary(&phase.model), vocabulary(model));
    if own != its {
        return Err(Failure::Input(format!("the student has {own} token types, the teacher {its}")));
    }
    if teacher.logits.is_empty() {
        let (node, lies) = ((desk.finished)(node), lies.as_ref().map(|lies| folder.join(lies)));
        return Ok(Teacher::Online(Box::new(OnlineTeacher::load(device, model, &node, lies.as_deref())?)));
    }
    if phase.segment.data.context.is_some() && phase.segment.loss.teachers().contains(&teacher.name.as_str()) {
        let text = "the teacher's cache keeps its word on sequences of the data's own context, and these have another";
        return Err(Failure::Input(text.to_owned()));
    }
    let mut caches = Vec::with_capacity(teacher.logits.len());
    for (temperature, key) in &teacher.logits {
        caches.push((*temperature, Logits::open(&(desk.finished)(key), own, phase.data.context, teacher.cache, *temperature)?));
    }
    Ok(Teacher::Cached(caches))
}

/// Removes every file of `folder` but those named.
pub(super) fn only(folder: &Path, names: &[&str]) -> Result<(), Failure> {
    let context = || disk("cannot tidy the node's folder");
    for entry in std::fs::read_dir(folder).map_err(context())? {
        let entry = entry.map_err(context())?;
        let stays = entry.file_name().to_str().is_some_and(|name| names.contains(&name));
        if !stays && entry.file_type().map_err(context())?.is_file() {
            std::fs::remove_file(entry.path()).map_err(context())?;
        }
    }
    Ok(())
}

fn unsaved(error: CheckpointError) -> Failure {
    let source = match error {
        CheckpointError::Io(source) => source,
        CheckpointError::Damaged(text) | CheckpointError::Mismatch(text) => std::io::Error::other(text),
    };
    disk("cannot save a checkpoint; the one before is whole")(source)
}
