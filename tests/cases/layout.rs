//! What holds for every text that is laid out.

use super::comments::comment;

use xrun::check::begins_statement;
use xrun::diagnostic::Problems;
use xrun::source::{FileId, Source};
use xrun::syntax::{parse, print};

/// A text as it is laid out.
pub fn laid_out(text: &str) -> Result<String, Problems> {
    print(&Source::new("text.exp", text), &begins_statement)
}

/// The tree of a text without its places.
pub fn tree(text: &str) -> String {
    let (tree, said) = parse(FileId::default(), text);
    assert!(said.is_empty(), "{said:?}\n{text}");
    let shown = format!("{tree:?}");
    let mut pieces = shown.split("Span { file: FileId(0), start: ");
    let first = pieces.next().unwrap_or("").to_owned();
    pieces.fold(first, |tree, piece| tree + piece.split_once('}').expect("the end of a span").1)
}

/// The comments of a text, sorted.
fn comments(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = text.lines().filter_map(|line| comment(line).map(|at| line[at..].trim_end())).collect();
    found.sort_unstable();
    found
}

/// What holds for whatever is laid out; gives the layout.
pub fn holds(name: &str, text: &str) -> String {
    let once = laid_out(text).unwrap_or_else(|said| panic!("{name}: {said:?}\n{text}"));
    assert_eq!(tree(&once), tree(text), "{name}: another tree\n{text}\n----\n{once}");
    assert_eq!(comments(&once), comments(text), "{name}: other comments\n{once}");
    let twice = laid_out(&once).expect("a text laid out can be read");
    assert_eq!(twice, once, "{name}: a second time changes it");
    assert!(!once.contains("\n\n\n") && !once.starts_with('\n') && !once.ends_with("\n\n"), "{name}: empty lines\n{once}");
    assert!(once.lines().all(|line| line.trim_end() == line), "{name}: blanks at the end of a line\n{once}");
    once
}
