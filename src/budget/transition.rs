//! What becomes of every parameter when a phase begins: its value, its optimizer state, whether it learns.
//!
//! Owns the walk along a run that counts the updates of each parameter, and the rows in which parameters alike become one: the plan
//! prints them, and a phase holds what it begins with against them. Deliberately knows no tensor and no checkpoint. Invariant: the rows
//! of a phase cover each of its parameters exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::learning::{Learns, learns};
use super::params::{Group, ParamSpec, parameters, timed, used_in};
use crate::study::{Model, Optimizer};
use crate::timeline::{DataPosition, FirstValues, LayerId, Segment};

/// What an event does, as a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// Its rows; those of layers come first.
    pub rows: Arc<[Row]>,
    /// The learning rate of the first step after it.
    pub lr: f64,
    /// How reading goes on.
    pub reading: Reading,
}

/// Parameters to which the same happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Places of their layers in the stack, from 1; none: what belongs to no layer.
    pub layers: Vec<usize>,
    /// Which parameters there: `attention`, `ffn`, `norms`, `gains` of layers, else `embedding`, `entry`, `exit`, `head`; single parameters by
    /// name where not the same happens to all of such a part.
    pub of: Vec<String>,
    /// Nothing else is in these layers.
    pub whole: bool,
    /// Elements of all of them.
    pub parameters: u64,
    /// What happens to them.
    pub fate: Fate,
    /// For each layer that is a copy: the place, before the event, of the one that it copies.
    pub from: Vec<usize>,
}

/// What happens to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// Where its value comes from.
    pub value: Value,
    /// What becomes of its optimizer state.
    pub moments: Moments,
    /// Updates that the state has seen, the t of bias correction; `None` where they hang on conditions over more steps than are looked through.
    pub updates: Option<u64>,
    /// Whether it learns from here on.
    pub learns: Learns,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// It is that of the phase before.
    Kept,
    /// It is new: by the model's init, its teacher or its file.
    New,
    /// By the model's init, output projections at zero.
    Identity,
    /// That of another layer.
    Copied,
}

/// What becomes of optimizer state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moments {
    /// It is that of the phase before.
    Kept,
    /// There was some, and there is none any more.
    Dropped,
    /// There was none: it begins empty.
    Fresh,
    /// There was none, and there will be none: the parameter does not learn, or its optimizer keeps nothing.
    None,
}

/// How reading goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Nothing was read yet.
    Begins,
    /// Behind what was read last; where the context is another, behind as many tokens.
    GoesOn,
    /// At the first sequence of the same shard.
    Rewinds,
    /// At the first sequence of another shard.
    Fresh,
}

impl Reading {
    /// From where the phase before would have read on to where reading goes on.
    pub fn between(before: DataPosition, now: DataPosition) -> Self {
        match now {
            now if now.shard != before.shard => Self::Fresh,
            now if now.sequence == 0 && before.sequence > 0 => Self::Rewinds,
            _ => Self::GoesOn,
        }
    }
}

/// The tables of a run's phases, each for the event at its start; `rows` are theirs.
pub fn transitions(segments: &[Segment], rows: &[Arc<[Row]>]) -> Vec<Transition> {
    let before = std::iter::once(None).chain(segments.iter().map(|segment| Some(segment.position(segment.steps.end))));
    let table = |((segment, rows), before): ((&Segment, &Arc<[Row]>), Option<DataPosition>)| Transition {
        rows: Arc::clone(rows),
        lr: segment.rate.at(segment.steps.start),
        reading: before.map_or(Reading::Begins, |before| Reading::between(before, segment.data)),
    };
    segments.iter().zip(rows).zip(before).map(table).collect()
}

/// The rows of each segment of a run: they depend on its model, on what its optimizer keeps, and on the steps, stacks, first values, frozen sets
/// and resets of these segments.
pub fn rows(model: &Model, optimizer: &Optimizer, segments: &[Segment]) -> Vec<Arc<[Row]>> {
    let mut walk = Walk { model, optimizer, before: None, ages: BTreeMap::new() };
    segments.iter().map(|segment| walk.enter(segment)).collect()
}

impl Row {
    /// Whether it is about a parameter whose layer, if it has one, stands at `place`, from 1.
    pub fn covers(&self, place: Option<usize>, spec: &ParamSpec) -> bool {
        let here = match place {
            Some(place) => self.layers.contains(&place),
            None => self.layers.is_empty(),
        };
        here && self.of.iter().any(|of| of == part(spec) || of == own_name(spec))
    }

    /// `layers 1–3`, `layers 1, 3: norms`, `exit, head`.
    pub fn name(&self) -> String {
        let of = self.of.join(", ");
        match self.layers.as_slice() {
            [] => of,
            [one] if self.whole => format!("layer {one}"),
            [one] => format!("layer {one}: {of}"),
            layers if self.whole => format!("layers {}", ranges(layers)),
            layers => format!("layers {}: {of}", ranges(layers)),
        }
    }
}

