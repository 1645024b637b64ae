//! What the architecture page promises of the sources: headers, imports, the door to dfdx; and that everything shipped works.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use xrun::check::{LIBRARY, check};
use xrun::data;
use xrun::plan;
use xrun::source::{Source, World};

/// A file above this has two concepts in it.
const LONGEST_FILE: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a folder of the project with this ending, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root().join(folder)], Vec::new());
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{ending} below {folder}");
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// `src/plan/key.rs` is part of `plan`.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).expect("below src");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// A source without its comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The text before the unit tests of a file: they may use what they like.
fn outside_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[test]
fn every_source_says_what_it_owns_and_stays_small() {
    for path in files("src", "rs") {
        let text = read(&path);
        let header = text.lines().take_while(|line| line.starts_with("//!")).count();
        let wanted = if path.ends_with("mod.rs") && path.components().count() == root().components().count() + 3 { 3 } else { 1 };
        assert!(header >= wanted, "{}: a header of {header} lines", shown(&path));
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{}: {lines} lines", shown(&path));
    }
}

#[test]
fn nothing_is_left_for_later_and_no_machine_is_named() {
    let words = ["TODO", "FIXME", "XXX", "/home/", "/root/", "/tmp/", "/work/"];
    let all = ["src", "tests", "benches"].iter().flat_map(|folder| files(folder, "rs"));
    for path in all.chain(files("stdlib", "exp")).chain(files("experiments", "exp")) {
        if !path.ends_with("tests/tidy.rs") {
            let text = read(&path);
            for word in words {
                assert!(!text.contains(word), "{}: {word}", shown(&path));
            }
        }
    }
}

/// Rows of the table under a heading: the first cell's word, and the words of the second.
fn table(page: &str, heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let section = page.split(heading).nth(1).expect("the section").split("\n## ").next().expect("its text");
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|');
        Some((words(cells.next()?).pop()?, words(cells.next()?).into_iter().collect()))
    });
    rows.collect()
}

#[test]
fn imports_are_those_of_the_architecture_page() {
    let allowed = table(&read(&root().join("ARCHITECTURE.md")), "## Who may import whom");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("src", "rs") {
        let name = module(&path);
        if ["main", "lib"].contains(&name.as_str()) || path.ends_with("tests.rs") || path.ends_with("testing.rs") {
            continue;
        }
        let imports = found.entry(name.clone()).or_default();
        let text = read(&path);
        for after in code(outside_tests(&text)).split("crate::").skip(1) {
            let word: String = after.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            if word != name && !word.is_empty() {
                assert!(allowed.get(&name).is_some_and(|allowed| allowed.contains(&word)), "{}: {word}", shown(&path));
                imports.insert(word);
            }
        }
    }
    // The table promises nothing that is not used, and leaves no module out.
    assert_eq!(found, allowed);
}

#[test]
fn dfdx_has_one_door() {
    for path in files("src", "rs") {
        if code(&read(&path)).contains("dfdx::") {
            assert!(["tensor", "train"].contains(&module(&path).as_str()), "{}", shown(&path));
        }
    }
}

#[test]
fn the_changelog_speaks_of_this_version() {
    let heading = format!("## {}", env!("CARGO_PKG_VERSION"));
    assert!(read(&root().join("CHANGELOG.md")).contains(&heading), "no {heading}");
}

struct Beside(PathBuf);

impl World for Beside {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        std::fs::read_to_string(self.0.join(path)).map(|text| Source::new(path, text)).map_err(|error| error.to_string())
    }
}

#[test]
fn everything_shipped_checks_and_every_experiment_plans() {
    for (name, text) in LIBRARY {
        let checked = check(&Beside(root().into()), Source::new(name, text));
        assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    }
    for path in files("experiments", "exp") {
        let folder = path.parent().expect("a folder").to_owned();
        let checked = check(&Beside(folder.clone()), Source::new(shown(&path), read(&path)));
        assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
        assert!(!checked.studies.is_empty(), "{}", shown(&path));
        for study in &checked.studies {
            let plan =
                plan::build(study, &data::gather(study, &folder)).unwrap_or_else(|error| panic!("{}: {error}", study.name));
            assert!(plan.totals.nodes > 0);
        }
    }
}
