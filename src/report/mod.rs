//! What came out: tables, figures and verdicts from the records of a study.
//!
//! ```text
//! Story ──findings──▶ Findings ──render──▶ Markdown, HTML, LaTeX, CSV, JSON, text
//! ```
//!
//! Owns the choice of contrasts, the layout of tables and figures, and how a number is printed. Deliberately knows no store, no
//! plan and no tensor: whoever gathers a [`Story`] does. Invariant: a report is a pure function of its story, and every number in
//! it that is an aggregate says how many runs it rests on and why others are left out.

mod card;
mod claims;
mod compare;
mod curves;
mod documents;
pub mod escape;
mod figure;
mod findings;
mod json;
pub mod latex;
mod layout;
mod methods;
pub mod model;
pub mod number;
mod plain;
mod reading;
pub mod render;
mod series;
pub mod story;
mod strict;
mod tables;
mod threats;

pub use card::{Exhibit, card};
pub use compare::differences;
pub use figure::files as figure_files;
pub use findings::findings;
pub use model::Findings;
pub use render::{Form, RenderError, render, render_with};
pub use series::{Measured, Part};
pub use story::{Evaluated, Planned, ProbeStory, RunState, RunStory, Story, TeacherStory};
