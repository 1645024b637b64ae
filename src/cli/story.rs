//! What a report reads: from a plan and a store, or from a plan and what events tell of a run.
//!
//! Invariant: what the store cannot vouch for is left out and named.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::plan::run::PlannedRun;
use crate::plan::{Key, Plan};
use crate::report::{Evaluated, Measured, Part, Planned, ProbeStory, RunState, RunStory, Story, TeacherStory};
use crate::run::lines;
use crate::run::record::{DOCUMENTS, DocumentsRecord, FailureRecord, METRICS, MetricLine, PROBE, ProbeRecord, Real};
use crate::run::replay::{End, Told};
use crate::run::store::Store;
use crate::study::{Metric, Study, Term};

/// Where results are read.
pub trait Results: Sync {
    /// A file of a finished node; the reason where it is damaged, `None` where there is none.
    fn read(&self, key: &Key, file: &str) -> Option<Result<Cow<'_, [u8]>, String>>;
    /// What a node that has not finished has measured so far.
    fn under_way(&self, key: &Key) -> Vec<MetricLine>;
    /// Why the last attempt at it ended badly.
    fn failure(&self, key: &Key) -> Option<FailureRecord>;
}

/// A store; what is under way is told by its streams of events.
pub struct Shelved<'a> {
    store: &'a Store,
    /// Of nodes that are under way.
    told: Told,
}

impl<'a> Shelved<'a> {
    /// Reads the streams as far as they tell of nodes of the plan that are not finished.
    pub fn new(plan: &Plan, store: &'a Store) -> Self {
        let begun = |key: &&Key| !store.has(key) && (store.work(key).exists() || store.failure(key).is_some());
        let begun: BTreeSet<Key> = plan.runs.iter().flat_map(|run| &run.phases).filter(begun).cloned().collect();
        // A stream that cannot be read to its end tells of that in `xrun replay`; here it tells what it can.
        let told = if begun.is_empty() { Told::default() } else { Told::read(&store.events(), &|key| begun.contains(key)).0 };
        Self { store, told }
    }
}

impl Results for Shelved<'_> {
    fn read(&self, key: &Key, file: &str) -> Option<Result<Cow<'_, [u8]>, String>> {
        // A phase that was not evaluated at its end has no such file, and nothing of it is missing.
        if file == DOCUMENTS && !self.store.node(key).join(DOCUMENTS).exists() {
            return None;
        }
        self.store.read(key, file).map(|bytes| bytes.map(Cow::Owned))
    }
    fn under_way(&self, key: &Key) -> Vec<MetricLine> {
        self.told.attempt(key).map(|attempt| attempt.lines.clone()).unwrap_or_default()
    }
    fn failure(&self, key: &Key) -> Option<FailureRecord> {
        self.store.failure(key)
    }
}

/// What events tell, without any store.
impl Results for Told {
    fn read(&self, key: &Key, file: &str) -> Option<Result<Cow<'_, [u8]>, String>> {
        let attempt = self.attempt(key).filter(|_| self.is_finished(key))?;
        let written = |text: serde_json::Result<Vec<u8>>| -> Result<Cow<'static, [u8]>, String> {
            text.map(Cow::Owned).map_err(|error| error.to_string())
        };
        match file {
            METRICS => {
                let lines = attempt.lines.iter().map(|line| serde_json::to_string(line).map(|line| line + "\n"));
                Some(written(lines.collect::<serde_json::Result<String>>().map(String::into_bytes)))
            }
            DOCUMENTS => Some(written(serde_json::to_vec(attempt.documents.as_ref()?))),
            PROBE => Some(written(serde_json::to_vec(attempt.probe.as_ref()?))),
            _ => None,
        }
    }
    fn under_way(&self, key: &Key) -> Vec<MetricLine> {
        self.attempt(key).map(|attempt| attempt.lines.clone()).unwrap_or_default()
    }
    fn failure(&self, key: &Key) -> Option<FailureRecord> {
        match self.attempt(key)?.end.as_ref()? {
            End::Failed(failure) => Some(failure.clone()),
            End::Finished | End::Interrupted => None,
        }
    }
}

