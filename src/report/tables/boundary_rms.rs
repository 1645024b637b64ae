//! The size of the residual stream after each block and phase, by token class (2608.13156, "boundary RMS").

use std::collections::BTreeSet;

use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::run::record::{BoundaryRms, Moments, ProbeRecord};
use crate::study::ProbeKind;

use super::INTERVALS;

/// Steps at which an arm was probed, and how many blocks it had then.
pub fn moments(reading: &Reading<'_>, arm: usize) -> Vec<(u64, usize)> {
    let probes = reading.runs_of(arm).flat_map(|run| &run.probes);
    let blocks = probes.filter_map(|probe| match &probe.record {
        ProbeRecord::BoundaryRms { blocks } => Some((probe.step, blocks.len())),
        _ => None,
    });
    blocks.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A number of a block; `None` where its class has no token.
pub type Of = fn(&BoundaryRms) -> Option<f64>;

/// Mean over structural tokens.
pub fn structural(row: &BoundaryRms) -> Option<f64> {
    mean(&row.structural)
}

/// Mean over the other tokens.
pub fn regular(row: &BoundaryRms) -> Option<f64> {
    mean(&row.regular)
}

fn mean(class: &Moments) -> Option<f64> {
    (class.n > 0).then_some(class.mean.0)
}

/// A number of a block of an arm at a step, seed by seed.
pub fn number_of(reading: &Reading<'_>, arm: usize, step: u64, block: usize, of: Of) -> Paired {
    reading.probed(arm, ProbeKind::BoundaryRms, step, |probe| match &probe.record {
        ProbeRecord::BoundaryRms { blocks } => blocks.get(block).and_then(of),
        _ => None,
    })
}

/// Heading, family, digits where nothing has an error, number.
type Shown = (&'static str, u8, usize, Of);

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let mut numbers: Vec<Shown> = vec![
        ("mean", 0, 2, |row| Some(row.all.mean.0)),
        ("std", 0, 2, |row| Some(row.all.std.0)),
        ("kurtosis", 1, 1, |row| Some(row.all.kurtosis.0)),
    ];
    let classes = classes(reading);
    if classes {
        numbers.extend([("structural mean", 0, 2, structural as Of), ("regular mean", 0, 2, regular as Of)]);
    }
    let mut table = Table::new("Boundary RMS", &["arm", "after step", "block"]);
    for &(label, family, otherwise, _) in &numbers {
        table.column(label, Format::Value { family, otherwise });
    }
    for (index, arm) in reading.study().arms.iter().enumerate() {
        for (step, blocks) in moments(reading, index) {
            for block in 0..blocks {
                let cells = numbers.iter().map(|(_, _, _, of)| Cell::mean(&number_of(reading, index, step, block, *of)));
                table.row(vec![arm.name.clone(), number::exact(step), block.to_string()], cells.collect());
            }
        }
    }
    let tokens = if classes {
        "structural tokens end a document, regular ones do not"
    } else {
        "no token of the probe's batch ends a document, so that there is no class of structural tokens: probe more sequences"
    };
    table.finish(format!(
        "r = sqrt(mean of h² over the width) for each token after each block, blocks counted from 0 at the bottom: mean, standard \
         deviation and kurtosis (3 for a normal) over tokens; {tokens}. At an event, the model before it. {INTERVALS}"
    ))
}

/// Whether any probe saw a structural token.
fn classes(reading: &Reading<'_>) -> bool {
    let probes = reading.story.runs.iter().flat_map(|run| &run.probes);
    let saw = |record: &ProbeRecord| match record {
        ProbeRecord::BoundaryRms { blocks } => blocks.iter().any(|block| block.structural.n > 0),
        _ => false,
    };
    probes.into_iter().any(|probe| saw(&probe.record))
}
