//! Programs made at random: each is right, however it is laid out, and laying it out changes nothing that it means.
//!
//! `XRUN_PROGRAMS` sets how many are made. `XRUN_SUITE=folder` walks another folder of texts too.

#[path = "cases/comments.rs"]
mod comments;
#[path = "cases/files.rs"]
mod files;
#[path = "cases/generate.rs"]
mod generate;
#[path = "cases/layout.rs"]
mod layout;
#[path = "cases/random.rs"]
mod random;

use std::path::{Path, PathBuf};

use xrun::check::check;
use xrun::data::facts::Facts;
use xrun::data::{Reach, gather};
use xrun::plan::{Key, build};
use xrun::source::{Source, World};

use generate::{Layout, laid, program};
use random::Random;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a text")
}

/// The files beside a text.
struct Beside<'a>(&'a Path);

impl World for Beside<'_> {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        std::fs::read_to_string(self.0.join(path)).map(|text| Source::new(path, text)).map_err(|error| error.to_string())
    }
}

/// Keys of all nodes of the only study of a program.
fn keys(text: &str) -> Vec<Key> {
    let checked = check(&Beside(Path::new(".")), Source::new("program.exp", text));
    assert!(!checked.problems.has_errors(), "{}\n{text}", checked.problems.render(&checked.sources, false));
    let [study] = checked.studies.as_slice() else { panic!("{} studies\n{text}", checked.studies.len()) };
    let plan = build(study, &gather(study, Path::new("."), &Reach::whole())).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan.nodes().into_iter().map(|node| node.key.clone()).collect()
}

/// Keys of each study of a text that lies in a folder, its data not at hand; or why it cannot be planned.
fn planned(text: &str, folder: &Path) -> Vec<Result<Vec<Key>, String>> {
    let checked = check(&Beside(folder), Source::new("text.exp", text));
    let plans = checked.studies.iter().map(|study| build(study, &Facts::default()));
    let keys = |plan: xrun::plan::Plan| plan.nodes().into_iter().map(|node| node.key.clone()).collect();
    plans.map(|plan| plan.map(keys).map_err(|error| error.to_string())).collect()
}

#[test]
fn a_program_means_the_same_in_any_layout() {
    let count = std::env::var("XRUN_PROGRAMS").map_or(60, |count| count.parse().expect("a number"));
    for seed in 0..count {
        let random = &mut Random::new(seed);
        let program = program(random);
        let plain = keys(&laid(&program, Layout::Plain, random));
        assert!(plain.len() > 4);
        for _ in 0..2 {
            let text = laid(&program, Layout::Odd, random);
            assert!(text.contains("//"), "no comment\n{text}");
            assert_eq!(keys(&text), plain, "{text}");
            let laid_out = layout::holds(&format!("program {seed}"), &text);
            assert_eq!(keys(&laid_out), plain, "{text}\n{laid_out}");
        }
    }
}

#[test]
fn laying_out_a_text_of_the_repository_keeps_its_plan() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut planned_ones = 0;
    let folders = ["experiments", "stdlib", "tests/suite"].map(|folder| root.join(folder));
    let folders = folders.into_iter().chain(std::env::var("XRUN_SUITE").ok().map(PathBuf::from));
    for path in folders.flat_map(|folder| files::files(&folder, "exp")) {
        let (text, folder) = (read(&path), path.parent().expect("a folder"));
        let Ok(laid_out) = layout::laid_out(&text) else { continue };
        let before = planned(&text, folder);
        assert_eq!(planned(&laid_out, folder), before, "{}", path.display());
        planned_ones += before.iter().filter(|plan| plan.is_ok()).count();
    }
    assert!(planned_ones > 0);
}