/// `1–3, 5`.
pub fn ranges(places: &[usize]) -> String {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for &place in places {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == place => *last = place,
            _ => stretches.push((place, place)),
        }
    }
    let stretch = |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}–{last}") };
    stretches.iter().map(stretch).collect::<Vec<_>>().join(", ")
}

/// The name of a parameter within its layer.
fn own_name(spec: &ParamSpec) -> &str {
    match spec.layer {
        Some(_) => spec.name.splitn(3, '.').nth(2).unwrap_or(&spec.name),
        None => &spec.name,
    }
}

/// The part of a model that it belongs to.
fn part(spec: &ParamSpec) -> &str {
    match (spec.layer, spec.group) {
        (Some(_), Group::Norm) => "norms",
        (Some(_), Group::Gain) => "gains",
        _ => own_name(spec).split('.').next().unwrap_or(&spec.name),
    }
}

struct Walk<'a> {
    model: &'a Model,
    optimizer: &'a Optimizer,
    /// The segment before and the shapes of its parameters.
    before: Option<(&'a Segment, BTreeMap<String, Vec<usize>>)>,
    /// Updates of each parameter that has optimizer state.
    ages: BTreeMap<String, Option<u64>>,
}

impl<'a> Walk<'a> {
    /// The rows of the next segment; leaves the state at its end behind.
    fn enter(&mut self, segment: &'a Segment) -> Arc<[Row]> {
        let specs = parameters(self.model, &segment.stack, &segment.block_ends);
        let fates: Vec<Fate> = specs.iter().map(|spec| self.fate(spec, segment)).collect();
        let rows = self.rows(segment, &specs, &fates);
        self.train(segment, &specs, &fates);
        let shapes = specs.into_iter().map(|spec| (spec.name, spec.shape)).collect();
        self.before = Some((segment, shapes));
        rows.into()
    }

    /// Whether anything is kept of its past.
    fn keeps(&self, spec: &ParamSpec) -> bool {
        self.optimizer.moments(spec.group == Group::Matrix) > 0
    }

    fn had(&self, name: &str, shape: &[usize]) -> bool {
        self.before.as_ref().is_some_and(|(_, shapes)| shapes.get(name).is_some_and(|before| before == shape))
    }

    fn fate(&self, spec: &ParamSpec, segment: &Segment) -> Fate {
        let new = spec.layer.and_then(|layer| segment.new_layers.iter().find(|new| new.layer == layer));
        let value = match (new.map(|new| &new.first), spec.layer) {
            (Some(FirstValues::Identity), _) => Value::Identity,
            (Some(FirstValues::CopyOf(source)), Some(_)) => {
                // A copy may have a norm that its source has not: placements can depend on the layer.
                let copied = self.had(&format!("layers.{}.{}", source.0, own_name(spec)), &spec.shape);
                if copied { Value::Copied } else { Value::New }
            }
            (Some(_), _) => Value::New,
            (None, _) if self.had(&spec.name, &spec.shape) => Value::Kept,
            (None, _) => Value::New,
        };
        let learns = learns(self.model, spec, segment);
        let (moments, updates) = match self.ages.get(&spec.name) {
            Some(updates) if !segment.reset_optimizer && learns != Learns::No && new.is_none() => (Moments::Kept, *updates),
            Some(_) => (Moments::Dropped, Some(0)),
            None if learns == Learns::Yes && self.keeps(spec) => (Moments::Fresh, Some(0)),
            None => (Moments::None, Some(0)),
        };
        Fate { value, moments, updates, learns }
    }

    /// Counts the updates of a segment.
    fn train(&mut self, segment: &Segment, specs: &[ParamSpec], fates: &[Fate]) {
        let stretches =
            timed(self.model).then(|| used_in(self.model, &segment.stack, &segment.block_ends, segment.steps.clone()));
        let done = |spec: &ParamSpec| match &stretches {
            None => Some(segment.length()),
            Some(None) => None,
            Some(Some(stretches)) => {
                let using = stretches.iter().filter(|(_, names)| names.contains(&spec.name));
                Some(using.map(|(steps, _)| steps.end - steps.start).sum())
            }
        };
        let mut ages = BTreeMap::new();
        for (spec, fate) in specs.iter().zip(fates) {
            let done = if fate.learns == Learns::Yes { done(spec) } else { Some(0) };
            let updates = fate.updates.zip(done).map(|(before, done)| before + done);
            if self.keeps(spec) && (fate.moments == Moments::Kept || updates != Some(0)) {
                ages.insert(spec.name.clone(), updates);
            }
        }
        self.ages = ages;
    }

