//! A plan as a drawing for Markdown pages: `xrun plan --format mermaid`.
//!
//! Owns the escaping of Mermaid. Invariant: whatever a name holds, it stays inside its label: every letter that is not plain is an
//! entity.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Plan;
use super::node::Work;

/// The graph of nodes as a flowchart; marked are those that several arms share.
pub fn mermaid(plan: &Plan) -> String {
    let users = super::json::users(plan);
    let numbers: BTreeMap<_, _> = plan.graph.all().enumerate().map(|(number, (node, _))| (&node.key, number)).collect();
    let mut text = String::from("flowchart LR\n");
    for (number, (node, _)) in plan.graph.all().enumerate() {
        let detail = super::dot::detail(node);
        let gap = if detail.is_empty() { "" } else { "<br/>" };
        let label = format!("{}{gap}{detail}", escaped(&node.label));
        let (open, close) = match node.work {
            Work::Corpus { .. } | Work::Tokenizer { .. } => ("[(\"", "\")]"),
            Work::Probe(_) => ("([\"", "\"])"),
            Work::Teacher(_) | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Phase(_) => ("[\"", "\"]"),
        };
        let shared = if users.get(&node.key).is_some_and(|names| names.len() > 1) { ":::shared" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  n{number}{open}{label}{close}{shared}");
    }
    for (number, (node, _)) in plan.graph.all().enumerate() {
        for need in node.needs.iter().filter_map(|need| numbers.get(need)) {
            let _ = writeln!(text, "  n{need} --> n{number}");
        }
    }
    text.push_str("  classDef shared fill:#e8eef7\n");
    text
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if letter.is_alphanumeric() || matches!(letter, ' ' | ',' | '.' | '_' | '-' | '+') {
            escaped.push(letter);
        } else if !letter.is_control() {
            let _ = write!(escaped, "#{};", u32::from(letter));
        }
    }
    escaped
}
