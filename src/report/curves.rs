//! Values over steps: a metric of one arm, and the difference of two placements, as figures draw them and JSON keeps them.
//!
//! Owns which contrasts are followed over time. Invariant: a point says how many seeds it rests on; at an event's step there are two
//! points, the model before it and the model after it; a curve has no more points than can be told apart.

use std::collections::BTreeSet;

use crate::stats::{Estimate, LEVEL, last_crossing};
use crate::study::Metric;

use super::model::{Curve, CurvePoint};
use super::reading::{At, Reading, contrast, events};
use super::story::RunStory;
use super::tables::{placements, schedules};

/// Two sets of arms that differ in placement only.
pub struct Contrast {
    /// `grow: post − pre`.
    pub name: String,
    /// `grow`; empty without an axis over schedules.
    pub schedule: String,
    /// `post − pre`.
    pub what: String,
    /// The minuend.
    pub of: Vec<usize>,
    /// The subtrahend.
    pub minus: Vec<usize>,
}

/// Every placement against the first, within each schedule.
pub fn contrasts(reading: &Reading<'_>) -> Vec<Contrast> {
    let study = reading.study();
    let Some((axis, (base, others))) = placements(study).and_then(|axis| Some((axis, axis.values.split_first()?))) else {
        return Vec::new();
    };
    let within: Vec<Option<(&str, &str)>> = match schedules(study) {
        Some(axis) => axis.values.iter().map(|value| Some((axis.name.as_str(), value.label.as_str()))).collect(),
        None => vec![None],
    };
    let mut contrasts = Vec::new();
    for schedule in within {
        for other in others {
            let arms = |placement: &str| {
                let mut values = vec![(axis.name.as_str(), placement)];
                values.extend(schedule);
                reading.cells(&values)
            };
            let (of, minus) = (arms(&other.label), arms(&base.label));
            if of.is_empty() || minus.is_empty() {
                continue;
            }
            let what = format!("{} − {}", other.label, base.label);
            let label = schedule.map_or("", |(_, label)| label);
            let name = if label.is_empty() { what.clone() } else { format!("{label}: {what}") };
            contrasts.push(Contrast { name, schedule: label.to_owned(), what, of, minus });
        }
    }
    contrasts
}

impl Contrast {
    /// The difference at every step that all its arms share: mean and 95 % interval over seeds.
    pub fn curve(&self, reading: &Reading<'_>, metric: Metric) -> Curve {
        let arms = [self.of.as_slice(), &self.minus].concat();
        let boundaries = self.boundaries(reading);
        let sum = contrast(metric, &self.of, &self.minus);
        let mut points = Vec::new();
        for step in thinned(reading.common_steps(&arms, metric), &boundaries) {
            let moments = if boundaries.contains(&step) { vec![At::Step(step), At::After(step)] } else { vec![At::Step(step)] };
            for at in moments {
                let Some(estimate) = reading.combination(&sum, at).estimate() else { continue };
                let (low, high) = estimate.interval(LEVEL).unwrap_or((estimate.mean, estimate.mean));
                points.push(CurvePoint { step, mean: estimate.mean, low, high, n: estimate.n });
            }
        }
        Curve { name: format!("{} {}", metric.name(), self.name), points, events: boundaries }
    }

    fn boundaries(&self, reading: &Reading<'_>) -> Vec<u64> {
        let arms = self.of.iter().chain(&self.minus);
        arms.filter_map(|arm| reading.runs_of(*arm).next()).flat_map(events).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Under each of these seeds, the step from which the difference keeps the sign of its end, where it ever changes.
    pub fn crossings(&self, reading: &Reading<'_>, metric: Metric, seeds: &[u64]) -> Vec<u64> {
        let arms = [self.of.as_slice(), &self.minus].concat();
        let (steps, sum) = (reading.common_steps(&arms, metric), contrast(metric, &self.of, &self.minus));
        seeds.iter().filter_map(|seed| last_crossing(&reading.along(&sum, *seed, &steps))).collect()
    }
}

/// A metric of one arm at every step: mean and range over seeds.
pub fn arm_curve(reading: &Reading<'_>, arm: usize, metric: Metric) -> Curve {
    let events = reading.runs_of(arm).next().map(events).unwrap_or_default();
    let mut points = Vec::new();
    for step in thinned(reading.steps(arm, metric), &events) {
        // The second value of an event's step is of the model after it.
        for side in 0..2 {
            let of = |run: &RunStory| run.metrics.at(metric, step).filter(|value| value.is_finite()).nth(side);
            points.extend(point(step, &reading.runs_of(arm).filter_map(of).collect::<Vec<_>>()));
        }
    }
    Curve { name: format!("{} {}", metric.name(), reading.study().arms[arm].name), points, events }
}

/// Mean and range over seeds; `None` without a value.
pub fn point(step: u64, values: &[f64]) -> Option<CurvePoint> {
    let estimate = Estimate::of(values)?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(CurvePoint { step, mean: estimate.mean, low, high, n: estimate.n })
}

/// No more steps than can be told apart in a figure; events and the end stay.
pub fn thinned(mut steps: Vec<u64>, events: &[u64]) -> Vec<u64> {
    const MOST: usize = 800;
    let (every, last) = (steps.len().div_ceil(MOST).max(1), steps.last().copied());
    let mut place = 0;
    steps.retain(|step| {
        place += 1;
        (place - 1) % every == 0 || Some(*step) == last || events.contains(step)
    });
    steps
}
