//! How each arm answers the events that grow it (2608.13156, "transition response").

use crate::report::layout::DASH;
use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{At, Paired, Reading, events, grows};
use crate::stats::{Recovery, Response, Windows, median, response};
use crate::study::Metric;

use super::{INTERVALS, primary, value, with_unit};

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let metric = primary(reading)?;
    let loss = reading.every(Metric::TrainLoss);
    let held_out = (metric != Metric::TrainLoss).then_some(metric);
    let mut table = Table::new("Response to growth", &["arm", "grow", "after step"]);
    if let Some(metric) = held_out {
        table.column(format!("jump of {}", with_unit(metric)), value(metric));
    }
    if loss.is_some() {
        let format = Format::Value { family: 1, otherwise: 4 };
        table.column("jump of train_loss", format);
        table.column("area, short", format);
        table.column("area, long", format);
        table.column("windows (steps)", Format::Text);
        table.column("recovery (steps)", Format::Text);
    }
    for (index, arm) in reading.study().arms.iter().enumerate() {
        let Some(run) = reading.runs_of(index).next() else { continue };
        for (number, step) in grows(run).into_iter().enumerate() {
            let mut cells = Vec::new();
            if let Some(metric) = held_out {
                let jump = Paired::gather(&reading.study().seeds, |seed| {
                    Ok(reading.value(index, seed, metric, At::After(step))?
                        - reading.value(index, seed, metric, At::Step(step))?)
                });
                let sources = [At::Step(step), At::After(step)].map(|at| reading.sources(&[index], at, &jump)).concat();
                cells.push(Cell::difference(&Paired { sources, ..jump }));
            }
            if let Some(every) = loss {
                let until = events(run).into_iter().find(|event| *event > step).unwrap_or(run.planned.steps);
                cells.extend(of_training(reading, index, step..until, every));
            }
            table.row(vec![arm.name.clone(), (number + 1).to_string(), number::exact(step)], cells);
        }
    }
    let training = if loss.is_some() {
        " Training loss: the baseline is its mean over the smoothing window before the event; the jump is the first batch after it minus \
         the baseline; an area is the mean over its window of loss − baseline; recovery is the first step after the event at which the \
         smoothed loss (a centred mean) is back at the baseline, median over seeds. Windows are smoothing / short / long: 0.4 %, 2 % and \
         10 % of the phase that follows (200, 1,000 and 5,000 of 50,000 steps), longer where the loss is logged rarely."
    } else {
        " The training loss is not measured, so there is no area and no recovery: `measure train_loss every 1 step`."
    };
    table.finish(format!(
        "Jump: the model just after the event minus the model just before it, on the same data.{training} {INTERVALS}"
    ))
}

fn of_training(reading: &Reading<'_>, arm: usize, phase: std::ops::Range<u64>, every: u64) -> Vec<Cell> {
    let (step, until) = (phase.start, phase.end);
    let windows = Windows::of_phase(until - step, every);
    let seeds = &reading.study().seeds;
    let respond = |seed: u64| {
        let loss = reading.series(arm, seed, Metric::TrainLoss);
        // A run that broke off on the way has neither recovered nor failed to.
        let whole = loss.last().is_some_and(|(last, _)| last + every >= until);
        response(&loss, step, until, windows).filter(|_| whole)
    };
    let responses: Vec<(u64, Option<Response>)> = seeds.iter().map(|seed| (*seed, respond(*seed))).collect();
    let of = |number: fn(&Response) -> f64| {
        let paired = Paired::gather(seeds, |seed| {
            let found = responses.iter().find(|(own, _)| *own == seed).and_then(|(_, response)| response.as_ref());
            found.map(number).ok_or_else(|| reading.why_absent(arm, seed))
        });
        let sources = reading.sources(&[arm], At::After(step), &paired);
        Cell::difference(&Paired { sources, ..paired })
    };
    let jump = of(|response| response.jump);
    let recoveries: Vec<f64> = responses
        .iter()
        .filter_map(|(_, response)| response.as_ref())
        .map(|response| match response.recovery {
            Recovery::After(steps) => steps as f64,
            Recovery::Not => f64::INFINITY,
        })
        .collect();
    let recovery = match median(&recoveries) {
        Some(steps) if steps.is_finite() => number::exact(steps.round() as u64),
        Some(_) => "not recovered".to_owned(),
        None => DASH.to_owned(),
    };
    let back = recoveries.iter().filter(|steps| steps.is_finite()).count();
    let n = jump.n.unwrap_or_default();
    let recovery = Cell {
        n_text: if recoveries.is_empty() { n.to_string() } else { format!("{back} of {} recovered{}", n.planned, n.absent()) },
        ..Cell::words(recovery)
    };
    let spans = Cell::words(format!("{} / {} / {}", windows.smooth, windows.short, windows.long));
    vec![jump, of(|response| response.area_short), of(|response| response.area_long), spans, recovery]
}
