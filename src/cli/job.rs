//! `xrun job`: the task of a Slurm job, called by the scripts that `xrun run --on slurm` writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use signal_hook::consts::SIGUSR1;

use super::worker::Everything;
use super::{Fault, Manner, Outcome, load, output, run};
use crate::run::Store;
use crate::run::slurm::{self, PLAN, Submission};

/// Starts of one job, which a job that makes no headway between two ends would repeat for ever. Assumption: a node takes fewer turns.
const MOST_TURNS: u32 = 100;

/// Do the task of a Slurm job
#[derive(Args)]
pub struct Arguments {
    /// The folder of its submission in the store
    folder: PathBuf,
    /// Its place in it
    job: usize,
}

/// Does one node, and what it needs if that is not there. Told that its time is nearly up, it saves and goes into the queue again.
pub fn job(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let asked = Instant::now();
    let Arguments { folder, job } = arguments;
    let submission = Submission::read(folder).map_err(|error| Fault::Input(error.to_string()))?;
    let store = folder.ancestors().nth(2).map(Store::at).ok_or_else(|| Fault::Input("no store around this folder".to_owned()))?;
    let task = number("SLURM_ARRAY_TASK_ID");
    let none = || Fault::Input(format!("`{}` has no such task of job {job}", folder.display()));
    let key = submission.node(*job, task).ok_or_else(none)?;
    let plan = load::written(&folder.join(PLAN))?;
    let nodes = plan.nodes_for(key).ok_or_else(none)?;
    let stop = run::heed_signals()?;
    let again = Arc::new(AtomicBool::new(false));
    for flag in [&again, &stop] {
        signal_hook::flag::register(SIGUSR1, Arc::clone(flag))
            .map_err(|error| Fault::Machine(format!("cannot listen for signals: {error}")))?;
    }
    let worker = Everything { folder: submission.folder.clone(), device: submission.device.parse().map_err(Fault::Input)? };
    let turns = number("SLURM_RESTART_COUNT").unwrap_or(0);
    output::note(&format!("on {}, turn {}", variable("SLURMD_NODENAME").unwrap_or_default(), turns + 1));
    let course = run::Course { nodes: &nodes, jobs: 1, asked, profile: false };
    let outcome = run::carry_out(&course, &store, &worker, &stop, manner)?;
    if outcome == Outcome::Interrupted && again.load(Ordering::Relaxed) && turns < MOST_TURNS {
        // By its number in the array: the id of an array's last task is that of the array, and would bring all of it back.
        let id = match (variable("SLURM_ARRAY_JOB_ID"), task) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => variable("SLURM_JOB_ID").ok_or_else(|| Fault::Input("SLURM_JOB_ID is not set".to_owned()))?,
        };
        output::note("time is nearly up: the job goes into the queue again");
        slurm::requeue(&id).map_err(|error| Fault::Machine(error.to_string()))?;
    }
    Ok(outcome)
}

/// What Slurm says of this job.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str) -> Option<u32> {
    variable(name)?.parse().ok()
}
