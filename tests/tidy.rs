//! The rules of the house, held by a test: headers, imports, homes of what must have one, and that everything shipped checks and plans.
//!
//! The two tables of ARCHITECTURE.md are read, not repeated. Deliberately knows no style: rustfmt and clippy do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use xrun::check::check;
use xrun::data::{Reach, gather};
use xrun::plan;
use xrun::source::{Source, World};

/// Longer files hold a second concept.
const LONGEST: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file with that ending below a folder, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|own| own == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The module that a file of `src/` belongs to; `None` for `lib.rs` and `main.rs`.
fn module(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src")).expect("a file of src");
    let first = inside.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.trim_end_matches(".rs").to_owned();
    (!["lib", "main"].contains(&name.as_str())).then_some(name)
}

/// Lines of a source that are compiled into the program: no comments, nothing that is for tests only.
fn code(path: &Path) -> Vec<String> {
    if path.ends_with("tests.rs") || path.ends_with("testing.rs") {
        return Vec::new();
    }
    let text = read(path);
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]") || text.contains("\nmod tests;"));
    lines.map(|line| line.split("//").next().unwrap_or("").to_owned()).collect()
}

/// Rows of the table of a page whose head begins with these words; cells without their backticks.
fn table(head: &str) -> Vec<Vec<String>> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let rows = page.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    let cell = |cell: &str| cell.trim().to_owned();
    let rows: Vec<Vec<String>> = rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no table `{head}`");
    rows
}

/// The words in backticks of a cell.
fn words(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut faults = Vec::new();
    let all = ["src", "tests", "benches"].into_iter().flat_map(|folder| files(folder, "rs"));
    for path in all {
        let text = read(&path);
        let header = text.lines().take_while(|line| line.starts_with("//!")).count();
        let wanted = if path.ends_with("mod.rs") { 3 } else { 1 };
        if header < wanted {
            faults.push(format!("{}: a header of {header} lines, {wanted} wanted", shown(&path)));
        }
        let lines = text.lines().count();
        if lines > LONGEST {
            faults.push(format!("{}: {lines} lines, at most {LONGEST}: which second concept moved in?", shown(&path)));
        }
    }
    none(&faults);
}

#[test]
fn modules_import_what_the_architecture_allows() {
    let mut allowed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in table("| module |") {
        let module = words(&row[0]).pop().expect("a module");
        allowed.insert(module, words(&row[1]));
    }
    let mut faults = Vec::new();
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    let mut modules = BTreeSet::new();
    for path in files("src", "rs") {
        let Some(module) = module(&path) else { continue };
        modules.insert(module.clone());
        let Some(allowed) = allowed.get(&module) else {
            faults.push(format!("{}: `{module}` is not in the table", shown(&path)));
            continue;
        };
        for (number, line) in (1..).zip(code(&path)) {
            for (at, _) in line.match_indices("crate::") {
                let path_of = &line[at + "crate::".len()..];
                // `a` or `a::b`, and not `ab`.
                let is_it = |name: &&String| {
                    let rest = path_of.strip_prefix(name.as_str());
                    rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
                };
                if is_it(&&module) || line[..at].ends_with('$') {
                    continue;
                }
                match allowed.iter().find(is_it) {
                    Some(allowed) => drop(used.insert((module.clone(), allowed.clone()))),
                    None => faults.push(format!("{}:{number}: `{module}` may not use `{}`", shown(&path), line.trim())),
                }
            }
        }
    }
    for (module, allowed) in &allowed {
        if !modules.contains(module) {
            faults.push(format!("the table has `{module}`, which does not exist"));
        }
        for allowed in allowed.iter().filter(|allowed| !used.contains(&(module.clone(), (*allowed).clone()))) {
            faults.push(format!("the table lets `{module}` use `{allowed}`, and it does not"));
        }
    }
    none(&faults);
}

