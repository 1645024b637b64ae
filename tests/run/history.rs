//! Why a node runs: what a store remembers of the nodes of its name.

use std::path::Path;

use xrun::plan::Why;
use xrun::plan::node::{Node, Work};
use xrun::run::{History, Store};

use crate::counting::{Counting, key, node, run};

fn why(store: &Path, node: &Node) -> Why {
    let store = Store::at(store);
    History::of(&store).why(&store, node)
}

/// A node of the name of another whose text is another.
fn edited(of: &Node, name: &str, text: &str) -> Node {
    let Work::Corpus { data, .. } = &of.work else { panic!("no corpus") };
    Node { key: key(name), work: Work::Corpus { data: data.clone(), content: Some(text.into()) }, ..of.clone() }
}

#[test]
fn a_node_says_why_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, b) = (folder.path(), node("b", &["a"]));
    assert_eq!(why(at, &b), Why::New);
    run(at, &Counting { fails: Some(key("b")), ..Counting::default() }, 1);
    assert_eq!(why(at, &b), Why::Failed("diverged at step 3: loss".into()));
    run(at, &Counting { stops: Some((key("b"), 4)), ..Counting::default() }, 1);
    assert_eq!(why(at, &b), Why::Begun);
    run(at, &Counting::default(), 1);
    assert_eq!(why(at, &b), Why::Done);
    let changed = Why::Changed { from: key("b"), inputs: vec!["text".into()] };
    assert_eq!(why(at, &edited(&b, "z", "another")), changed);
    assert_eq!(why(at, &Node { label: "another".into(), ..edited(&b, "z", "another") }), Why::New);

    let result = Store::at(at).node(&key("b")).join("result");
    let good = std::fs::read(&result).expect("reads");
    std::fs::write(&result, "another").expect("writes");
    assert_eq!(why(at, &b), Why::Damaged("`result` is not what was written".into()));
    std::fs::remove_file(&result).expect("removes");
    assert!(matches!(why(at, &b), Why::Damaged(reason) if reason.starts_with("`result`: ")));
    std::fs::write(&result, good).expect("writes");
    assert_eq!(why(at, &b), Why::Done);
    std::fs::remove_dir_all(Store::at(at).node(&key("b"))).expect("removes");
    assert_eq!(why(at, &b), Why::Gone);
    // What is not there any more is nothing to compare with.
    assert_eq!(why(at, &edited(&b, "z", "another")), Why::New);
}

#[test]
fn a_history_that_cannot_be_read_costs_words_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, b) = (folder.path(), node("b", &["a"]));
    run(at, &Counting::default(), 1);
    let file = at.join("history.jsonl");
    let lines = std::fs::read_to_string(&file).expect("reads");
    assert_eq!(lines.lines().count(), 5);
    std::fs::write(&file, format!("{{\n\u{0}{}\n{lines}{{\"key\":", "[".repeat(10_000))).expect("writes");
    assert!(matches!(why(at, &edited(&b, "z", "another")), Why::Changed { .. }));
    std::fs::remove_file(&file).expect("removes");
    assert_eq!((why(at, &b), why(at, &edited(&b, "z", "another"))), (Why::Done, Why::New));
}
