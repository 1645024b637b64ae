//! Cross entropy of the head on the stream after each block: how far the answer has come there.

use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::run::record::ProbeRecord;
use crate::study::ProbeKind;

use super::INTERVALS;

/// Cross entropy of an arm at each boundary, the embedding's first, by the step of the probe.
pub fn boundaries(reading: &Reading<'_>, arm: usize) -> Vec<(u64, Vec<Paired>)> {
    let kind = ProbeKind::LogitLens;
    let read = |record: &ProbeRecord| match record {
        ProbeRecord::LogitLens { ce } => ce.clone(),
        _ => Vec::new(),
    };
    let at = |step: u64| {
        let probes = reading.runs_of(arm).filter_map(|run| reading.probe(arm, run.seed, kind, Some(step)));
        let most = probes.map(|probe| read(&probe.record).len()).max().unwrap_or_default();
        let of = |place: usize| reading.probed(arm, kind, step, |probe| read(&probe.record).get(place).map(|ce| ce.0));
        (step, (0..most).map(of).collect())
    };
    reading.probed_at(arm, kind).into_iter().map(at).collect()
}

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let arms: Vec<_> = (0..reading.study().arms.len()).map(|arm| boundaries(reading, arm)).collect();
    let most = arms.iter().flatten().map(|(_, row)| row.len()).max()?;
    let mut table = Table::new("Logit lens", &["arm", "after step"]);
    table.column("embedding".to_owned(), Format::Value { family: 0, otherwise: 4 });
    for block in 1..most {
        table.column(format!("block {}", block - 1), Format::Value { family: 0, otherwise: 4 });
    }
    for (arm, rows) in reading.study().arms.iter().zip(&arms) {
        for (step, row) in rows {
            let cells = (0..most).map(|place| row.get(place).map_or_else(Cell::blank, Cell::mean));
            table.row(vec![arm.name.clone(), number::exact(*step)], cells.collect());
        }
    }
    table.finish(format!(
        "Cross entropy, nats/token, of the head behind the model's exit equation, read on the stream before the first block and after each, \
         counted from 0 at the bottom; the last is the model's own. At an event, the model before it. {INTERVALS}"
    ))
}
