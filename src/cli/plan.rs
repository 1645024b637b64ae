//! `xrun plan`: the dry run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Fault, Manner, Outcome, Which, load, output};
use crate::check::explain;
use crate::plan::{Node, Plan, Why, diff, dot, json, mermaid, text};
use crate::run::History;

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
        let checked = load::traced(&arguments.which.file, manner)?;
        output::deliver(&explain::value(&checked, path).map_err(Fault::Input)?, out)?;
        return Ok(Outcome::Done);
    }
    let plan = load::plan(&arguments.which, manner)?;
    if let Some(other) = &arguments.against {
        let other = load::plan(&Which { file: other.clone(), ..arguments.which.clone() }, manner)?;
        output::deliver(&format!("{}\n", diff::diff(&plan, &other).to_string().trim_end()), out)?;
        return Ok(Outcome::Done);
    }
    let store = load::store(&arguments.which);
    let history = History::of(&store);
    let why = |node: &Node| history.why(&store, node);
    let text = match arguments.format {
        Format::Text => text::text(&plan, &why, manner.verbose),
        Format::Json => pretty(&plan, &why)?,
        Format::Ron => written(&plan)?,
        Format::Dot => dot::dot(&plan),
        Format::Mermaid => mermaid::mermaid(&plan),
    };
    output::deliver(&text, out)?;
    Ok(Outcome::Done)
}

fn pretty(plan: &Plan, why: &dyn Fn(&Node) -> Why) -> Result<String, Fault> {
    let text = serde_json::to_string_pretty(&json::json(plan, why)).map_err(|error| Fault::Machine(error.to_string()))?;
    Ok(text + "\n")
}

fn written(plan: &Plan) -> Result<String, Fault> {
    let text = ron::ser::to_string_pretty(plan, ron::ser::PrettyConfig::default());
    text.map(|text| text + "\n").map_err(|error| Fault::Machine(format!("the plan cannot be written: {error}")))
}
