//! `xrun run`: does what is missing, or has Slurm do it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::progress::Terminal;
use super::worker::Everything;
use super::{Fault, Manner, Outcome, Which, load, output, room};
use crate::plan::{Node, Plan};
use crate::run::lock::PATIENCE;
use crate::run::{Device, Options, Store, Summary, execute, machine, slurm};

/// Time between periodic checkpoints: what a kill costs at most. A checkpoint that takes long is made less often, see `train::phase`.
const SAVE_EVERY: Duration = Duration::from_secs(10);

/// Train what is missing of a study
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Only what these arms need, by their values, or a control by its name: '[post, grow]'
    #[arg(long, value_name = "ARM")]
    arm: Option<String>,
    /// Nodes at a time [default: 1; on Slurm, what it gives]; the result does not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Where to train: cpu, cuda, cuda:1
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Say at the end how long steps took, and how much of it they waited for data
    #[arg(long)]
    profile: bool,
    /// Who does it: this machine, or a cluster, to which jobs are submitted
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "local")]
    on: On,
    /// Lines for the head of every Slurm job: #SBATCH options, and what a shell should do before xrun starts
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    Local,
    Slurm,
}

pub fn run(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let asked = Instant::now();
    match arguments.on {
        On::Local if arguments.cluster.is_some() => return Err(Fault::Input("`--cluster` is for `--on slurm`".to_owned())),
        On::Slurm if arguments.profile => return Err(Fault::Input("`--profile` is for runs on this machine".to_owned())),
        On::Local | On::Slurm => {}
    }
    let plan = load::plan(&arguments.which, manner)?;
    if !manner.quiet {
        for warning in &plan.warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
    plan.runnable().map_err(Fault::Input)?;
    let nodes = wanted(&plan, arguments.arm.as_deref())?;
    let store = load::store(&arguments.which);
    let stop = heed_signals()?;
    if arguments.on == On::Slurm {
        return submit(arguments, &plan, &nodes, &store, &stop, manner);
    }
    let jobs = arguments.jobs.map_or(1, NonZeroUsize::get);
    let missing: Vec<&Node> = nodes.iter().filter(|node| !store.has(&node.key)).collect();
    if !missing.is_empty() {
        let said = room::check(&plan, &missing, &store, jobs, arguments.device)?;
        if !manner.quiet {
            said.iter().for_each(|line| output::note(line));
        }
    }
    let worker = Everything { folder: load::folder(&arguments.which), device: arguments.device };
    let course = Course { nodes: &nodes, jobs, asked, profile: arguments.profile };
    carry_out(&course, &store, &worker, &stop, manner)
}

/// What is to be done here.
pub struct Course<'a> {
    pub nodes: &'a [Node],
    /// Nodes at a time.
    pub jobs: usize,
    /// When the program was asked.
    pub asked: Instant,
    /// Say where the time of training went.
    pub profile: bool,
}

/// Does what is missing of these nodes here, and says how it went.
pub fn carry_out(
    course: &Course<'_>,
    store: &Store,
    worker: &Everything,
    stop: &AtomicBool,
    manner: Manner,
) -> Result<Outcome, Fault> {
    let Course { nodes, jobs, asked, profile } = *course;
    let options = Options { jobs, threads: machine::threads(), save_every: SAVE_EVERY, patience: PATIENCE, asked };
    let terminal = Terminal::new(nodes, |key| store.has(key), manner.quiet);
    let summary = execute(nodes, store, worker, &options, stop, &terminal);
    terminal.close();
    let summary = summary.map_err(|error| Fault::Machine(error.to_string()))?;
    if profile {
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

/// Has Slurm do what is missing; comes back once it is submitted.
fn submit(
    arguments: &Arguments,
    plan: &Plan,
    nodes: &[Node],
    store: &Store,
    stop: &AtomicBool,
    manner: Manner,
) -> Result<Outcome, Fault> {
    let cannot = |path: &Path, error: std::io::Error| Fault::Input(format!("`{}`: {error}", path.display()));
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| cannot(path, error));
    let profile = match &arguments.cluster {
        Some(path) => std::fs::read_to_string(path).map_err(|error| cannot(path, error))?,
        None => String::new(),
    };
    let program = std::env::current_exe().map_err(|error| Fault::Machine(format!("cannot tell where xrun is: {error}")))?;
    let request = slurm::Request {
        plan,
        nodes,
        folder: &absolute(&load::folder(&arguments.which))?,
        device: arguments.device,
        program: &program,
        profile: &profile,
        at_once: arguments.jobs.map(NonZeroUsize::get),
    };
    let store = store.absolute().map_err(|error| Fault::Machine(error.to_string()))?;
    let summary = slurm::submit(&store, &request, stop).map_err(|error| Fault::Machine(error.to_string()))?;
    if !manner.quiet {
        let slurm::Summary { found, queued, submitted, jobs, interrupted } = summary;
        let left = nodes.len() - found - queued - submitted;
        let rest = if interrupted { format!("; interrupted, {left} are left to the next run") } else { String::new() };
        output::note(&format!(
            "{submitted} of {} nodes submitted in {jobs} jobs and arrays, {queued} are in the queue already, {found} were there{rest}",
            nodes.len()
        ));
    }
    Ok(if summary.interrupted { Outcome::Interrupted } else { Outcome::Done })
}

/// All nodes, or those of the arms that are meant.
pub fn wanted(plan: &Plan, arm: Option<&str>) -> Result<Vec<Node>, Fault> {
    match arm {
        None => Ok(plan.nodes().into_iter().cloned().collect()),
        Some(said) => Ok(plan.nodes_of_arms(&load::arms(plan, said)?)),
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