#[test]
fn what_has_a_home_stays_there() {
    let mut faults = Vec::new();
    for row in table("| words |") {
        let homes = words(&row[1]);
        for word in words(&row[0]) {
            for path in files("src", "rs") {
                let is_home = module(&path).is_some_and(|module| homes.contains(&module));
                // The macro of another crate that ends in the same letters is another word.
                let names = |line: &String| {
                    line.match_indices(&word)
                        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
                };
                if !is_home && code(&path).iter().any(names) {
                    faults.push(format!("{}: `{word}` belongs to {}", shown(&path), homes.join(", ")));
                }
            }
        }
    }
    none(&faults);
}

/// Left-overs, and what ties the project to one machine. This file spells them apart.
#[test]
fn nothing_is_left_lying_about() {
    let left = ["todo", "fixme", "xxx", "hack"].map(|word| format!("{word}:"));
    let macros = ["todo", "dbg", "unimplemented"].map(|word| format!("{word}!("));
    let machine = [["/wo", "rk/"], ["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/tm", "p/"]].map(|parts| parts.concat());
    let mut faults = Vec::new();
    let sources = ["src", "tests", "benches"].into_iter().flat_map(|folder| files(folder, "rs"));
    let texts = ["grammar", "stdlib", "experiments"]
        .into_iter()
        .flat_map(|folder| ["exp", "md", "pest", "html", "css", "csv"].into_iter().flat_map(move |ending| files(folder, ending)));
    let pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "Cargo.toml"].map(|page| root().join(page));
    for path in sources.chain(texts).chain(pages).filter(|path| path.exists()) {
        for (number, line) in (1..).zip(read(&path).lines()) {
            let lower = line.to_lowercase();
            let word = left.iter().find(|word| lower.split_whitespace().any(|own| own == word.as_str()));
            let found = word.or_else(|| macros.iter().chain(&machine).find(|word| line.contains(word.as_str())));
            if let Some(found) = found {
                faults.push(format!("{}:{number}: {found}", shown(&path)));
            }
        }
    }
    none(&faults);
}

#[test]
fn the_changelog_knows_this_version() {
    let heading = format!("## {}", env!("CARGO_PKG_VERSION"));
    let changelog = read(&root().join("CHANGELOG.md"));
    assert!(changelog.lines().any(|line| line.starts_with(&heading)), "CHANGELOG.md has no `{heading}`");
}

/// Files beside one.
struct Beside(PathBuf);

impl World for Beside {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let path = self.0.join(path.trim_start_matches("./"));
        fs::read_to_string(&path).map(|text| Source::new(shown(&path), text)).map_err(|error| error.to_string())
    }
}

#[test]
fn everything_shipped_checks_and_plans() {
    for path in ["stdlib", "experiments"].into_iter().flat_map(|folder| files(folder, "exp")) {
        let folder = path.parent().expect("a folder").to_owned();
        let checked = check(&Beside(folder.clone()), Source::new(shown(&path), read(&path)));
        assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
        // A number stands before a question; what several have in common stands in a file without one.
        let is_numbered =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(|letter: char| letter.is_ascii_digit()));
        let asks = if folder.ends_with("experiments") { is_numbered } else { folder != root().join("stdlib") };
        assert_eq!(checked.studies.is_empty(), !asks, "{}", shown(&path));
        for study in &checked.studies {
            let plan = plan::build(study, &gather(study, &folder, &Reach::whole()));
            let plan = plan.unwrap_or_else(|error| panic!("{}: {}: {error}", shown(&path), study.name));
            assert_eq!(plan.runs.len(), study.arms.len() * study.seeds.len());
        }
    }
}

/// A diary that knows its experiments: each file has a row with its number, and no row is about a file that is gone.
#[test]
fn the_diary_has_every_experiment() {
    let diary = read(&root().join("experiments/README.md"));
    let names =
        files("experiments", "exp").into_iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned());
    let names: BTreeSet<String> = names.collect();
    let told = diary.split(['(', ')', '`', ' ', '[', ']', '/', ',', '\n']).filter(|word| word.ends_with(".exp"));
    let told: BTreeSet<String> = told.map(str::to_owned).collect();
    assert_eq!(names, told);
}
