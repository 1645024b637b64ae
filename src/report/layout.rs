//! Builds tables: cells out of numbers, and their text once all numbers of a column are known.
//!
//! Owns rounding within a table. Deliberately knows no study. Invariant: columns of one family show the same digits after the point.

use std::collections::BTreeMap;

use crate::run::record::Real;
use crate::stats::LEVEL;

use super::model::{Cell, Column, Format, Number, Row, Table};
use super::number;
use super::reading::Paired;

/// What stands where there is nothing.
pub const DASH: &str = "–";

impl Cell {
    /// The mean over seeds with its interval.
    pub fn mean(paired: &Paired) -> Self {
        let estimate = paired.estimate();
        Self {
            text: String::new(),
            n_text: paired.count.to_string(),
            value: estimate.map(|estimate| Number::Real(Real(estimate.mean))),
            half_width: estimate.and_then(|estimate| estimate.half_width(LEVEL)).map(Real),
            n: Some(paired.count),
            per_seed: paired.values.iter().map(|(seed, value)| (*seed, Real(*value))).collect(),
            source: None,
            signed: false,
        }
    }
    /// The mean over seeds of a difference.
    pub fn difference(paired: &Paired) -> Self {
        Self { signed: true, ..Self::mean(paired) }
    }
    /// An exact number.
    pub fn count(count: impl Into<Option<u64>>) -> Self {
        let of = |count| Self { value: Some(Number::Count(count)), source: Some(number::exact(count)), ..Self::default() };
        count.into().map_or_else(Self::default, of)
    }
    /// A number that is not averaged.
    pub fn real(value: f64) -> Self {
        Self { value: Some(Number::Real(Real(value))), ..Self::default() }
    }
    /// Words.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
    /// Nothing, on purpose: no such number is asked for here.
    pub fn blank() -> Self {
        Self::words(" ")
    }
    /// With where it comes from.
    pub fn from(mut self, source: Option<String>) -> Self {
        self.source = source;
        self
    }

    fn lay_out(&mut self, format: Format, decimals: usize) {
        if !self.text.is_empty() {
            return;
        }
        let print = |value: f64| match format {
            Format::Value { .. } if self.signed => number::signed(value, decimals),
            Format::Scientific => number::scientific(value),
            _ => number::fixed(value, decimals),
        };
        self.text = match (self.value, self.half_width) {
            (Some(Number::Count(count)), _) if format == Format::Short => number::short(count),
            (Some(Number::Count(count)), _) => number::exact(count),
            (Some(Number::Real(mean)), Some(half)) => format!("{} ± {}", print(mean.0), number::fixed(half.0, decimals)),
            (Some(Number::Real(value)), None) => print(value.0),
            (None, _) if self.n.is_some_and(|n| n.diverged > 0 && n.missing == 0) => "diverged".to_owned(),
            (None, _) => DASH.to_owned(),
        };
    }
}

impl Table {
    /// An empty table.
    pub fn new(title: impl Into<String>, stub: &[&str]) -> Self {
        Self {
            title: title.into(),
            caption: String::new(),
            stub: stub.iter().map(|label| (*label).to_owned()).collect(),
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }
    /// Adds a column.
    pub fn column(&mut self, label: impl Into<String>, format: Format) {
        self.columns.push(Column { label: label.into(), format });
    }
    /// Adds a row.
    pub fn row(&mut self, head: Vec<String>, cells: Vec<Cell>) {
        self.rows.push(Row { head, cells, contrast: false });
    }
    /// Adds a row of differences, set apart.
    pub fn contrast(&mut self, head: Vec<String>, cells: Vec<Cell>) {
        self.rows.push(Row { head, cells, contrast: true });
    }
    /// Rounds and prints. `None` for a table that has nothing to show.
    pub fn finish(mut self, caption: impl Into<String>) -> Option<Self> {
        self.caption = caption.into();
        let mut families: BTreeMap<u8, (Vec<f64>, usize)> = BTreeMap::new();
        for (place, column) in self.columns.iter().enumerate() {
            if let Format::Value { family, otherwise } = column.format {
                let (errors, digits) = families.entry(family).or_default();
                *digits = (*digits).max(otherwise);
                errors.extend(self.rows.iter().filter_map(|row| row.cells.get(place)?.half_width).map(|half| half.0));
            }
        }
        for (place, column) in self.columns.iter().enumerate() {
            let decimals = match column.format {
                Format::Value { family, .. } => {
                    families.get(&family).map_or(0, |(errors, otherwise)| number::decimals(errors, *otherwise))
                }
                _ => 0,
            };
            for cell in self.rows.iter_mut().filter_map(|row| row.cells.get_mut(place)) {
                cell.lay_out(column.format, decimals);
            }
        }
        let shows = self
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .any(|cell| cell.value.is_some() || cell.n.is_some_and(|n| n.diverged > 0));
        shows.then_some(self)
    }
}
