//! What the formatter makes of texts: cases with the layout wanted beside them, and what holds for every text of this repository.
//!
//! A case is `NAME.exp` with `NAME.out` beside it in `tests/suite/fmt`; `UPDATE=1` rewrites the latter. `XRUN_SUITE=folder` walks another folder of
//! texts too.

#[path = "cases/comments.rs"]
mod comments;
#[path = "cases/files.rs"]
mod files;
#[path = "cases/layout.rs"]
mod layout;

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use xrun::check::LIBRARY;
use xrun::source::FileId;
use xrun::syntax::parse;

use comments::comment;
use files::files;
use layout::{holds, laid_out, tree};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a readable file")
}

/// Every text of the repository that can be read.
fn texts() -> Vec<(String, String)> {
    let folders =
        ["stdlib", "experiments", "tests/suite"].map(root).into_iter().chain(std::env::var("XRUN_SUITE").ok().map(PathBuf::from));
    let mut texts: Vec<(String, String)> = folders
        .flat_map(|folder| files(&folder, "exp"))
        .map(|path| (path.display().to_string(), read(&path)))
        .filter(|(_, text)| parse(FileId::default(), text).1.is_empty())
        .collect();
    texts.sort();
    texts
}

#[test]
fn every_case_is_laid_out_as_wanted() {
    let all = files(&root("tests/suite/fmt"), "exp");
    assert!(!all.is_empty());
    for path in all {
        let found = holds(&path.display().to_string(), &read(&path));
        let wanted = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&wanted, &found).expect("a file to write");
        }
        assert_eq!(found, read(&wanted), "{}", path.display());
    }
    for wanted in files(&root("tests/suite/fmt"), "out") {
        assert!(wanted.with_extension("exp").exists(), "{} belongs to no case", wanted.display());
    }
}

#[test]
fn every_text_of_the_repository_keeps_its_tree_and_its_comments() {
    for (name, text) in texts() {
        holds(&name, &text);
    }
}

#[test]
fn the_library_and_the_experiments_are_laid_out() {
    let experiments = files(&root("experiments"), "exp").into_iter().map(|path| (path.display().to_string(), read(&path)));
    let library = LIBRARY.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
    for (name, text) in experiments.chain(library) {
        assert_eq!(laid_out(&text).expect("a text that can be read"), text, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_what_is_wrong() {
    let said = laid_out("model a { layers 2 +, width 8 }\ndata d { files \"open }\n").expect_err("two faults");
    let codes: Vec<&str> = said.sorted().iter().map(|said| said.code).collect();
    assert_eq!(codes, ["unexpected-token", "unclosed-text"]);
}

/// Where a change is made, and which.
type Choices = Vec<u8>;

/// Changes white space where the grammar has it free: `lines` adds line ends inside brackets and comments too.
fn mangled(text: &str, choices: &Choices, lines: bool) -> String {
    let mut choices = choices.iter().copied().cycle();
    let mut choose = |bound: u8| choices.next().unwrap_or(0) % bound;
    let blanks = ["", " ", "  ", "\t", " \t "];
    let mut out = String::new();
    for line in text.split('\n') {
        let code = comment(line).unwrap_or(line.len());
        let mut quoted = false;
        let mut letters = line[..code].trim().chars().peekable();
        out.push_str(blanks[usize::from(choose(5))]);
        while let Some(letter) = letters.next() {
            let next = letters.peek().copied();
            match letter {
                '"' => {
                    quoted = !quoted;
                    out.push('"');
                }
                '\\' if quoted => {
                    out.push('\\');
                    out.extend(letters.next());
                }
                ' ' if !quoted && next != Some(' ') => out.push_str(blanks[1 + usize::from(choose(4))]),
                ' ' if !quoted => {}
                '(' | '[' | '{' | ',' if !quoted => {
                    out.push(letter);
                    match choose(if lines { 5 } else { 3 }) {
                        0 => {}
                        3 => out.push('\n'),
                        4 => out.push_str("  // added \"( \n"),
                        chosen => out.push_str(blanks[usize::from(chosen)]),
                    }
                }
                ')' | ']' | '}' | ':' if !quoted => {
                    out.push_str(blanks[usize::from(choose(2))]);
                    out.push(letter);
                }
                _ => out.push(letter),
            }
        }
        if code < line.len() {
            out.push_str(blanks[1 + usize::from(choose(4))]);
            out.push_str(&line[code..]);
        } else if lines && choose(9) == 0 {
            out.push_str(" // an end");
        }
        out.push_str(blanks[usize::from(choose(5))]);
        out.push_str(if choose(5) == 0 { "\r\n" } else { "\n" });
        if line.trim().is_empty() && choose(2) == 0 {
            out.push_str("\n \n");
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blanks_make_no_difference(text in 0..1_000usize, choices in prop::collection::vec(any::<u8>(), 1..400)) {
        let texts = texts();
        let (name, text) = &texts[text % texts.len()];
        let other = mangled(text, &choices, false);
        prop_assert_eq!(holds(name, &other), laid_out(text).expect("a text that can be read"));
    }

    #[test]
    fn line_ends_and_comments_keep_the_tree(text in 0..1_000usize, choices in prop::collection::vec(any::<u8>(), 1..400)) {
        let texts = texts();
        let (name, text) = &texts[text % texts.len()];
        let other = mangled(text, &choices, true);
        prop_assert_eq!(tree(&other), tree(text), "{}", name);
        holds(name, &other);
    }
}
