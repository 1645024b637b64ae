//! Questions to a story: what is the value of a metric of an arm under a seed, and if there is none, why not.
//!
//! Owns pairing: a linear combination of terms is worked out seed by seed and exists only for seeds that have every part of it.
//! Deliberately knows no table and no text. Invariant: what is left out of an average is counted, as diverged, under way or missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::stats::{self, Estimate};
use crate::study::{ArmSet, Linear, Measure, Metric, ProbeKind, Study, Term};

use super::model::{Count, Source};
use super::story::{ProbeStory, RunState, RunStory, Story};

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// It is under way and has not come that far.
    Partial,
    /// It has not begun, or this is not measured.
    Missing,
    /// The run's loss stopped being finite.
    Diverged,
}

/// When a metric is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After the last step of the run.
    End,
    /// After so many steps; at an event's step, the model before it.
    Step(u64),
    /// Just after the event at this step.
    After(u64),
    /// Just before grow event K, from 1.
    BeforeGrow(u32),
    /// Just after grow event K, from 1.
    AfterGrow(u32),
    /// Just before the first event.
    FirstPhase,
}

/// One value for each seed that has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paired {
    /// Seed and value, seeds in the order of the study.
    pub values: Vec<(u64, f64)>,
    /// How many, of how many, and why not all.
    pub count: Count,
    /// The nodes that the values come from, where somebody asked.
    pub sources: Vec<Source>,
}

impl Paired {
    /// Gathers what each seed has.
    pub fn gather(seeds: &[u64], mut of: impl FnMut(u64) -> Result<f64, Absent>) -> Self {
        let mut paired = Self { count: Count { planned: seeds.len(), ..Count::default() }, ..Self::default() };
        for seed in seeds {
            match of(*seed) {
                Ok(value) => paired.values.push((*seed, value)),
                Err(Absent::Diverged) => paired.count.diverged += 1,
                Err(Absent::Partial) => paired.count.partial += 1,
                Err(Absent::Missing) => paired.count.missing += 1,
            }
        }
        paired.count.used = paired.values.len();
        paired
    }

    /// The values alone.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Their mean and spread.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.numbers())
    }
}

/// A story that can be asked.
pub struct Reading<'a> {
    /// The story.
    pub story: &'a Story,
    runs: BTreeMap<(usize, u64), &'a RunStory>,
}

impl<'a> Reading<'a> {
    /// Of a story.
    pub fn new(story: &'a Story) -> Self {
        Self { story, runs: story.runs.iter().map(|run| ((run.arm, run.seed), run)).collect() }
    }

