//! Nodes that are named on the command line: by the beginning of their key, by their arm, or by what a schedule saves.

use std::collections::BTreeSet;

use super::{Fault, run};
use crate::plan::{Key, Node, Plan, PlannedRun};

/// Digits that are enough to mean a key and no arm.
const ENOUGH: usize = 4;

/// The nodes that are meant, in an order in which each follows what it needs.
pub fn nodes(plan: &Plan, said: &str) -> Result<Vec<Node>, Fault> {
    let saved: BTreeSet<&Key> =
        plan.runs.iter().flat_map(PlannedRun::saved).filter(|saved| saved.name == said).map(|saved| saved.phase).collect();
    if !saved.is_empty() {
        return Ok(plan.nodes().into_iter().filter(|node| saved.contains(&node.key)).cloned().collect());
    }
    if said.len() < ENOUGH || !said.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return run::wanted(plan, Some(said));
    }
    let found: Vec<Node> = plan.nodes().into_iter().filter(|node| node.key.0.starts_with(said)).cloned().collect();
    match found.as_slice() {
        [] => run::wanted(plan, Some(said)).map_err(|_| {
            Fault::Input(format!(
                "`{}` has no node or arm `{said}`: `xrun status FILE --verbose` lists its nodes",
                plan.study.name
            ))
        }),
        [_] => Ok(found),
        several => {
            let keys: Vec<&str> = several.iter().map(|node| node.key.0.as_str()).collect();
            Err(Fault::Input(format!("`{said}` may be {}", keys.join(" or "))))
        }
    }
}
