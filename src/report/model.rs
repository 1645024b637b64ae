//! The data model that templates and `report --format json` see: numbers with their text, ready to be laid out.
//!
//! Owns the shape `xrun.report/1`. A template needs to know nothing else and computes nothing; the same fields serve a user's own
//! template. Invariant: a cell's `text` is a rounding of its `value`, and an aggregate carries its [`Count`]. NaN and the infinities are
//! the texts `NaN`, `inf`, `-inf`.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;

use super::figure::drawing::Panel;
use super::series::Track;
use crate::run::record::Real;

/// Name and version of this shape.
pub const SCHEMA: &str = "xrun.report/1";

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the study.
    pub study: String,
    /// Its `///` text.
    pub doc: Option<String>,
    /// How far it has come.
    pub progress: Progress,
    /// What was done, in paragraphs of prose.
    pub methods: Vec<String>,
    /// What the results do not show, and what could explain them otherwise.
    pub threats: Vec<String>,
    /// One for each arm and seed.
    pub arms: Vec<ArmFinding>,
    /// By a short name, in the order in which they are shown.
    pub tables: IndexMap<String, Table>,
    /// In the order of the study.
    pub claims: Vec<ClaimFinding>,
    /// Values over steps that figures are drawn from, means over seeds.
    pub curves: Vec<Curve>,
    /// Drawings.
    pub figures: Vec<Figure>,
    /// Runs that are not finished.
    pub missing: Vec<Missing>,
}

/// Runs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Progress {
    /// Arms × seeds.
    pub planned: usize,
    /// Whole.
    pub finished: usize,
    /// Stopped being finite.
    pub diverged: usize,
    /// Under way.
    pub partial: usize,
    /// Not begun.
    pub missing: usize,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmFinding {
    /// Name of the arm.
    pub name: String,
    /// Axis to value.
    pub values: IndexMap<String, String>,
    /// The seed.
    pub seed: u64,
    /// `finished`, `partial`, `diverged`, `missing`.
    pub state: &'static str,
    /// Metric to its value after the last step; only what exists.
    pub metrics: IndexMap<String, Real>,
    /// Metric to (step, value); at an event's step the model before it, then the model after it.
    pub series: IndexMap<String, Track>,
    /// Its phases as planned.
    pub phases: Vec<Phase>,
    /// Close looks at it that have been taken.
    pub probes: Vec<Probe>,
}

/// A close look at a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Which.
    pub kind: &'static str,
    /// Steps of the run done on the model that it looked at.
    pub step: u64,
    /// Key of its node.
    pub key: String,
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// Its first step.
    pub from: u64,
    /// Steps of the run done after it.
    pub to: u64,
    /// Key of its node.
    pub key: String,
}

/// How many runs, or seeds, a number rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    /// So many are in it.
    pub used: usize,
    /// So many there should be.
    pub planned: usize,
    /// Left out because the loss stopped being finite.
    pub diverged: usize,
    /// Left out because the run is under way and has not come that far.
    pub partial: usize,
    /// Left out because there is no value and none is on its way.
    pub missing: usize,
}

impl Count {
    /// Why not all: `, 1 diverged, 1 under way, 1 missing`; empty where all are used.
    pub fn absent(&self) -> String {
        let kinds = [(self.diverged, "diverged"), (self.partial, "under way"), (self.missing, "missing")];
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!(", {count} {why}")).collect()
    }
}

impl fmt::Display for Count {
    /// `n = 5`, or `n = 2 of 5, 1 diverged, 1 under way, 1 missing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {}", self.used)?;
        if self.used < self.planned {
            write!(f, " of {}", self.planned)?;
        }
        f.write_str(&self.absent())
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// A heading.
    pub title: String,
    /// What is in it, with units and conventions.
    pub caption: String,
    /// Headings of the columns that name the rows.
    pub stub: Vec<String>,
    /// Headings of the other columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// What most of its averages rest on; empty where there are none. What differs from it is worth a word beside the number.
    pub n_text: String,
    /// Marks of cells whose count is another, in the order of the marks.
    pub notes: Vec<Note>,
    /// The columns by parts that fit on a printed page beside the stub: the first, and the one after the last.
    pub parts: Vec<Part>,
}

/// What a mark beside numbers means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// `a`.
    pub mark: String,
    /// `n = 4 of 5, 1 diverged`.
    pub text: String,
}

/// Columns that stand side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Index of the first.
    pub from: usize,
    /// Index after the last.
    pub to: usize,
}

/// A column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its heading.
    pub label: String,
    /// How its numbers are printed.
    pub format: Format,
    /// `smaller` or `larger` where the rows compete.
    pub better: Option<&'static str>,
}

/// How numbers of a column are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Rounded to its error's digits, alike in all columns of the same family of a table.
    Value {
        /// Columns with the same number round alike.
        family: u8,
        /// Digits after the point where nothing has an error.
        otherwise: usize,
    },
    /// In full.
    Exact,
    /// `3.11B`.
    Short,
    /// `1.24e18`.
    Scientific,
    /// As it is.
    Text,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is, parallel to [`Table::stub`].
    pub head: Vec<String>,
    /// Its cells, parallel to [`Table::columns`].
    pub cells: Vec<Cell>,
    /// Set apart from the rows above: a row of differences.
    pub contrast: bool,
}

