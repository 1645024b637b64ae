//! `xrun explain` and `xrun help`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::world::Files;
use super::{Fault, Outcome, output};
use crate::check::explain::{explain as explanation, explanations, placement};
use crate::diagnostic::nearest;

/// The language for its users.
const REFERENCE: &str = include_str!("../../grammar/reference.md");

/// Explain a diagnostic by its code, or a placement by its name
#[derive(Args)]
#[command(
    after_help = "Examples: xrun explain wrong-unit\n          xrun explain placement deepnorm\n          xrun explain placement mine --file study.exp"
)]
pub struct Arguments {
    /// A code as diagnostics show it, or `placement`
    code: String,
    /// The name of a placement
    #[arg(required_if_eq("code", "placement"))]
    name: Option<String>,
    /// The file that declares the placement [default: the standard library]
    #[arg(long, requires = "name")]
    file: Option<PathBuf>,
}

pub fn explain(arguments: &Arguments) -> Result<Outcome, Fault> {
    match (arguments.code.as_str(), &arguments.name) {
        ("placement", Some(name)) => {
            let root = match &arguments.file {
                Some(path) => {
                    let root = Files::root(path).map_err(|reason| Fault::Input(format!("`{}`: {reason}", path.display())))?;
                    Some(root)
                }
                None => None,
            };
            let text = placement(&Files, root, name).ok_or_else(|| Fault::Input(format!("no placement is called `{name}`")))?;
            output::say(&format!("{}\n", text.trim_end()))?;
        }
        (code, None) => {
            let found = explanation(code).ok_or_else(|| unknown(code))?;
            output::say(&format!("{}\n\n{}\n", found.code, found.text))?;
        }
        (code, Some(name)) => return Err(Fault::Input(format!("`{code} {name}`: only placements have names to explain"))),
    }
    Ok(Outcome::Done)
}

fn unknown(code: &str) -> Fault {
    let codes: Vec<String> = explanations().map(|known| known.code.to_owned()).collect();
    let near = nearest(code, codes.iter().map(String::as_str));
    let hint = near.map_or_else(|| format!("known are {}", codes.join(", ")), |near| format!("did you mean `{near}`?"));
    Fault::Input(format!("no diagnostic has the code `{code}`; {hint}"))
}

/// Say how to call a command; `xrun help language` prints the language reference
#[derive(Args)]
pub struct HelpArguments {
    /// A command, or `language`
    topic: Option<String>,
}

pub fn help(arguments: &HelpArguments) -> Result<Outcome, Fault> {
    let mut command = super::Arguments::command();
    command.build();
    let text = match arguments.topic.as_deref() {
        Some("language") => REFERENCE.to_owned(),
        None => command.render_long_help().to_string(),
        Some(topic) => match command.find_subcommand_mut(topic) {
            Some(command) => command.render_long_help().to_string(),
            None => return Err(Fault::Input(format!("no command is called `{topic}`"))),
        },
    };
    output::say(&text)?;
    Ok(Outcome::Done)
}
