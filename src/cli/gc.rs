//! `xrun gc`: what no plan reaches.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::worker::store_of;
use super::{Fault, Manner, Outcome, load, output};
use crate::plan::Key;
use crate::plan::text::bytes;
use crate::report::number::plural;
use crate::run::lock::{Observer, PATIENCE};
use crate::run::store::{Standing, Store};

/// Say what of a store no plan of these files reaches; remove it with --remove
#[derive(Args)]
pub struct Arguments {
    /// Every .exp file and plan whose results are to stay: all studies of a file count
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder of results [default: .xrun beside the first FILE]
    #[arg(long, env = "XRUN_STORE", value_name = "FOLDER", hide_env_values = true)]
    store: Option<PathBuf>,
    /// Remove it; otherwise it is only counted
    #[arg(long)]
    remove: bool,
}

pub fn gc(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let Some(first) = arguments.files.first() else { return Ok(Outcome::Done) };
    let at = store_of(first, arguments.store.as_deref());
    let store = Store::at(&at);
    let mut reached: BTreeSet<Key> = BTreeSet::new();
    for file in &arguments.files {
        for plan in load::plans(file, arguments.store.as_deref(), manner)? {
            // A text that is not at hand gives other keys than it has when it is.
            plan.runnable().map_err(|reason| {
                Fault::Input(format!("`{}`: cannot tell what `{}` reaches: {reason}", file.display(), plan.study.name))
            })?;
            reached.extend(plan.nodes().into_iter().map(|node| node.key.clone()));
        }
    }
    let machine = |error: crate::run::StoreError| Fault::Machine(error.to_string());
    let left: Vec<Key> = store.keys().map_err(machine)?.into_iter().filter(|key| !reached.contains(key)).collect();
    let sizes: Vec<u64> = left.iter().map(|key| store.size(key)).collect();
    if manner.verbose {
        for (key, size) in left.iter().zip(&sizes) {
            output::say(&format!("{key} {}\n", bytes(Some(*size))))?;
        }
    }
    let what =
        format!("{} that no plan of these files reaches, {}", plural(left.len() as u64, "node"), bytes(Some(sizes.iter().sum())));
    if !arguments.remove {
        let hint = if left.is_empty() { "" } else { "; `--remove` removes them" };
        output::say(&format!("{what}, in `{}`; {} kept{hint}\n", at.display(), plural(reached.len() as u64, "planned node")))?;
        return Ok(Outcome::Done);
    }
    if let Some((key, holder)) = store.keys().map_err(machine)?.into_iter().find_map(|key| match store.standing(&key) {
        Standing::Running(holder) => Some((key, holder)),
        _ => None,
    }) {
        return Err(Fault::Machine(format!(
            "{holder} works on {key} in this store: nothing was removed; ask again when no run is under way"
        )));
    }
    let observer = Observer::new(PATIENCE);
    let mut removed = 0;
    for key in &left {
        removed += u64::from(store.remove(key, &observer).map_err(machine)?);
    }
    output::say(&format!("removed {removed} of {what}, from `{}`\n", at.display()))?;
    Ok(Outcome::Done)
}
