//! `xrun metrics`: all that was measured as one table, for other programs.
//!
//! Owns the table's columns. A row is what was measured of a run after so many steps, in a phase. Deliberately computes nothing. Invariant: a value is the
//! one of `metrics.jsonl`, to the bit; what was not measured at a row is empty.

mod parquet;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::story::{Results, Shelved};
use super::{Fault, Manner, Outcome, Which, load, output};
use crate::plan::run::PlannedRun;
use crate::plan::{Key, Plan};
use crate::report::escape::csv;
use crate::run::record::{METRICS, MetricLine, Real};
use crate::study::Metric;

/// All that was measured as one table: a row for each run and step
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Write to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// An object a line
    Jsonl,
    /// Comma-separated, with a head
    Csv,
    /// Columns with types, in a binary file
    Parquet,
}

/// A column's name, and its value at a row.
enum Cell<'a> {
    Text(&'a str),
    Count(u64),
    Real(Option<f64>),
}

pub fn metrics(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let table = Table::new(&plan, &Shelved::new(&plan, &store));
    for reason in &table.damaged {
        output::note(&format!("warning: {reason}; `xrun run` makes it anew"));
    }
    let bytes = match arguments.format {
        Format::Jsonl => table.jsonl().into_bytes(),
        Format::Csv => table.csv().into_bytes(),
        Format::Parquet => parquet::parquet(&table).map_err(|error| Fault::Machine(error.to_string()))?,
    };
    output::deliver_bytes(&bytes, arguments.out.as_deref())?;
    Ok(Outcome::Done)
}

struct Table<'a> {
    plan: &'a Plan,
    /// Of finished nodes and of those under way.
    lines: BTreeMap<&'a Key, Vec<MetricLine>>,
    /// Names of what was measured, those of the catalogue first.
    measured: Vec<String>,
    /// Names of the columns of axes, in the order of the study.
    axes: Vec<String>,
    damaged: Vec<String>,
}

impl<'a> Table<'a> {
    fn new(plan: &'a Plan, results: &dyn Results) -> Self {
        let (mut lines, mut damaged) = (BTreeMap::new(), Vec::new());
        let keys: BTreeSet<&Key> = plan.runs.iter().flat_map(|run| &run.phases).collect();
        for key in keys {
            let read = match results.read(key, METRICS) {
                None => Ok(results.under_way(key)),
                Some(bytes) => bytes.and_then(|bytes| parsed(&bytes)),
            };
            match read {
                Ok(read) => _ = lines.insert(key, read),
                Err(reason) => damaged.push(format!("{key} is damaged: {reason}")),
            }
        }
        let known: BTreeSet<&String> = lines.values().flatten().flat_map(|line| line.values.keys()).collect();
        let place = |name: &str| Metric::ALL.iter().position(|metric| metric.name() == name).unwrap_or(Metric::ALL.len());
        let mut measured: Vec<String> = known.into_iter().cloned().collect();
        measured.sort_by_key(|name| place(name));
        let axes = plan.study.axes.iter().map(|axis| axis.name.clone()).collect();
        Self { plan, lines, measured, axes, damaged }
    }
    /// Names of columns: an axis may be called as a metric is.
    fn columns(&self) -> Vec<String> {
        let first = ["arm".to_owned()].into_iter().chain(self.axes.iter().map(|axis| format!("axis.{axis}")));
        let then = ["seed", "phase", "step"].map(str::to_owned);
        first.chain(then).chain(self.measured.iter().cloned()).collect()
    }
    fn rows<'t>(&'t self, mut each: impl FnMut(Vec<Cell<'t>>)) {
        self.plan.runs.iter().for_each(|run| self.rows_of(run, &mut each));
    }
    fn rows_of<'t>(&'t self, run: &PlannedRun, mut each: impl FnMut(Vec<Cell<'t>>)) {
        for (phase, key) in (1_u64..).zip(&run.phases) {
            for line in self.lines.get(key).into_iter().flatten() {
                each(self.row(run, phase, line));
            }
        }
    }
    fn row<'t>(&'t self, run: &PlannedRun, phase: u64, line: &MetricLine) -> Vec<Cell<'t>> {
        let arm = &self.plan.study.arms[run.arm];
        let axes = self.axes.iter().map(|axis| Cell::Text(arm.values.get(axis).map_or("", String::as_str)));
        let counts = [run.seed, phase, line.step].map(Cell::Count);
        let values = self.measured.iter().map(|name| Cell::Real(line.values.get(name).map(|value| value.0)));
        [Cell::Text(&arm.name)].into_iter().chain(axes).chain(counts).chain(values).collect()
    }
    fn jsonl(&self) -> String {
        let names: Vec<String> = self.columns().iter().map(|name| serde_json::Value::from(name.as_str()).to_string()).collect();
        let mut text = String::new();
        self.rows(|row| {
            let cells = names.iter().zip(row).filter_map(|(name, cell)| {
                let value = match cell {
                    Cell::Text(text) => serde_json::Value::from(text).to_string(),
                    Cell::Count(count) => count.to_string(),
                    Cell::Real(value) => serde_json::to_string(&Real(value?)).unwrap_or_default(),
                };
                Some(format!("{name}:{value}"))
            });
            text.push_str(&format!("{{{}}}\n", cells.collect::<Vec<_>>().join(",")));
        });
        text
    }
    fn csv(&self) -> String {
        let mut text = self.columns().iter().map(|name| csv(name)).collect::<Vec<_>>().join(",") + "\n";
        self.rows(|row| {
            let cells = row.into_iter().map(|cell| match cell {
                Cell::Text(text) => csv(text),
                Cell::Count(count) => count.to_string(),
                // The shortest digits that give the same bits back.
                Cell::Real(value) => value.map_or_else(String::new, |value| format!("{value:?}")),
            });
            text.push_str(&(cells.collect::<Vec<_>>().join(",") + "\n"));
        });
        text
    }
}

fn parsed(bytes: &[u8]) -> Result<Vec<MetricLine>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("`{METRICS}`: {error}"))).collect()
}
