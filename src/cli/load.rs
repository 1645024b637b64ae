//! From a file on the command line to a plan.

use std::path::{Path, PathBuf};

use super::worker::{folder_of, store_of};
use super::world::Files;
use super::{Fault, Manner, Which, output};
use crate::check::{Checked, check};
use crate::data::corpus::Part;
use crate::data::{self, Reach};
use crate::plan::{self, Plan};
use crate::run::Store;
use crate::run::history::History;
use crate::source::{Source, World};
use crate::study::{Data, Study};

/// A larger plan than this was not written by xrun: 10,000 arms take about a hundredth of it.
const LARGEST_PLAN: u64 = 1 << 30;

/// Checks an `.exp` file; its diagnostics go to standard error.
pub fn checked(path: &Path, manner: Manner) -> Result<Checked, Fault> {
    read(path, manner, check)
}

/// The same, and where every value comes from.
pub fn traced(path: &Path, manner: Manner) -> Result<Checked, Fault> {
    read(path, manner, crate::check::traced)
}

fn read(path: &Path, manner: Manner, check: fn(&dyn World, Source) -> Checked) -> Result<Checked, Fault> {
    let root = Files::root(path).map_err(|reason| Fault::Input(format!("`{}`: {reason}", path.display())))?;
    let checked = check(&Files, root);
    if !(checked.problems.is_empty() || manner.quiet && !checked.problems.has_errors()) {
        output::note(checked.problems.render(&checked.sources, manner.colors()).trim_end());
    }
    match checked.problems.has_errors() {
        true => Err(Fault::Diagnosed(format!("`{}` is refused: {}", path.display(), errors(&checked)))),
        false => Ok(checked),
    }
}

/// `1 error`, `3 errors`.
fn errors(checked: &Checked) -> String {
    let said = checked.problems.sorted();
    match said.iter().filter(|said| said.severity == crate::diagnostic::Severity::Error).count() {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    }
}

/// The plan of the study that is meant, from its text or as written down before.
pub fn plan(which: &Which, manner: Manner) -> Result<Plan, Fault> {
    if is_plan(&which.file) {
        return stored(which);
    }
    let checked = checked(&which.file, manner)?;
    let study = match (&which.study, checked.studies.as_slice()) {
        (None, [study]) => study,
        (None, []) => return Err(Fault::Input(format!("`{}` has no study", which.file.display()))),
        (None, studies) => {
            let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
            let (first, names) = (names[0], names.join(", "));
            return Err(Fault::Input(format!("`{}` has several studies ({names}): say `--study {first}`", which.file.display())));
        }
        (Some(name), studies) => studies.iter().find(|study| study.name == *name).ok_or_else(|| no_such_study(which, name))?,
    };
    planned(study, &which.file, &store(which))
}

/// The plans of all studies of a file.
pub fn plans(file: &Path, store: Option<&Path>, manner: Manner) -> Result<Vec<Plan>, Fault> {
    if is_plan(file) {
        return Ok(vec![stored(&Which { file: file.into(), study: None, store: store.map(Path::to_path_buf) })?]);
    }
    let store = Store::at(store_of(file, store));
    checked(file, manner)?.studies.iter().map(|study| planned(study, file, &store)).collect()
}

fn planned(study: &Study, file: &Path, store: &Store) -> Result<Plan, Fault> {
    let written = |data: &Data, content: &str| {
        let corpus = data::Corpus::open(&store.node(&plan::corpus(data, Some(content)))).ok()?;
        Some([Part::Train, Part::Holdout].map(|part| corpus.documents(part).to_vec()))
    };
    let mut facts = data::gather(study, &folder_of(file), &Reach { written: &written, most_bytes: None });
    facts.seconds = History::of(store).seconds();
    facts.flops_per_second = store.speed().map(|speed| speed.flops_per_second);
    plan::build(study, &facts).map_err(|error| Fault::Input(format!("`{}` cannot be planned: {error}", study.name)))
}

fn no_such_study(which: &Which, name: &str) -> Fault {
    Fault::Input(format!("`{}` has no study `{name}`", which.file.display()))
}

/// Whether a path is that of a written plan.
fn is_plan(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ron")
}

fn stored(which: &Which) -> Result<Plan, Fault> {
    let plan = written(&which.file)?;
    match &which.study {
        Some(name) if *name != plan.study.name => Err(no_such_study(which, name)),
        _ => Ok(plan),
    }
}

/// A plan as written down before.
pub fn written(path: &Path) -> Result<Plan, Fault> {
    let cannot = |reason: String| Fault::Input(format!("`{}`: {reason}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
    if size > LARGEST_PLAN {
        return Err(cannot(format!("larger than {} MiB", LARGEST_PLAN >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    ron::from_str(&text).map_err(|error| cannot(format!("not a plan of this xrun: {error}")))
}

/// The arms that are meant, by their indices: those that have the values, or the control of that name.
pub fn arms(plan: &Plan, said: &str) -> Result<Vec<usize>, Fault> {
    let arms = crate::check::arms(&plan.study, said);
    arms.map_err(|reason| Fault::Input(format!("`{}` has no arm `{said}`: {reason}", plan.study.name)))
}

/// The arm that is meant, where one alone can be.
pub fn arm(plan: &Plan, said: &str) -> Result<usize, Fault> {
    /// Names that are told where several are meant.
    const MOST: usize = 12;
    match arms(plan, said)?.as_slice() {
        [arm] => Ok(*arm),
        several => {
            let known: Vec<&str> = several.iter().take(MOST).map(|arm| plan.study.arms[*arm].name.as_str()).collect();
            let more = several.len() - known.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            Err(Fault::Input(format!("`{said}` stands for {} arms, say which: {}{more}", several.len(), known.join(", "))))
        }
    }
}

/// The store of the study that is meant; nothing is written.
pub fn store(which: &Which) -> Store {
    Store::at(store_of(&which.file, which.store.as_deref()))
}

/// The folder that a study's texts lie in or below.
pub fn folder(which: &Which) -> PathBuf {
    folder_of(&which.file)
}
