//! What was measured of a run, metric by metric, in about eight bytes a value.
//!
//! Owns how values over steps are kept and found. Deliberately knows no run. Invariant: steps do not descend; at an event's step there are two
//! values, the model before it and the model after it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value};
use serde::{Deserialize, Serialize, Serializer};

use crate::run::record::Real;
use crate::study::Metric;

/// Values of one metric at ascending steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Column {
    stretches: Vec<Stretch>,
    values: Vec<f64>,
}

/// Values at steps that are evenly apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stretch {
    first: u64,
    /// 0 for a single value.
    every: u64,
    /// Index of its first value.
    at: usize,
}

impl Column {
    /// Whether the step does not lie before the last one; a value that does is not taken.
    fn push(&mut self, step: u64, value: f64) -> bool {
        if self.last().is_some_and(|last| step < last) {
            return false;
        }
        let len = self.values.len();
        match self.stretches.last_mut() {
            Some(last) if len - last.at == 1 && step > last.first => last.every = step - last.first,
            Some(last) if last.every > 0 && step == last.first + last.every * (len - last.at) as u64 => {}
            _ => self.stretches.push(Stretch { first: step, every: 0, at: len }),
        }
        self.values.push(value);
        true
    }

    fn last(&self) -> Option<u64> {
        let last = self.stretches.last()?;
        Some(last.first + last.every * (self.values.len() - last.at - 1) as u64)
    }

    /// How many values are at steps below this one.
    fn below(&self, step: u64) -> usize {
        let next = self.stretches.partition_point(|stretch| stretch.first < step);
        let Some(stretch) = next.checked_sub(1).map(|place| self.stretches[place]) else { return 0 };
        let end = self.stretches.get(next).map_or(self.values.len(), |next| next.at);
        let within = (step - 1 - stretch.first).checked_div(stretch.every).unwrap_or_default() + 1;
        (stretch.at as u64 + within).min(end as u64) as usize
    }

    fn at(&self, step: u64) -> &[f64] {
        let end = step.checked_add(1).map_or(self.values.len(), |next| self.below(next));
        &self.values[self.below(step)..end]
    }

    fn stretch(&self, place: usize) -> Range<usize> {
        self.stretches[place].at..self.stretches.get(place + 1).map_or(self.values.len(), |next| next.at)
    }

    fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        (0..self.stretches.len()).flat_map(|place| {
            let Stretch { first, every, .. } = self.stretches[place];
            (0..).zip(&self.values[self.stretch(place)]).map(move |(number, value)| (first + every * number, *value))
        })
    }
}

/// What one node measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    columns: BTreeMap<Metric, Column>,
}

impl Part {
    /// Adds a value behind the others; `false`, and nothing added, where its step lies before theirs.
    pub fn push(&mut self, metric: Metric, step: u64, value: f64) -> bool {
        self.columns.entry(metric).or_default().push(step, value)
    }

    /// Whether all steps lie in a range, its end included.
    pub fn lies_in(&self, steps: &Range<u64>) -> bool {
        let starts = |column: &Column| column.stretches.first().is_none_or(|stretch| stretch.first >= steps.start);
        self.columns.values().all(|column| starts(column) && column.last().is_none_or(|last| last <= steps.end))
    }

    /// The last value of a metric.
    pub fn last(&self, metric: Metric) -> Option<f64> {
        self.columns.get(&metric)?.values.last().copied()
    }

    /// Gives back the room that growing has left over.
    pub fn shrink_to_fit(&mut self) {
        self.columns.values_mut().for_each(|column| column.values.shrink_to_fit());
    }

    fn is_empty(&self) -> bool {
        self.columns.values().all(|column| column.values.is_empty())
    }
}

/// What was measured of a run: the parts of its phases in order. Runs that share a phase share its part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    parts: Vec<Arc<Part>>,
}

impl Measured {
    /// Adds what the next phase measured.
    pub fn append(&mut self, part: Arc<Part>) {
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Values at a step in order: none, one, or at an event's step two. Perplexity is worked out where it is not kept.
    pub fn at(&self, metric: Metric, step: u64) -> impl DoubleEndedIterator<Item = f64> + '_ {
        self.columns(metric).flat_map(move |(column, read)| column.at(step).iter().map(move |value| read(*value)))
    }