/// The story of a plan so far, and what of its results is damaged.
pub fn gather(plan: &Plan, store: &dyn Results) -> (Story, Vec<String>) {
    let wanted = wanted(&plan.study);
    let mut shelf = Shelf { plan, store, parts: BTreeMap::new(), evaluated: BTreeMap::new(), damaged: Vec::new() };
    shelf.fill(&wanted);
    let runs = plan.runs.iter().map(|run| shelf.run(run)).collect();
    let teachers = shelf.teachers();
    (Story { study: plan.study.clone(), runs, teachers }, shelf.damaged)
}

/// What claims compare.
fn terms(study: &Study) -> impl Iterator<Item = &Term> {
    study.claims.iter().flat_map(|claim| claim.left.terms.iter().chain(&claim.right.terms)).map(|(_, term)| term)
}

/// What a report may ask for: what is measured or claimed, and what teachers are told by.
fn wanted(study: &Study) -> Vec<Metric> {
    let asked: BTreeSet<Metric> =
        study.measures.iter().map(|measure| measure.metric).chain(terms(study).map(|term| term.metric)).collect();
    Metric::ALL.into_iter().filter(|metric| asked.contains(metric) || *metric == Metric::ValidationCe).collect()
}

/// What is read of a node.
#[derive(Default)]
struct Wanted<'a> {
    /// The steps that are its own; `None` for a teacher.
    steps: Option<&'a Range<u64>>,
    documents: bool,
}

/// The results, each node of them read once.
struct Shelf<'a> {
    plan: &'a Plan,
    store: &'a dyn Results,
    /// What finished nodes measured.
    parts: BTreeMap<Key, Arc<Part>>,
    /// The last evaluation of runs that claims compare.
    evaluated: BTreeMap<Key, Arc<Evaluated>>,
    damaged: Vec<String>,
}

impl Shelf<'_> {
    /// Reads what every finished phase and teacher measured, on all cores: most of a report's time is this.
    fn fill(&mut self, wanted: &[Metric]) {
        let mut nodes: BTreeMap<&Key, Wanted<'_>> = BTreeMap::new();
        let claimed: BTreeSet<usize> = terms(&self.plan.study).flat_map(|term| term.arms.arms.iter().copied()).collect();
        for run in &self.plan.runs {
            for (key, segment) in run.phases.iter().zip(&run.timeline.segments) {
                nodes.entry(key).or_default().steps = Some(&segment.steps);
            }
            if let Some(key) = run.phases.last().filter(|_| claimed.contains(&run.arm)) {
                nodes.entry(key).or_default().documents = true;
            }
            for key in run.teachers.iter().filter_map(|(_, node)| node.as_ref()) {
                nodes.entry(key).or_default();
            }
        }
        let nodes: Vec<_> = nodes.into_iter().collect();
        let (store, next) = (self.store, AtomicUsize::new(0));
        let work = || {
            let mut done = Vec::new();
            while let Some((key, Wanted { steps, documents })) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Some(bytes) = store.read(key, METRICS) else { continue };
                let measured = bytes.and_then(|bytes| part(&bytes, wanted, *steps));
                let bytes = if *documents { store.read(key, DOCUMENTS) } else { None };
                let evaluated = bytes.map(|bytes| bytes.and_then(|bytes| evaluated(&bytes)));
                done.push((*key, measured, evaluated));
            }
            done
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut read: Vec<_> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined =
                others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.chain(own).collect()
        });
        read.sort_unstable_by_key(|(key, ..)| *key);
        for (key, measured, evaluated) in read {
            let part = self.trusted(key, measured);
            self.parts.extend(part.map(|part| (key.clone(), Arc::new(part))));
            let evaluated = evaluated.and_then(|evaluated| self.trusted(key, evaluated));
            self.evaluated.extend(evaluated.map(|evaluated| (key.clone(), Arc::new(evaluated))));
        }
    }

    fn run(&mut self, run: &PlannedRun) -> RunStory {
        let mut metrics = Measured::default();
        let mut finished = 0;
        for key in &run.phases {
            let Some(part) = self.parts.get(key) else { break };
            metrics.append(part.clone());
            finished += 1;
        }
        let diverged = run.phases.get(finished).and_then(|key| self.store.failure(key)).and_then(|failure| failure.diverged_at);
        if let Some(key) = run.phases.get(finished) {
            metrics.append(Arc::new(under_way(&self.store.under_way(key))));
        }
        let state = match diverged {
            Some(step) => RunState::Diverged { step },
            None if finished == run.phases.len() => RunState::Finished,
            None if finished == 0 && metrics.is_empty() => RunState::Missing,
            None => RunState::Partial,
        };
        let last = run.phases.last().filter(|_| finished == run.phases.len());
        let evaluated = last.and_then(|key| self.evaluated.get(key)).cloned();
        let probes = run.probes.iter().filter_map(|(kind, step, key)| {
            let bytes = self.store.read(key, PROBE)?;
            let record: ProbeRecord =
                self.trusted(key, bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())))?;
            Some(ProbeStory { kind: *kind, step: *step, key: key.0.clone(), record })
        });
        let probes = probes.collect();
        RunStory {
            arm: run.arm,
            seed: run.seed,
            state,
            segments: run.timeline.segments.clone(),
            phase_keys: run.phases.iter().map(|key| key.0.clone()).collect(),
            metrics,
            evaluated,
            probes,
            planned: Planned {
                steps: run.steps,
                tokens: run.tokens,
                unique_tokens: run.unique_tokens,
                active_layer_tokens: run.active_layer_tokens,
                trained_layer_tokens: run.trained_layer_tokens,
                flops_student_with_head: run.flops_student_with_head,
                params_total: run.params_total,
            },
        }
    }

    fn teachers(&self) -> Vec<TeacherStory> {
        let mut teachers: Vec<TeacherStory> = Vec::new();
        for (name, node) in self.plan.runs.iter().flat_map(|run| &run.teachers) {
            let key = node.as_ref().map(|key| key.0.clone());
            if teachers.iter().any(|known| known.name == *name && known.key == key) {
                continue;
            }
            let last = node.as_ref().and_then(|key| self.parts.get(key)?.last(Metric::ValidationCe));
            teachers.push(TeacherStory { name: name.clone(), key, validation_ce: last.map(Real) });
        }
        teachers
    }

    fn trusted<T, E: std::fmt::Display>(&mut self, key: &Key, result: Result<T, E>) -> Option<T> {
        result
            .map_err(|reason| {
                let label = self.plan.node(key).map_or("a node", |node| node.label.as_str());
                self.damaged.push(format!("{label} ({key}) is damaged: {reason}"));
            })
            .ok()
    }
}

