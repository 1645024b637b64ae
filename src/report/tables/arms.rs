//! Every arm and control with all that was measured, at the end.

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::{At, Reading};
use crate::study::Metric;

use super::{INTERVALS, contest, digits, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    // The training loss and the gradients after the last step belong to no step.
    let metrics: Vec<Metric> =
        reading.metrics().into_iter().filter(|metric| !matches!(metric, Metric::TrainLoss | Metric::GradNorm)).collect();
    let mut table = Table::new("All arms", &["arm"]);
    for (place, metric) in metrics.iter().enumerate() {
        contest(&mut table, with_unit(*metric), *metric, Format::Value { family: place as u8, otherwise: digits(*metric) });
    }
    for (index, arm) in reading.study().arms.iter().enumerate() {
        let of = |metric: &Metric| Cell::mean(&reading.over_seeds(&[index], *metric, At::End));
        table.row(vec![arm.name.clone()], metrics.iter().map(of).collect());
    }
    for teacher in &reading.story.teachers {
        let of = |metric: &Metric| match (metric, teacher.validation_ce) {
            (Metric::ValidationCe, Some(ce)) => Cell::real(ce.0),
            (Metric::Perplexity, Some(ce)) => Cell::real(ce.0.exp()),
            _ => Cell::blank(),
        };
        table.contrast(vec![format!("teacher {}", teacher.name)], metrics.iter().map(of).collect());
    }
    table.finish(format!("After the last step. {INTERVALS}"))
}