    /// The study.
    pub fn study(&self) -> &'a Study {
        &self.story.study
    }

    /// The run of an arm under a seed.
    pub fn run(&self, arm: usize, seed: u64) -> Option<&'a RunStory> {
        self.runs.get(&(arm, seed)).copied()
    }

    /// The runs of an arm, seeds in the order of the study.
    pub fn runs_of(&self, arm: usize) -> impl Iterator<Item = &'a RunStory> + '_ {
        self.study().seeds.iter().filter_map(move |seed| self.run(arm, *seed))
    }

    /// The measures that compare models, the first being the one that tables are made of.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = Vec::new();
        for Measure { metric, .. } in &self.study().measures {
            if !metrics.contains(metric) {
                metrics.push(*metric);
            }
        }
        metrics.sort_by_key(|metric| *metric != Metric::ValidationCe);
        metrics
    }

    /// How often a metric is measured.
    pub fn every(&self, metric: Metric) -> Option<u64> {
        self.study().measures.iter().filter(|measure| measure.metric == metric).map(|measure| measure.every).min()
    }

    /// A metric of one run.
    pub fn value(&self, arm: usize, seed: u64, metric: Metric, at: At) -> Result<f64, Absent> {
        let run = self.run(arm, seed).ok_or(Absent::Missing)?;
        let step = step_of(run, at).ok_or(Absent::Missing)?;
        let step = match at {
            // The last step before the moment is the one that is known.
            At::End | At::BeforeGrow(_) | At::FirstPhase if metric.is_of_a_step() => step.saturating_sub(1),
            _ => step,
        };
        let mut values = run.metrics.at(metric, step);
        let value = match at {
            At::End | At::After(_) | At::AfterGrow(_) => values.next_back(),
            At::Step(_) | At::BeforeGrow(_) | At::FirstPhase => values.next(),
        };
        match value {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(Absent::Diverged),
            None => Err(self.why_absent(arm, seed)),
        }
    }

    /// The mean of a metric over arms under one seed. One arm without a value leaves the seed without one.
    pub fn mean(&self, arms: &[usize], seed: u64, metric: Metric, at: At) -> Result<f64, Absent> {
        let values: Vec<_> = arms.iter().map(|arm| self.value(*arm, seed, metric, at)).collect();
        if let Some(worst) = values.iter().filter_map(|value| value.err()).max() {
            return Err(worst);
        }
        if values.is_empty() {
            return Err(Absent::Missing);
        }
        Ok(stats::sum(values.iter().filter_map(|value| value.ok())) / arms.len() as f64)
    }

    /// The mean of a metric over arms, seed by seed, with the nodes that it comes from.
    pub fn over_seeds(&self, arms: &[usize], metric: Metric, at: At) -> Paired {
        let paired = Paired::gather(&self.study().seeds, |seed| self.mean(arms, seed, metric, at));
        Paired { sources: self.sources(arms, at, &paired), ..paired }
    }

    /// Like [`Reading::combination`], with the nodes that it comes from.
    pub fn traced(&self, sum: &Linear, at: At) -> Paired {
        let paired = self.combination(sum, at);
        let mut arms: Vec<usize> = Vec::new();
        for arm in sum.terms.iter().flat_map(|(_, term)| &term.arms.arms) {
            if !arms.contains(arm) {
                arms.push(*arm);
            }
        }
        Paired { sources: self.sources(&arms, at, &paired), ..paired }
    }

    /// Σ factor × (mean over the term's arms) + constant, seed by seed.
    pub fn combination(&self, sum: &Linear, at: At) -> Paired {
        Paired::gather(&self.study().seeds, |seed| {
            let mut parts = vec![sum.constant];
            let mut worst = None;
            for (factor, Term { metric, arms }) in &sum.terms {
                match self.mean(&arms.arms, seed, *metric, at) {
                    Ok(value) => parts.push(factor * value),
                    Err(absent) => worst = worst.max(Some(absent)),
                }
            }
            worst.map_or_else(|| Ok(stats::sum(parts)), Err)
        })
    }

    /// A metric of a run over its steps, finite values only; at an event's step, before and after.
    pub fn series(&self, arm: usize, seed: u64, metric: Metric) -> Vec<(u64, f64)> {
        let run = self.run(arm, seed);
        run.into_iter().flat_map(|run| run.metrics.iter(metric)).filter(|(_, value)| value.is_finite()).collect()
    }

    /// Steps at which a metric exists for an arm under some seed, ascending.
    pub fn steps(&self, arm: usize, metric: Metric) -> Vec<u64> {
        let mut all: Vec<u64> = Vec::new();
        for run in self.runs_of(arm) {
            let finite = run.metrics.iter(metric).filter(|(_, value)| value.is_finite());
            let mut own: Vec<u64> = finite.map(|(step, _)| step).collect();
            own.dedup();
            // Most often all seeds have the same.
            if own != all {
                all.extend(own);
                all.sort_unstable();
                all.dedup();
            }
        }
        all
    }

    /// Steps at which a metric exists for every one of these arms under some seed, ascending.
    pub fn common_steps(&self, arms: &[usize], metric: Metric) -> Vec<u64> {
        let mut sets = arms.iter().map(|arm| self.steps(*arm, metric));
        let first = sets.next().unwrap_or_default();
        sets.fold(first, |mut common, next| {
            if common != next {
                common.retain(|step| next.binary_search(step).is_ok());
            }
            common
        })
    }

    /// A combination under one seed at these steps, ascending, where it exists; at an event's step, the model before it.
    pub fn along(&self, sum: &Linear, seed: u64, steps: &[u64]) -> Vec<(u64, f64)> {
        let of = |metric: Metric, arm: usize| self.run(arm, seed).map(|run| run.metrics.iter(metric).peekable());
        let terms = sum.terms.iter().map(|(factor, Term { metric, arms })| {
            let runs: Option<Vec<_>> = arms.arms.iter().map(|arm| of(*metric, *arm)).collect();
            runs.filter(|runs| !runs.is_empty()).map(|runs| (*factor, runs))
        });
        let Some(mut terms) = terms.collect::<Option<Vec<_>>>() else { return Vec::new() };
        let mut found = Vec::with_capacity(steps.len());
        let (mut parts, mut values) = (Vec::new(), Vec::new());
        for step in steps {
            parts.clear();
            parts.push(sum.constant);
            let mut whole = true;
            for (factor, runs) in &mut terms {
                values.clear();
                for run in runs.iter_mut() {
                    while run.next_if(|(own, _)| own < step).is_some() {}
                    values.extend(run.peek().filter(|(own, value)| own == step && value.is_finite()).map(|(_, value)| *value));
                }
                whole &= values.len() == runs.len();
                parts.push(*factor * (stats::sum(values.iter().copied()) / runs.len() as f64));
            }
            if whole {
                found.push((*step, stats::sum(parts.iter().copied())));
            }
        }
        found
    }

    /// A probe of a run; the last one taken where no step is asked for.
    pub fn probe(&self, arm: usize, seed: u64, kind: ProbeKind, step: Option<u64>) -> Option<&'a ProbeStory> {
        let probes = self.run(arm, seed)?.probes.iter().filter(|probe| probe.kind == kind);
        probes.filter(|probe| step.is_none_or(|step| probe.step == step)).max_by_key(|probe| probe.step)
    }

    /// Steps at which an arm was looked at, ascending.
    pub fn probed_at(&self, arm: usize, kind: ProbeKind) -> BTreeSet<u64> {
        let probes = self.runs_of(arm).flat_map(|run| &run.probes);
        probes.filter(|probe| probe.kind == kind).map(|probe| probe.step).collect()
    }

    /// A number out of a probe, seed by seed.
    pub fn probed(&self, arm: usize, kind: ProbeKind, step: u64, number: impl Fn(&ProbeStory) -> Option<f64>) -> Paired {
        let mut sources = Vec::new();
        let paired = Paired::gather(&self.study().seeds, |seed| {
            let probe = self.probe(arm, seed, kind, Some(step));
            match probe.and_then(&number) {
                Some(value) if value.is_finite() => {
                    sources.extend(probe.map(|probe| self.source(arm, seed, step, &probe.key)));
                    Ok(value)
                }
                Some(_) => Err(Absent::Diverged),
                None => Err(self.why_absent(arm, seed)),
            }
        });
        Paired { sources, ..paired }
    }

    /// Why a run lacks a value.
    pub fn why_absent(&self, arm: usize, seed: u64) -> Absent {
        match self.run(arm, seed).map(|run| run.state) {
            Some(RunState::Diverged { .. }) => Absent::Diverged,
            Some(RunState::Partial) => Absent::Partial,
            Some(RunState::Finished | RunState::Missing) | None => Absent::Missing,
        }
    }

    /// Arms that are cells of the axes and have these values, in the order of the study.
    pub fn cells(&self, values: &[(&str, &str)]) -> Vec<usize> {
        let fits = |arm: usize| {
            let arm = &self.study().arms[arm];
            arm.control.is_none() && values.iter().all(|(axis, value)| arm.values.get(*axis).is_some_and(|own| own == value))
        };
        (0..self.study().arms.len()).filter(|arm| fits(*arm)).collect()
    }

    /// For each value, the nodes of the phases that end at or span the moment.
    pub fn sources(&self, arms: &[usize], at: At, paired: &Paired) -> Vec<Source> {
        let of = |arm: usize, seed: u64| {
            let run = self.run(arm, seed)?;
            let step = step_of(run, at)?;
            let phase = run.segments.iter().position(|segment| match at {
                At::After(_) | At::AfterGrow(_) => segment.steps.start == step,
                _ => segment.steps.start < step && step <= segment.steps.end,
            });
            Some(self.source(arm, seed, step, run.phase_keys.get(phase?)?))
        };
        arms.iter().flat_map(|arm| paired.values.iter().filter_map(move |(seed, _)| of(*arm, *seed))).collect()
    }

    fn source(&self, arm: usize, seed: u64, step: u64, key: &str) -> Source {
        let place = self.study().seeds.iter().position(|own| *own == seed).unwrap_or_default();
        let run = arm * self.study().seeds.len() + place;
        Source { run, arm: self.study().arms[arm].name.clone(), seed, step, key: key.to_owned() }
    }
}

