//! `xrun report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Fault, Manner, Outcome, Which, load, output, story};
use crate::report::{Findings, Form, figure_files, findings, render, render_with};

/// Tables, figures and verdicts from what has run, also half-way
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// Write to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Through a minijinja template of your own; its ending decides how text is escaped (.html, .md, .tex, .csv)
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    template: Option<PathBuf>,
    /// Write figures there as SVG, PDF and PNG files, besides the report: each panel, and panels side by side
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// Exit with 1 if a claim is refuted or undecided
    #[arg(long)]
    check: bool,
}

/// How a report is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Md,
    Text,
    Html,
    Tex,
    Csv,
    Json,
}

pub fn report(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let (story, damaged) = story::gather(&plan, &story::Shelved::new(&plan, &store));
    for reason in &damaged {
        output::note(&format!("warning: {reason}; `xrun run` makes it anew"));
    }
    let findings = findings(&story);
    let text = match &arguments.template {
        Some(path) => through(&findings, path)?,
        None => rendered(&findings, arguments.format)?,
    };
    if let Some(folder) = &arguments.figures {
        std::fs::create_dir_all(folder)
            .map_err(|error| Fault::Machine(format!("cannot make `{}`: {error}", folder.display())))?;
        for figure in &findings.figures {
            for (name, bytes) in figure_files(figure) {
                output::write(&bytes, &folder.join(name))?;
            }
        }
        if cfg!(not(feature = "figures")) {
            output::note("note: figures are written as SVG only; PDF and PNG need the feature `figures`");
        }
    }
    output::deliver(&text, arguments.out.as_deref())?;
    Ok(if arguments.check && !findings.all_supported() { Outcome::Failed } else { Outcome::Done })
}

/// A report in one of its forms.
pub fn rendered(findings: &Findings, format: Format) -> Result<String, Fault> {
    let form = match format {
        Format::Md => Form::Markdown,
        Format::Text => Form::Text,
        Format::Html => Form::Html,
        Format::Tex => Form::Latex,
        Format::Csv => Form::Csv,
        Format::Json => Form::Json,
    };
    render(findings, form).map_err(|error| Fault::Machine(error.to_string()))
}

fn through(findings: &Findings, path: &std::path::Path) -> Result<String, Fault> {
    let cannot = |reason: String| Fault::Input(format!("`{}`: {reason}", path.display()));
    let source = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    render_with(findings, &name, &source).map_err(|error| Fault::Input(error.to_string()))
}
