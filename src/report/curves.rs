//! Values over steps: a metric of one arm, and the difference of two placements, as figures draw them and JSON keeps them.
//!
//! Owns which contrasts are followed over time. Invariant: a point says how many seeds it rests on; at an event's step there are two
//! points, the model before it and the model after it.

use std::collections::BTreeSet;

use crate::stats::{Estimate, LEVEL, last_crossing};
use crate::study::Metric;

use super::model::{Curve, CurvePoint};
use super::reading::{At, Reading, contrast, events};
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
        for step in reading.common_steps(&arms, metric) {
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

    /// Under one seed, the step from which the difference keeps the sign of its end; `None` where it never changes.
    pub fn crossing(&self, reading: &Reading<'_>, metric: Metric, seed: u64) -> Option<u64> {
        let arms = [self.of.as_slice(), &self.minus].concat();
        let at = |step: u64| {
            let of = reading.mean(&self.of, seed, metric, At::Step(step)).ok()?;
            Some((step, of - reading.mean(&self.minus, seed, metric, At::Step(step)).ok()?))
        };
        last_crossing(&reading.common_steps(&arms, metric).into_iter().filter_map(at).collect::<Vec<_>>())
    }
}

/// A metric of one arm at every step: mean and range over seeds.
pub fn arm_curve(reading: &Reading<'_>, arm: usize, metric: Metric) -> Curve {
    let mut points: Vec<(u64, usize, Vec<f64>)> = Vec::new();
    for run in reading.runs_of(arm) {
        let mut before = None;
        for (step, value) in reading.series(arm, run.seed, metric) {
            // The second line of an event's step is the model after it.
            let place = usize::from(before == Some(step));
            before = Some(step);
            match points.binary_search_by(|(own, side, _)| (*own, *side).cmp(&(step, place))) {
                Ok(found) => points[found].2.push(value),
                Err(next) => points.insert(next, (step, place, vec![value])),
            }
        }
    }
    let point = |(step, _, values): &(u64, usize, Vec<f64>)| {
        let estimate = Estimate::of(values)?;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(CurvePoint { step: *step, mean: estimate.mean, low, high, n: estimate.n })
    };
    let events = reading.runs_of(arm).next().map(events).unwrap_or_default();
    let name = format!("{} {}", metric.name(), reading.study().arms[arm].name);
    Curve { name, points: points.iter().filter_map(point).collect(), events }
}
