//! When a run is measured and looked at.
//!
//! Owns the steps. Invariant: every segment is measured at its first step and at its last, so that an event is seen from both sides.

use super::error::PlanError;
use crate::study::{Measure, Metric, ProbeKind, ProbeMoment, Study};
use crate::timeline::{Segment, Timeline};

/// Evaluations of all runs of a plan together: their steps are listed one by one.
pub(super) const MOST_EVALUATIONS: u64 = 10_000_000;

/// After which steps of the run each metric is taken in a segment, ascending. At most so many as are `left`, which it takes them from.
pub(super) fn measures(
    wanted: &[Measure],
    segment: &Segment,
    taught: bool,
    left: &mut u64,
) -> Result<Vec<(Metric, Vec<u64>)>, PlanError> {
    let mut metrics: Vec<(Metric, Vec<u64>)> = Vec::new();
    let (start, end) = (segment.steps.start, segment.steps.end);
    for measure in wanted.iter().filter(|measure| taught || measure.metric != Metric::Kl) {
        let every = measure.every.max(1);
        *left = left.checked_sub((end - start) / every + 2).ok_or(PlanError::TooManyEvaluations(MOST_EVALUATIONS))?;
        let multiples = (start.div_ceil(every)..=end / every).map(|number| number * every);
        let mut steps: Vec<u64> = [start, end].into_iter().chain(multiples).collect();
        match metrics.iter_mut().find(|(metric, _)| *metric == measure.metric) {
            Some((_, others)) => others.append(&mut steps),
            None => metrics.push((measure.metric, steps)),
        }
    }
    for (_, steps) in &mut metrics {
        steps.sort_unstable();
        steps.dedup();
    }
    metrics.sort_by_key(|(metric, _)| *metric);
    Ok(metrics)
}

/// A probe that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) kind: ProbeKind,
    /// Sequences and tokens of each.
    pub(super) batch: (u64, u64),
    /// After so many steps.
    pub(super) step: u64,
    /// The segment that ends there.
    pub(super) segment: usize,
}

/// Cuts a timeline where a probe asks for a step.
pub(super) fn cut(study: &Study, timeline: &mut Timeline) {
    for moment in study.probes.iter().flat_map(|probe| &probe.moments) {
        if let ProbeMoment::Step(step) = moment {
            timeline.cut(*step);
        }
    }
}

/// Probes of a run whose timeline is cut, in the order of the study and of steps, without repetition.
pub(super) fn probes(study: &Study, timeline: &Timeline) -> Vec<Due> {
    let mut due: Vec<Due> = Vec::new();
    for probe in &study.probes {
        let mut steps: Vec<u64> = Vec::new();
        for moment in &probe.moments {
            match moment {
                ProbeMoment::EveryGrow => steps.extend(timeline.grows()),
                ProbeMoment::End => steps.push(timeline.end),
                ProbeMoment::Step(step) => steps.push(*step),
            }
        }
        steps.sort_unstable();
        steps.dedup();
        let ends = |step: u64| timeline.segments.iter().position(|segment| segment.steps.end == step);
        let batch = (probe.sequences, probe.tokens);
        for (step, segment) in steps.into_iter().filter_map(|step| Some((step, ends(step)?))) {
            if !due.iter().any(|other| (other.kind, other.batch, other.step) == (probe.kind, batch, step)) {
                due.push(Due { kind: probe.kind, batch, step, segment });
            }
        }
    }
    due
}

/// Steps at which a probe is asked for and a run has no checkpoint: its start, or beyond its end.
pub(super) fn unseen(study: &Study, timeline: &Timeline) -> Vec<(ProbeKind, u64)> {
    let outside = |moment: &ProbeMoment| match moment {
        ProbeMoment::Step(step) if *step == 0 || *step > timeline.end => Some(*step),
        _ => None,
    };
    let probes = study.probes.iter();
    probes.flat_map(|probe| probe.moments.iter().filter_map(outside).map(|step| (probe.kind, step))).collect()
}
