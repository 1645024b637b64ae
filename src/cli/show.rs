//! `xrun show`: what is known of a node, or of the nodes of an arm.

use std::path::Path;

use clap::Args;

use super::{Fault, Manner, Outcome, Which, choose, load, output};
use crate::plan::text::bytes;
use crate::plan::{Node, Plan};
use crate::report::number::exact;
use crate::run::record::{METRICS, MetricLine};
use crate::run::store::{Standing, State, Store};

/// What is known of a node, or of the nodes of an arm: record, files, last metrics, failure
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// The beginning of a node's key, arms by their values or a control by its name, or the name of a saved checkpoint
    #[arg(value_name = "NODE|ARM")]
    said: String,
}

pub fn show(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let nodes = choose::nodes(&plan, &arguments.said)?;
    let pages: Vec<String> = nodes.iter().map(|node| page(&plan, &store, node)).collect();
    output::say(&pages.join("\n"))?;
    Ok(Outcome::Done)
}

fn page(plan: &Plan, store: &Store, node: &Node) -> String {
    let mut text = format!("{}\n  key      {}\n  kind     {}\n", node.label, node.key, node.work.kind());
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<8} {value}\n"));
    let standing = store.standing(&node.key);
    match (&standing, store.state(&node.key)) {
        (_, State::Damaged(reason)) => line("state", format!("damaged: {reason}")),
        (Standing::Done, _) => line("state", "done".to_owned()),
        (Standing::Running(holder), _) => line("state", format!("running: {holder}")),
        (Standing::Begun, _) => line("state", "begun; the next run goes on from there".to_owned()),
        (Standing::Missing, _) => line("state", "missing".to_owned()),
        (Standing::Failed(failure), _) => line("state", format!("failed: {}", failure.reason)),
    }
    for need in &node.needs {
        let label = plan.node(need).map_or("?", |node| node.label.as_str());
        let is = if store.has(need) { "done" } else { "not done" };
        line("reads", format!("{} {label}: {is}", &need.0[..need.0.len().min(12)]));
    }
    let folder = match &standing {
        Standing::Done => store.node(&node.key),
        _ => store.work(&node.key),
    };
    if let State::Finished(record) = store.state(&node.key) {
        for (name, count) in &record.counts {
            line("counted", format!("{name} {}", exact(*count)));
        }
        for (name, hash) in &record.files {
            let size = std::fs::metadata(folder.join(name)).map(|file| file.len()).ok();
            line("file", format!("{name}  {}  blake3 {}", bytes(size), &hash[..hash.len().min(16)]));
        }
    }
    if let Some(last) = last(&folder) {
        let values: Vec<String> = last.values.iter().map(|(name, value)| format!("{name} {}", value.0)).collect();
        line("metrics", format!("step {}: {}", last.step, values.join(", ")));
    }
    text
}

/// The last whole line of the metrics.
fn last(folder: &Path) -> Option<MetricLine> {
    let text = std::fs::read_to_string(folder.join(METRICS)).ok()?;
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}
