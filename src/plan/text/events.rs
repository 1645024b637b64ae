//! The table of an event: what becomes of each parameter, its optimizer state, the learning rate and the data.
//!
//! Owns how the runs of several arms become one table: sizes and rates that differ among them are ranges. Invariant: what is printed is what
//! the phase carries and holds its first state against.

use super::arms::figure;
use super::figures::{grouped, short};
use super::page::Page;
use crate::budget::learning::Learns;
use crate::budget::transition::{Moments, Reading, Row, Transition, Value, ranges};
use crate::timeline::DataPosition;

/// Columns that the name of a row takes at most.
const NAME: usize = 30;

/// A name cut at its spaces.
fn lines(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= NAME => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The words of a table, without its numbers: what equal tables have in common.
pub(super) fn words(transition: &Transition, position: DataPosition) -> Vec<String> {
    let mut words: Vec<String> = transition.rows.iter().flat_map(fates).collect();
    words.push(reading(transition.reading, position));
    words
}

/// Name, value, moments, updates, and whether a row learns.
fn fates(row: &Row) -> [String; 5] {
    let value = match row.fate.value {
        Value::Kept => "kept".to_owned(),
        Value::New => "new".to_owned(),
        Value::Identity => "identity".to_owned(),
        Value::Copied => format!("copy of {}", ranges(&row.from)),
    };
    let moments = match row.fate.moments {
        Moments::Kept => "kept",
        Moments::Dropped => "dropped",
        Moments::Fresh => "fresh",
        Moments::None => "none",
    };
    let learns = match row.fate.learns {
        Learns::Yes => "",
        Learns::Unreached => "no gradient",
        Learns::No => "frozen",
    };
    [row.name(), value, moments.to_owned(), row.fate.updates.map_or_else(|| "?".to_owned(), grouped), learns.to_owned()]
}

fn reading(reading: Reading, position: DataPosition) -> String {
    let DataPosition { shard, sequence, context } = position;
    let context = context.map_or_else(String::new, |context| format!(" of {} tokens", grouped(context as u64)));
    let at = format!("at sequence {}{context} of shard {shard}", grouped(sequence));
    match reading {
        Reading::Begins => format!("data begin {at}"),
        Reading::GoesOn => format!("data go on {at}"),
        Reading::Rewinds => format!("data rewind, {at}"),
        Reading::Fresh => format!("data are fresh, {at}"),
    }
}

/// The one table of events that happen alike, each with where it reads.
pub(super) fn table(page: &mut Page, alike: &[(&Transition, DataPosition)]) {
    let Some((first, position)) = alike.first() else { return };
    let lr = figure(alike, |(transition, _)| transition.lr, |lr| format!("{lr:.2e}"));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (at, row) in first.rows.iter().enumerate() {
        let [name, value, moments, updates, learns] = fates(row);
        let parameters = figure(alike, |(transition, _)| transition.rows.get(at).map_or(0, |row| row.parameters), short);
        let mut lines = lines(&name);
        let last = lines.pop().unwrap_or_default();
        rows.extend(lines.into_iter().map(|line| vec![line]));
        rows.push(vec![last, parameters, value, moments, updates, if learns.is_empty() { lr.clone() } else { learns }]);
    }
    page.columns("      ", &["", "parameters", "values", "moments", "updates", "rate"], &rows);
    page.wrapped("      ", &reading(first.reading, *position));
}
