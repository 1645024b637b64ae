//! `xrun cancel`: takes jobs out of Slurm's queue.

use std::path::PathBuf;

use clap::Args;

use super::worker::store_of;
use super::{Fault, Outcome, output};
use crate::run::{Store, slurm};

/// Take the jobs of a study out of Slurm's queue; what they have done is kept
#[derive(Args)]
pub struct Arguments {
    /// The .exp file or plan that was submitted; it is not read
    file: PathBuf,
    /// Jobs of this study alone [default: of all that share the folder of results]
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// The folder of results [default: .xrun beside FILE]
    #[arg(long, env = "XRUN_STORE", value_name = "FOLDER", hide_env_values = true)]
    store: Option<PathBuf>,
}

pub fn cancel(arguments: &Arguments) -> Result<Outcome, Fault> {
    let Arguments { file, study, store } = arguments;
    let store = Store::at(store_of(file, store.as_deref()));
    let count = slurm::cancel(&store, study.as_deref()).map_err(|error| Fault::Machine(error.to_string()))?;
    output::note(&match count {
        0 => "nothing is in the queue".to_owned(),
        1 => "1 task cancelled".to_owned(),
        count => format!("{count} tasks cancelled"),
    });
    Ok(Outcome::Done)
}
