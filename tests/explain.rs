//! What `xrun explain` tells is true: every code has its section, every example says what it should.

use std::collections::BTreeSet;
use std::path::Path;

use xrun::check::explain::{beginning, explain, explanations, placement};
use xrun::check::{Checked, LIBRARY, check};
use xrun::source::{Source, World};

struct Nothing;

impl World for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

fn checked(example: &str) -> Checked {
    check(&Nothing, Source::new("example.exp", format!("{}{example}", beginning())))
}

/// Words in quotation marks that are codes: hyphenated, or the first argument of a diagnostic, in the sources of the front end.
fn codes() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // What counts the faults says that there are too many.
    codes.insert("too-many-faults".to_owned());
    let mut folders = vec![root.join("check"), root.join("syntax")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).expect("a source");
            let pieces: Vec<&str> = text.split('"').collect();
            for pair in pieces.windows(2) {
                let (before, word) = (pair[0].trim_end(), pair[1]);
                let is_kebab = word.split('-').count() > 1
                    && word.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase()));
                let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
                let is_said = ["Diagnostic::error(", "Diagnostic::warning(", "Fault::Interleaved { .. } =>"];
                if is_kebab || (is_word && is_said.iter().any(|said| before.ends_with(said))) {
                    codes.insert(word.to_owned());
                }
            }
        }
    }
    codes
}

#[test]
fn every_code_has_its_section_and_every_section_its_code() {
    let listed: Vec<&str> = explanations().map(|explanation| explanation.code).collect();
    assert!(listed.is_sorted());
    assert_eq!(listed.iter().map(|code| (*code).to_owned()).collect::<BTreeSet<_>>(), codes());
    assert!(explain("wrong-unit").is_some_and(|found| found.text.contains("unit")) && explain("no-such-code").is_none());
}

#[test]
fn every_wrong_example_raises_its_code_and_no_other() {
    let (mut without, mut faults) = (Vec::new(), String::new());
    for explanation in explanations() {
        let Some(wrong) = explanation.wrong else {
            without.push(explanation.code);
            continue;
        };
        let checked = checked(wrong);
        let said: BTreeSet<&str> = checked.problems.sorted().iter().map(|said| said.code).collect();
        if said != BTreeSet::from([explanation.code]) {
            faults += &format!("{}:\n{}", explanation.code, checked.problems.render(&checked.sources, false));
        }
    }
    assert!(faults.is_empty(), "{faults}");
    // They take more than fits on a page.
    assert_eq!(without, ["text-too-long", "too-many-faults", "too-many-files"]);
}

#[test]
fn every_right_example_is_right() {
    for explanation in explanations() {
        let checked = checked(explanation.right);
        assert!(!explanation.right.is_empty(), "{}", explanation.code);
        assert!(checked.problems.is_empty(), "{}:\n{}", explanation.code, checked.problems.render(&checked.sources, false));
    }
}

#[test]
fn placements_are_told_by_their_equations() {
    let told = |name: &str| placement(&Nothing, None, name).expect("a placement of the library");
    insta::assert_snapshot!(["pre", "keel", "hybrid", "pre_boundary"].map(told).join("\n=====\n\n"));
    assert!(told("post").contains("cannot start as the identity"));
    // A reader's own is found before one that is shipped.
    let own = Source::new("own.exp", "/// Mine.\nplacement post(a: 2){sublayer x+learned(0)*f(x)}");
    let told = placement(&Nothing, Some(own), "post").expect("a placement of the file");
    assert!(told.starts_with("placement post(a: 2) { sublayer x + learned(0) * f(x) }\n\nMine.\n"), "{told}");
    assert!(told.contains("1 learned scalar; x passes unchanged"), "{told}");
    // What is shared is one parameter, and what it starts at tells whether a layer can begin as nothing.
    let shared = "placement own { sublayer { let a = learned(1), a * x + (2 - a) * f(norm(x)) } }";
    let told = |text: &str| placement(&Nothing, Some(Source::new("own.exp", text)), "own").expect("a placement of the file");
    assert!(told(shared).contains("1 norm; 1 learned scalar; x changes even where sublayers give 0"), "{}", told(shared));
    assert!(told(shared).contains("New layers can start as the identity"), "{}", told(shared));
    let half = shared.replace("learned(1)", "learned(0.5)");
    assert!(told(&half).contains("New layers cannot start as the identity"), "{}", told(&half));
    assert_eq!(placement(&Nothing, None, "nothing"), None);
    let shipped = LIBRARY[0].1.lines().filter_map(|line| line.strip_prefix("placement ")?.split([' ', '(']).next());
    assert!(shipped.into_iter().all(|name| placement(&Nothing, None, name).is_some()));
}
