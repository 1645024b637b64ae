//! Δ(t): the difference of two placements around each growth and at the end, and where its sign changes for good.

use crate::report::curves::{Contrast, contrasts};
use crate::report::layout::DASH;
use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{At, Reading, contrast, grows};
use crate::stats::median;

use super::{INTERVALS, primary, value, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let metric = primary(reading)?;
    let contrasts = contrasts(reading);
    let growths =
        |contrast: &Contrast| contrast.of.iter().filter_map(|arm| reading.runs_of(*arm).next()).map(|run| grows(run).len()).max();
    let most = contrasts.iter().filter_map(growths).max()?;
    let mut table = Table::new("Crossover: the difference over time", &["difference"]);
    for number in 1..=most {
        table.column(format!("before grow {number}"), value(metric));
        table.column(format!("after grow {number}"), value(metric));
    }
    table.column("at the end", value(metric));
    table.column("sign changes for good", Format::Text);
    for contrasted in &contrasts {
        let sum = contrast(metric, &contrasted.of, &contrasted.minus);
        let has = growths(contrasted).unwrap_or_default();
        let cell = |at: At| Cell::difference(&reading.traced(&sum, at));
        let mut cells = Vec::new();
        for number in 1..=most as u32 {
            for at in [At::BeforeGrow(number), At::AfterGrow(number)] {
                cells.push(if number as usize <= has { cell(at) } else { Cell::blank() });
            }
        }
        let end = cell(At::End);
        let complete = end.per_seed.len();
        let count = end.n.unwrap_or_default();
        let seeds: Vec<u64> = end.per_seed.iter().map(|(seed, _)| *seed).collect();
        let steps: Vec<f64> = contrasted.crossings(reading, metric, &seeds).into_iter().map(|step| step as f64).collect();
        cells.push(end);
        let text =
            median(&steps).map_or_else(|| "never".to_owned(), |step| format!("step {}", number::exact(step.round() as u64)));
        let text = if complete == 0 { DASH.to_owned() } else { text };
        cells.push(Cell {
            n_text: if complete == 0 {
                String::new()
            } else {
                format!("{} of {} seeds{}", steps.len(), count.planned, count.absent())
            },
            ..Cell::words(text)
        });
        table.row(vec![contrasted.name.clone()], cells);
    }
    table.finish(format!(
        "{}, paired by seed. The last column is the first evaluation from which the sign stays that of the end, median over the seeds \
         where it changes. {INTERVALS}",
        with_unit(metric)
    ))
}
