//! Controls beside the arm that they are matched to (2608.13156, table 3).

use std::collections::BTreeMap;

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::{At, Reading, contrast};
use crate::study::Matched;

use super::{INTERVALS, primary, value, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let metric = primary(reading)?;
    let arms = &reading.study().arms;
    let mut targets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, arm) in arms.iter().enumerate() {
        if let Some(Matched { to, .. }) = arm.control.as_ref().and_then(|control| control.matched) {
            let list = targets.entry(to).or_default();
            // The arm that the control was made from, as the paper's unmatched baseline.
            let origin = arms.iter().position(|other| other.control.is_none() && other.values == arm.values);
            list.extend(origin.filter(|origin| *origin != to && !list.contains(origin)));
            list.push(index);
        }
    }
    let mut table = Table::new("Budget controls", &["arm", "matched on"]);
    table.column("tokens", Format::Short);
    table.column("unique tokens", Format::Short);
    table.column("active-layer tokens", Format::Short);
    table.column(with_unit(metric), value(metric));
    table.column("Δ to the matched arm", value(metric));
    for (target, others) in &targets {
        for arm in std::iter::once(target).chain(others) {
            let Some(run) = reading.runs_of(*arm).next() else { continue };
            let matched = arms[*arm].control.as_ref().and_then(|control| control.matched).map(|matched| matched.on.name());
            let delta = if arm == target {
                Cell::blank()
            } else {
                Cell::difference(&reading.traced(&contrast(metric, &[*arm], &[*target]), At::End))
            };
            let cells = vec![
                Cell::count(run.planned.tokens),
                Cell::count(run.planned.unique_tokens),
                Cell::count(run.planned.active_layer_tokens),
                Cell::mean(&reading.over_seeds(&[*arm], metric, At::End)),
                delta,
            ];
            let on = if arm == target { "(the matched arm)" } else { matched.unwrap_or("not matched") };
            table.row(vec![arms[*arm].name.clone(), on.to_owned()], cells);
        }
    }
    if targets.is_empty() {
        return None;
    }
    table.finish(format!("Δ = arm − the arm above it that is matched, paired by seed. {INTERVALS}"))
}
