//! What a report reads, from a plan and a store.
//!
//! Invariant: what the store cannot vouch for is left out and named.

use std::collections::BTreeMap;
use std::path::Path;

use crate::plan::run::PlannedRun;
use crate::plan::{Key, Plan};
use crate::report::{Planned, ProbeStory, RunState, RunStory, Story, TeacherStory};
use crate::run::record::{METRICS, MetricLine, PROBE, ProbeRecord};
use crate::run::store::{State, Store};
use crate::study::{Metric, Teacher};

/// The story of a plan so far, and what in the store is damaged.
pub fn gather(plan: &Plan, store: &Store) -> (Story, Vec<String>) {
    let mut shelf = Shelf { plan, store, metrics: BTreeMap::new(), damaged: Vec::new() };
    let runs = plan.runs.iter().map(|run| shelf.run(run)).collect();
    let teachers = shelf.teachers();
    (Story { study: plan.study.clone(), runs, teachers }, shelf.damaged)
}

/// The store, each node of it read once.
struct Shelf<'a> {
    plan: &'a Plan,
    store: &'a Store,
    metrics: BTreeMap<Key, Option<Vec<MetricLine>>>,
    damaged: Vec<String>,
}

impl Shelf<'_> {
    fn run(&mut self, run: &PlannedRun) -> RunStory {
        let mut metrics = Vec::new();
        let mut finished = 0;
        for key in &run.phases {
            let Some(lines) = self.metrics(key) else { break };
            metrics.extend(lines);
            finished += 1;
        }
        let diverged = run.phases.get(finished).and_then(|key| self.store.failure(key)).and_then(|failure| failure.diverged_at);
        if let Some(key) = run.phases.get(finished) {
            metrics.extend(under_way(&self.store.work(key)));
        }
        let state = match diverged {
            Some(step) => RunState::Diverged { step },
            None if finished == run.phases.len() => RunState::Finished,
            None if metrics.is_empty() => RunState::Missing,
            None => RunState::Partial,
        };
        let probes = run.probes.iter().filter_map(|(kind, step, key)| {
            let text = self.file(key, PROBE)?;
            let record: ProbeRecord = self.trusted(key, serde_json::from_str(&text))?;
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

    fn teachers(&mut self) -> Vec<TeacherStory> {
        let mut teachers: Vec<TeacherStory> = Vec::new();
        for run in &self.plan.runs {
            let Some(teacher) = self.plan.study.arms[run.arm].recipe.teacher.as_deref() else { continue };
            let Teacher { name, .. } = teacher;
            let key = run.teacher.as_ref().map(|key| key.0.clone());
            if teachers.iter().any(|known| known.name == *name && known.key == key) {
                continue;
            }
            let lines = run.teacher.as_ref().and_then(|key| self.metrics(key)).unwrap_or_default();
            let last = lines.iter().rev().find_map(|line| line.values.get(Metric::ValidationCe.name()).copied());
            teachers.push(TeacherStory { name: name.clone(), key, validation_ce: last });
        }
        teachers
    }

    /// The metrics of a finished node; `None` where it is not finished or not to be trusted.
    fn metrics(&mut self, key: &Key) -> Option<Vec<MetricLine>> {
        if !self.metrics.contains_key(key) {
            let text = self.file(key, METRICS);
            let parsed = text.and_then(|text| {
                let lines: Result<Vec<MetricLine>, _> = text.lines().map(serde_json::from_str).collect();
                self.trusted(key, lines)
            });
            self.metrics.insert(key.clone(), parsed);
        }
        self.metrics.get(key).cloned().flatten()
    }

    /// A file of a finished node, checked against its record.
    fn file(&mut self, key: &Key, name: &str) -> Option<String> {
        match self.store.state_of_file(key, name) {
            State::Finished(_) => self.trusted(key, std::fs::read_to_string(self.store.node(key).join(name))),
            State::Damaged(reason) => self.trusted(key, Err(reason)),
            State::Absent => None,
        }
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

/// What a phase that is under way has written so far; its last line may be half a line.
fn under_way(folder: &Path) -> Vec<MetricLine> {
    let text = std::fs::read_to_string(folder.join(METRICS)).unwrap_or_default();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}
