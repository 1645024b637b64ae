//! Slurm as the engine beyond one machine: submits what is missing of a plan as jobs and job arrays over a shared store.
//!
//! Owns the folder `slurm/` of the store. Each job does one node as a run on one machine would, with its locks and checkpoints, so that jobs,
//! local runs and what is submitted twice do each other no harm. Deliberately trusts Slurm with nothing: whether a node is done is
//! read from the store, and Slurm's view says only what not to submit again. Invariant: what is submitted is recorded before.

pub mod arrays;
pub mod commands;
mod script;
mod size;
pub mod submission;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Device;
use super::lock::{Lock, Observer, PATIENCE, Taken};
use super::store::{State, Store, write_ron};
use crate::plan::Plan;
use crate::plan::node::{Key, Node, Work};
use arrays::{Item, Job, Place};
pub use commands::{SlurmError, Task, requeue};
use script::Common;
use size::Size;
pub use submission::{PLAN, Submission};

/// What is to be submitted.
pub struct Request<'a> {
    /// The plan, which the jobs will read from the store.
    pub plan: &'a Plan,
    /// Those of its nodes that are wanted, each after what it needs.
    pub nodes: &'a [Node],
    /// The folder of the study's file, as a path that the cluster knows.
    pub folder: &'a Path,
    /// Where jobs train.
    pub device: Device,
    /// xrun, as a path that the cluster knows.
    pub program: &'a Path,
    /// Lines for the head of every script, after the options of our own.
    pub profile: &'a str,
    /// Tasks of an array at a time.
    pub at_once: Option<usize>,
}

/// How it went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Nodes that were done.
    pub found: usize,
    /// Nodes that jobs in the queue are about already.
    pub queued: usize,
    /// Nodes submitted now.
    pub submitted: usize,
    /// Jobs and arrays that they are in.
    pub jobs: usize,
    /// Stopped on request before all were submitted.
    pub interrupted: bool,
}

/// Submits what is neither done nor in the queue.
pub fn submit(store: &Store, request: &Request<'_>, stop: &AtomicBool) -> Result<Summary, SlurmError> {
    let most = commands::most_tasks()?;
    store.create()?;
    let root = store.slurm();
    std::fs::create_dir_all(&root).map_err(io("cannot create", &root))?;
    let _lock = match Lock::take(&root, &Observer::new(PATIENCE)).map_err(io("cannot lock", &root))? {
        Taken::Ours(lock) => lock,
        Taken::Held(holder) => return Err(SlurmError::Busy(holder)),
    };
    let seen = queue(store)?;
    let mut summary = Summary::default();
    let mut queued = BTreeMap::new();
    let mut items = Vec::new();
    for node in request.nodes {
        if let State::Finished(_) = store.state(&node.key) {
            summary.found += 1;
        } else if let Some(task) = seen.get(&node.key).filter(|task| task.is_live()) {
            queued.insert(node.key.clone(), Place { job: Job::Queued(task.job), task: task.task });
            summary.queued += 1;
        } else {
            let size = request.plan.cost(&node.key).map_or_else(Size::default, Size::of);
            items.push(Item { key: &node.key, kind: node.work.kind(), needs: &node.needs, follows: follows(node), size });
        }
    }
    if items.is_empty() {
        return Ok(summary);
    }
    let arrays = arrays::lay(&items, &queued, most);
    let made = tempfile::Builder::new()
        .prefix("job-")
        .rand_bytes(8)
        .tempdir_in(&root)
        .map_err(io("cannot create a folder in", &root))?;
    let mut submission = Submission::new(&request.plan.study.name, request.folder, &request.device.to_string(), &arrays);
    write_ron(&made.path().join(PLAN), request.plan, "the plan")?;
    submission.write(made.path())?;
    // From here on Slurm may know of it.
    let folder = made.keep();
    let token = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Request { program, profile, at_once, device, .. } = *request;
    let common = Common { program, folder: &folder, gpu: device != Device::Cpu, profile, at_once };
    for (number, array) in arrays.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            summary.interrupted = true;
            break;
        }
        let id = |job| match job {
            Job::Queued(id) => Some(id),
            Job::New(place) => submission.jobs.get(place).and_then(|job| job.id),
        };
        let options = common.options(&script::name(&submission.study, &token, number), array, &id);
        let submitted = common.script(number, array).and_then(|text| {
            let path = folder.join(script::file(number));
            std::fs::write(&path, text).map_err(io("cannot write", &path))?;
            commands::submit(&options, &script::file(number), &folder)
        });
        let id =
            submitted.map_err(|reason| SlurmError::Partly { submitted: number, jobs: arrays.len(), reason: Box::new(reason) })?;
        if let Some(job) = submission.jobs.get_mut(number) {
            job.id = Some(id);
        }
        submission.write(&folder)?;
        summary.jobs += 1;
        summary.submitted += array.tasks.len();
    }
    Ok(summary)
}

/// What Slurm remembers of the nodes of a store: of each the task that may still run, or else the last. Asks nobody where nothing was ever submitted.
pub fn queue(store: &Store) -> Result<BTreeMap<Key, Task>, SlurmError> {
    Ok(tasks(store)?.into_iter().map(|(_, key, task)| (key, task)).collect())
}

/// Cancels what is in the queue for a store, of one study or of all; how many tasks there were. What runs saves, and can be gone on from.
pub fn cancel(store: &Store, study: Option<&str>) -> Result<usize, SlurmError> {
    let mut tasks = tasks(store)?;
    tasks.retain(|(of, _, task)| !task.is_over() && study.is_none_or(|study| study == of));
    let jobs: BTreeSet<u64> = tasks.iter().map(|(_, _, task)| task.job).collect();
    commands::cancel(&jobs.into_iter().collect::<Vec<_>>())?;
    Ok(tasks.len())
}

/// Tasks of a store with their study and their node: those that may still run last, and of these and the others the latest last.
fn tasks(store: &Store) -> Result<Vec<(String, Key, Task)>, SlurmError> {
    let submissions = Submission::all(store)?;
    if submissions.is_empty() {
        return Ok(Vec::new());
    }
    let mut seen = commands::queue()?;
    let known: BTreeSet<u64> = seen.iter().map(|task| task.job).collect();
    let jobs = submissions.values().flat_map(|submission| &submission.jobs);
    let unfinished = jobs.filter(|job| job.tasks.values().any(|key| !store.has(key)));
    let forgotten: Vec<u64> = unfinished.filter_map(|job| job.id).filter(|id| !known.contains(id)).collect();
    if !forgotten.is_empty() {
        seen.extend(commands::ended(&forgotten));
    }
    let ours = |task: Task| {
        let (token, job) = script::place(&task.name)?;
        let submission = submissions.get(token)?;
        Some((submission.study.clone(), submission.node(job, task.task)?.clone(), task))
    };
    let mut tasks: Vec<_> = seen.into_iter().filter_map(ours).collect();
    tasks.sort_by_key(|(_, _, task)| (task.is_live(), task.job));
    Ok(tasks)
}

/// The need that a node has for itself, or shares with few.
fn follows(node: &Node) -> Option<&Key> {
    match &node.work {
        Work::Phase(phase) | Work::Teacher(phase) => phase.parent.as_ref(),
        Work::Probe(probe) => Some(&probe.phase),
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) => None,
    }
}

fn io<'a>(context: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> SlurmError + 'a {
    move |source| SlurmError::Io { context, path: path.into(), source }
}
