//! `xrun check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::world::Files;
use super::{Fault, Manner, Outcome, load, output};
use crate::check;
use crate::study::Study;

/// Check .exp files and say all that is wrong with them
#[derive(Args)]
pub struct Arguments {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How to list what is wrong
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show every value that was filled in, and why
    #[arg(long)]
    defaults: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn check(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    match arguments.format {
        Format::Text => as_text(arguments, manner),
        Format::Json if arguments.defaults => {
            Err(Fault::Input("`--defaults` is a text; `xrun plan --format json` lists defaults for programs".to_owned()))
        }
        Format::Json => as_json(&arguments.files),
    }
}

/// Every file is looked at, also after one that is refused.
fn as_text(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let mut outcome = Outcome::Done;
    for file in &arguments.files {
        match load::checked(file, manner) {
            Ok(checked) if arguments.defaults => output::say(&defaults(&checked.studies))?,
            Ok(checked) if !manner.quiet => output::note(&format!("{}: {}", file.display(), found(&checked.studies))),
            Ok(_) => {}
            Err(fault) => {
                output::complain(&fault.to_string());
                outcome = fault.outcome();
            }
        }
    }
    Ok(outcome)
}

/// `1 study, 7 arms under 3 seeds`.
fn found(studies: &[Study]) -> String {
    let of = |study: &Study| {
        let (arms, seeds) = (study.arms.len(), study.seeds.len());
        let plural = |count: usize, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
        format!("{}: {} under {}", study.name, plural(arms, "arm"), plural(seeds, "seed"))
    };
    match studies {
        [] => "ok, no study".to_owned(),
        studies => format!("ok, {}", studies.iter().map(of).collect::<Vec<_>>().join("; ")),
    }
}

fn defaults(studies: &[Study]) -> String {
    let mut text = String::new();
    for study in studies {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_header(["of", "field", "value", "why"]);
        for filled in &study.defaults {
            table.add_row([&filled.owner, &filled.field, &filled.value, &filled.reason]);
        }
        text.push_str(&format!("filled in for {}\n{}\n", study.name, table.trim_fmt()));
    }
    text
}

fn as_json(files: &[PathBuf]) -> Result<Outcome, Fault> {
    let mut all = Vec::new();
    let mut outcome = Outcome::Done;
    for file in files {
        let root = Files::root(file).map_err(|reason| Fault::Input(format!("`{}`: {reason}", file.display())))?;
        let checked = check::check(&Files, root);
        if let Value::Array(said) = checked.problems.to_json(&checked.sources) {
            all.extend(said);
        }
        if checked.problems.has_errors() {
            outcome = Outcome::Refused;
        }
    }
    let text = serde_json::to_string_pretty(&Value::Array(all)).map_err(|error| Fault::Machine(error.to_string()))?;
    output::say(&(text + "\n"))?;
    Ok(outcome)
}
