//! Every schedule of the library and one that sets what can be set, stopped after each of its steps and gone on with, ends in the bytes of a run without stops.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use xrun::data::corpus;
use xrun::plan::node::{Node, Work};
use xrun::plan::{Plan, build};
use xrun::run::event::{Event, Line};
use xrun::run::lock::PATIENCE;
use xrun::run::store::{State, Store};
use xrun::run::worker::{Desk, Failure, Outcome, Progress, Worker};
use xrun::run::{Listener, Options, Summary, execute};
use xrun::study::{ProbeKind, Study};
use xrun::train::TrainWorker;

use crate::library::{calls, declared, study};

/// Nothing fails, and nobody else is there.
pub struct Calm;

impl Listener for Calm {
    fn hear(&self, line: &Line) {
        if let Event::NodeElsewhere { .. } | Event::NodeFailed { .. } = &line.event {
            panic!("{line:?}");
        }
    }
}

/// Writes corpora and trains.
pub struct Everything;

impl Worker for Everything {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        match &node.work {
            Work::Corpus { data, content } => {
                corpus::write(data, content.as_deref(), desk.folder, None, desk.folder, &mut |_| true)
                    .map(|_| Outcome::Done(BTreeMap::new()))
                    .map_err(|error| Failure::Input(error.to_string()))
            }
            _ => TrainWorker::default().work(node, desk),
        }
    }
}

/// Does everything, and asks for the end at each report of progress.
struct Asking<'a>(&'a AtomicBool);

impl Worker for Asking<'_> {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        let Desk { folder, finished, stop, save_every, threads, profile, ref mut tell } = *desk;
        let mut tell = |progress: Progress| {
            self.0.store(true, Ordering::Relaxed);
            (*tell)(progress);
        };
        Everything.work(node, &mut Desk { folder, finished, stop, save_every, threads, profile, tell: &mut tell })
    }
}

fn run(plan: &Plan, folder: &Path, always: bool) -> Summary {
    let stop = AtomicBool::new(false);
    // Nothing is saved but where it is stopped.
    let options =
        Options { jobs: 1, threads: 2, save_every: Duration::from_secs(3_600), patience: PATIENCE, asked: Instant::now() };
    let nodes: Vec<Node> = plan.nodes().into_iter().cloned().collect();
    let worker: &dyn Worker = if always { &Asking(&stop) } else { &Everything };
    execute(&nodes, &Store::at(folder), worker, &options, &stop, &Calm).expect("the store works")
}

pub fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for node in std::fs::read_dir(folder.join("nodes")).expect("lists") {
        for file in std::fs::read_dir(node.expect("an entry").path()).expect("lists") {
            let path = file.expect("an entry").path();
            all.insert(path.strip_prefix(folder).expect("inside").display().to_string(), std::fs::read(&path).expect("reads"));
        }
    }
    all
}

/// The results of a run without stops, which are those of one that is stopped after each step; both read as many tokens as is planned.
fn stopped_anywhere(study: &Study) -> BTreeMap<String, Vec<u8>> {
    let (whole, stopped) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let plan = build(study, &xrun::data::gather(study, whole.path(), &xrun::data::Reach::whole())).expect("a plan");
    assert!(!run(&plan, whole.path(), false).interrupted);
    let mut stops = 0;
    while run(&plan, stopped.path(), true).interrupted {
        stops += 1;
    }
    // Each step is followed by a stop, a phase's last by one before its checkpoint.
    assert!(stops as u64 >= plan.totals.steps_planned, "{stops} stops");
    for key in plan.runs.iter().flat_map(|run| &run.phases) {
        let cost = plan.cost(key).expect("a cost");
        let planned = [cost.tokens, cost.active_layer_tokens, cost.trained_layer_tokens];
        let State::Finished(record) = Store::at(whole.path()).state(key) else { panic!("{key} is not done") };
        let done = ["tokens", "active_layer_tokens", "trained_layer_tokens"].map(|name| record.counts.get(name).copied());
        assert_eq!(done, planned);
    }
    let (whole, stopped) = (results(whole.path()), results(stopped.path()));
    for (path, bytes) in &whole {
        assert!(stopped.get(path) == Some(bytes), "{path}");
    }
    assert_eq!(whole.len(), stopped.len());
    whole
}

