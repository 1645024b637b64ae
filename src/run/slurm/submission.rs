//! What is written down of jobs: which were submitted together, and which node each task works on.
//!
//! Invariant: it is on the disk before Slurm hears of a job, and a job's name says where to look.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::store::{Store, write_ron};
use super::arrays::Array;
use super::commands::SlurmError;
use crate::plan::Key;

/// Version of the layout described here.
const VERSION: u32 = 1;
/// Name of the file that holds a [`Submission`].
const FILE: &str = "submission.ron";
/// Name of the file that holds the plan which the jobs work on.
pub const PLAN: &str = "plan.ron";

/// `slurm/NAME/submission.ron`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    version: u32,
    /// The study's name.
    pub study: String,
    /// The folder of its file: what paths in the plan are relative to.
    pub folder: PathBuf,
    /// Where the jobs train.
    pub device: String,
    /// In the order in which they are submitted.
    pub jobs: Vec<Submitted>,
}

/// A job, or an array of more than one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// Slurm's id, once it is known here.
    pub id: Option<u64>,
    /// Nodes by the number of their task.
    pub tasks: BTreeMap<u32, Key>,
}

impl Submission {
    /// One of which Slurm has heard nothing yet.
    pub fn new(study: &str, folder: &Path, device: &str, arrays: &[Array]) -> Self {
        let jobs = arrays.iter().map(|array| Submitted { id: None, tasks: array.tasks.clone() }).collect();
        Self { version: VERSION, study: study.into(), folder: folder.into(), device: device.into(), jobs }
    }
    /// The one in a folder.
    pub fn read(folder: &Path) -> Result<Self, SlurmError> {
        let path = folder.join(FILE);
        let damaged = |reason: String| SlurmError::Damaged { path: path.clone(), reason };
        let text = fs::read_to_string(&path).map_err(|error| damaged(error.to_string()))?;
        let submission: Self = ron::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if submission.version != VERSION {
            return Err(damaged(format!("it has version {}, this xrun writes {VERSION}", submission.version)));
        }
        Ok(submission)
    }
    /// Writes it whole into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), SlurmError> {
        Ok(write_ron(&folder.join(FILE), self, "the jobs")?)
    }
    /// The node of a task of the job at that place; of its only one where `task` is `None`.
    pub fn node(&self, job: usize, task: Option<u32>) -> Option<&Key> {
        let tasks = &self.jobs.get(job)?.tasks;
        match task {
            Some(task) => tasks.get(&task),
            None => tasks.first_key_value().filter(|_| tasks.len() == 1).map(|(_, key)| key),
        }
    }
    /// Those of a store, by the names of their folders; what a kill left before it was written is none.
    pub fn all(store: &Store) -> Result<BTreeMap<String, Self>, SlurmError> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(store.slurm()).into_iter().flatten().flatten() {
            if entry.path().join(FILE).is_file() {
                all.insert(entry.file_name().to_string_lossy().into_owned(), Self::read(&entry.path())?);
            }
        }
        Ok(all)
    }
}
