//! `xrun fmt`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::world::Files;
use super::{Fault, Manner, Outcome, output};
use crate::check::begins_statement;
use crate::source::Sources;
use crate::syntax::print;

/// Lay out .exp files in the usual way; comments stay, meaning too
#[derive(Args)]
pub struct Arguments {
    /// The files, rewritten in place
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Rewrite nothing; exit with 1 if a file would change
    #[arg(long)]
    check: bool,
}

pub fn fmt(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let mut outcome = Outcome::Done;
    for file in &arguments.files {
        match one(file, arguments.check, manner) {
            Ok(true) if arguments.check => {
                output::note(&format!("{} is not laid out in the usual way", file.display()));
                outcome = if outcome == Outcome::Done { Outcome::Failed } else { outcome };
            }
            Ok(_) => {}
            Err(fault) => {
                output::complain(&fault.to_string());
                outcome = fault.outcome();
            }
        }
    }
    Ok(outcome)
}

/// Whether the file is not as it should be.
fn one(file: &Path, check: bool, manner: Manner) -> Result<bool, Fault> {
    let source = Files::root(file).map_err(|reason| Fault::Input(format!("`{}`: {reason}", file.display())))?;
    let printed = print(&source, &begins_statement).map_err(|problems| {
        let mut sources = Sources::default();
        sources.add(source.clone());
        output::note(problems.render(&sources, manner.colors()).trim_end());
        Fault::Diagnosed(format!("`{}` is left as it is", file.display()))
    })?;
    let differs = printed != *source.text;
    if differs && !check {
        output::deliver(&printed, Some(file))?;
    }
    Ok(differs)
}
