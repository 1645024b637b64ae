//! `xrun status`: what is done, under way, in the queue, failed, missing.

use std::collections::BTreeMap;

use clap::Args;

use super::watch::picture::Picture;
use super::{Fault, Manner, Outcome, Which, load, output};
use crate::plan::{Key, Plan};
use crate::run::record::CHECKPOINT;
use crate::run::replay::Told;
use crate::run::slurm::{self, Task};
use crate::run::{Standing, Store};

/// What is done, under way, in the queue of Slurm, failed, missing
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
}

/// In the order in which they are told.
const WORDS: [&str; 6] = ["done", "running", "queued", "begun", "failed", "missing"];

/// How far a node is, and what is to be said of it.
fn standing(store: &Store, key: &Key, task: Option<&Task>) -> (&'static str, String) {
    // Slurm's word counts where the store has none.
    let of_task = || task.filter(|task| task.state != "COMPLETED").map_or_else(String::new, Task::to_string);
    match store.standing(key) {
        Standing::Done => ("done", String::new()),
        Standing::Running(holder) => ("running", holder.to_string()),
        Standing::Failed(failure) => ("failed", failure.reason),
        Standing::Begun | Standing::Missing if task.is_some_and(Task::is_live) => ("queued", of_task()),
        Standing::Begun => ("begun", of_task()),
        Standing::Missing => ("missing", of_task()),
    }
}

pub fn status(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let queue = slurm::queue(&store).unwrap_or_else(|error| {
        output::note(&format!("warning: {error}"));
        BTreeMap::new()
    });
    let begun = |key: &Key| plan.node(key).is_some() && !store.has(key);
    let picture = Picture::of(&plan, &store, &Told::read(&store.events(), &begun).0, std::iter::empty(), &[]);
    output::say(&told(&plan, &store, &picture, &queue, manner.verbose))?;
    Ok(Outcome::Done)
}

fn told(plan: &Plan, store: &Store, picture: &Picture, queue: &BTreeMap<Key, Task>, all: bool) -> String {
    let nodes = plan.nodes();
    let mut counts: BTreeMap<&str, [usize; WORDS.len()]> = BTreeMap::new();
    let mut lines = String::new();
    for node in &nodes {
        let (said, mut about) = standing(store, &node.key, queue.get(&node.key));
        if let Some(running) = picture.running.iter().find(|running| said == "running" && running.key == node.key.0) {
            let words = running.words();
            about.push_str(&if words.is_empty() { words } else { format!(", {words}") });
        }
        let column = WORDS.iter().position(|word| *word == said).unwrap_or(0);
        counts.entry(node.work.kind()).or_default()[column] += 1;
        if all || !about.is_empty() && said != "queued" {
            let about = if about.is_empty() { about } else { format!(": {about}") };
            lines.push_str(&format!("{said:<8} {} {}{about}\n", &node.key.0[..12.min(node.key.0.len())], node.label));
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
