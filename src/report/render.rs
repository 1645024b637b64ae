//! Findings to text: Markdown, HTML, LaTeX, CSV, JSON, a terminal's text, or through a user's own template.
//!
//! Owns escaping and the bounds on templates. A template sees [`super::model::Findings`] and nothing else: no file, no clock, no network;
//! its loops and its output are bounded. Escaping follows the ending of the template's name (`.html`, `.md`, `.tex`, `.csv`) in every position.
//! Invariant: an undefined name or field is an error with its line, also inside a filter chain.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};

use super::figure::paint;
use super::model::Findings;
use super::{escape, json, latex, layout, plain, strict};

/// What a report can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables and verdicts for a terminal or a pull request.
    Markdown,
    /// One file with figures, without a single request.
    Html,
    /// For a paper: compiles on its own, and as `\\input`.
    Latex,
    /// For a terminal.
    Text,
    /// All cells of all tables, one a line, in full precision.
    Csv,
    /// [`Findings`] as they are.
    Json,
}

/// A template that does not render.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}{}: {message}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct RenderError {
    /// Name of the template.
    pub template: String,
    /// Line in it, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

const MARKDOWN: &str = include_str!("../../stdlib/reports/report.md");
const HTML: &str = include_str!("../../stdlib/reports/report.html");
const LATEX: &str = include_str!("../../stdlib/reports/report.tex");
const CSV: &str = include_str!("../../stdlib/reports/report.csv");
const SCRIPT: &str = include_str!("../../stdlib/reports/report.js");

/// Steps of the template engine: a report of 10,000 arms takes about a tenth of it.
const FUEL: u64 = 50_000_000;
/// Bytes of a user's template.
const LARGEST_TEMPLATE: usize = 1 << 20;

/// In one of the shipped forms.
pub fn render(findings: &Findings, form: Form) -> Result<String, RenderError> {
    match form {
        Form::Markdown => render_with(findings, "report.md", MARKDOWN),
        Form::Html => render_with(findings, "report.html", HTML),
        Form::Latex => render_with(findings, "report.tex", LATEX),
        Form::Text => Ok(plain::plain(findings)),
        Form::Csv => render_with(findings, "report.csv", CSV),
        Form::Json => json::json(findings).map_err(|error| RenderError {
            template: "report.json".to_owned(),
            line: None,
            message: error.to_string(),
        }),
    }
}

/// Through a template. The ending of `name` decides how text is escaped.
pub fn render_with(findings: &Findings, name: &str, source: &str) -> Result<String, RenderError> {
    let wrong = |line: Option<usize>, message: String| RenderError { template: name.to_owned(), line, message };
    if source.len() > LARGEST_TEMPLATE {
        return Err(wrong(None, format!("the template is larger than {LARGEST_TEMPLATE} bytes")));
    }
    let explain = |error: minijinja::Error| {
        let message = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        };
        wrong(error.line(), message)
    };
    let environment = environment().map_err(explain)?;
    let template = environment.template_from_named_str(name, source).map_err(explain)?;
    let palette: Value = paint::inks().map(|ink| (ink, paint::light(ink))).collect();
    let context = minijinja::context! {
        report => Value::from(Serde(findings)),
        style => Value::from_safe_string(paint::STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        palette => palette,
    };
    template.render(context).map_err(explain)
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(100);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?);
    environment.set_auto_escape_callback(|name| match name.trim_end_matches(".j2").rsplit('.').next() {
        Some("html" | "htm" | "svg" | "xml") => AutoEscape::Html,
        Some("md" | "markdown") => AutoEscape::Custom("markdown".into()),
        Some("tex" | "ltx") => AutoEscape::Custom("latex".into()),
        Some("csv") => AutoEscape::Custom("csv".into()),
        Some("json") => AutoEscape::Json,
        _ => AutoEscape::None,
    });
    strict::install(&mut environment);
    environment.add_filter("fold", |text: String, width: usize| layout::folded(&text, width));
    environment.set_formatter(write);
    Ok(environment)
}

fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    let escape: fn(&str) -> String = match state.auto_escape() {
        AutoEscape::Custom(name) if name == "markdown" => escape::markdown,
        AutoEscape::Custom(name) if name == "latex" => latex::latex,
        AutoEscape::Custom(_) => escape::csv,
        _ => return minijinja::escape_formatter(out, state, value),
    };
    let text = value.to_string();
    let escaped = if value.kind() == ValueKind::String && !value.is_safe() { escape(&text) } else { text };
    out.write_str(&escaped).map_err(minijinja::Error::from)
}
