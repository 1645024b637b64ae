//! `xrun export`: a trained model as a folder for others.

use std::path::PathBuf;

use clap::Args;

use super::{Fault, Manner, Outcome, Which, load, output, story};
use crate::data::tokenize::Encoder;
use crate::data::{Corpus, bpe};
use crate::export::{Trained, Words, Written, write};
use crate::plan::node::{Key, Phase, Work};
use crate::plan::{Plan, PlannedRun};
use crate::report::number::{exact, listed, plural};
use crate::run::record::CHECKPOINT;
use crate::run::store::{State, Store};
use crate::study::Tokenizer;

/// Write a trained model as a folder that transformers loads
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// The arm, by its values or its name: '[post, grow]'
    arm: String,
    /// The folder that is made; nothing that is there gives way to it
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The seed [default: the study's first]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Which checkpoint: 'step 400', 'grow 1' (just before it), or end
    #[arg(long, value_name = "MOMENT", default_value = "end")]
    at: String,
}

pub fn export(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let store = load::store(&arguments.which);
    let arm = load::arm(&plan, &arguments.arm)?;
    let run = run(&plan, arm, arguments.seed)?;
    let last = phase(run, &arguments.at)?;
    let key = &run.phases[last];
    present(&plan, &store, run, last)?;
    let phase = planned(&plan, key)?;
    let data = &phase.data;
    let segments = &run.timeline.segments[..=last];
    let trained = Trained {
        story: &story::gather(&plan, &story::Shelved::new(&plan, &store)).0,
        arm,
        seed: run.seed,
        phase: last,
        model: &phase.model,
        segment: &phase.segment,
        context: segments.iter().map(|segment| segment.context(data)).max().unwrap_or(data.context),
        tokens: run.phases[..=last].iter().map(|key| plan.cost(key)?.tokens).sum(),
        checkpoint: &store.node(key).join(CHECKPOINT),
        words: words(&plan, phase, &arguments.which, &store)?,
    };
    let written = output::deliver_folder(&arguments.to, |folder| {
        write(&trained, folder).map_err(|error| Fault::Machine(error.to_string()))
    })?;
    if !manner.quiet {
        output::note(&format!("`{}`: {}", arguments.to.display(), told(&written)));
    }
    Ok(Outcome::Done)
}

fn run(plan: &Plan, arm: usize, seed: Option<u64>) -> Result<&PlannedRun, Fault> {
    let mut runs = plan.runs.iter().filter(|run| run.arm == arm);
    let found = match seed {
        None => runs.next(),
        Some(seed) => runs.find(|run| run.seed == seed),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = plan.study.seeds.iter().map(u64::to_string).collect();
        Fault::Input(format!("`{}` has no seed {}; it has {}", plan.study.name, seed.unwrap_or_default(), listed(&known)))
    })
}

/// The phase that ends at a moment.
fn phase(run: &PlannedRun, said: &str) -> Result<usize, Fault> {
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    let said = said.trim();
    let grows: Vec<u64> = run.timeline.grows().collect();
    let step = match (said.strip_prefix("grow"), said.strip_prefix("step")) {
        (Some(rest), _) => number(rest).and_then(|at| grows.get(usize::try_from(at).ok()?.checked_sub(1)?).copied()),
        (_, Some(rest)) => number(rest),
        _ if said == "end" => Some(run.steps),
        _ => number(said),
    };
    let segments = || run.timeline.segments.iter();
    step.and_then(|step| segments().position(|segment| segment.steps.end == step)).ok_or_else(|| {
        let name = |end: u64| match grows.iter().position(|step| *step == end) {
            _ if end == run.steps => format!("step {end} (end)"),
            Some(at) => format!("step {end} (grow {})", at + 1),
            None => format!("step {end}"),
        };
        let known: Vec<String> = segments().map(|segment| name(segment.steps.end)).collect();
        Fault::Input(format!("{} has no checkpoint at `{said}`; it has them at {}", run.name, listed(&known)))
    })
}

/// The checkpoint is there, and is what was written.
fn present(plan: &Plan, store: &Store, run: &PlannedRun, last: usize) -> Result<(), Fault> {
    let key = &run.phases[last];
    let label = plan.node(key).map_or("its phase", |node| node.label.as_str());
    match store.state(key) {
        State::Finished(record) if record.files.contains_key(CHECKPOINT) => Ok(()),
        State::Finished(_) => Err(Fault::Machine(format!("{label} ({key}) is damaged: it has no `{CHECKPOINT}`"))),
        State::Damaged(reason) => Err(Fault::Machine(format!("{label} ({key}) is damaged: {reason}; `xrun run` makes it anew"))),
        State::Absent => {
            let diverged = run.phases[..=last].iter().find_map(|key| store.failure(key)?.diverged_at);
            let (name, seed) = (&run.name, run.seed);
            Err(Fault::Input(match diverged {
                Some(step) => format!("{name}, seed {seed}, diverged at step {}: there is no model", exact(step)),
                None => {
                    let done = run.phases[..=last].iter().take_while(|key| store.has(key)).count();
                    let phases = plural(last as u64 + 1, "phase");
                    format!(
                        "{name}, seed {seed}, is not trained: {done} of {phases} done; `xrun run --arm '{name}'` does the rest"
                    )
                }
            }))
        }
    }
}

fn planned<'p>(plan: &'p Plan, key: &Key) -> Result<&'p Phase, Fault> {
    match plan.node(key).map(|node| &node.work) {
        Some(Work::Phase(phase)) => Ok(phase),
        _ => Err(Fault::Input(format!("the plan has no phase {key}"))),
    }
}

/// How text becomes the tokens that the model knows.
fn words(plan: &Plan, phase: &Phase, which: &Which, store: &Store) -> Result<Words, Fault> {
    let folder = load::folder(which);
    let (path, trained) = match &phase.data.tokenizer {
        Tokenizer::Bytes => return Ok(Words { end: Tokenizer::BYTE_BOUNDARY, file: None }),
        Tokenizer::Teacher => panic!("this is a bug in xrun: the tokenizer of a teacher is told by its file"),
        Tokenizer::File(path) => (folder.join(path), None),
        Tokenizer::Bpe(_) => {
            let needs = plan.node(&phase.corpus).and_then(|corpus| corpus.needs.first());
            let unknown = || Fault::Input(format!("the plan has no tokenizer of `{}`", phase.data.name));
            let path = store.node(needs.ok_or_else(unknown)?).join(bpe::FILE);
            (path.clone(), Some(path))
        }
    };
    let encoder =
        Encoder::open(&phase.data.tokenizer, &folder, trained.as_deref()).map_err(|error| Fault::Input(error.to_string()))?;
    if let Ok(corpus) = Corpus::open(&store.node(&phase.corpus))
        && (corpus.header.vocabulary, corpus.header.boundary) != (encoder.vocabulary(), encoder.boundary())
    {
        let path = path.display();
        return Err(Fault::Input(format!("the tokenizer `{path}` is another than the one that was trained with")));
    }
    let end = encoder.boundary();
    Ok(Words { end, file: Some((encoder.spelt().unwrap_or_default(), path)) })
}

fn told(written: &Written) -> String {
    let size = format!("{}, {} parameters", plural(written.tensors as u64, "tensor"), exact(written.parameters));
    match &written.class {
        Ok(class) => format!("a {class} of {size}"),
        Err(reason) => {
            format!(
                "{size}, under xrun's own names: transformers has no such architecture, for it has {reason}; README.md says how to load it"
            )
        }
    }
}
