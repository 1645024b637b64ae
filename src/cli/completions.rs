//! `xrun completions`: what a shell needs to complete xrun's words.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Fault, Outcome, output};

/// Print what a shell needs to complete commands and options
#[derive(Args)]
#[command(after_help = "Example: xrun completions bash > ~/.local/share/bash-completion/completions/xrun")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

pub fn completions(arguments: &Arguments) -> Result<Outcome, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "xrun", &mut script);
    output::say(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
