//! Slurm's own programs, called and read.
//!
//! Nothing goes through a shell. What they print is read by fields of our choosing, which are the same in every version.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::lock::Holder;
use super::super::store::StoreError;

/// Why Slurm could not be asked, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// It cannot be started.
    #[error("cannot start `{program}`: {source}; is Slurm installed on this machine?")]
    Absent {
        /// One of Slurm's programs.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It said no.
    #[error("`{program}` failed: {said}")]
    Refused {
        /// One of Slurm's programs.
        program: &'static str,
        /// What it said.
        said: String,
    },
    /// The submission ended half-way.
    #[error(
        "{submitted} of {jobs} jobs are submitted, then {reason}; the same command submits the rest, `xrun cancel` cancels what is submitted"
    )]
    Partly {
        /// Jobs and arrays that Slurm has.
        submitted: usize,
        /// Those wanted.
        jobs: usize,
        /// Why.
        reason: Box<SlurmError>,
    },
    /// Another process submits into this store just now.
    #[error("{} submits into this store just now", .0.as_ref().map_or_else(|| "another process".to_owned(), Holder::to_string))]
    Busy(Option<Holder>),
    /// A path that cannot stand in a script.
    #[error("`{}` is no Unicode text, which a job's script must be", .0.display())]
    Path(PathBuf),
    /// What was written down about jobs cannot be used.
    #[error("`{}`: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk, on the way to the store.
    #[error("{context} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        context: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A task in Slurm's queue, or that was there a while ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Id of the job, or of its array.
    pub job: u64,
    /// Number in the array, if it is one.
    pub task: Option<u32>,
    /// The job's name.
    pub name: String,
    /// `PENDING`, `RUNNING`, …
    pub state: String,
    /// Why it is in that state, `None` included.
    pub reason: String,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { job, task, state, reason, .. } = self;
        let task = task.map_or_else(String::new, |task| format!("_{task}"));
        let reason = if reason == "None" || reason.is_empty() { String::new() } else { format!(" ({reason})") };
        write!(f, "job {job}{task} {state}{reason}")
    }
}

impl Task {
    /// Whether it has ended, well or badly.
    pub fn is_over(&self) -> bool {
        // squeue(1), JOB STATE CODES: these are over. `COMPLETING` is at its end, and whether it ended well is seen in the store.
        const OVER: [&str; 11] = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "COMPLETING",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "REVOKED",
            "TIMEOUT",
        ];
        OVER.contains(&self.state.as_str())
    }
    /// Whether it may still run. What waits for a job that has ended badly never does; Slurm takes it away, in its own time.
    pub fn is_live(&self) -> bool {
        !(self.is_over() || self.state == "PENDING" && self.reason == "DependencyNeverSatisfied")
    }
}

fn call(program: &'static str, arguments: &[String], folder: Option<&Path>) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // Ctrl-C in a terminal is for us: a call that has begun comes to its end, so that it is known what it did.
        command.process_group(0);
    }
    let output = command.output().map_err(|source| SlurmError::Absent { program, source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(SlurmError::Refused { program, said: if said.is_empty() { output.status.to_string() } else { said } });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Numbers of an array's tasks are below this.
pub fn most_tasks() -> Result<u32, SlurmError> {
    /// Slurm's own default, slurm.conf(5).
    const USUAL: u32 = 1001;
    let told = call("scontrol", &["show".into(), "config".into()], None)?;
    let line = told.lines().find_map(|line| line.trim_start().strip_prefix("MaxArraySize"));
    Ok(line.and_then(|line| line.trim_matches([' ', '=']).parse().ok()).unwrap_or(USUAL))
}

/// Submits a script of that folder; the id that it got.
pub fn submit(options: &[String], script: &str, folder: &Path) -> Result<u64, SlurmError> {
    let mut arguments = vec!["--parsable".to_owned()];
    arguments.extend(options.iter().cloned());
    arguments.push(script.to_owned());
    let said = call("sbatch", &arguments, Some(folder))?;
    // `ID`, or `ID;CLUSTER` where there are several.
    let id = said.trim().split(';').next().and_then(|id| id.parse().ok());
    id.ok_or_else(|| SlurmError::Refused { program: "sbatch", said: format!("it said `{}`, and no id", said.trim()) })
}

/// All tasks of this user that Slurm remembers without its accounting: those in the queue, and those that ended a while ago.
pub fn queue() -> Result<Vec<Task>, SlurmError> {
    let told = call("squeue", &["--me", "-h", "-a", "-r", "-t", "all", "-o", "%F|%K|%j|%T|%r"].map(str::to_owned), None)?;
    let task = |line: &str| {
        let mut fields = line.trim().split('|');
        let (job, task) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok());
        let mut next = || fields.next().map(str::to_owned);
        Some(Task { job, task, name: next()?, state: next()?, reason: next()? })
    };
    Ok(told.lines().filter_map(task).collect())
}

/// How jobs ended that Slurm's accounting knows, where there is any.
pub fn ended(jobs: &[u64]) -> Vec<Task> {
    let ids: Vec<String> = jobs.iter().map(u64::to_string).collect();
    let fields = ["-X", "-n", "-P", "-o", "JobID,JobName,State", "-j"].map(str::to_owned);
    let told = call("sacct", &[fields.to_vec(), vec![ids.join(",")]].concat(), None).unwrap_or_default();
    let task = |line: &str| {
        let mut fields = line.trim().split('|');
        let (id, name, state) = (fields.next()?, fields.next()?, fields.next()?);
        let (job, task) = id.split_once('_').map_or((id, None), |(job, task)| (job, Some(task)));
        let task = task.map(str::parse).transpose().ok()?;
        // `CANCELLED by 1000`
        let state = state.split(' ').next().unwrap_or_default().to_owned();
        Some(Task { job: job.parse().ok()?, task, name: name.to_owned(), state, reason: String::new() }).filter(Task::is_over)
    };
    told.lines().filter_map(task).collect()
}

/// Cancels jobs with all their tasks; those that are over already do not matter.
pub fn cancel(jobs: &[u64]) -> Result<(), SlurmError> {
    /// An argument list has its limits too.
    const AT_ONCE: usize = 500;
    for jobs in jobs.chunks(AT_ONCE) {
        let ids: Vec<String> = jobs.iter().map(u64::to_string).collect();
        call("scancel", &[vec!["--quiet".to_owned()], ids].concat(), None)?;
    }
    Ok(())
}

/// Puts a running job back into the queue.
pub fn requeue(job: &str) -> Result<(), SlurmError> {
    call("scontrol", &["requeue".to_owned(), job.to_owned()], None).map(drop)
}
