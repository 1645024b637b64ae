//! `xrun status`: what is done, under way, failed, missing.

use std::collections::BTreeMap;

use clap::Args;

use super::watch::picture::{Picture, Running};
use super::{Fault, Manner, Outcome, Which, load, output};
use crate::plan::{Key, Node, Plan};
use crate::run::record::CHECKPOINT;
use crate::run::replay::Told;
use crate::run::{Standing, Store};

/// What is done, under way, failed, missing
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
}

/// In the order in which they are told.
const WORDS: [&str; 5] = ["done", "running", "begun", "failed", "missing"];

fn word(store: &Store, node: &Node) -> &'static str {
    match store.standing(&node.key) {
        Standing::Done => "done",
        Standing::Running(_) => "running",
        Standing::Failed(_) => "failed",
        Standing::Begun => "begun",
        Standing::Missing => "missing",
    }
}

pub fn status(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let begun = |key: &Key| plan.node(key).is_some() && !store.has(key);
    let picture = Picture::of(&plan, &store, &Told::read(&store.events(), &begun).0, std::iter::empty(), &[]);
    output::say(&told(&plan, &store, &picture, manner.verbose))?;
    Ok(Outcome::Done)
}

fn told(plan: &Plan, store: &Store, picture: &Picture, all: bool) -> String {
    let nodes = plan.nodes();
    let mut counts: BTreeMap<&str, [usize; WORDS.len()]> = BTreeMap::new();
    let mut lines = String::new();
    for node in &nodes {
        let said = word(store, node);
        let column = WORDS.iter().position(|word| *word == said).unwrap_or(0);
        counts.entry(node.work.kind()).or_default()[column] += 1;
        let reason = match store.standing(&node.key) {
            Standing::Failed(failure) => format!(": {}", failure.reason),
            Standing::Running(holder) => {
                let running = picture.running.iter().find(|running| running.key == node.key.0);
                let words = running.map(Running::words).filter(|words| !words.is_empty());
                format!(": {holder}{}", words.map_or_else(String::new, |words| format!(", {words}")))
            }
            _ => String::new(),
        };
        if all || said == "running" || said == "failed" {
            lines.push_str(&format!("{said:<8} {} {}{reason}\n", &node.key.0[..12.min(node.key.0.len())], node.label));
        }
    }
    for run in &plan.runs {
        for saved in run.saved() {
            let file = store.node(saved.phase).join(CHECKPOINT);
            let place = if store.has(saved.phase) { file.display().to_string() } else { "not yet".to_owned() };
            lines.push_str(&format!(
                "saved    {:?} at step {} of {}, seed {}: {place}\n",
                saved.name, saved.step, run.name, run.seed
            ));
        }
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(std::iter::once("").chain(WORDS));
    for (kind, counts) in counts {
        table.add_row(std::iter::once(kind.to_owned()).chain(counts.iter().map(|count| match count {
            0 => String::new(),
            count => count.to_string(),
        })));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    format!("{}\n{}\n{lines}", picture.line(), table.trim_fmt())
}