/// The step of a run that a moment means.
pub fn step_of(run: &RunStory, at: At) -> Option<u64> {
    match at {
        At::End => Some(run.planned.steps),
        At::Step(step) | At::After(step) => Some(step),
        At::BeforeGrow(number) | At::AfterGrow(number) => grows(run).get((number as usize).checked_sub(1)?).copied(),
        At::FirstPhase => events(run).first().copied(),
    }
}

/// Steps of the events of a run; a stretch that begins without an action is no event.
pub fn events(run: &RunStory) -> Vec<u64> {
    run.segments.iter().skip(1).filter(|segment| !segment.actions.is_empty()).map(|segment| segment.steps.start).collect()
}

/// Steps of the events of a run that grow its stack.
pub fn grows(run: &RunStory) -> Vec<u64> {
    run.segments.iter().filter(|segment| segment.grows()).map(|segment| segment.steps.start).collect()
}

/// A term for the given arms.
pub fn term(metric: Metric, arms: Vec<usize>) -> Term {
    Term { metric, arms: ArmSet { text: String::new(), arms } }
}

/// left − right.
pub fn difference(left: &Linear, right: &Linear) -> Linear {
    let mut terms = left.terms.clone();
    terms.extend(right.terms.iter().map(|(factor, term)| (-factor, term.clone())));
    Linear { terms, constant: left.constant - right.constant }
}

/// Mean of some arms minus mean of others.
pub fn contrast(metric: Metric, of: &[usize], minus: &[usize]) -> Linear {
    Linear { terms: vec![(1.0, term(metric, of.to_vec())), (-1.0, term(metric, minus.to_vec()))], constant: 0.0 }
}
