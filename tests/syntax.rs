//! What is said about texts that cannot be read: one walk over `tests/suite/syntax`, and texts too large or too strange for a file.

mod cases;

use std::path::Path;

use proptest::prelude::*;
use xrun::check::{Checked, LIBRARY, check};
use xrun::diagnostic::Diagnostic;
use xrun::source::{FileId, Source, Sources, World};
use xrun::syntax::ast::{Entry, File};
use xrun::syntax::parse;

#[test]
fn every_case_says_what_it_expects() {
    let all = cases::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/syntax"), "exp");
    assert!(!all.is_empty());
    let mut faults = Vec::new();
    for path in all {
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).expect("a readable case"));
        let mut sources = Sources::default();
        let file = sources.add(Source::new(name.clone(), text.as_str()));
        let said = parse(file, &text).1;
        faults.extend(cases::disagreements(&name, &text, &sources, said.iter().collect()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn read(text: &str) -> (File, Vec<Diagnostic>) {
    parse(FileId::default(), text)
}

fn codes(text: &str) -> Vec<&'static str> {
    read(text).1.iter().map(|said| said.code).collect()
}

#[test]
fn a_file_says_all_its_faults_at_once() {
    let text: String = (0..100).map(|at| format!("model m{at} {{ layers 2 +, width 2e, heads 2 }}\n")).collect();
    let (tree, said) = read(&text);
    assert_eq!((tree.entries.len(), said.len()), (100, 200));
}

#[test]
fn declarations_behind_an_open_brace_are_read() {
    let text = "model a {\n  layers 2\n\n/// The second.\nmodel b(x: (1)) {\n  layers 3\n}\nuse std.schedules (joint\nlet c = 1\ndata d { context 8";
    let (tree, said) = read(text);
    assert_eq!(
        said.iter().map(|said| (said.code, said.span.start)).collect::<Vec<_>>(),
        [("unclosed-bracket", 8), ("unclosed-bracket", 87), ("unclosed-bracket", 111),]
    );
    assert_eq!(tree.entries.len(), 5);
    let Entry::Declaration(second) = &tree.entries[1] else { panic!("a declaration") };
    assert_eq!((second.name.text.as_str(), second.doc.as_deref()), ("b", Some("The second.")));
    assert_eq!(&text[second.name.span.range()], "b");
}

#[test]
fn a_description_of_nothing_hides_nothing() {
    let (tree, said) = read("model a { layers 2 +, /// What?\n, width 2 /// Why?\n}\n/// The end.\n/// Of it.\r\n");
    assert_eq!(tree.entries.len(), 1);
    assert_eq!(said.iter().map(|said| said.span.start).collect::<Vec<_>>(), [20, 22, 40, 66]);
}

#[test]
fn deep_texts_are_too_deep() {
    for bracket in ["(", "[", "f(", "f[", "(f ", "{ a ", "- (", "a: ("] {
        let text = format!("let x = {}", bracket.repeat(10_000));
        assert!(codes(&text).contains(&"too-deep"), "{bracket}");
    }
    // As deep as may be, and wrong in the middle: read in no time.
    for (open, close) in
        [("f(", ")"), ("(", ")"), ("[", "]"), ("f(g ", ")"), ("a(b(c, ", "))"), ("{ a ", " }"), ("{ let a = b ", "}")]
    {
        let depth = 64 / open.bytes().filter(|byte| b"([{".contains(byte)).count();
        let text = format!("let x = {}! {}", open.repeat(depth), close.repeat(depth));
        assert!(!codes(&text).is_empty(), "{text}");
    }
    assert_eq!(codes(&format!("let x = {}1", "1 + ".repeat(600))), ["too-deep"]);
    assert_eq!(codes(&format!("let x = {}1", "-".repeat(100_000))), ["unexpected-token"]);
}

struct Nothing;

impl World for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

/// Whatever comes in, something comes out, and every place that is shown lies in the text.
fn survives(text: &str) -> Result<(), TestCaseError> {
    let checked: Checked = check(&Nothing, Source::new("strange.exp", text));
    for said in checked.problems.sorted() {
        for span in std::iter::once(said.span).chain(said.labels.iter().map(|label| label.span)) {
            prop_assert!(checked.sources.get(span.file).text.get(span.range()).is_some(), "{:?}", said);
        }
    }
    checked.problems.render(&checked.sources, false);
    checked.problems.to_json(&checked.sources);
    Ok(())
}

/// Texts of the repository.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["experiments", "tests/suite"].map(|folder| cases::files(&root.join(folder), "exp")).concat();
    let texts = files.iter().map(|path| std::fs::read_to_string(path).expect("a readable text"));
    texts.chain(LIBRARY.map(|(_, text)| text.to_owned())).collect()
}

/// Words of the language, and what it has no use for.
const WORDS: &[&str] = &[
    "use",
    "let",
    "model",
    "study",
    "placement",
    "schedule",
    "data",
    "layers",
    "sublayer",
    "layer",
    "x",
    "f",
    "norm",
    "l",
    "vary",
    "over",
    "with",
    "at",
    "step",
    "every",
    "grow",
    "block",
    "end",
    "claim",
    "control",
    "within",
    "then",
    "otherwise",
    "when",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=",
    "==",
    "<",
    "~",
    "^",
    "*",
    "/",
    "+",
    "-",
    "..",
    "1",
    "2.5M",
    "3e-4",
    "1..3",
    "5%",
    "2e",
    ".5",
    "\"text\"",
    "\"open",
    "// no\n",
    "/// doc\n",
    "\n",
    "\n",
    "\n",
    "é",
    "\u{0}",
    "\r\n",
    "\t",
    "\u{feff}",
    "!",
    "std.placements",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn words_do_no_harm(words in prop::collection::vec((prop::sample::select(WORDS), any::<bool>()), 0..120)) {
        let text: String = words.iter().map(|(word, apart)| format!("{word}{}", if *apart { " " } else { "" })).collect();
        survives(&text)?;
    }

    #[test]
    fn changed_texts_do_no_harm(
        text in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(WORDS), 0..12_usize), 1..6),
    ) {
        let texts = texts();
        let mut letters: Vec<char> = text.get(&texts).chars().collect();
        for (at, word, taken) in changes {
            let at = at.index(letters.len() + 1);
            let end = (at + taken).min(letters.len());
            letters.splice(at..end, word.chars());
        }
        survives(&letters.into_iter().collect::<String>())?;
    }
}
