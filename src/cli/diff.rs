//! `xrun diff`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Fault, Outcome, output};
use crate::report;
use crate::run::{self, Store};

/// What is different between two reports, or between two stores
#[derive(Args)]
pub struct Arguments {
    /// A report that `xrun report --format json` wrote, or a folder of results (`.xrun`)
    old: PathBuf,
    /// Another
    new: PathBuf,
}

pub fn diff(arguments: &Arguments) -> Result<Outcome, Fault> {
    let found = match (arguments.old.is_dir(), arguments.new.is_dir()) {
        (true, true) => {
            let (old, new) = (store(&arguments.old)?, store(&arguments.new)?);
            run::differences(&old, &new).map_err(|error| Fault::Machine(error.to_string()))?
        }
        (false, false) => {
            let read = |path: &Path| {
                std::fs::read_to_string(path).map_err(|error| Fault::Input(format!("`{}`: {error}", path.display())))
            };
            report::differences(&read(&arguments.old)?, &read(&arguments.new)?).map_err(Fault::Input)?
        }
        _ => return Err(Fault::Input("one is a file and one a folder: two reports or two stores can be compared".to_owned())),
    };
    let text: String = found.iter().map(|line| format!("{line}\n")).collect();
    output::say(&text)?;
    Ok(if found.is_empty() { Outcome::Done } else { Outcome::Failed })
}

fn store(path: &Path) -> Result<Store, Fault> {
    if path.join("nodes").is_dir() {
        Ok(Store::at(path))
    } else {
        Err(Fault::Input(format!("`{}` is no folder of results: there is no `nodes` in it", path.display())))
    }
}
