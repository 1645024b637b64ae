//! The tables, one file each: which numbers stand in which rows and columns, and when there is such a table at all.
//!
//! Owns the contrasts of the study. Deliberately knows no rounding ([`super::layout`]) and no output format. Each function returns
//! `None` where the story has no data for its table.

mod ablation;
mod arms;
mod block_removal;
mod boundary_rms;
mod budget;
mod controls;
mod crossover;
mod first_phase;
mod freeze;
mod gradient_norms;
mod identity;
mod interaction;
mod logit_lens;
mod transition;

use indexmap::IndexMap;

use crate::study::{Axis, Metric, Study};

use super::model::{Format, Table};
use super::reading::Reading;

pub use block_removal::blocks as removals;
pub use boundary_rms::{Of, moments, number_of, regular, structural};
pub use gradient_norms::layers as layer_gradients;
pub use logit_lens::boundaries as lens;

/// All tables of a story that it has data for.
pub fn all(reading: &Reading<'_>) -> IndexMap<String, Table> {
    let mut tables = IndexMap::new();
    let mut add = |name: &str, table: Option<Table>| {
        if let Some(table) = table {
            tables.insert(name.to_owned(), table);
        }
    };
    for (place, asked) in reading.study().reports.iter().enumerate() {
        let name = if place == 0 { "ablation".to_owned() } else { format!("ablation_{}", place + 1) };
        add(&name, ablation::table(reading, asked));
    }
    add("interaction", interaction::table(reading));
    add("crossover", crossover::table(reading));
    add("controls", controls::table(reading));
    add("freeze", freeze::table(reading));
    add("first_phase", first_phase::table(reading));
    add("transition", transition::table(reading));
    add("block_removal", block_removal::table(reading));
    add("identity", identity::table(reading));
    add("logit_lens", logit_lens::table(reading));
    add("boundary_rms", boundary_rms::table(reading));
    add("gradient_norms", gradient_norms::table(reading));
    add("arms", arms::table(reading));
    add("budgets", budget::table(reading));
    tables
}

/// The axis over placements.
pub fn placements(study: &Study) -> Option<&Axis> {
    study.axes.iter().find(|axis| axis.fields.iter().any(|field| field.rsplit('.').next() == Some("placement")))
}

/// The axis over schedules.
pub fn schedules(study: &Study) -> Option<&Axis> {
    study.axes.iter().find(|axis| axis.fields.iter().any(|field| field == "schedule"))
}

/// The metric that tables are made of: cross entropy on the holdout, else the first that is measured.
pub fn primary(reading: &Reading<'_>) -> Option<Metric> {
    reading.metrics().first().copied()
}

/// `validation_ce (nats/token)`.
pub fn with_unit(metric: Metric) -> String {
    match metric.unit() {
        "" => metric.name().to_owned(),
        unit => format!("{} ({unit})", metric.name()),
    }
}

/// How many digits a metric is printed with where nothing tells.
pub fn digits(metric: Metric) -> usize {
    match metric {
        Metric::TokensPerSecond => 0,
        Metric::Perplexity => 3,
        _ => 4,
    }
}

/// How a metric is printed.
fn value(metric: Metric) -> Format {
    Format::Value { family: 0, otherwise: digits(metric) }
}

/// How a metric is printed in a column of `table` in which rows compete.
fn contest(table: &mut Table, label: String, metric: Metric, format: Format) {
    table.contest(label, format, metric.smaller_is_better());
}

/// Said under every table of means.
const INTERVALS: &str = "Mean over seeds ± half-width of its 95 % Student interval; n counts seeds.";
