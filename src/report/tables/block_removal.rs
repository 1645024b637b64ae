//! What happens when one block is skipped, at the end (2608.13156, "block removal").

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::{Paired, Reading};
use crate::run::record::{BlockRemoval, ProbeRecord};
use crate::study::ProbeKind;

use super::INTERVALS;

/// ΔCE and angle of every block of an arm, at its last probe.
pub fn blocks(reading: &Reading<'_>, arm: usize) -> Vec<(Paired, Paired)> {
    let kind = ProbeKind::BlockRemoval;
    let last = reading.runs_of(arm).filter_map(|run| reading.probe(arm, run.seed, kind, None)).max_by_key(|probe| probe.step);
    let Some(last) = last else { return Vec::new() };
    let ProbeRecord::BlockRemoval { blocks, .. } = &last.record else { return Vec::new() };
    let number = |block: usize, of: fn(&BlockRemoval) -> f64| {
        reading.probed(arm, kind, last.step, |probe| match &probe.record {
            ProbeRecord::BlockRemoval { blocks, .. } => blocks.get(block).map(of),
            _ => None,
        })
    };
    (0..blocks.len()).map(|block| (number(block, |row| row.delta_ce.0), number(block, |row| row.angle.0))).collect()
}

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let arms: Vec<_> =
        (0..reading.study().arms.len()).map(|arm| (arm, blocks(reading, arm))).filter(|(_, rows)| !rows.is_empty()).collect();
    let most = arms.iter().map(|(_, rows)| rows.len()).max()?;
    let mut table = Table::new("Block removal", &["arm"]);
    for block in 0..most {
        table.column(format!("ΔCE, block {block}"), Format::Value { family: 0, otherwise: 2 });
    }
    for block in 0..most {
        table.column(format!("angle, block {block}"), Format::Value { family: 1, otherwise: 3 });
    }
    for (arm, rows) in &arms {
        let cell = |block: usize, of: fn(&(Paired, Paired)) -> &Paired| {
            rows.get(block).map_or_else(Cell::blank, |row| Cell::mean(of(row)))
        };
        let losses = (0..most).map(|block| cell(block, |row| &row.0));
        let angles = (0..most).map(|block| cell(block, |row| &row.1));
        table.row(vec![reading.study().arms[*arm].name.clone()], losses.chain(angles).collect());
    }
    table.finish(format!(
        "At the last probe, blocks counted from 0 at the bottom. ΔCE = CE without the block − CE, nats/token; the block's norms go with \
         it. Angle = arccos(cos(h_in, h_out))/π, mean over tokens of the arccos. {INTERVALS}"
    ))
}
