//! `xrun verify`: whether the store holds what was written, and whether doing it again gives the same bytes.

use std::path::PathBuf;

use clap::Args;

use super::worker::Everything;
use super::{Fault, Manner, Outcome, Which, choose, load, output, run};
use crate::plan::node::{Node, Work};
use crate::report::number::plural;
use crate::run::Device;
use crate::run::rerun::Again;
use crate::run::store::{State, Store};
use crate::study::Metric;

/// Hash every file of a study's nodes, and do some of them again
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Do this node (the beginning of its key), or all of this arm, again from what it reads, in a folder of its own, and compare
    #[arg(long, value_name = "NODE|ARM")]
    rerun: Option<String>,
    /// Kill what is done again after these steps of the run, and go on from what that leaves
    #[arg(long, value_name = "STEP", value_delimiter = ',', requires = "rerun")]
    kill_after: Vec<u64>,
    /// Where to train: cpu, cuda, cuda:1
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
}

pub fn verify(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let (mut whole, mut missing, mut damaged) = (0, 0, 0);
    for node in plan.nodes() {
        match store.state(&node.key) {
            State::Finished(_) => whole += 1,
            State::Absent => missing += 1,
            State::Damaged(reason) => {
                damaged += 1;
                output::say(&format!("damaged  {} ({}): {reason}\n", node.label, node.key))?;
            }
        }
    }
    let again = if damaged > 0 { "; `xrun run` makes them anew" } else { "" };
    output::say(&format!(
        "{} hashed: {whole} whole, {damaged} damaged, {missing} not there{again}\n",
        plural(whole + damaged, "node")
    ))?;
    let Some(said) = &arguments.rerun else {
        return Ok(if damaged == 0 { Outcome::Done } else { Outcome::Failed });
    };
    let nodes = choose::nodes(&plan, said)?;
    match redo(&nodes, &store, arguments, load::folder(&arguments.which))? {
        Outcome::Done if damaged > 0 => Ok(Outcome::Failed),
        outcome => Ok(outcome),
    }
}

/// Steps of the run, as units of a node.
fn units(node: &Node, steps: &[u64]) -> Vec<u64> {
    let (start, length) = match &node.work {
        Work::Teacher(phase) | Work::Phase(phase) => (phase.segment.steps.start, phase.segment.length()),
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Probe(_) => {
            (0, u64::MAX)
        }
    };
    let mut units: Vec<u64> = steps.iter().filter_map(|step| step.checked_sub(start)).filter(|at| *at <= length).collect();
    units.sort_unstable();
    units
}

fn redo(nodes: &[Node], store: &Store, arguments: &Arguments, folder: PathBuf) -> Result<Outcome, Fault> {
    let stop = run::heed_signals()?;
    let worker = Everything { folder, device: arguments.device };
    let clocks = [Metric::TokensPerSecond.name()];
    let (mut same, mut apart, mut left) = (0, 0, 0);
    for node in nodes {
        let whole = |key| matches!(store.state(key), State::Finished(_));
        let State::Finished(record) = store.state(&node.key) else {
            left += 1;
            continue;
        };
        if !node.needs.iter().all(whole) {
            left += 1;
            continue;
        }
        let kills = units(node, &arguments.kill_after);
        let again = Again { store, worker: &worker, kills: &kills, clocks: &clocks, stop: &stop };
        let found = again.differences(node, &record).map_err(|failure| Fault::Machine(format!("{}: {failure}", node.label)))?;
        let Some(found) = found else { return Ok(Outcome::Interrupted) };
        let killed = if kills.is_empty() { String::new() } else { format!(", killed {}", plural(kills.len() as u64, "time")) };
        if found.is_empty() {
            same += 1;
            output::say(&format!("same     {} ({}){killed}\n", node.label, node.key))?;
        } else {
            apart += 1;
            output::say(&format!("ANOTHER  {} ({}){killed}: {}\n", node.label, node.key, found.join("; ")))?;
        }
    }
    output::say(&format!(
        "{} done again: {same} the same to the byte, {apart} another, {left} not there or without what they read\n",
        plural(same + apart, "node")
    ))?;
    Ok(if apart == 0 { Outcome::Done } else { Outcome::Failed })
}
