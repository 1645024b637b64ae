//! What happens in a run, as events: the lines of `events/RUN.jsonl`.
//!
//! Owns their layout and its version. Deliberately knows no formatted text, and no mean over several runs. Invariant: whoever reads the lines in
//! their order knows what the run did and measured; a newer program's kinds of events are passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::{DocumentsRecord, MetricLine, ProbeRecord};
use crate::plan::node::Key;

/// Version of the layout described here. Events and fields may be added under it; whoever changes what one means raises it.
pub const VERSION: u32 = 1;

/// A line of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// [`VERSION`].
    pub v: u32,
    /// Its place in the stream, from 0.
    pub seq: u64,
    /// Seconds since 1970 by the clock of the machine: for people, nothing is decided by it.
    pub at: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happens in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// The machine.
        host: String,
        /// The process.
        pid: u32,
        /// Version of the program.
        program: String,
        /// Nodes at a time.
        jobs: usize,
        /// Nodes that it is about.
        nodes: usize,
    },
    /// A node was in the store.
    NodeFound {
        /// Which.
        key: Key,
    },
    /// A node is taken up. What an attempt before measured is said again.
    NodeStarted {
        /// Which.
        key: Key,
        /// For people.
        label: String,
        /// Its kind's word.
        kind: String,
        /// Why it is not taken from the store.
        why: String,
    },
    /// It is further; said a few times a second at most.
    NodeProgress {
        /// Which.
        key: Key,
        /// Units done since the node's beginning (steps, sequences, documents).
        done: u64,
        /// Units in all.
        total: u64,
        /// Real tokens worked on in this attempt.
        tokens: u64,
        /// Time that this attempt has taken.
        seconds: f64,
    },
    /// What it measured since this was last said.
    NodeMeasured {
        /// Which.
        key: Key,
        /// Lines of its `metrics.jsonl`.
        lines: Vec<MetricLine>,
    },
    /// Another process works on it.
    NodeElsewhere {
        /// Which.
        key: Key,
        /// For people.
        label: String,
        /// Who, where that can be told.
        holder: Option<String>,
    },
    /// A phase was evaluated at its end.
    NodeEvaluated {
        /// Which.
        key: Key,
        /// Its `documents.json`.
        documents: DocumentsRecord,
    },
    /// A probe has looked.
    NodeProbed {
        /// Which.
        key: Key,
        /// Its `probe.json`.
        probe: ProbeRecord,
    },
    /// It is in the store; all that it measured has been said.
    NodeFinished {
        /// Which.
        key: Key,
        /// For people.
        label: String,
        /// Time that this attempt took.
        seconds: f64,
        /// Real tokens worked on in this attempt.
        tokens: u64,
    },
    /// It was stopped on request, or taken over by another process; progress is kept.
    NodeInterrupted {
        /// Which.
        key: Key,
    },
    /// It failed; all that it measured until then has been said.
    NodeFailed {
        /// Which.
        key: Key,
        /// For people.
        label: String,
        /// What was said.
        reason: String,
        /// The step at which the loss was not finite, if that was it.
        diverged_at: Option<u64>,
    },
    /// What the process takes; said about once a second while it works.
    RunTakes {
        /// Bytes of memory now.
        memory: u64,
        /// The most so far.
        most: u64,
    },
    /// The run is over.
    RunFinished {
        /// Nodes done now.
        done: usize,
        /// Nodes that were there.
        found: usize,
        /// Nodes that failed.
        failed: usize,
        /// Nodes that need one that failed.
        blocked: usize,
        /// Stopped on request.
        interrupted: bool,
        /// Time that it took, planning included.
        seconds: f64,
        /// Where the time of its threads went, in seconds: by the words of [`super::profile::Part`].
        spent: BTreeMap<String, f64>,
    },
    /// An event that a newer program wrote.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::record::Real;

    #[test]
    fn lines_go_round_and_unknown_events_are_passed_over() {
        let key = || Key("a".repeat(32));
        let values = BTreeMap::from([("train_loss".to_owned(), Real(f64::INFINITY)), ("lr".to_owned(), Real(0.1 + 0.2))]);
        let events = [
            Event::NodeFound { key: key() },
            Event::NodeProgress { key: key(), done: 1, total: 2, tokens: 3, seconds: 0.5 },
            Event::NodeMeasured { key: key(), lines: vec![MetricLine { step: 9_007_199_254_740_993, values }] },
        ];
        for event in events {
            let line = Line { v: VERSION, seq: 1, at: 2.5, event };
            let text = serde_json::to_string(&line).expect("JSON");
            assert_eq!(serde_json::from_str::<Line>(&text).expect("a line"), line, "{text}");
        }
        let text = r#"{"v":1,"seq":0,"at":0.0,"event":"node_sang","key":"x","song":[1]}"#;
        assert_eq!(serde_json::from_str::<Line>(text).map(|line| line.event).ok(), Some(Event::Unknown));
        let text = r#"{"v":1,"seq":0,"at":0.0,"event":"node_found","key":"x","since":"yesterday"}"#;
        assert!(serde_json::from_str::<Line>(text).is_ok(), "fields may be added");
    }
}
