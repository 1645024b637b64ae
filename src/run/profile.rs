//! Where the time of a run goes: training and looking on one side, on the other all that a loop of one's own would not do.
//!
//! Owns the parts and their sums over threads. Deliberately decides nothing by them. Invariant: the sum of all is the time of all threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Reading and checking the file, reading the texts, planning.
    Planning,
    /// Waiting for the tokens of a batch.
    Data,
    /// Updates, with the teacher's passes that belong to them.
    Training,
    /// Evaluations, probes, corpora, caches of logits: what was asked for beside updates.
    Looking,
    /// Making, writing and reading checkpoints.
    Checkpoints,
    /// Hashing nodes, moving them into place, flushing.
    Store,
    /// Taking and releasing locks.
    Locks,
    /// Keeping and telling events.
    Events,
    /// Threads with nothing that could be begun.
    Waiting,
    /// What is none of these.
    Other,
}

impl Part {
    /// All of them, in the order in which they are told.
    pub const ALL: [Part; 10] = [
        Part::Planning,
        Part::Data,
        Part::Training,
        Part::Looking,
        Part::Checkpoints,
        Part::Store,
        Part::Locks,
        Part::Events,
        Part::Waiting,
        Part::Other,
    ];
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Part::Planning => "planning",
            Part::Data => "data",
            Part::Training => "training",
            Part::Looking => "looking",
            Part::Checkpoints => "checkpoints",
            Part::Store => "store",
            Part::Locks => "locks",
            Part::Events => "events",
            Part::Waiting => "waiting",
            Part::Other => "other",
        }
    }
    /// Whether a loop without plan, store and story would not need it.
    pub fn is_overhead(self) -> bool {
        match self {
            Part::Planning | Part::Checkpoints | Part::Store | Part::Locks | Part::Events | Part::Other => true,
            Part::Data | Part::Training | Part::Looking | Part::Waiting => false,
        }
    }
}

/// Sums over all threads of a run.
#[derive(Debug, Default)]
pub struct Profile {
    nanoseconds: [AtomicU64; Part::ALL.len()],
}

impl Profile {
    /// Adds what was spent.
    pub fn add(&self, part: Part, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds[part as usize].fetch_add(nanoseconds, Ordering::Relaxed);
    }
    /// Does something and adds its time.
    pub fn time<T>(&self, part: Part, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.add(part, began.elapsed());
        done
    }
    /// What was spent on it so far.
    pub fn spent(&self, part: Part) -> Duration {
        Duration::from_nanos(self.nanoseconds[part as usize].load(Ordering::Relaxed))
    }
    /// Adds what is left of the time that threads have lived; nothing more is added after it.
    pub fn close(&self, lived: Duration) {
        let parts = Part::ALL.into_iter().filter(|part| *part != Part::Planning);
        let known: Duration = parts.map(|part| self.spent(part)).sum();
        self.add(Part::Other, lived.saturating_sub(known));
    }
    /// Seconds by the parts' words.
    pub fn seconds(&self) -> BTreeMap<String, f64> {
        Part::ALL.into_iter().map(|part| (part.word().to_owned(), self.spent(part).as_secs_f64())).collect()
    }
}

/// The share of overhead in the time of threads that had something to do; 0 where nothing was done.
pub fn overhead(spent: &BTreeMap<String, f64>) -> f64 {
    let seconds = |part: &Part| spent.get(part.word()).copied().unwrap_or(0.0);
    let busy: f64 = Part::ALL.iter().filter(|part| **part != Part::Waiting).map(seconds).sum();
    let over: f64 = Part::ALL.iter().filter(|part| part.is_overhead()).map(seconds).sum();
    if busy > 0.0 { over / busy } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_no_overhead() {
        let profile = Profile::default();
        assert!(overhead(&profile.seconds()).abs() < 1e-12);
        profile.add(Part::Training, Duration::from_secs(97));
        profile.add(Part::Checkpoints, Duration::from_secs(2));
        profile.add(Part::Locks, Duration::from_secs(1));
        profile.add(Part::Waiting, Duration::from_secs(1_000));
        assert!((overhead(&profile.seconds()) - 0.03).abs() < 1e-12);
        assert_eq!(profile.time(Part::Store, || 5), 5);
    }
}
