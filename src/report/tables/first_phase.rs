//! The model just before its first event: for a grown model, its first block on its own (2608.13156, table 2).

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::{At, Reading, events};
use crate::study::Metric;

use super::{INTERVALS, contest, digits, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let measured = reading.metrics();
    let wanted = [Metric::ValidationCe, Metric::Kl, Metric::Perplexity];
    let metrics: Vec<Metric> = wanted
        .into_iter()
        .filter(|metric| measured.contains(metric) || (*metric == Metric::Perplexity && measured.contains(&Metric::ValidationCe)))
        .collect();
    let mut groups: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
    for arm in 0..reading.study().arms.len() {
        let Some(run) = reading.runs_of(arm).next().filter(|run| !events(run).is_empty()) else { continue };
        // Arms that share the phase share its node under every seed, and are one row.
        let keys: Vec<&str> = reading.runs_of(arm).filter_map(|run| run.phase_keys.first().map(String::as_str)).collect();
        match groups.iter_mut().find(|(known, _)| !keys.is_empty() && *known == keys) {
            Some((_, arms)) => arms.push(arm),
            None if !run.segments.is_empty() => groups.push((keys, vec![arm])),
            None => {}
        }
    }
    let single = groups.iter().all(|(_, arms)| {
        let run = arms.first().and_then(|arm| reading.runs_of(*arm).next());
        run.and_then(|run| run.segments.first()).is_some_and(|segment| segment.block_ends.len() == 1)
    });
    let title = if single { "A single block: the end of phase 0" } else { "The end of phase 0" };
    let mut table = Table::new(title, &["arms"]);
    table.column("layers", Format::Exact);
    table.column("steps", Format::Exact);
    for (place, metric) in metrics.iter().enumerate() {
        contest(&mut table, with_unit(*metric), *metric, Format::Value { family: place as u8, otherwise: digits(*metric) });
    }
    for (_, arms) in &groups {
        let Some((first, run)) = arms.first().and_then(|arm| Some((*arm, reading.runs_of(*arm).next()?))) else { continue };
        let names: Vec<&str> = arms.iter().map(|arm| reading.study().arms[*arm].name.as_str()).collect();
        let mut cells = vec![
            Cell::count(run.segments.first().map_or(0, |segment| segment.depth() as u64)),
            Cell::count(events(run).first().copied().unwrap_or_default()),
        ];
        let of = |metric: &Metric| Cell::mean(&reading.over_seeds(&[first], *metric, At::FirstPhase));
        cells.extend(metrics.iter().map(of));
        table.row(vec![names.join(", ")], cells);
    }
    if metrics.is_empty() || groups.is_empty() {
        return None;
    }
    table
        .finish(format!("Just before the first event. Arms that share this phase were trained once and share a row. {INTERVALS}"))
}
