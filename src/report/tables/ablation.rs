//! `report ablation(rows: …, columns: …)`: a metric at the end, over the axes asked for, averaged over the others.

use crate::report::model::{Cell, Table};
use crate::report::reading::{At, Reading};
use crate::study::{Ablation, Axis};

use super::{INTERVALS, contest, primary, value, with_unit};

pub fn table(reading: &Reading<'_>, asked: &Ablation) -> Option<Table> {
    let metric = primary(reading)?;
    let find = |name: &String| reading.study().axes.iter().find(|axis| axis.name == *name);
    let rows: Vec<&Axis> = asked.rows.iter().filter_map(find).collect();
    let columns: Vec<&Axis> = asked.columns.iter().filter_map(find).collect();
    let stub: Vec<&str> = rows.iter().map(|axis| axis.name.as_str()).collect();
    let title = match (asked.rows.is_empty(), asked.columns.is_empty()) {
        (_, true) => format!("{} by {}", metric.name(), asked.rows.join(", ")),
        (true, _) => format!("{} by {}", metric.name(), asked.columns.join(", ")),
        _ => format!("{} by {} and {}", metric.name(), asked.rows.join(", "), asked.columns.join(", ")),
    };
    let mut table = Table::new(title, &stub);
    let across = combinations(&columns);
    for choice in &across {
        let label: Vec<&str> = choice.iter().map(|(_, label)| *label).collect();
        let label = if label.is_empty() { metric.name().to_owned() } else { label.join(", ") };
        contest(&mut table, label, metric, value(metric));
    }
    for down in combinations(&rows) {
        let cells = across.iter().map(|choice| {
            let arms = reading.cells(&[down.as_slice(), choice.as_slice()].concat());
            if arms.is_empty() {
                return Cell::blank();
            }
            Cell::mean(&reading.over_seeds(&arms, metric, At::End))
        });
        table.row(down.iter().map(|(_, label)| (*label).to_owned()).collect(), cells.collect());
    }
    let over: Vec<&str> = reading
        .study()
        .axes
        .iter()
        .map(|axis| axis.name.as_str())
        .filter(|name| !asked.rows.iter().chain(&asked.columns).any(|own| own == name))
        .collect();
    let averaged = if over.is_empty() { String::new() } else { format!(" Averaged over {}.", over.join(", ")) };
    table.finish(format!("{} after the last step.{averaged} {INTERVALS}", with_unit(metric)))
}

/// Every choice of one value for each axis, the last axis fastest.
fn combinations<'a>(axes: &[&'a Axis]) -> Vec<Vec<(&'a str, &'a str)>> {
    axes.iter().fold(vec![Vec::new()], |choices, axis| {
        let with = |choice: &Vec<(&'a str, &'a str)>| -> Vec<Vec<(&'a str, &'a str)>> {
            axis.values.iter().map(|value| [choice.as_slice(), &[(axis.name.as_str(), value.label.as_str())]].concat()).collect()
        };
        choices.iter().flat_map(with).collect()
    })
}
