//! `xrun new`: a first study, to be changed.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;

use super::{Fault, Outcome, output};

/// What a study may look like; `tests/tidy.rs` plans it.
const FIRST: &str = include_str!("../../stdlib/studies/first.exp");

/// Write a first study that runs as it stands
#[derive(Args)]
#[command(after_help = "Example: xrun new first.exp && xrun plan first.exp && xrun run first.exp && xrun report first.exp")]
pub struct Arguments {
    /// The file to write; one that is there already stays as it is
    file: PathBuf,
}

pub fn new(arguments: &Arguments) -> Result<Outcome, Fault> {
    let file = &arguments.file;
    let shown = file.display();
    if file.extension().is_none_or(|ending| ending != "exp") {
        return Err(Fault::Input(format!("`{shown}`: the name of a study ends in `.exp`")));
    }
    let mut written = OpenOptions::new().write(true).create_new(true).open(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Fault::Input(format!("`{shown}` is there already, and stays as it is")),
        ErrorKind::NotFound => Fault::Input(format!("`{shown}`: there is no such folder")),
        _ => Fault::Machine(format!("cannot write `{shown}`: {error}")),
    })?;
    written.write_all(FIRST.as_bytes()).map_err(|error| Fault::Machine(format!("cannot write `{shown}`: {error}")))?;
    output::note(&format!("`{shown}` is written; next:\n  xrun plan {shown}\n  xrun run {shown}\n  xrun report {shown}"));
    Ok(Outcome::Done)
}
