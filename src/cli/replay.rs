//! `xrun replay`: shows again what runs did, from their events alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::report::{self, Format};
use super::{Fault, Manner, Outcome, Which, load, output, story, tensorboard};
use crate::plan::{Key, Plan};
use crate::report::findings;
use crate::report::number::{exact, plural};
use crate::run::event::{Event, Line};
use crate::run::profile::overhead;
use crate::run::replay::{Tail, Told, streams};

/// Show again what the runs of a study did and when, or the report that their events give
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print the report instead, from events alone: what is in the store does not matter
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write curves for TensorBoard instead: a folder below FOLDER for each run
    #[arg(long, value_name = "FOLDER", conflicts_with = "format")]
    tensorboard: Option<PathBuf>,
}

pub fn replay(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let folder = load::store(&arguments.which).events();
    let board = arguments.tensorboard.as_deref();
    if arguments.format.is_none() && board.is_none() {
        return shown(&plan, &folder, manner);
    }
    let wanted: BTreeSet<&Key> = plan.nodes().into_iter().map(|node| &node.key).collect();
    let (told, faults) = Told::read(&folder, &|key| wanted.contains(key));
    for fault in faults {
        output::note(&format!("warning: {fault}"));
    }
    if let Some(board) = board {
        let runs = tensorboard::write(&plan, &told, board);
        let runs = runs.map_err(|error| Fault::Machine(format!("cannot write into `{}`: {error}", board.display())))?;
        output::note(&format!("{} in `{}`", plural(runs as u64, "run"), board.display()));
        return Ok(Outcome::Done);
    }
    let (story, damaged) = story::gather(&plan, &told);
    for reason in &damaged {
        output::note(&format!("warning: {reason}"));
    }
    output::say(&report::rendered(&findings(&story), arguments.format.unwrap_or(Format::Md))?)?;
    Ok(Outcome::Done)
}

fn shown(plan: &Plan, folder: &Path, manner: Manner) -> Result<Outcome, Fault> {
    let wanted: BTreeSet<&Key> = plan.nodes().into_iter().map(|node| &node.key).collect();
    for path in streams(folder) {
        let (mut lines, mut about, mut began) = (String::new(), false, None);
        let mut tail = Tail::new(path);
        tail.skim(&|_, key| key.is_none_or(|key| wanted.contains(key)), |line| {
            let since = line.at - *began.get_or_insert(line.at);
            about |= matches!(line.event, Event::NodeStarted { .. });
            if let Some(text) = told(&line, manner.verbose) {
                lines.push_str(&format!("{since:>9.1} s  {text}\n"));
            }
        });
        // Runs of other studies in the same store are not shown.
        if about {
            output::say(&lines)?;
        }
        if let Some(fault) = tail.fault() {
            output::note(&format!("warning: {fault}"));
        }
    }
    Ok(Outcome::Done)
}

/// An event in words; `None` for what a log does not tell.
pub fn told(line: &Line, all: bool) -> Option<String> {
    Some(match &line.event {
        Event::RunStarted { host, pid, program, jobs, nodes } => {
            format!("run      process {pid} on {host}, xrun {program}: {}, {jobs} at a time", plural(*nodes as u64, "node"))
        }
        Event::NodeStarted { label, why, .. } => match why.as_str() {
            "missing" => format!("begins   {label}"),
            why => format!("again    {label}: {why}"),
        },
        Event::NodeProgress { key, done, total, tokens, .. } if all => {
            let key = &key.0[..key.0.len().min(12)];
            format!("further  {key}: {} of {}, {} tokens", exact(*done), exact(*total), exact(*tokens))
        }
        Event::NodeElsewhere { label, holder, .. } => {
            format!("waits    {label}: {} works on it", holder.as_deref().unwrap_or("another process"))
        }
        Event::NodeFinished { label, seconds, tokens, .. } => {
            let rate = if *tokens > 0 {
                format!("  {} tokens/s", exact((*tokens as f64 / seconds.max(1e-9)) as u64))
            } else {
                String::new()
            };
            format!("done     {label:<52} {seconds:>6.1} s{rate}")
        }
        Event::NodeFailed { label, reason, .. } => format!("FAILED   {label}: {reason}"),
        Event::RunFinished { done, found, failed, blocked, interrupted, spent, .. } => {
            let interrupted = if *interrupted { ", interrupted" } else { "" };
            let over = 100.0 * overhead(spent);
            format!(
                "over     {done} done, {found} were there, {failed} failed, {blocked} blocked{interrupted}; {over:.1} % overhead"
            )
        }
        Event::NodeFound { .. }
        | Event::NodeProgress { .. }
        | Event::NodeMeasured { .. }
        | Event::NodeEvaluated { .. }
        | Event::NodeProbed { .. }
        | Event::NodeInterrupted { .. }
        | Event::RunTakes { .. }
        | Event::Unknown => return None,
    })
}
