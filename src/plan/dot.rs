//! A plan as a drawing for Graphviz: `xrun plan --format dot`.
//!
//! Owns the quoting of DOT. Invariant: whatever a name holds, it stays inside its quotes.

use std::fmt::Write;

use super::Plan;
use super::node::{Node, Work};

/// The graph of nodes; filled are those that several arms share.
pub fn dot(plan: &Plan) -> String {
    let users = super::json::users(plan);
    let mut text =
        format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n", quoted(&plan.study.name));
    for (node, _) in plan.graph.all() {
        let shared = users.get(&node.key).is_some_and(|names| names.len() > 1);
        let style = if shared { ", style=filled, fillcolor=\"#e8eef7\"" } else { "" };
        let label = format!("{}\n{}", node.label, detail(node));
        let shape = match node.work {
            Work::Corpus { .. } | Work::Tokenizer { .. } => ", shape=cylinder",
            Work::Probe(_) => ", shape=ellipse",
            Work::Teacher(_) | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Phase(_) => "",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {} [label={}{shape}{style}];", quoted(&node.key.0), quoted(label.trim_end()));
    }
    for (node, _) in plan.graph.all() {
        for need in &node.needs {
            let _ = writeln!(text, "  {} -> {};", quoted(&need.0), quoted(&node.key.0));
        }
    }
    text.push_str("}\n");
    text
}

/// Steps and depth of a node, if it has any.
pub(super) fn detail(node: &Node) -> String {
    super::gate::segment(node).map_or_else(String::new, |segment| match node.work {
        Work::Probe(_) => format!("{} layers", segment.depth()),
        _ => format!("steps {} to {}, {} layers", segment.steps.start, segment.steps.end, segment.depth()),
    })
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