    fn rows(&self, segment: &Segment, specs: &[ParamSpec], fates: &[Fate]) -> Vec<Row> {
        let mut at: BTreeMap<Option<LayerId>, Vec<(&ParamSpec, Fate)>> = BTreeMap::new();
        for (spec, fate) in specs.iter().zip(fates) {
            at.entry(spec.layer).or_default().push((spec, *fate));
        }
        let mut rows: Vec<Row> = Vec::new();
        for (place, id) in segment.stack.iter().enumerate() {
            let source = self.source(segment, *id);
            for alike in alike(at.get(&Some(*id)).map_or(&[][..], Vec::as_slice)) {
                let from = source.filter(|_| alike.fate.value == Value::Copied);
                let known = rows.iter_mut().find(|row| (&row.of, row.whole, row.fate) == (&alike.of, alike.whole, alike.fate));
                match known {
                    Some(row) => {
                        row.layers.push(place + 1);
                        row.parameters += alike.parameters;
                        row.from.extend(from);
                    }
                    None => rows.push(Row { layers: vec![place + 1], from: from.into_iter().collect(), ..alike }),
                }
            }
        }
        rows.extend(alike(at.get(&None).map_or(&[][..], Vec::as_slice)));
        rows
    }

    /// The place, before the event, of the layer that a new one copies.
    fn source(&self, segment: &Segment, layer: LayerId) -> Option<usize> {
        let new = segment.new_layers.iter().find(|new| new.layer == layer)?;
        let FirstValues::CopyOf(source) = new.first else { return None };
        let (before, _) = self.before.as_ref()?;
        before.stack.iter().position(|other| *other == source).map(|place| place + 1)
    }
}

