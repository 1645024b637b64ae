//! `xrun diff`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Fault, Outcome, output};
use crate::report::differences;

/// What is different between two reports
#[derive(Args)]
pub struct Arguments {
    /// Written by `xrun report --format json`
    old: PathBuf,
    /// Likewise
    new: PathBuf,
}

pub fn diff(arguments: &Arguments) -> Result<Outcome, Fault> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| Fault::Input(format!("`{}`: {error}", path.display())));
    let found = differences(&read(&arguments.old)?, &read(&arguments.new)?).map_err(Fault::Input)?;
    let text: String = found.iter().map(|line| format!("{line}\n")).collect();
    output::say(&text)?;
    Ok(if found.is_empty() { Outcome::Done } else { Outcome::Failed })
}
