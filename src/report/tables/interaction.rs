//! Placements × schedules with the differences of interest: Δ within a schedule, and I, the difference of differences
//! (2608.13156, table 1: I = Δ_grow − Δ_joint).

use crate::report::model::{Cell, Table};
use crate::report::reading::{At, Reading, contrast, difference};
use crate::study::Linear;

use super::{INTERVALS, contest, placements, primary, schedules, value, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let metric = primary(reading)?;
    let (placements, schedules) = (placements(reading.study())?, schedules(reading.study())?);
    let (base, others) = placements.values.split_first()?;
    let (first, later) = schedules.values.split_first()?;
    if others.is_empty() || later.is_empty() {
        return None;
    }
    let cell = |placement: &str, schedule: &str| reading.cells(&[(&placements.name, placement), (&schedules.name, schedule)]);
    let mut table = Table::new("Interaction of placement and schedule", &["placement"]);
    for schedule in &schedules.values {
        contest(&mut table, schedule.label.clone(), metric, value(metric));
    }
    for schedule in later {
        table.column(format!("I = Δ({}) − Δ({})", schedule.label, first.label), value(metric));
    }
    for placement in &placements.values {
        let cells = schedules.values.iter().map(|schedule| {
            let arms = cell(&placement.label, &schedule.label);
            if arms.is_empty() {
                return Cell::blank();
            }
            Cell::mean(&reading.over_seeds(&arms, metric, At::End))
        });
        let cells: Vec<Cell> = cells.chain(later.iter().map(|_| Cell::blank())).collect();
        table.row(vec![placement.label.clone()], cells);
    }
    for other in others {
        let delta = |schedule: &str| -> Option<Linear> {
            let (of, minus) = (cell(&other.label, schedule), cell(&base.label, schedule));
            (!of.is_empty() && !minus.is_empty()).then(|| contrast(metric, &of, &minus))
        };
        let difference_cell = |sum: Option<Linear>| match sum {
            Some(sum) => Cell::difference(&reading.traced(&sum, At::End)),
            None => Cell::blank(),
        };
        let deltas = schedules.values.iter().map(|schedule| difference_cell(delta(&schedule.label)));
        let interactions = later.iter().map(|schedule| {
            difference_cell(delta(&schedule.label).zip(delta(&first.label)).map(|(grown, joint)| difference(&grown, &joint)))
        });
        let cells = deltas.chain(interactions).collect();
        table.contrast(vec![format!("Δ = {} − {}", other.label, base.label)], cells);
    }
    table.finish(format!(
        "{} after the last step. Differences are paired by seed, so their intervals are not those of the cells above them. {INTERVALS}",
        with_unit(metric)
    ))
}
