//! Why a node will run, or need not.
//!
//! Owns the words. Deliberately knows no store: `run::history` finds out.

use std::fmt;

use super::node::Key;

/// What is to be done about a node, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is in the store.
    Done,
    /// Nothing of its name was ever done.
    New,
    /// It was done, and is not in the store any more.
    Gone,
    /// A node of its name is in the store, with other inputs.
    Changed {
        /// That node: the one that is most like it.
        from: Key,
        /// Inputs that differ, by their names; never empty.
        inputs: Vec<String>,
    },
    /// It is in the store and not to be trusted; why.
    Damaged(String),
    /// An attempt was interrupted, and will go on.
    Begun,
    /// The last attempt failed, and will be tried again; how.
    Failed(String),
    /// A process works on it; which.
    Running(String),
}

impl Why {
    /// Whether it need not run.
    pub fn is_done(&self) -> bool {
        *self == Why::Done
    }
    /// The word of the case, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Why::Done => "done",
            Why::New => "new",
            Why::Gone => "gone",
            Why::Changed { .. } => "changed",
            Why::Damaged(_) => "damaged",
            Why::Begun => "begun",
            Why::Failed(_) => "failed",
            Why::Running(_) => "running",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Done => f.write_str("already done"),
            Why::New => f.write_str("new"),
            Why::Gone => f.write_str("done once, and not in the store any more"),
            Why::Changed { inputs, .. } => write!(f, "changed: {}", inputs.join(", ")),
            Why::Damaged(reason) => write!(f, "damaged: {reason}"),
            Why::Begun => f.write_str("begun, and goes on from there"),
            Why::Failed(reason) => write!(f, "failed, and is tried again: {reason}"),
            Why::Running(holder) => write!(f, "under way: {holder}"),
        }
    }
}
