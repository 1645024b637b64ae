//! `xrun run`: does what is missing.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::progress::Terminal;
use super::worker::Everything;
use super::{Fault, Manner, Outcome, Which, load, output, room};
use crate::plan::{Node, Plan};
use crate::run::lock::PATIENCE;
use crate::run::{Device, Options, Summary, execute, machine};

/// Time between periodic checkpoints: what a kill costs at most. A checkpoint that takes long is made less often, see `train::phase`.
const SAVE_EVERY: Duration = Duration::from_secs(10);

/// Train what is missing of a study
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Only what this arm needs, by its values or its name: '[post, grow]'
    #[arg(long, value_name = "ARM")]
    arm: Option<String>,
    /// Nodes at a time; the result does not depend on it
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Where to train: cpu, cuda, cuda:1
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Say at the end how long steps took, and how much of it they waited for data
    #[arg(long)]
    profile: bool,
}

pub fn run(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let asked = Instant::now();
    let plan = load::plan(&arguments.which, manner)?;
    if !manner.quiet {
        for warning in &plan.warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
    plan.runnable().map_err(Fault::Input)?;
    let nodes = wanted(&plan, arguments.arm.as_deref())?;
    let store = load::store(&arguments.which);
    let missing: Vec<&Node> = nodes.iter().filter(|node| !store.has(&node.key)).collect();
    if !missing.is_empty() {
        let said = room::check(&plan, &missing, &store, arguments.jobs.get(), arguments.device)?;
        if !manner.quiet {
            said.iter().for_each(|line| output::note(line));
        }
    }
    let stop = heed_signals()?;
    let (jobs, threads) = (arguments.jobs.get(), machine::threads());
    let options = Options { jobs, threads, save_every: SAVE_EVERY, patience: PATIENCE, asked };
    let worker = Everything { folder: load::folder(&arguments.which), device: arguments.device };
    let terminal = Terminal::new(&nodes, |key| store.has(key), manner.quiet);
    let summary = execute(&nodes, &store, &worker, &options, &stop, &terminal);
    terminal.close();
    let summary = summary.map_err(|error| Fault::Machine(error.to_string()))?;
    if arguments.profile {
        output::note(&terminal.profile());
    }
    if !manner.quiet {
        output::note(&told(&summary, nodes.len(), asked.elapsed()));
        if summary.done > 0 {
            output::note(&terminal.overhead());
        }
    }
    Ok(if summary.interrupted {
        Outcome::Interrupted
    } else if summary.failed.is_empty() && summary.blocked == 0 {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

/// All nodes, or those of one arm.
pub fn wanted(plan: &Plan, arm: Option<&str>) -> Result<Vec<Node>, Fault> {
    match arm {
        None => Ok(plan.nodes().into_iter().cloned().collect()),
        Some(arm) => Ok(plan.nodes_of_arm(&plan.study.arms[load::arm(plan, arm)?].name).unwrap_or_default()),
    }
}

/// The first SIGINT or SIGTERM asks for an end soon, the second ends at once: the store is whole at any moment.
pub fn heed_signals() -> Result<Arc<AtomicBool>, Fault> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Fault::Machine(format!("cannot listen for signals: {error}")))?;
    }
    Ok(stop)
}

fn told(summary: &Summary, nodes: usize, elapsed: Duration) -> String {
    let Summary { done, found, failed, blocked, interrupted } = summary;
    let seconds = elapsed.as_secs_f64();
    let mut text = format!("{done} of {nodes} nodes done in {seconds:.1} s, {found} were there");
    if !failed.is_empty() {
        text.push_str(&format!(", {} failed, {blocked} could not be tried since they need one that failed", failed.len()));
    }
    if *interrupted {
        text.push_str("; interrupted, all progress is kept");
    }
    text
}
