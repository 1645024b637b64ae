//! Builds tables: cells out of numbers, and their text once all numbers of a column are known.
//!
//! Owns rounding within a table, which rows of a column are marked as its best, and how a wide table is cut for a printed page.
//! Deliberately knows no study. Invariant: columns of one family show the same digits after the point.

use std::collections::BTreeMap;

use crate::run::record::Real;
use crate::stats::{self, Estimate, LEVEL};

use super::model::{Cell, Column, Format, Note, Number, Part, Row, Source, Table};
use super::number;
use super::reading::Paired;

/// What stands where there is nothing.
pub const DASH: &str = "–";
/// A printed page holds about so many characters of a table's small text side by side.
const PAGE: usize = 96;
/// A heading is broken into lines of about so many characters.
pub const HEADING: usize = 13;
/// What names a row is broken into lines of about so many.
pub const STUB: usize = 30;

impl Cell {
    /// The mean over seeds with its interval.
    pub fn mean(paired: &Paired) -> Self {
        let estimate = paired.estimate();
        Self {
            n_text: paired.count.to_string(),
            value: estimate.map(|estimate| Number::Real(Real(estimate.mean))),
            half_width: estimate.and_then(|estimate| estimate.half_width(LEVEL)).map(Real),
            n: Some(paired.count),
            per_seed: paired.values.iter().map(|(seed, value)| (*seed, Real(*value))).collect(),
            source: told(&paired.sources),
            sources: paired.sources.clone(),
            ..Self::default()
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
    fn lay_out(&mut self, format: Format, decimals: usize) {
        if !self.text.is_empty() {
            return;
        }
        let print = |value: f64| match format {
            Format::Value { .. } if self.signed => number::signed(value, decimals),
            Format::Scientific => number::scientific(value),
            _ => number::fixed(value, decimals),
        };
        self.half_width_text = self.half_width.map_or_else(String::new, |half| number::fixed(half.0, decimals));
        self.mean_text = match self.value {
            Some(Number::Count(count)) if format == Format::Short => number::short(count),
            Some(Number::Count(count)) => number::exact(count),
            Some(Number::Real(value)) => print(value.0),
            None => String::new(),
        };
        self.text = match (self.value, self.half_width) {
            (Some(_), Some(_)) => format!("{} ± {}", self.mean_text, self.half_width_text),
            (Some(_), None) => self.mean_text.clone(),
            (None, _) if self.n.is_some_and(|n| n.diverged > 0 && n.partial + n.missing == 0) => "diverged".to_owned(),
            (None, _) => DASH.to_owned(),
        };
    }

    /// Seed by seed what this cell has over another, where both have a value.
    fn over(&self, other: &Self) -> Vec<f64> {
        let paired = |(seed, own): &(u64, Real)| {
            let (_, other) = other.per_seed.iter().find(|(other, _)| other == seed)?;
            Some(own.0 - other.0)
        };
        self.per_seed.iter().filter_map(paired).collect()
    }
}

/// What ends the caption of a table that has marks, where they are bold; a terminal has a star.
pub const BOLD: &str = " Bold: ";
/// What is marked.
pub const MARKED: &str = "the best of its column, and those that a paired t-test at 5 % does not tell from it.";

/// `after step 600; seed 0: node 12ab…`, for people; arms are named where there are several.
pub fn told(sources: &[Source]) -> Option<String> {
    let first = sources.first()?;
    let several = sources.iter().any(|source| source.arm != first.arm);
    let mut text = String::new();
    let mut last: Option<&Source> = None;
    for source in sources {
        let anew = last.is_none_or(|last| last.step != source.step || last.arm != source.arm);
        if anew {
            let arm = if several { format!("{} ", source.arm) } else { String::new() };
            text.push_str(&format!("{}{arm}after step {}: ", if last.is_some() { "; " } else { "" }, number::exact(source.step)));
        } else {
            text.push_str(", ");
        }
        text.push_str(&format!("seed {} node {}", source.seed, source.key.get(..12).unwrap_or(&source.key)));
        last = Some(source);
    }
    Some(text)
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
            n_text: String::new(),
            notes: Vec::new(),
            parts: Vec::new(),
        }
    }
    /// Adds a column.
    pub fn column(&mut self, label: impl Into<String>, format: Format) {
        self.columns.push(Column { label: label.into(), format, better: None });
    }
    /// Adds a column in which the rows compete, where less or more is better at all.
    pub fn contest(&mut self, label: impl Into<String>, format: Format, smaller_is_better: Option<bool>) {
        let better = smaller_is_better.map(|smaller| if smaller { "smaller" } else { "larger" });
        self.columns.push(Column { label: label.into(), format, better });
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
        if self.mark() {
            self.caption.push_str(BOLD);
            self.caption.push_str(MARKED);
        }
        self.n_text = self.usual();
        self.annotate();
        self.parts = self.cut();
        let shows = self
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .any(|cell| cell.value.is_some() || cell.n.is_some_and(|n| n.diverged > 0));
        shows.then_some(self)
    }

