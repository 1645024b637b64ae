//! The size of the residual stream after each block and phase, by token class (2608.13156, "boundary RMS").

use std::collections::BTreeSet;

use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::run::record::{BoundaryRms, ProbeRecord};
use crate::study::ProbeKind;

use super::INTERVALS;

/// Steps at which an arm was probed, and how many blocks it had then.
pub fn moments(reading: &Reading<'_>, arm: usize) -> Vec<(u64, usize)> {
    let probes = reading.runs_of(arm).flat_map(|run| &run.probes);
    let blocks = probes.filter_map(|probe| match &probe.record {
        ProbeRecord::BoundaryRms { blocks } => Some((probe.step, blocks.len())),
        ProbeRecord::BlockRemoval { .. } => None,
    });
    blocks.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A number of a block of an arm at a step, seed by seed.
pub fn number_of(reading: &Reading<'_>, arm: usize, step: u64, block: usize, of: fn(&BoundaryRms) -> f64) -> Paired {
    reading.probed(arm, ProbeKind::BoundaryRms, step, |probe| match &probe.record {
        ProbeRecord::BoundaryRms { blocks } => blocks.get(block).map(of),
        ProbeRecord::BlockRemoval { .. } => None,
    })
}

/// Heading, family, digits where nothing has an error, number.
type Shown = (&'static str, u8, usize, fn(&BoundaryRms) -> f64);

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    const NUMBERS: [Shown; 5] = [
        ("mean", 0, 2, |row| row.all.mean.0),
        ("std", 0, 2, |row| row.all.std.0),
        ("kurtosis", 1, 1, |row| row.all.kurtosis.0),
        ("structural mean", 0, 2, |row| row.structural.mean.0),
        ("regular mean", 0, 2, |row| row.regular.mean.0),
    ];
    let mut table = Table::new("Boundary RMS", &["arm", "after step", "block"]);
    for (label, family, otherwise, _) in NUMBERS {
        table.column(label, Format::Value { family, otherwise });
    }
    for (index, arm) in reading.study().arms.iter().enumerate() {
        for (step, blocks) in moments(reading, index) {
            for block in 0..blocks {
                let cells = NUMBERS.iter().map(|(_, _, _, of)| Cell::mean(&number_of(reading, index, step, block, *of)));
                table.row(vec![arm.name.clone(), number::exact(step), block.to_string()], cells.collect());
            }
        }
    }
    table.finish(format!(
        "r = sqrt(mean of h² over the width) for each token after each block, blocks counted from 0 at the bottom: mean, standard \
         deviation and kurtosis (3 for a normal) over tokens; structural tokens end a document, regular ones do not. At an event, the \
         model before it. {INTERVALS}"
    ))
}