    /// All values of a metric with their steps, in order.
    pub fn iter(&self, metric: Metric) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.columns(metric).flat_map(|(column, read)| column.iter().map(move |(step, value)| (step, read(value))))
    }

    fn columns(&self, metric: Metric) -> impl DoubleEndedIterator<Item = (&Column, fn(f64) -> f64)> {
        self.parts.iter().filter_map(move |part| {
            let of = |metric: Metric, read: fn(f64) -> f64| part.columns.get(&metric).map(|column| (column, read));
            let kept = of(metric, |value| value);
            if metric == Metric::Perplexity { kept.or_else(|| of(Metric::ValidationCe, f64::exp)) } else { kept }
        })
    }
}

/// A metric of a run over its steps: a list of (step, value), which takes no room of its own, in a template neither.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    measured: Measured,
    metric: Metric,
}

impl Track {
    /// `None` where nothing was measured.
    pub fn of(measured: &Measured, metric: Metric) -> Option<Self> {
        measured.columns(metric).next()?;
        Some(Self { measured: measured.clone(), metric })
    }

    /// In order; at an event's step the model before it, then the model after it.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Real)> + '_ {
        self.measured.iter(self.metric).map(|(step, value)| (step, Real(value)))
    }

    fn len(&self) -> usize {
        self.measured.columns(self.metric).map(|(column, _)| column.values.len()).sum()
    }

    fn nth(&self, mut index: usize) -> Option<(u64, Real)> {
        for (column, read) in self.measured.columns(self.metric) {
            if let Some(value) = column.values.get(index) {
                let place = column.stretches.partition_point(|stretch| stretch.at <= index) - 1;
                let Stretch { first, every, at } = column.stretches[place];
                return Some((first + every * (index - at) as u64, Real(read(*value))));
            }
            index -= column.values.len();
        }
        None
    }
}

impl Serialize for Track {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if minijinja::value::serializing_for_value() {
            return Value::from_object(self.clone()).serialize(serializer);
        }
        serializer.collect_seq(self.iter())
    }
}

impl Object for Track {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.nth(key.as_usize()?).map(|point| Value::from(Serde(point)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Measured, Part, Track};
    use crate::study::Metric;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_column_is_a_list(mut steps in proptest::collection::vec(0_u64..40, 0..30), even in 0_u64..20) {
            steps.extend((0..even).map(|at| 45 + 3 * at));
            steps.sort_unstable();
            let list: Vec<(u64, f64)> = steps.iter().enumerate().map(|(at, step)| (*step, at as f64)).collect();
            let mut column = Column::default();
            prop_assert!(list.iter().all(|(step, value)| column.push(*step, *value)));
            prop_assert_eq!(column.iter().collect::<Vec<_>>(), list.clone());
            for step in 0..110 {
                let wanted: Vec<f64> = list.iter().filter(|(own, _)| *own == step).map(|(_, value)| *value).collect();
                prop_assert_eq!(column.at(step), wanted);
            }
            if let Some((last, _)) = list.last() {
                prop_assert!(*last == 0 || !column.push(last - 1, 0.0));
            }
            let mut parts = [Part::default(), Part::default()];
            for (step, value) in &list {
                prop_assert!(parts[usize::from(*step > 20)].push(Metric::Kl, *step, *value));
            }
            let mut measured = Measured::default();
            parts.into_iter().for_each(|part| measured.append(Arc::new(part)));
            prop_assert_eq!(measured.iter(Metric::Kl).collect::<Vec<_>>(), list.clone());
            if let Some(track) = Track::of(&measured, Metric::Kl) {
                let all: Vec<_> = (0..track.len()).filter_map(|at| track.nth(at)).map(|(step, value)| (step, value.0)).collect();
                prop_assert_eq!(all, list);
            }
        }
    }

    #[test]
    fn even_steps_take_no_room() {
        let mut column = Column::default();
        assert!((0..10_000).all(|step| column.push(step * 5, 0.0)) && column.push(u64::MAX, 0.0));
        assert_eq!(column.stretches.len(), 2);
        assert_eq!(column.at(u64::MAX), [0.0]);
    }
}