    /// Marks the best of each column in which rows compete, and what is not told from it. Nothing is best of one, or under one seed.
    fn mark(&mut self) -> bool {
        let mut marked = false;
        for (place, column) in self.columns.iter().enumerate() {
            let Some(better) = column.better else { continue };
            let sign = if better == "smaller" { 1.0 } else { -1.0 };
            let mean = |row: &Row| match row.cells.get(place)?.value? {
                Number::Real(value) if !row.contrast => Some(sign * value.0),
                _ => None,
            };
            let running: Vec<(usize, f64)> =
                self.rows.iter().enumerate().filter_map(|(at, row)| Some((at, mean(row)?))).collect();
            let Some((best, _)) = running.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let leader = self.rows[best].cells[place].clone();
            if running.len() < 2 || leader.per_seed.len() < 2 {
                continue;
            }
            for (at, _) in running {
                let cell = &mut self.rows[at].cells[place];
                let told_apart = Estimate::of(&cell.over(&leader)).and_then(|estimate| stats::directional(&estimate));
                cell.mark = match told_apart {
                    _ if at == best => Some("best"),
                    Some(evidence) if evidence.p < 1.0 - LEVEL => None,
                    _ => Some("tied"),
                };
            }
            marked = true;
        }
        marked
    }

    /// The count that most averages have.
    fn usual(&self) -> String {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        let averages = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.value.is_some() && !cell.n_text.is_empty());
        averages.for_each(|cell| *times.entry(&cell.n_text).or_default() += 1);
        times.into_iter().max_by_key(|(_, times)| *times).map_or_else(String::new, |(text, _)| text.to_owned())
    }

    /// Gives a mark to every other count, in the order in which they appear.
    fn annotate(&mut self) {
        for cell in self.rows.iter_mut().flat_map(|row| &mut row.cells) {
            if cell.n.is_none() || cell.n_text == self.n_text {
                continue;
            }
            let known = self.notes.iter().find(|note| note.text == cell.n_text).map(|note| note.mark.clone());
            cell.note = Some(known.unwrap_or_else(|| {
                let mark = letters(self.notes.len());
                self.notes.push(Note { mark: mark.clone(), text: cell.n_text.clone() });
                mark
            }));
        }
    }

    /// Columns by parts that fit on a page, of about the same width where there are several.
    fn cut(&self) -> Vec<Part> {
        let fewest = self.parts_within(PAGE);
        let narrower = (PAGE / 3..PAGE).map(|page| self.parts_within(page)).find(|parts| parts.len() == fewest.len());
        narrower.unwrap_or(fewest)
    }

    /// Columns by parts, each so wide at most with the stub, one column at least.
    fn parts_within(&self, page: usize) -> Vec<Part> {
        let long = |text: &str| text.chars().count();
        let word = |text: &str| text.split(' ').map(long).max().unwrap_or_default();
        let heading = |text: &str, most: usize| long(text).min(most.max(word(text)));
        let stub: usize = (0..self.stub.len())
            .map(|place| {
                let heads = self.rows.iter().filter_map(|row| row.head.get(place)).map(|head| heading(head, STUB));
                heads.fold(heading(&self.stub[place], HEADING), usize::max) + 2
            })
            .sum();
        let width = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(place)).map(|cell| {
                let aside = if cell.mean_text.is_empty() && cell.note.is_none() && !cell.n_text.is_empty() {
                    long(&cell.n_text) + 3
                } else {
                    0
                };
                long(&cell.text) + aside
            });
            cells.fold(heading(&self.columns[place].label, HEADING), usize::max) + 2
        };
        let mut parts = vec![Part { from: 0, to: 0 }];
        let mut used = stub;
        for place in 0..self.columns.len() {
            let wide = width(place);
            match parts.last_mut() {
                Some(part) if used + wide <= page || part.from == part.to => part.to = place + 1,
                _ => {
                    parts.push(Part { from: place, to: place + 1 });
                    used = stub;
                }
            }
            used += wide;
        }
        parts
    }
}

/// `a` … `z`, `aa` …
fn letters(place: usize) -> String {
    let letter = char::from(b'a' + (place % 26) as u8);
    if place < 26 { letter.to_string() } else { letters(place / 26 - 1) + &letter.to_string() }
}

/// Text in lines of about so many characters, broken at spaces.
pub fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
