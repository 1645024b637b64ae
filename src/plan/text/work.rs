//! Which nodes run, and why.
//!
//! Owns how nodes with one reason become one entry. Invariant: every node that is not done is counted once.

use indexmap::IndexMap;

use super::figures::{grouped, many};
use super::page::Page;
use crate::plan::{Node, Plan, Why};

/// What is to be done, by reasons; every node on its own if `all`.
pub(super) fn work(page: &mut Page, plan: &Plan, whys: &[Why], all: bool) {
    let nodes: Vec<(&Node, &Why)> = plan.nodes().into_iter().zip(whys).collect();
    page.heading("to do");
    if all {
        for (node, why) in nodes {
            page.wrapped(&format!("  {} ", node.key.0.get(..12).unwrap_or(&node.key.0)), &format!("{}: {why}", node.label));
        }
        return;
    }
    let mut reasons: IndexMap<String, Vec<&Node>> = IndexMap::new();
    for (node, why) in nodes.into_iter().filter(|(_, why)| !why.is_done()) {
        reasons.entry(why.to_string()).or_default().push(node);
    }
    for (reason, nodes) in &reasons {
        let (count, first) = (nodes.len() as u64, &nodes[0].label);
        let which = match count {
            count if count == whys.len() as u64 => String::new(),
            1 => format!(" ({first})"),
            _ => format!(" ({first}, and {} more)", grouped(count - 1)),
        };
        page.wrapped(&format!("  {}: ", many(count, "node")), &format!("{reason}{which}"));
    }
    if reasons.is_empty() {
        page.line("  nothing: every node is in the store");
    }
}
