//! Whether an event did what the plan says of it.
//!
//! Owns the comparison of a phase's first state with its table: elements, optimizer state and its updates, what learns, the rate, where is
//! read. Invariant: no step is taken from a state that differs from the table.

use super::Checkpoint;
use super::sets::Learning;
use super::step::State;
use crate::budget::learning::Learns;
use crate::budget::params::ParamSpec;
use crate::budget::transition::{Moments, Reading, Row, Transition};
use crate::run::worker::Failure;
use crate::tensor::{Device, Real};
use crate::timeline::Segment;

/// Refuses a state that is not the planned one, with the row that differs.
pub fn holds<E: Real, D: Device<E>>(
    transition: &Transition,
    segment: &Segment,
    specs: &[ParamSpec],
    learning: &Learning,
    state: &State<E, D>,
) -> Result<(), Failure> {
    let rate = segment.rate.at(segment.steps.start);
    if rate.to_bits() != transition.lr.to_bits() {
        return Err(differs(segment, "the learning rate", &format!("{:e}", transition.lr), &format!("{rate:e}")));
    }
    let place = |spec: &ParamSpec| {
        let layer = spec.layer?;
        segment.stack.iter().position(|other| *other == layer).map(|place| place + 1)
    };
    if let Some(spec) = specs.iter().find(|spec| !transition.rows.iter().any(|row| row.covers(place(spec), spec))) {
        return Err(differs(segment, &format!("`{}`", spec.name), "nothing", "a parameter"));
    }
    for row in transition.rows.iter() {
        let covered = || specs.iter().filter(|spec| row.covers(place(spec), spec));
        let elements: u64 = covered()
            .filter_map(|spec| state.params.0.get(&spec.name))
            .map(|param| param.shape().iter().map(|side| *side as u64).product::<u64>())
            .sum();
        if row.parameters != elements {
            return Err(unlike(segment, row, &format!("{} parameters", row.parameters), &elements.to_string()));
        }
        for spec in covered() {
            of_parameter(row, segment, spec, learning, state)?;
        }
    }
    Ok(())
}

fn of_parameter<E: Real, D: Device<E>>(
    row: &Row,
    segment: &Segment,
    spec: &ParamSpec,
    learning: &Learning,
    state: &State<E, D>,
) -> Result<(), Failure> {
    let name = &spec.name;
    let updates = state.moments.get(name).map(|moments| moments.updates);
    let found = match updates {
        Some(updates) => format!("moments of {updates} updates at `{name}`"),
        None => format!("no moments at `{name}`"),
    };
    match (row.fate.moments, row.fate.updates) {
        (Moments::Kept, Some(planned)) if updates != Some(planned) => {
            return Err(unlike(segment, row, &format!("moments of {planned} updates"), &found));
        }
        (Moments::Dropped | Moments::Fresh | Moments::None, _) if updates.is_some() => {
            return Err(unlike(segment, row, "no moments", &found));
        }
        _ => {}
    }
    let learns = match () {
        () if learning.names.contains(name) => Learns::Yes,
        () if learning.unreached.contains(name) => Learns::Unreached,
        () => Learns::No,
    };
    if learns != row.fate.learns {
        return Err(unlike(segment, row, word(row.fate.learns), &format!("`{name}`, which {}", word(learns))));
    }
    Ok(())
}

fn word(learns: Learns) -> &'static str {
    match learns {
        Learns::Yes => "learns",
        Learns::Unreached => "gets no gradient",
        Learns::No => "is frozen",
    }
}

/// Refuses a parent whose position in the data is not the one from which the planned one follows.
pub(super) fn reads_on(transition: &Transition, segment: &Segment, parent: Option<&Checkpoint>) -> Result<(), Failure> {
    let found = parent.map_or(Reading::Begins, |parent| Reading::between(parent.meta.data, segment.data));
    let jumps = parent.is_some_and(|parent| {
        let (before, now) = (parent.meta.data, segment.data);
        found == Reading::GoesOn && before.context == now.context && before.sequence != now.sequence
    });
    if found == transition.reading && !jumps {
        return Ok(());
    }
    let say = |reading: Reading| match reading {
        Reading::Begins => "reading begins",
        Reading::GoesOn => "reading goes on",
        Reading::Rewinds => "reading rewinds",
        Reading::Fresh => "reading takes a fresh shard",
    };
    let at = parent.map_or_else(
        || "nothing".to_owned(),
        |parent| format!("sequence {} of shard {}", parent.meta.data.sequence, parent.meta.data.shard),
    );
    let now = format!("{} after {at} at sequence {} of shard {}", say(found), segment.data.sequence, segment.data.shard);
    Err(differs(segment, "the data", say(transition.reading), &now))
}

fn unlike(segment: &Segment, row: &Row, planned: &str, found: &str) -> Failure {
    differs(segment, &format!("the row `{}`", row.name()), planned, found)
}

fn differs(segment: &Segment, what: &str, planned: &str, found: &str) -> Failure {
    let step = segment.steps.start;
    Failure::Input(format!("the state at step {step} is not the planned one: {what}: planned {planned}, found {found}"))
}