/// A number as it is and as it is printed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Cell {
    /// `2.7603 ± 0.0012`; a dash where there is nothing.
    pub text: String,
    /// The number alone: `2.7603`; empty where there is none.
    pub mean_text: String,
    /// What follows the `±`; empty where there is no interval.
    pub half_width_text: String,
    /// `n = 5`; empty where nothing is averaged.
    pub n_text: String,
    /// The mark of a note of its table, where its count is not the usual one.
    pub note: Option<String>,
    /// In full precision.
    pub value: Option<Number>,
    /// Half the 95 % interval.
    pub half_width: Option<Real>,
    /// What it rests on.
    pub n: Option<Count>,
    /// Seed by seed.
    pub per_seed: Vec<(u64, Real)>,
    /// `best` of its column, or `tied` with the best: a paired t-test at 5 % does not tell them apart.
    pub mark: Option<&'static str>,
    /// Where it comes from, in words: step and nodes; for a count, the count in full.
    pub source: Option<String>,
    /// The nodes that it was measured in.
    pub sources: Vec<Source>,
    /// A difference, printed with its sign.
    pub signed: bool,
}

/// A node that a number comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Index into [`Findings::arms`].
    pub run: usize,
    /// Name of the arm.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// Steps done on the model that was looked at.
    pub step: u64,
    /// The node's key.
    pub key: String,
}

/// A number of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// Exact.
    Count(u64),
    /// Measured.
    Real(Real),
}

/// A claim and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimFinding {
    /// Its name.
    pub name: String,
    /// As written.
    pub text: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// left − right, mean over seeds; for an overtaking, at the end.
    pub estimate: Option<Real>,
    /// 95 % interval of the estimate.
    pub interval: Option<[Real; 2]>,
    /// Level of `interval`.
    pub level: f64,
    /// How many seeds are in it.
    pub n: usize,
    /// The same, of how many, and why not all.
    pub count: Count,
    /// `supported`, `refuted`, `undecided`.
    pub verdict: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// Of the test, on its own.
    pub p: Option<Real>,
    /// Corrected for the study's other claims; the verdict rests on it.
    pub p_adjusted: Option<Real>,
    /// Of the exact sign-flip test of the same question, which assumes no normal distribution; the verdict does not rest on it.
    pub p_exact: Option<Real>,
    /// It is the study's primary claim and is not corrected.
    pub primary: bool,
    /// For `~`: the margin and the interval that must lie within it.
    pub equivalence: Option<Equivalence>,
    /// The smallest true difference that would be shown with 80 % probability.
    pub minimum_detectable: Option<Real>,
    /// How far the choice of the documents that are held out moves the estimate; the verdict does not rest on it.
    pub documents: Option<Documents>,
    /// `-0.0332 ± 0.0041`, or a dash.
    pub estimate_text: String,
    /// The estimate alone, or empty.
    pub mean_text: String,
    /// What follows its `±`, or empty.
    pub half_width_text: String,
    /// `0.024`, or empty.
    pub p_adjusted_text: String,
    /// `0.063`, or empty.
    pub p_exact_text: String,
    /// `[-0.0373, -0.0291]`, or empty.
    pub interval_text: String,
    /// `n = 5`.
    pub n_text: String,
    /// `p = 0.012, 0.024 after Holm's correction`, or empty.
    pub p_text: String,
    /// `0.0035`, or empty.
    pub minimum_detectable_text: String,
    /// `± 0.0020 over 4,833 documents`, or empty.
    pub documents_text: String,
    /// Seed by seed.
    pub per_seed: Vec<(u64, Real)>,
    /// Where the estimate comes from, in words: step and nodes.
    pub source: Option<String>,
    /// The nodes that it was measured in.
    pub sources: Vec<Source>,
    /// The interval on a line with zero and margins: a drawing, empty without an estimate.
    pub svg: String,
}

/// The test behind a `~`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Equivalence {
    /// |left − right| must be below it.
    pub margin: f64,
    /// 90 % interval: it lies within ±margin where both one-sided tests reject at 5 %.
    pub interval: Option<[Real; 2]>,
    /// 0.9.
    pub level: f64,
}

/// The noise of evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Documents {
    /// Documents of the holdout that have tokens.
    pub n: usize,
    /// Half the 95 % interval over documents of the difference, paired by document, mean over seeds.
    pub half_width: Real,
}

/// A value over steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What: `validation_ce [post, grow]`, `validation_ce, post − pre, grow`.
    pub name: String,
    /// Step, mean, lower and upper end of the band, number of seeds. At an event's step there may be two.
    pub points: Vec<CurvePoint>,
    /// Steps of events.
    pub events: Vec<u64>,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Steps done.
    pub step: u64,
    /// Mean over seeds.
    pub mean: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
    /// Seeds.
    pub n: usize,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// A short name.
    pub name: String,
    /// A heading.
    pub title: String,
    /// What is drawn, with units and conventions.
    pub caption: String,
    /// Panels: each has a `label`, an `svg` that takes its colours from the page, and a `tikz` picture for LaTeX.
    pub panels: Vec<Panel>,
}

/// A run that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    /// Name of the arm.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// `partial`, `diverged`, `missing`.
    pub state: &'static str,
    /// For people: `diverged at step 1,200`.
    pub reason: String,
}

impl Findings {
    /// Whether every claim is supported: what `report --check` asks.
    pub fn all_supported(&self) -> bool {
        self.claims.iter().all(|claim| claim.verdict == "supported")
    }
}