/// What a node measured at steps that are its own.
fn part(bytes: &[u8], wanted: &[Metric], steps: Option<&Range<u64>>) -> Result<Part, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let (mut part, read) = collect(text, wanted);
    part.shrink_to_fit();
    match (read, steps) {
        (Err(reason), _) => Err(format!("`{METRICS}`: {reason}")),
        (Ok(()), Some(steps)) if !part.lies_in(steps) => Err(format!("`{METRICS}` has steps of another phase")),
        (Ok(()), _) => Ok(part),
    }
}

fn evaluated(bytes: &[u8]) -> Result<Evaluated, String> {
    let record: DocumentsRecord = serde_json::from_slice(bytes).map_err(|error| format!("`{DOCUMENTS}`: {error}"))?;
    Ok(Evaluated { step: record.step, tokens: record.tokens, ce: record.ce.into_iter().map(|ce| ce.0).collect() })
}

/// What a phase that is under way has measured so far, as far as its steps go forward.
fn under_way(lines: &[MetricLine]) -> Part {
    let mut part = Part::default();
    for (line, metric) in lines.iter().flat_map(|line| Metric::ALL.into_iter().map(move |metric| (line, metric))) {
        if let Some(value) = line.values.get(metric.name()) {
            part.push(metric, line.step, value.0);
        }
    }
    part
}

/// What could be read, and why no more.
fn collect(text: &str, wanted: &[Metric]) -> (Part, Result<(), String>) {
    let names: Vec<&str> = wanted.iter().map(|metric| metric.name()).collect();
    let (mut part, mut ascending) = (Part::default(), true);
    let read = lines::read(text, &names, |place, step, value| ascending &= part.push(wanted[place], step, value));
    (part, read.and_then(|()| ascending.then_some(()).ok_or_else(|| "its steps go back".to_owned())))
}
