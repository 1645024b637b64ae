//! What the checker says, and what it makes: one walk over `tests/suite/check`, and a few studies looked at closely.
//!
//! A case is an `.exp` file whose lines carry `// error: about <<words>>, suggests word` (or `error[code]: …`): the words underlined on
//! that line, and a word of the hint. Missing and unexpected errors fail. `XRUN_SUITE=folder` walks another folder too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xrun::check::{LIBRARY, check};
use xrun::diagnostic::{Diagnostic, Severity};
use xrun::source::{Source, World};

/// Texts by name.
#[derive(Default)]
struct Memory(BTreeMap<String, String>);

impl World for Memory {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let name = path.trim_start_matches("./");
        self.0.get(name).map(|text| Source::new(name, text.as_str())).ok_or_else(|| "no such file".to_owned())
    }
}

/// Files beside a case.
struct Beside(PathBuf);

impl World for Beside {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let path = self.0.join(path.trim_start_matches("./"));
        let text = std::fs::read_to_string(&path).map_err(|_| "no such file".to_owned())?;
        Ok(Source::new(path.display().to_string(), text))
    }
}

/// What a case expects on a line.
#[derive(Debug)]
struct Expected {
    line: usize,
    code: Option<String>,
    words: String,
    suggests: Option<String>,
}

fn expected(text: &str) -> Vec<Expected> {
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("// error") else { continue };
        for piece in format!("error{comment}").split("error").skip(1) {
            let Some((before, rest)) = piece.split_once("<<") else { continue };
            let (words, after) = rest.split_once(">>").expect("`>>`");
            let code = before.strip_prefix('[').and_then(|before| before.split_once(']')).map(|(code, _)| code.to_owned());
            let suggests = after.split_once("suggests ").map(|(_, word)| word.split_whitespace().next().unwrap_or("").to_owned());
            all.push(Expected { line: index + 1, code, words: words.to_owned(), suggests });
        }
    }
    all
}

fn disagreements(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a readable case");
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let checked = check(&Beside(folder), Source::new(name.clone(), text.as_str()));
    let mut said: Vec<&Diagnostic> =
        checked.problems.sorted().into_iter().filter(|said| said.severity == Severity::Error).collect();
    let mut faults = Vec::new();
    for expected in expected(&text) {
        let is_it = |said: &&&Diagnostic| {
            let source = checked.sources.get(said.span.file);
            source.name == name
                && source.place(said.span.start).line == expected.line
                && checked.sources.text(said.span) == expected.words
                && expected.code.as_ref().is_none_or(|code| code == said.code)
                && expected.suggests.as_ref().is_none_or(|word| said.hints.iter().any(|hint| hint.contains(word.as_str())))
        };
        match said.iter().find(is_it).copied() {
            Some(found) => said.retain(|said| !std::ptr::eq(*said, found)),
            None => faults.push(format!("{name}:{}: nothing says {expected:?}", expected.line)),
        }
    }
    for said in said {
        let source = checked.sources.get(said.span.file);
        let place = source.place(said.span.start);
        faults.push(format!(
            "{}:{}:{}: unexpected error[{}] on `{}`: {} {:?}",
            source.name,
            place.line,
            place.column,
            said.code,
            checked.sources.text(said.span),
            said.message,
            said.hints
        ));
    }
    faults
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(cases(&path));
        } else if path.extension().is_some_and(|extension| extension == "exp") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_case_says_what_it_expects() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/check");
    let mut all = cases(&own);
    assert!(!all.is_empty());
    if let Ok(other) = std::env::var("XRUN_SUITE") {
        all.extend(cases(Path::new(&other)));
    }
    let faults: Vec<String> = all.iter().flat_map(|path| disagreements(path)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_library_checks() {
    for (name, text) in LIBRARY {
        let checked = check(&Memory::default(), Source::new(format!("{name}.copy"), text));
        assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    }
}
