//! How long nodes take, from how long others took.
//!
//! Owns the estimate: FLOPs at the speed of what is done of the same kind, training or speaking, else of any kind, else
//! at one that was measured. What took its time already
//! takes that. Deliberately knows no machine and no clock: seconds are facts. Invariant: where nothing is done or measured no time is known.

use std::collections::BTreeMap;

use super::graph::Graph;
use super::node::{Node, Work};

/// FLOPs and the seconds that they took.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    flops: f64,
    seconds: f64,
}

impl Done {
    /// FLOPs a second.
    fn speed(self) -> Option<f64> {
        (self.flops > 0.0 && self.seconds > 0.0).then(|| self.flops / self.seconds)
    }
}

/// A forward pass runs at another speed than training.
fn trains(node: &Node) -> bool {
    matches!(node.work, Work::Teacher(_) | Work::Phase(_))
}

/// Says of every node how long it takes, by what nodes `took` in seconds, else by FLOPs a second as `measured`.
pub(super) fn tell(graph: &mut Graph, took: &BTreeMap<String, f64>, measured: Option<f64>) {
    let mut done = [Done::default(); 2];
    for (node, cost) in graph.all() {
        if let (Some(seconds), Some(flops)) = (took.get(&node.key.0), cost.flops().filter(|flops| *flops > 0.0)) {
            let done = &mut done[usize::from(trains(node))];
            (done.flops, done.seconds) = (done.flops + flops, done.seconds + seconds);
        }
    }
    let measured = measured.filter(|speed| *speed > 0.0);
    let [speaking, training] = done.map(Done::speed);
    let speeds = [speaking.or(training).or(measured), training.or(speaking).or(measured)];
    for (node, cost) in graph.all_mut() {
        let estimate = || cost.flops().zip(speeds[usize::from(trains(node))]).map(|(flops, speed)| flops / speed);
        cost.seconds = took.get(&node.key.0).copied().or_else(estimate);
    }
}
