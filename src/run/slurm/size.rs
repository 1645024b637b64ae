//! What a job asks Slurm for, from what the plan says of a node.

use crate::plan::Cost;

/// Memory of a process that does nothing yet: the program, its threads, its buffers. Assumption, larger than what the quickstart takes in all.
const BASE_MEBIBYTES: u64 = 512;
/// How far memory may be from its estimate: `budget::memory` is good to a factor of two.
const MEMORY_MARGIN: u64 = 2;
/// How far the time may be from its estimate. Assumption: a node of the cluster is up to three times slower than where the speed was measured.
const TIME_MARGIN: f64 = 3.0;
/// The least that is asked for; a job that needs longer goes on in another turn. Assumption: a cluster's scheduler likes no shorter ones.
const LEAST_MINUTES: u64 = 10;

/// What a node takes, as far as the plan knows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Size {
    /// Bytes.
    memory: Option<u64>,
    /// Wall-clock.
    seconds: Option<f64>,
}

impl Size {
    /// Of a node with this cost; what costs nothing by the plan is not known.
    pub fn of(cost: &Cost) -> Self {
        Self { memory: cost.memory.filter(|memory| *memory > 0), seconds: cost.seconds.filter(|seconds| *seconds > 0.0) }
    }
    /// Enough for both; not known if one is not.
    pub fn or(self, other: Self) -> Self {
        Self {
            memory: self.memory.zip(other.memory).map(|(a, b)| a.max(b)),
            seconds: self.seconds.zip(other.seconds).map(|(a, b)| a.max(b)),
        }
    }
    /// Two sizes of one class differ by less than a factor of two: they may ask for the same.
    pub fn class(self) -> (u32, u32) {
        let class = |size: Option<u64>| size.map_or(0, |size| size.max(1).ilog2() + 1);
        (class(self.mebibytes()), class(self.minutes()))
    }
    /// Memory to ask for.
    pub fn mebibytes(self) -> Option<u64> {
        self.memory.map(|memory| (memory.saturating_mul(MEMORY_MARGIN)).div_ceil(1 << 20).saturating_add(BASE_MEBIBYTES))
    }
    /// Time to ask for.
    pub fn minutes(self) -> Option<u64> {
        self.seconds.map(|seconds| ((seconds * TIME_MARGIN / 60.0).ceil() as u64).max(LEAST_MINUTES))
    }
}