/// The parameters of one place by their fates, as rows of no layer.
fn alike(own: &[(&ParamSpec, Fate)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (spec, fate) in own {
        let is_one = own.iter().filter(|(other, _)| part(other) == part(spec)).all(|(_, other)| other == fate);
        let of = if is_one { part(spec) } else { own_name(spec) };
        match rows.iter_mut().find(|row| row.fate == *fate) {
            Some(row) => {
                row.parameters += spec.elements();
                if !row.of.iter().any(|known| known == of) {
                    row.of.push(of.to_owned());
                }
            }
            None => {
                let parameters = spec.elements();
                rows.push(Row { layers: vec![], of: vec![of.to_owned()], whole: false, parameters, fate: *fate, from: vec![] });
            }
        }
    }
    let place = |of: &String| ["attention", "ffn", "norms", "gains"].iter().position(|part| part == of).unwrap_or(4);
    rows.iter_mut().for_each(|row| row.of.sort_by_key(place));
    if let [row] = rows.as_mut_slice() {
        row.whole = true;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::testing::{grow, model, training};
    use crate::study::schedule::{GrowFrom, Insert, Layers};
    use crate::study::{Action, EventSpec, Moment, Schedule};
    use crate::timeline::{Declared, Timeline, build};

    fn timeline(schedule: &Schedule) -> Timeline {
        build(schedule, &model(), &training(), &Declared::Unknown, None).expect("a schedule")
    }

    fn fate(value: Value, moments: Moments, updates: u64, learns: Learns) -> Fate {
        Fate { value, moments, updates: Some(updates), learns }
    }

    /// Name and fate of each row.
    fn told(rows: &[Row]) -> Vec<(String, Fate)> {
        rows.iter().map(|row| (row.name(), row.fate)).collect()
    }

    #[test]
    fn a_reset_leaves_values_and_drops_state() {
        let timeline = timeline(&grow(10));
        let rows = rows(&model(), &training().optimizer, &timeline.segments);
        let new = fate(Value::New, Moments::Fresh, 0, Learns::Yes);
        let kept = fate(Value::Kept, Moments::Dropped, 0, Learns::Yes);
        // The model's own embedding is frozen throughout: it never has any state.
        let still = fate(Value::Kept, Moments::None, 0, Learns::No);
        let expected = [("layers 1–3", kept), ("layers 4–6", new), ("embedding", still), ("exit, head", kept)];
        assert_eq!(told(&rows[1]), expected.map(|(name, fate)| (name.to_owned(), fate)));
        assert_eq!(rows[1][0].of, ["attention", "ffn", "norms"]);
        let tables = transitions(&timeline.segments, &rows);
        assert_eq!([0, 1, 2].map(|at| tables[at].reading), [Reading::Begins, Reading::GoesOn, Reading::GoesOn]);
        assert_eq!(tables[1].lr, 1e-4);
    }

    #[test]
    fn what_freezes_loses_its_state_and_what_thaws_begins_as_new() {
        let mut schedule = grow(10);
        let event = |steps, actions| EventSpec { moment: Moment::After(steps), actions };
        let block = Action::Grow { layers: 3, at: Insert::Top, from: GrowFrom::CopyLast };
        schedule.events = vec![
            event(10, vec![block, Action::Freeze(Layers::Range { first: 1, last: 3 }), Action::RewindData]),
            event(7, vec![Action::Thaw(Layers::All), Action::Freeze(Layers::Norms), Action::FreshData]),
        ];
        let timeline = timeline(&schedule);
        let rows = rows(&model(), &training().optimizer, &timeline.segments);
        let frozen = fate(Value::Kept, Moments::Dropped, 0, Learns::No);
        let copied = fate(Value::Copied, Moments::Fresh, 0, Learns::Yes);
        let on = |updates| fate(Value::Kept, Moments::Kept, updates, Learns::Yes);
        let still = fate(Value::Kept, Moments::None, 0, Learns::No);
        let expected = [("layers 1–3", frozen), ("layers 4–6", copied), ("embedding", still), ("exit, head", on(10))];
        assert_eq!(told(&rows[1]), expected.map(|(name, fate)| (name.to_owned(), fate)));
        assert_eq!(rows[1][1].from, [1, 2, 3]);
        let thawed = fate(Value::Kept, Moments::Fresh, 0, Learns::Yes);
        let expected = [
            ("layers 1–3: attention, ffn", thawed),
            ("layers 1–3: norms", still),
            ("layers 4–6: attention, ffn", on(7)),
            ("layers 4–6: norms", frozen),
            ("embedding", still),
            ("exit", frozen),
            ("head", on(17)),
        ];
        assert_eq!(told(&rows[2]), expected.map(|(name, fate)| (name.to_owned(), fate)));
        let tables = transitions(&timeline.segments, &rows);
        assert_eq!([1, 2].map(|at| tables[at].reading), [Reading::Rewinds, Reading::Fresh]);
        // Every parameter has one row, and every element is counted.
        for (segment, rows) in timeline.segments.iter().zip(&rows) {
            let specs = parameters(&model(), &segment.stack, &segment.block_ends);
            for spec in &specs {
                let place = spec.layer.and_then(|id| segment.stack.iter().position(|other| *other == id));
                let covering = rows.iter().filter(|row| row.covers(place.map(|place| place + 1), spec));
                assert_eq!(covering.count(), 1, "{}", spec.name);
            }
            let counted: u64 = rows.iter().map(|row| row.parameters).sum();
            assert_eq!(counted, specs.iter().map(ParamSpec::elements).sum::<u64>());
        }
    }

    #[test]
    fn an_optimizer_without_state_has_none_to_keep() {
        let plain = Optimizer::Sgd { lr: 1.0, momentum: 0.0, nesterov: false, decay: 0.0, decay_all: false };
        let mut schedule = grow(10);
        schedule.events[0].actions = vec![Action::Grow { layers: 3, at: Insert::Top, from: GrowFrom::CopyLast }];
        let timeline = timeline(&schedule);
        for optimizer in [plain, training().optimizer] {
            let rows = rows(&model(), &optimizer, &timeline.segments);
            let kept = rows.iter().flat_map(|rows| rows.iter()).any(|row| row.fate.moments != Moments::None);
            assert_eq!(kept, optimizer != plain, "{rows:?}");
        }
    }

    #[test]
    fn what_a_frozen_prefix_cannot_reach_keeps_its_state() {
        let mut schedule = grow(10);
        schedule.events[0].actions =
            vec![Action::Grow { layers: 3, at: Insert::Interleaved, from: GrowFrom::Identity }, Action::Drop { layers: 1 }];
        schedule.events[0].moment = Moment::After(4);
        let rows_of = rows(&model(), &training().optimizer, &timeline(&schedule).segments);
        let kept = fate(Value::Kept, Moments::Kept, 4, Learns::Yes);
        let new = fate(Value::Identity, Moments::Fresh, 0, Learns::Yes);
        let expected = [("layers 1, 3, 5", kept), ("layers 2, 4", new)];
        assert_eq!(told(&rows_of[1])[..2], expected.map(|(name, fate)| (name.to_owned(), fate)));

        let mut own = model();
        own.embedding = crate::study::Embedding::Own;
        let mut schedule = grow(10);
        schedule.events[0].actions.remove(1);
        schedule.events[0].actions.push(Action::Freeze(Layers::Prefix));
        let timeline = build(&schedule, &own, &training(), &Declared::Unknown, None).expect("a schedule");
        let rows = rows(&own, &training().optimizer, &timeline.segments);
        let unreached = fate(Value::Kept, Moments::Kept, 10, Learns::Unreached);
        for rows in &rows[1..] {
            assert!(told(rows).contains(&("embedding".to_owned(), unreached)), "{rows:?}");
        }
        assert!(rows[2].iter().any(|row| row.layers == [4, 5, 6] && row.fate.moments == Moments::Dropped));
    }
}
