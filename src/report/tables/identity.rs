//! What happens when the sublayers of one block say 0 and the wiring around them still runs, at the last probe.

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::{Paired, Reading};
use crate::run::record::ProbeRecord;
use crate::study::ProbeKind;

use super::INTERVALS;

/// ΔCE of every block of an arm, at its last probe.
fn blocks(reading: &Reading<'_>, arm: usize) -> Vec<Paired> {
    let Some(step) = reading.probed_at(arm, ProbeKind::Identity).pop_last() else { return Vec::new() };
    let deltas = |record: &ProbeRecord| match record {
        ProbeRecord::Identity { delta_ce, .. } => delta_ce.clone(),
        _ => Vec::new(),
    };
    let probes = reading.runs_of(arm).filter_map(|run| reading.probe(arm, run.seed, ProbeKind::Identity, Some(step)));
    let most = probes.map(|probe| deltas(&probe.record).len()).max().unwrap_or_default();
    let of = |block: usize| {
        reading.probed(arm, ProbeKind::Identity, step, |probe| deltas(&probe.record).get(block).map(|delta| delta.0))
    };
    (0..most).map(of).collect()
}

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let arms: Vec<_> =
        (0..reading.study().arms.len()).map(|arm| (arm, blocks(reading, arm))).filter(|(_, row)| !row.is_empty()).collect();
    let most = arms.iter().map(|(_, row)| row.len()).max()?;
    let mut table = Table::new("Blocks as the identity", &["arm"]);
    for block in 0..most {
        table.column(format!("ΔCE, block {block}"), Format::Value { family: 0, otherwise: 2 });
    }
    for (arm, row) in &arms {
        let cells = (0..most).map(|block| row.get(block).map_or_else(Cell::blank, Cell::mean));
        table.row(vec![reading.study().arms[*arm].name.clone()], cells.collect());
    }
    table.finish(format!(
        "At the last probe, blocks counted from 0 at the bottom. ΔCE = CE with every sublayer of the block answering 0 − CE, nats/token; the \
         block's wiring still runs, its norms on the stream included (block removal takes them away too). {INTERVALS}"
    ))
}
