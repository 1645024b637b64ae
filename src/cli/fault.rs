//! How a command ends.

use std::process::ExitCode;

/// How a command ended, as its exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All that was asked for.
    Done,
    /// A step failed, or a claim check did.
    Failed,
    /// The input is wrong.
    Refused,
    /// Stopped on request; all progress is kept.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::Refused => 2,
            // 128 + SIGINT, as shells have it.
            Outcome::Interrupted => 130,
        })
    }
}

/// Why a command could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The input is wrong.
    #[error("{0}")]
    Input(String),
    /// Diagnostics have been written already.
    #[error("{0}")]
    Diagnosed(String),
    /// The machine refused.
    #[error("{0}")]
    Machine(String),
}

impl Fault {
    /// What the exit code says of it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Fault::Input(_) | Fault::Diagnosed(_) => Outcome::Refused,
            Fault::Machine(_) => Outcome::Failed,
        }
    }
}
