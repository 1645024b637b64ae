//! Curves for TensorBoard: a folder for each run of a study, with one event file.
//!
//! Deliberately computes nothing: what was measured is what is shown, at the moment at which the runner told of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::plan::Plan;
use crate::plan::run::PlannedRun;
use crate::run::replay::Told;
use crate::run::tfevents::EventFile;

/// Writes the event files of all runs of which something was told; how many those are.
pub fn write(plan: &Plan, told: &Told, folder: &Path) -> std::io::Result<usize> {
    let mut names = BTreeSet::new();
    let mut written = 0;
    for run in &plan.runs {
        let arm = &plan.study.arms[run.arm].name;
        let mut name = plain(&format!("{arm} seed {}", run.seed));
        while !names.insert(name.clone()) {
            name.push('_');
        }
        written += usize::from(one(run, told, &folder.join(name))?);
    }
    Ok(written)
}

/// The event file of a run, whole or not at all; a run that has measured nothing has none.
fn one(run: &PlannedRun, told: &Told, folder: &Path) -> std::io::Result<bool> {
    let attempts = || run.phases.iter().filter_map(|key| told.attempt(key));
    let Some(began) = attempts().next().map(|attempt| attempt.began) else { return Ok(false) };
    fs::create_dir_all(folder)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    let mut file = EventFile::begin(BufWriter::new(temporary.as_file_mut()), began, 0)?;
    for (line, at) in attempts().flat_map(|attempt| attempt.lines.iter().zip(&attempt.times)) {
        file.add(*at, line.step, line.values.iter().map(|(name, value)| (name.as_str(), value.0)))?;
    }
    file.into_inner().flush()?;
    // One name for each run: who replays again writes the file again.
    temporary.persist(folder.join("events.out.tfevents.xrun")).map_err(|error| error.error)?;
    Ok(true)
}

/// A name that is one folder and no path.
fn plain(name: &str) -> String {
    let plain = |letter: char| if letter.is_control() || "/\\:*?\"<>|".contains(letter) { '_' } else { letter };
    let name: String = name.chars().map(plain).collect();
    match name.trim_start_matches('.') {
        rest if rest.len() < name.len() => format!("_{rest}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_no_paths() {
        assert_eq!(plain("[post, grow] seed 0"), "[post, grow] seed 0");
        assert_eq!(plain("../../a/b\n seed 1"), "__.._a_b_ seed 1");
        assert_eq!(plain(".."), "_");
    }
}
