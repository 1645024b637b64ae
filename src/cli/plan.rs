//! `xrun plan`: the dry run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Fault, Manner, Outcome, Which, load, output};
use crate::check::{Origin, Provenance};
use crate::plan::{Key, Plan, diff, dot, json, mermaid, text};
use crate::source::Sources;

/// Say exactly what a study will train and cost; trains and writes nothing
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Say what differs from another plan (.ron) or study (.exp)
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["format", "explain"])]
    against: Option<PathBuf>,
    /// Say which words gave a value: `training.lr`
    #[arg(long, value_name = "PATH", conflicts_with = "format")]
    explain: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Ron,
    Dot,
    Mermaid,
}

pub fn plan(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let out = arguments.out.as_deref();
    if let Some(path) = &arguments.explain {
        let checked = load::checked(&arguments.which.file, manner)?;
        output::deliver(&explained(path, &checked.origins, &checked.sources)?, out)?;
        return Ok(Outcome::Done);
    }
    let plan = load::plan(&arguments.which, manner)?;
    if let Some(other) = &arguments.against {
        let other = load::plan(&Which { file: other.clone(), ..arguments.which.clone() }, manner)?;
        output::deliver(&format!("{}\n", diff::diff(&plan, &other).to_string().trim_end()), out)?;
        return Ok(Outcome::Done);
    }
    let store = load::store(&arguments.which);
    let cached = |key: &Key| store.has(key);
    let text = match arguments.format {
        Format::Text => text::text(&plan, &cached),
        Format::Json => pretty(&plan, &cached)?,
        Format::Ron => written(&plan)?,
        Format::Dot => dot::dot(&plan),
        Format::Mermaid => mermaid::mermaid(&plan),
    };
    output::deliver(&text, out)?;
    Ok(Outcome::Done)
}

fn pretty(plan: &Plan, cached: &dyn Fn(&Key) -> bool) -> Result<String, Fault> {
    let text = serde_json::to_string_pretty(&json::json(plan, cached)).map_err(|error| Fault::Machine(error.to_string()))?;
    Ok(text + "\n")
}

fn written(plan: &Plan) -> Result<String, Fault> {
    let text = ron::ser::to_string_pretty(plan, ron::ser::PrettyConfig::default());
    text.map(|text| text + "\n").map_err(|error| Fault::Machine(format!("the plan cannot be written: {error}")))
}

/// Where a value came from, for every study and arm that has it.
fn explained(path: &str, origins: &[Provenance], sources: &Sources) -> Result<String, Fault> {
    let mut text = String::new();
    for found in origins.iter().filter(|origin| origin.path == path) {
        let whom = found.arms.as_ref().map_or_else(String::new, |arms| format!(" for {arms}"));
        let origin = match &found.origin {
            Origin::Written(span) => {
                let source = sources.get(span.file);
                let place = source.place(span.start);
                format!("written at {}:{}:{}", source.name, place.line, place.column)
            }
            Origin::Default(reason) => format!("a default: {reason}"),
        };
        text.push_str(&format!("{}{whom}: {path} = {}\n  {origin}\n", found.study, found.value));
    }
    if !text.is_empty() {
        return Ok(text);
    }
    let known = origins.iter().map(|origin| origin.path.as_str());
    let hint = crate::diagnostic::guess(path, known).map_or_else(String::new, |guess| format!("; {guess}"));
    Err(Fault::Input(format!("nothing gives a value to `{path}`{hint}")))
}
