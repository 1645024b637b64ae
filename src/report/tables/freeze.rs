//! Growing with and without freezing what is below (2608.13156, "freeze").

use crate::report::model::{Cell, Table};
use crate::report::reading::{At, Reading, contrast, grows};
use crate::study::{Action, Axis, AxisValue};

use super::{INTERVALS, contest, primary, schedules, value, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let metric = primary(reading)?;
    let axis = schedules(reading.study())?;
    let (plain, frozen): (Vec<&AxisValue>, Vec<&AxisValue>) = axis
        .values
        .iter()
        .filter(|value| has(reading, axis, value, |_| true))
        .partition(|value| !has(reading, axis, value, freezes));
    let (plain, frozen) = (plain.first()?, frozen.first()?);
    let mut table = Table::new("Freezing", &["arm"]);
    contest(&mut table, plain.label.clone(), metric, value(metric));
    contest(&mut table, frozen.label.clone(), metric, value(metric));
    table.column(format!("{} − {}", frozen.label, plain.label), value(metric));
    for (index, arm) in reading.study().arms.iter().enumerate() {
        if arm.control.is_some() || arm.values.get(&axis.name) != Some(&plain.label) {
            continue;
        }
        let alike = |other: &crate::study::Arm| {
            other.control.is_none()
                && other.values.get(&axis.name) == Some(&frozen.label)
                && other.values.iter().all(|(name, own)| *name == axis.name || arm.values.get(name) == Some(own))
        };
        let Some(pair) = reading.study().arms.iter().position(alike) else { continue };
        let mean = |arm: usize| Cell::mean(&reading.over_seeds(&[arm], metric, At::End));
        let delta = Cell::difference(&reading.traced(&contrast(metric, &[pair], &[index]), At::End));
        let rest: Vec<&str> =
            arm.values.iter().filter(|(name, _)| **name != axis.name).map(|(_, value)| value.as_str()).collect();
        let label = if rest.is_empty() { "all".to_owned() } else { rest.join(", ") };
        table.row(vec![label], vec![mean(index), mean(pair), delta]);
    }
    table.finish(format!("{} after the last step; the difference is paired by seed. {INTERVALS}", with_unit(metric)))
}

/// Whether arms with this schedule grow, and do so with an action that fits.
fn has(reading: &Reading<'_>, axis: &Axis, value: &AxisValue, fits: fn(&Action) -> bool) -> bool {
    let arms = reading.cells(&[(&axis.name, &value.label)]);
    let run = arms.iter().find_map(|arm| reading.runs_of(*arm).next());
    run.is_some_and(|run| !grows(run).is_empty() && run.segments.iter().flat_map(|segment| &segment.actions).any(fits))
}

fn freezes(action: &Action) -> bool {
    matches!(action, Action::Freeze(_))
}
