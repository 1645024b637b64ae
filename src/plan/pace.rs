//! How long nodes take, from how long others took.
//!
//! Owns the estimate: FLOPs at the speed of what is done of the same kind, training or speaking, else of any kind. What took its time already
//! takes that. Deliberately knows no machine and no clock: seconds are facts. Invariant: where nothing is done no time is known.

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

/// Says of every node how long it takes, by what nodes `took` in seconds.
pub(super) fn tell(graph: &mut Graph, took: &BTreeMap<String, f64>) {
    let mut done = [Done::default(); 2];
    for (node, cost) in graph.all() {
        if let (Some(seconds), Some(flops)) = (took.get(&node.key.0), cost.flops().filter(|flops| *flops > 0.0)) {
            let done = &mut done[usize::from(trains(node))];
            (done.flops, done.seconds) = (done.flops + flops, done.seconds + seconds);
        }
    }
    let speeds = [done[0].speed().or(done[1].speed()), done[1].speed().or(done[0].speed())];
    for (node, cost) in graph.all_mut() {
        let estimate = || cost.flops().zip(speeds[usize::from(trains(node))]).map(|(flops, speed)| flops / speed);
        cost.seconds = took.get(&node.key.0).copied().or_else(estimate);
    }
}