/// Sequences that become longer and shorter, under a teacher that runs beside the student; packed and padded.
#[test]
fn contexts_that_are_set_stopped_anywhere_end_in_the_same_bytes() {
    for layout in ["packed", "padded"] {
        let text = format!(
            "data tales {{ generate tales(documents: 60), context 32 tokens, {layout}, holdout 10%, shard 2_000 tokens }}
             model tiny {{ layers 4, block 2 layers, width 8, heads 2, kv 1, ffn swiglu(12), init normal(0.1) }}
             training plain {{ loss cross_entropy, optimizer adamw(lr: 3e-3), batch 4 sequences in 3 }}
             teacher big {{ model tiny, train 4 steps with plain }}
             training distilled = plain with {{ loss 0.5 * kl(big) + 0.5 * cross_entropy }}
             schedule longer {{
               start with 1 block
               at step 2: set context 12 tokens
               at token 400: grow block, set context 40 tokens, fresh data
               at step 9: set context 32 tokens, set batch 3 sequences
               end at step 11
             }}
             study s {{ data tales, model tiny, training distilled, schedule longer, measure validation_ce every 3 steps, measure kl every 5 steps }}"
        );
        stopped_anywhere(&study(&text));
    }
}

#[test]
fn every_schedule_stopped_anywhere_ends_in_the_same_bytes() {
    let names = declared("schedule", "std.schedules");
    let calls: Vec<String> = names.iter().map(|name| calls(name, 3)).collect();
    let text = |probes: &str| {
        format!(
        "use std.placements (post)
         use std.schedules ({names})
         data tales {{ generate tales(documents: 60), context 16 tokens, packed, holdout 10% }}
         model tiny {{ layers 8, block 2 layers, width 8, heads 2, kv 1, ffn swiglu(12), init normal(0.1), placement post }}
         teacher big {{ model tiny, train 4 steps with plain, cache top 4 }}
         teacher pupil {{ model tiny, train 3 steps with taught, cache all }}
         training taught = plain with {{ loss 0.5 * kl(big, temperature: 4) + 0.5 * cross_entropy }}
         training plain {{ loss cross_entropy, optimizer adamw(lr: 3e-3), lr warmup 2 steps then cosine to 10%, batch 4 sequences, clip 0.5 }}
         training distilled = plain with {{ loss 0.7 * kl(big, temperature: 2) + 0.3 * cross_entropy }}
         schedule turned {{
           start with 1 block
           at step 3: set loss cross_entropy
           at step 5: grow block, set loss 0.5 * jsd(big, temperature: 2, beta: 0.3) + 0.3 * reverse_kl(pupil) + 0.2 * kl(pupil, temperature: 3)
           end at step 8
         }}
         study s {{ data tales, model tiny, training distilled
           vary schedule over {calls}, turned
           measure validation_ce every 2 steps
           {probes} }}",
        names = names.join(", "),
        calls = calls.join(", "),
    )
    };
    let probes = ProbeKind::ALL.map(|kind| format!("probe {} at every grow and at end on 4 sequences of 16 tokens", kind.name()));
    let (blind, study) = (study(&text("")), study(&text(&probes.join("\n"))));
    let whole = stopped_anywhere(&study);
    // Who looks at nothing trains the same bytes: probes are nodes beside the phases.
    let unseen = tempfile::tempdir().expect("a folder");
    let plan = build(&blind, &xrun::data::gather(&blind, unseen.path(), &xrun::data::Reach::whole())).expect("a plan");
    assert!(!run(&plan, unseen.path(), false).interrupted);
    let unseen = results(unseen.path());
    assert!(unseen.iter().all(|(path, bytes)| whole.get(path) == Some(bytes)) && unseen.len() < whole.len());
}
