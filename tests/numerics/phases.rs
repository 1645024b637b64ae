//! Phases, teachers, caches and probes at a desk, as the runner has them done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use xrun::budget::learning::Learns;
use xrun::budget::transition::{Moments, Reading, Transition, rows, transitions};
use xrun::data::{Reader, corpus};
use xrun::model::{Network, Without};
use xrun::plan::node::{Key, Node, Phase, Probe, TeacherAt, TeacherLogits, TeacherUse, Work};
use xrun::run::profile::Profile;
use xrun::run::record::{CHECKPOINT, DocumentsRecord, MetricLine, ProbeRecord};
use xrun::run::worker::{Desk, Failure, Outcome, Progress, Stop, Worker};
use xrun::study::training::{Batch, Precision, RateShape, Shape, Warmup};
use xrun::study::{
    self, Cache, Data, Documents, Embedding, Holdout, Layout, Loss, LossTerm, Metric, Model, Placement, ProbeKind, Shard, Text,
    Tokenizer, Training, Vocabulary,
};
use xrun::tensor::Composed;
use xrun::timeline::{DataPosition, FirstValues, Frozen, LayerId, NewLayer, RateFormula, Segment};
use xrun::train::{Checkpoint, State, TrainWorker};

use crate::build::*;

/// A store without locks: a folder a node; and the segments that led to each phase. Models of others lie in `tests/reference/hub`.
pub struct Store(tempfile::TempDir, RefCell<BTreeMap<Key, Vec<Segment>>>);

impl Store {
    pub fn new(layout: Layout) -> Self {
        let this = Self(tempfile::tempdir().expect("a folder"), RefCell::default());
        let folder = this.folder("corpus");
        corpus::write(&data(layout), None, this.0.path(), None, &folder, &mut |_| true).expect("a corpus");
        this
    }
    pub fn folder(&self, key: &str) -> PathBuf {
        let folder = self.0.path().join(key);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }
    /// A phase's table, as the planner makes it.
    fn planned(&self, key: &str, work: Work) -> Work {
        let (Work::Phase(mut phase) | Work::Teacher(mut phase)) = work else { return work };
        let mut course = phase.parent.as_ref().map_or(vec![], |parent| self.1.borrow()[parent].clone());
        course.push(phase.segment.clone());
        phase.transition = transitions(&course, &rows(&phase.model, &phase.training.optimizer, &course)).pop().expect("a table");
        self.1.borrow_mut().insert(Key(key.into()), course);
        Work::Phase(phase)
    }
    pub fn work(&self, key: &str, work: Work, stop: Option<u64>, save_every: Duration) -> Result<Outcome, Failure> {
        self.attempt(key, self.planned(key, work), stop, save_every)
    }
    /// Works on a node; stops after `stop` reports of progress, 0: from the beginning.
    fn attempt(&self, key: &str, work: Work, stop: Option<u64>, save_every: Duration) -> Result<Outcome, Failure> {
        let node = Node { key: Key(key.into()), label: key.into(), needs: vec![], work };
        let (folder, stopped, mut reports) = (self.folder(key), AtomicBool::new(stop == Some(0)), 0);
        let mut tell = |_: Progress| {
            reports += 1;
            if Some(reports) == stop {
                stopped.store(true, Ordering::Relaxed);
            }
        };
        let root = self.0.path();
        let finished = |key: &Key| root.join(&key.0);
        let (stop, profile) = (Stop::of(&stopped), Profile::default());
        let mut desk =
            Desk { folder: &folder, finished: &finished, stop, save_every, tell: &mut tell, threads: 2, profile: &profile };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub");
        TrainWorker { folder, ..TrainWorker::default() }.work(&node, &mut desk)
    }
    pub fn done(&self, key: &str, work: Work) -> BTreeMap<String, u64> {
        match self.work(key, work, None, Duration::from_secs(3600)).expect("it works") {
            Outcome::Done(counts) => counts,
            Outcome::Interrupted => panic!("nobody asked"),
        }
    }
    pub fn files(&self, key: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.folder(key)).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").path())
            .map(|path| (name(&path), std::fs::read(&path).expect("a file")))
            .collect()
    }
    fn checkpoint(&self, key: &str) -> Checkpoint {
        Checkpoint::load(&self.folder(key).join(CHECKPOINT)).expect("a checkpoint")
    }
    fn metrics(&self, key: &str) -> Vec<MetricLine> {
        let text = std::fs::read_to_string(self.folder(key).join("metrics.jsonl")).expect("metrics");
        text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
    }
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned()
}

pub fn data(layout: Layout) -> Data {
    Data {
        name: "tales".into(),
        doc: None,
        text: Text::Tales { documents: 40, seed: 1 },
        documents: Documents::Line,
        tokenizer: Tokenizer::Bytes,
        context: 16,
        layout,
        shard: Shard::Tokens(1_000),
        holdout: Holdout::Documents(3),
        tokens_per_step: None,
    }
}

fn bytes(placement: Placement, layers: usize) -> Model {
    Model { vocabulary: Vocabulary::Size(257), ..model(placement, layers) }
}

fn training(loss: Vec<(f64, LossTerm)>) -> Training {
    Training {
        name: "base".into(),
        doc: None,
        loss: Loss { terms: loss },
        optimizer: study::Optimizer::AdamW { lr: 1e-2, betas: (0.9, 0.95), eps: 1e-8, decay: 0.1, decay_all: false },
        rate: RateShape { warmup: Warmup::Steps(0), shape: Shape::Constant },
        batch: Batch { sequences: 4, micro: 3 },
        clip: Some(0.5),
        precision: Precision::F32,
    }
}

fn ce() -> Vec<(f64, LossTerm)> {
    vec![(1.0, LossTerm::CrossEntropy)]
}
fn mixed() -> Vec<(f64, LossTerm)> {
    vec![(0.3, LossTerm::CrossEntropy), (0.7, LossTerm::Kl { teacher: "big".into(), temperature: 2.0 })]
}

fn phase(model: Model, segment: Segment, loss: Vec<(f64, LossTerm)>, parent: Option<&str>) -> Phase {
    let segment = Segment { loss: Loss { terms: loss.clone() }, ..segment };
    let measured = vec![segment.steps.start, segment.steps.end];
    Phase {
        seed: 3,
        corpus: Key("corpus".into()),
        data: Arc::new(data(Layout::Packed)),
        model: Arc::new(model),
        training: Arc::new(training(loss)),
        parent: parent.map(|key| Key(key.into())),
        segment,
        transition: Transition { rows: Arc::new([]), lr: 0.0, reading: Reading::Begins },
        teachers: vec![],
        measures: vec![(Metric::ValidationCe, measured.clone()), (Metric::Perplexity, measured)],
    }
}

/// Layers 2 and 3 join a stack of two, and the first two freeze.
fn grown(steps: std::ops::Range<u64>, first: FirstValues) -> Segment {
    let sequence = steps.start * 4;
    let new = |layer| NewLayer { layer: LayerId(layer), first: first.clone() };
    Segment {
        new_layers: vec![new(2), new(3)],
        frozen: Frozen { layers: [LayerId(0), LayerId(1)].into(), prefix: 2, ..Frozen::default() },
        data: DataPosition { sequence, ..DataPosition::START },
        ..segment(4, steps, 1e-2)
    }
}

#[test]
fn a_run_in_two_phases() {
    let store = Store::new(Layout::Packed);
    let first = phase(bytes(pre(), 4), segment(2, 0..6, 1e-2), ce(), None);
    let counts = store.done("first", Work::Phase(Box::new(first)));
    assert_eq!((counts["steps"], counts["tokens"]), (6, 6 * 4 * 16));
    assert_eq!((counts["active_layer_tokens"], counts["trained_layer_tokens"]), (2 * 6 * 64, 2 * 6 * 64));
    let lines = store.metrics("first");
    assert_eq!(lines.iter().map(|line| line.step).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    let names = |line: &MetricLine| line.values.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&lines[0]), ["grad_norm", "lr", "perplexity", "train_loss", "validation_ce"]);
    assert_eq!(names(&lines[3]), ["grad_norm", "lr", "train_loss"]);
    assert_eq!(names(&lines[6]), ["perplexity", "validation_ce"]);
    let value = |line: &MetricLine, name: &str| line.values[name].0;
    assert!(value(&lines[6], "validation_ce") < value(&lines[0], "validation_ce"));

    let second = phase(bytes(pre(), 4), grown(6..12, FirstValues::Identity), ce(), Some("first"));
    let counts = store.done("second", Work::Phase(Box::new(second)));
    assert_eq!((counts["active_layer_tokens"], counts["trained_layer_tokens"]), (4 * 6 * 64, 2 * 6 * 64));
    assert_eq!(store.files("second").into_keys().collect::<Vec<_>>(), [CHECKPOINT, "documents.json", "metrics.jsonl"]);
    // An identity append does not change what is measured.
    let (before, after) = (value(&lines[6], "validation_ce"), value(&store.metrics("second")[0], "validation_ce"));
    assert!((before - after).abs() < 1e-6, "{before} and {after}");
    // What is frozen is the parent's to the bit, without moments; what went on has all its updates.
    let (parent, child) = (store.checkpoint("first"), store.checkpoint("second"));
    let frozen = |name: &String| ["layers.0.", "layers.1.", "embedding"].iter().any(|start| name.starts_with(start));
    for (name, value) in parent.params.iter().filter(|(name, _)| frozen(name)) {
        assert!(child.params[name] == *value, "{name}");
    }
    assert!(child.moments.keys().all(|name| !name.starts_with("layers.0.") && !name.starts_with("layers.1.")));
    assert_eq!((child.meta.updates["head"], child.meta.updates["layers.2.ffn.up"]), (12, 6));
    assert_eq!(child.meta.data, DataPosition { sequence: 48, ..DataPosition::START });
}

/// A table that says something else of a phase than what happens refuses it, with the row, before a step is taken.
#[test]
fn a_phase_holds_what_it_begins_with_against_its_table() {
    let store = Store::new(Layout::Packed);
    store.done("first", Work::Phase(Box::new(phase(bytes(pre(), 4), segment(2, 0..3, 1e-2), ce(), None))));
    let second = || {
        store.planned(
            "second",
            Work::Phase(Box::new(phase(bytes(pre(), 4), grown(3..6, FirstValues::CopyOf(LayerId(1))), ce(), Some("first")))),
        )
    };
    let refusal = |turn: &dyn Fn(&mut Transition)| {
        let Work::Phase(mut phase) = second() else { unreachable!("a phase") };
        turn(&mut phase.transition);
        let failure = store.attempt("second", Work::Phase(phase), None, Duration::ZERO).expect_err("another table").to_string();
        assert!(store.files("second").is_empty(), "{failure}");
        let words = failure.strip_prefix("the state at step 3 is not the planned one: ").expect("which step");
        words.to_owned()
    };
    let row = |at: usize, turn: &dyn Fn(&mut xrun::budget::transition::Row)| {
        refusal(&|table| {
            let mut rows = table.rows.to_vec();
            turn(&mut rows[at]);
            table.rows = rows.into();
        })
    };
    let names = |table: &Transition| table.rows.iter().map(xrun::budget::transition::Row::name).collect::<Vec<_>>();
    let Work::Phase(planned) = second() else { unreachable!("a phase") };
    assert_eq!(names(&planned.transition), ["layers 1–2", "layers 3–4", "embedding", "exit, head"]);
    assert_eq!(row(0, &|row| row.parameters += 1), "the row `layers 1–2`: planned 3921 parameters, found 3920");
    assert_eq!(
        row(0, &|row| row.fate.learns = Learns::Yes),
        "the row `layers 1–2`: planned learns, found `layers.0.attention.q`, which is frozen"
    );
    assert_eq!(
        row(1, &|row| (row.fate.moments, row.fate.updates) = (Moments::Kept, Some(3))),
        "the row `layers 3–4`: planned moments of 3 updates, found no moments at `layers.2.attention.q`"
    );
    assert_eq!(
        row(3, &|row| row.fate.updates = Some(2)),
        "the row `exit, head`: planned moments of 2 updates, found moments of 3 updates at `exit.norm`"
    );
    assert_eq!(
        row(3, &|row| row.fate.moments = Moments::Dropped),
        "the row `exit, head`: planned no moments, found moments of 3 updates at `exit.norm`"
    );
    assert_eq!(row(2, &|row| row.of.clear()), "`embedding`: planned nothing, found a parameter");
    assert_eq!(refusal(&|table| table.lr = 2e-2), "the learning rate: planned 2e-2, found 1e-2");
    assert_eq!(
        refusal(&|table| table.reading = Reading::Rewinds),
        "the data: planned reading rewinds, found reading goes on after sequence 12 of shard 0 at sequence 12 of shard 0"
    );
    store.attempt("second", second(), None, Duration::ZERO).expect("the planned table");
}

/// Whatever is kept of a parameter survives a stop after each step, and what another optimizer kept is not gone on with.
#[test]
fn every_optimizer_is_resumed() {
    let optimizers = ["sgd(lr: 1e-2)", "sgd(lr: 1e-2, momentum: 0.9)", "lion(lr: 1e-3)", "muon(lr: 1e-3)"];
    let store = Store::new(Layout::Packed);
    let work = |optimizer: &str, parent: Option<&str>| {
        let segment = if parent.is_some() { grown(3..6, FirstValues::Init) } else { segment(2, 0..3, 1e-2) };
        let mut phase = phase(bytes(pre(), 4), segment, ce(), parent);
        let training = Training { optimizer: crate::rules::rule(optimizer), ..(*phase.training).clone() };
        phase.training = Arc::new(training);
        Work::Phase(Box::new(phase))
    };
    for (at, optimizer) in optimizers.into_iter().enumerate() {
        let (first, whole, stopped) = (format!("first{at}"), format!("whole{at}"), format!("stopped{at}"));
        store.done(&first, work(optimizer, None));
        store.done(&whole, work(optimizer, Some(&first)));
        for _ in 0..3 {
            let outcome = store.work(&stopped, work(optimizer, Some(&first)), Some(1), Duration::ZERO).expect("it stops");
            assert_eq!(outcome, Outcome::Interrupted);
        }
        store.done(&stopped, work(optimizer, Some(&first)));
        assert!(store.files(&whole) == store.files(&stopped), "{optimizer}");
        let kept = |name: &str| store.checkpoint(&whole).moments.get(name).map_or(0, Vec::len);
        let expected = [[0, 0, 0], [1, 1, 0], [1, 1, 0], [1, 2, 0]][at];
        assert_eq!(["layers.2.ffn.up", "head", "layers.1.ffn.up"].map(kept), expected, "{optimizer}");
    }
    let failure = store.work("mixed", work("muon(lr: 1e-3)", Some("first1")), None, Duration::ZERO);
    assert_eq!(failure.expect_err("another optimizer").to_string(), "the phase before was trained by another optimizer");
}

/// Stopped after every step and gone on with: the same bytes, also with a partial save each step and a damaged partial.
#[test]
fn an_interrupted_phase_ends_in_the_same_bytes() {
    let store = Store::new(Layout::Padded);
    let work = || {
        let mut phase = phase(bytes(post(), 4), segment(4, 0..5, 1e-2), ce(), None);
        phase.data = Arc::new(data(Layout::Padded));
        phase.measures[0].1 = vec![0, 2, 5];
        Work::Phase(Box::new(phase))
    };
    store.done("whole", work());
    for stop in 1..=5 {
        let key = format!("stopped{stop}");
        let outcome = store.work(&key, work(), Some(stop), Duration::ZERO).expect("it stops");
        assert_eq!(outcome, Outcome::Interrupted);
        if stop == 3 {
            std::fs::write(store.folder(&key).join("partial.safetensors"), b"rubbish").expect("writes");
        }
        // Lines beyond the checkpoint, as a kill would leave them.
        let path = store.folder(&key).join("metrics.jsonl");
        let mut text = std::fs::read(&path).expect("metrics");
        text.extend(b"{\"step\":99,");
        std::fs::write(&path, text).expect("writes");
        store.done(&key, work());
        assert!(store.files(&key) == store.files("whole"), "stopped after {stop}");
    }
}

/// Two phases, with evaluations in them and all probes between them, and without any: the same checkpoint to the bit, on one, two and
/// four threads.
#[test]
fn neither_looking_nor_the_number_of_threads_changes_a_byte() {
    let run = |threads: usize, looks: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let store = Store::new(Layout::Packed);
            let mut first = phase(bytes(pre(), 4), segment(2, 0..4, 1e-2), ce(), None);
            let mut second = phase(bytes(pre(), 4), grown(4..8, FirstValues::Init), ce(), Some("phase"));
            if !looks {
                (first.measures, second.measures) = (vec![], vec![]);
            }
            store.done("phase", Work::Phase(Box::new(first.clone())));
            if looks {
                assert!(store.metrics("phase")[0].values.contains_key("validation_ce"));
                assert_eq!(probes(&store, &first).len(), ProbeKind::ALL.len());
            }
            store.done("second", Work::Phase(Box::new(second)));
            let mut checkpoint = store.checkpoint("second");
            // The length of its log is not the same, of course.
            checkpoint.meta.metrics_bytes = 0;
            checkpoint.save(&store.folder("second"), "compared").expect("saves");
            std::fs::read(store.folder("second").join("compared")).expect("a checkpoint")
        })
    };
    let one = run(1, false);
    for threads in [1, 2, 4] {
        assert!(run(threads, true) == one, "{threads} threads");
    }
}

/// A first update moves a parameter by the learning rate (Adam's m/√v is ±1): what the log says, however the batch is cut.
#[test]
fn the_rate_that_is_logged_is_applied_however_the_batch_is_cut() {
    let store = Store::new(Layout::Packed);
    for micro in [1, 2, 4] {
        let mut one = phase(bytes(pre(), 2), segment(2, 0..1, 1.0), ce(), None);
        let formula = RateFormula::Warmup { from: 0, over: 50, peak: 0.02 };
        one.segment.rate.pieces[0].formula = formula;
        let rate = one.segment.rate.at(0);
        let training = training(ce());
        one.training = Arc::new(Training { batch: Batch { micro, ..training.batch }, ..training });
        let key = format!("micro{micro}");
        store.done(&key, Work::Phase(Box::new(one)));
        assert_eq!((store.metrics(&key)[0].values["lr"].0, rate), (4e-4, 4e-4));
        for value in &store.checkpoint(&key).params["exit.norm"].1 {
            assert!(((value - 1.0).abs() / 4e-4 - 1.0).abs() < 1e-3, "{value}");
        }
    }
}

#[test]
fn the_pace_is_told_where_there_was_training() {
    let store = Store::new(Layout::Packed);
    let mut paced = phase(bytes(pre(), 2), segment(2, 0..4, 1e-2), ce(), None);
    paced.measures = vec![(Metric::TokensPerSecond, vec![0, 2, 4])];
    store.done("paced", Work::Phase(Box::new(paced)));
    let text = std::fs::read_to_string(store.folder("paced").join("metrics.jsonl")).expect("metrics");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let paces: Vec<_> = lines.iter().map(|line| line["values"]["tokens_per_second"].as_f64().map(|pace| pace > 0.0)).collect();
    assert_eq!(paces, [None, None, Some(true), None, Some(true)]);
}

#[test]
fn distillation_online_and_from_a_cache() {
    let store = Store::new(Layout::Packed);
    let big = Arc::new(bytes(pre(), 2));
    let teacher = phase(bytes(pre(), 2), segment(2, 0..8, 1e-2), ce(), None);
    store.done("teacher", Work::Teacher(Box::new(teacher)));
    let cache = |kind| TeacherLogits {
        corpus: Key("corpus".into()),
        data: Arc::new(data(Layout::Packed)),
        teacher: Key("teacher".into()),
        model: big.clone(),
        folder: None,
        cache: kind,
        temperature: 2.0,
        shards: 1,
    };
    let kind = |key: &str| match key {
        "all" => Cache::All,
        "top" => Cache::Top(257),
        _ => Cache::Top(8),
    };
    for key in ["all", "top", "some"] {
        store.done(key, Work::TeacherLogits(Box::new(cache(kind(key)))));
    }
    let student = |logits: Option<&str>| {
        let mut model = bytes(post(), 2);
        (model.embedding, model.head) = (Embedding::Teacher { frozen: true }, Embedding::Teacher { frozen: false });
        let mut phase = phase(model, segment(2, 0..4, 1e-2), mixed(), None);
        phase.segment.frozen.embedding = true;
        let at = TeacherAt::Node { node: Key("teacher".into()), model: big.clone(), folder: None };
        let cache = logits.map_or(Cache::None, kind);
        let logits = logits.map(|key| (2.0, Key(key.into()))).into_iter().collect();
        phase.teachers = vec![TeacherUse { name: "big".into(), at, cache, logits }];
        phase.measures.push((Metric::Kl, vec![0, 4]));
        Work::Phase(Box::new(phase))
    };
    let curve = |key: &str, logits| {
        store.done(key, student(logits));
        let lines = store.metrics(key);
        let kl: Vec<f64> = [&lines[0], &lines[4]].iter().map(|line| line.values["kl"].0).collect();
        (lines[..4].iter().map(|line| line.values["train_loss"].0).collect::<Vec<_>>(), kl)
    };
    let (online, kl) = curve("online", None);
    assert!(kl[1] < kl[0] && kl[1] > 0.0);
    for key in ["all", "top"] {
        let (cached, other) = curve(&format!("from_{key}"), Some(key));
        online.iter().zip(&cached).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{key}: {a} and {b}"));
        kl.iter().zip(&other).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{key}: {a} and {b}"));
    }
    // Merging outcomes can only hide a difference.
    assert!(curve("from_some", Some("some")).1[0] < kl[0]);
    let (first, last) = (store.checkpoint("teacher"), store.checkpoint("online"));
    assert!(first.params["embedding"] == last.params["embedding"]);
    assert!(first.params["head"] != last.params["head"]);

    // The other losses hear a cache as they hear the teacher; squares of logits ask for what no cache keeps.
    let learn = |key: &str, terms: Vec<(f64, LossTerm)>, logits: Option<&str>| {
        let Work::Phase(mut phase) = student(logits) else { unreachable!("a phase") };
        phase.segment.loss = Loss { terms };
        store.work(key, Work::Phase(phase), None, Duration::ZERO)
    };
    let jsd = || LossTerm::Jsd { teacher: "big".into(), temperature: 2.0, beta: 0.3 };
    let reverse = || LossTerm::ReverseKl { teacher: "big".into(), temperature: 2.0 };
    for (name, term) in [("jsd", &jsd as &dyn Fn() -> LossTerm), ("reverse", &reverse)] {
        let loss = |from: Option<&str>| {
            let key = format!("{name}_{from:?}");
            learn(&key, vec![(1.0, term())], from).expect("it trains");
            store.metrics(&key)[3].values["train_loss"].0
        };
        let online = loss(None);
        for from in ["all", "top"] {
            let cached = loss(Some(from));
            assert!((online - cached).abs() < 1e-4, "{name} from {from}: {online} and {cached}");
        }
        assert!(loss(Some("some")) < online);
    }
    let squares = || [mixed(), vec![(0.1, LossTerm::Mse { teacher: "big".into() })]].concat();
    learn("squares", squares(), None).expect("it trains");
    let failure = learn("no_squares", squares(), Some("all")).expect_err("no logits").to_string();
    assert_eq!(failure, "the loss compares logits, and the teacher's cache keeps probabilities");

    // Stopped in the middle and gone on with: the same bytes.
    let again = || Work::TeacherLogits(Box::new(cache(Cache::Top(8))));
    let outcome = store.work("again", again(), Some(1), Duration::ZERO).expect("it stops");
    assert_eq!(outcome, Outcome::Interrupted);
    store.done("again", again());
    assert!(store.files("again") == store.files("some"));

    // What was written before is asked about again: a cache that says something else is no cache.
    let outcome = store.work("forged", again(), Some(1), Duration::ZERO).expect("it stops");
    assert_eq!(outcome, Outcome::Interrupted);
    let path = store.folder("forged").join("train.logits");
    let mut bytes = std::fs::read(&path).expect("a part of it");
    // The likeliest token of the first position is made ten times as likely.
    let log = f32::from_le_bytes(bytes[32..36].try_into().expect("four bytes")) + 2.3;
    bytes[32..36].copy_from_slice(&log.to_le_bytes());
    std::fs::write(&path, bytes).expect("writes");
    let failure = store.work("forged", again(), None, Duration::ZERO).expect_err("it is not trusted").to_string();
    assert!(failure.starts_with("the teacher says something else when it is asked again: by 2."), "{failure}");
}

/// The probes of a checkpoint, in the order of [`ProbeKind::ALL`].
fn probes(store: &Store, phase: &Phase) -> Vec<ProbeRecord> {
    let probe = |kind| Probe {
        kind,
        sequences: 4,
        tokens: 12,
        corpus: Key("corpus".into()),
        data: phase.data.clone(),
        phase: Key("phase".into()),
        model: phase.model.clone(),
        segment: phase.segment.clone(),
    };
    let look = |kind: ProbeKind| {
        let stopped = store.work(kind.name(), Work::Probe(Box::new(probe(kind))), Some(0), Duration::ZERO);
        assert_eq!(stopped.expect("it stops"), Outcome::Interrupted);
        assert!(store.files(kind.name()).is_empty());
        store.done(kind.name(), Work::Probe(Box::new(probe(kind))));
        let text = std::fs::read(store.folder(kind.name()).join("probe.json")).expect("a record");
        serde_json::from_slice(&text).expect("a record")
    };
    ProbeKind::ALL.map(look).to_vec()
}

#[test]
fn probes_look_at_every_block() {
    let store = Store::new(Layout::Packed);
    let phase = phase(bytes(post(), 4), segment(4, 0..3, 1e-2), ce(), None);
    store.done("phase", Work::Phase(Box::new(phase.clone())));
    let seen = probes(&store, &phase);
    let [ProbeRecord::BoundaryRms { blocks: rms }, ProbeRecord::BlockRemoval { ce, blocks }, ..] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!((rms.len(), blocks.len()), (2, 2));
    for row in rms {
        assert_eq!(row.all.n, row.structural.n + row.regular.n);
        // Post-norm: the stream is normalised, up to the norm's weights.
        assert!((row.all.mean.0 - 1.0).abs() < 0.1);
    }
    assert!(ce.0.is_finite() && blocks.iter().all(|block| block.delta_ce.0.is_finite() && block.angle.0 > 0.01));
}

/// What probes say is what an ordinary pass says of a model that is changed by hand: a block taken off the stack, output projections at
/// zero, weights moved a little.
#[test]
fn probes_agree_with_models_that_are_what_they_ask_about() {
    for (wiring, same) in [(pre(), true), (post(), false)] {
        let store = Store::new(Layout::Packed);
        let model = Model { embedding: Embedding::Own, ..bytes(wiring, 4) };
        let phase = phase(model.clone(), segment(4, 0..3, 1e-2), ce(), None);
        store.done("phase", Work::Phase(Box::new(phase.clone())));
        let seen = probes(&store, &phase);
        let [_, ProbeRecord::BlockRemoval { ce: whole, blocks }, ProbeRecord::Identity { delta_ce, .. }, rest @ ..] = &seen[..]
        else {
            panic!("{seen:?}");
        };
        let [ProbeRecord::LogitLens { ce: lens }, ProbeRecord::GradientNorms { ce, embedding, layers, ends, head }] = rest else {
            panic!("{seen:?}");
        };
        let reader = Reader::open(&store.folder("corpus"), &phase.data).expect("a corpus");
        let batch = reader.probe_batch(4, 12);
        let checkpoint = store.checkpoint("phase");
        let device = xrun::tensor::Cpu::default();
        let (stack, ends_of_blocks) = (&phase.segment.stack, &phase.segment.block_ends);
        // In double precision and one operation after another.
        let of = |checkpoint: &Checkpoint, stack: &[LayerId], block_ends: &[usize]| {
            let state: State<f64, _> = State::load(&device, checkpoint.clone()).expect("memory");
            let network: Network<'_, f64, _, Composed> = Network::new(&model, stack, block_ends, &state.params, 3);
            xrun::train::evaluate(&network, &device, [batch.clone()].into_iter(), None, Without::Nothing, |_, _| ())
                .expect("finite")
                .ce
        };
        let near = |seen: f64, wanted: f64, what: &str| assert!((seen - wanted).abs() < 2e-5, "{what}: {seen} and {wanted}");
        let own = of(&checkpoint, stack, ends_of_blocks);
        near(whole.0, own, "whole");
        near(ce.0, own, "whole");
        for (block, delta) in delta_ce.iter().enumerate() {
            let mut without = checkpoint.clone();
            for layer in &stack[2 * block..2 * block + 2] {
                for weight in ["attention.o", "ffn.down"] {
                    let name = format!("layers.{}.{weight}", layer.0);
                    without.params.get_mut(&name).expect("a matrix").1.fill(0.0);
                }
            }
            near(delta.0, of(&without, stack, ends_of_blocks) - own, "identity");
            let rest: Vec<LayerId> = stack.iter().copied().filter(|layer| layer.0 / 2 != block as u32).collect();
            near(blocks[block].delta_ce.0, of(&checkpoint, &rest, &[2]) - own, "removal");
            // The norms of a post-norm block do something by themselves; a silent pre-norm block is no block.
            assert_eq!((delta.0 - blocks[block].delta_ce.0).abs() < 1e-5, same, "{block}");
        }
        for (blocks, ce) in lens.iter().enumerate() {
            near(ce.0, of(&checkpoint, &stack[..2 * blocks], &ends_of_blocks[..blocks]), "lens");
        }
        // The slope along each number of a group, by moving it.
        let norm = |wanted: &dyn Fn(&str) -> bool| {
            let mut squares = 0.0;
            for (name, (_, values)) in checkpoint.params.iter().filter(|(name, _)| wanted(name)) {
                for at in 0..values.len() {
                    let moved = |by: f32| {
                        let mut moved = checkpoint.clone();
                        moved.params.get_mut(name).expect("a tensor").1[at] += by;
                        let value = f64::from(moved.params[name].1[at]);
                        (value, of(&moved, stack, ends_of_blocks))
                    };
                    let ((below, low), (above, high)) = (moved(-1e-3), moved(1e-3));
                    squares += ((high - low) / (above - below)).powi(2);
                }
            }
            squares.sqrt()
        };
        let close = |seen: f64, wanted: f64, what: &str| {
            assert!(wanted > 0.0 && (seen / wanted - 1.0).abs() < 2e-3, "{what}: {seen} and {wanted}");
        };
        close(layers[0].norms.0, norm(&|name| name.starts_with("layers.0.") && name.contains("norm")), "norms");
        close(layers[3].attention.0, norm(&|name| name.starts_with("layers.3.attention.") && name.len() == 20), "attention");
        close(layers[2].ffn.0, norm(&|name| name.starts_with("layers.2.ffn.") && !name.contains("norm")), "ffn");
        close(ends.expect("a norm").0, norm(&|name| name.starts_with("exit.") || name.starts_with("entry.")), "ends");
        // And all of them together are what a step would see.
        let bench: Bench<f32, xrun::tensor::Cpu> = Bench {
            state: State::load(&device, checkpoint.clone()).expect("memory"),
            ..Bench::new(model.clone(), segment(4, 0..3, 1e-2))
        };
        let (_, slopes) = bench.gradients(None, &batch, 3);
        let all: f64 = slopes.values().flatten().map(|slope| slope * slope).sum();
        let parts = layers.iter().flat_map(|layer| [layer.attention, layer.ffn, layer.norms, layer.gains]);
        let parts = parts.chain([*embedding]).chain(*ends).chain(*head).map(|norm| norm.0 * norm.0);
        close(parts.sum::<f64>(), all, "all");
        assert!(layers.iter().all(|layer| layer.gains.0 == 0.0) && head.is_some());
    }
}

/// Token-weighted: cut into any batches, the mean over the holdout is the same.
#[test]
fn validation_does_not_depend_on_the_batch_size() {
    let store = Store::new(Layout::Padded);
    let reader = Reader::open(&store.folder("corpus"), &data(Layout::Padded)).expect("a corpus");
    let model = bytes(pre(), 2);
    let bench: Bench<f32, xrun::tensor::Cpu> = Bench::new(model, segment(2, 0..1, 1e-2));
    let network: xrun::model::Network<'_, _, _, xrun::tensor::Composed> =
        xrun::model::Network::new(&bench.model, &bench.segment.stack, &bench.segment.block_ends, &bench.state.params, 0);
    let all = reader.holdout_sequences();
    let ce = |at_once: u64| {
        let starts = (0..all).step_by(at_once as usize);
        let batches = starts.map(|start| reader.holdout(start..(start + at_once).min(all)));
        xrun::train::evaluate(&network, &bench.device, batches, None, Without::Nothing, |_, _| ()).expect("finite")
    };
    let (one, two, whole) = (ce(1), ce(2), ce(all));
    assert_eq!((one.tokens, two.tokens), (whole.tokens, whole.tokens));
    assert!((one.ce - whole.ce).abs() < 1e-6 && (two.ce - whole.ce).abs() < 1e-6);
}

/// What a phase leaves of the holdout document by document adds up to its last evaluation; a document on its own has the same sum.
#[test]
fn documents_add_up_to_the_evaluation() {
    for layout in [Layout::Packed, Layout::Padded] {
        let store = Store::new(layout);
        let mut work = phase(bytes(pre(), 2), segment(2, 0..3, 1e-2), ce(), None);
        work.data = Arc::new(data(layout));
        store.done("first", Work::Phase(Box::new(work.clone())));
        let read =
            |key: &str| -> DocumentsRecord { serde_json::from_slice(&store.files(key)["documents.json"]).expect("documents") };
        let record = read("first");
        assert_eq!((record.step, record.tokens.len(), record.ce.len()), (3, 3, 3));
        let reader = Reader::open(&store.folder("corpus"), &data(layout)).expect("a corpus");
        let whole = reader.holdout(0..reader.holdout_sequences());
        assert_eq!(record.tokens.iter().sum::<u64>(), whole.tokens());
        let mean = record.ce.iter().map(|ce| ce.0).sum::<f64>() / whole.tokens() as f64;
        let last = store.metrics("first").pop().expect("a line").values["validation_ce"].0;
        assert!((mean - last).abs() < 1e-9, "{mean} is not {last}");
        if layout == Layout::Padded {
            let checkpoint = store.checkpoint("first");
            let device = xrun::tensor::Cpu::default();
            let state = State::<f32, _>::load(&device, checkpoint.clone()).expect("a state");
            let network: xrun::model::Network<'_, _, _, Composed> =
                xrun::model::Network::new(&work.model, &work.segment.stack, &work.segment.block_ends, &state.params, 3);
            for sequence in 0..reader.holdout_sequences() {
                let alone = [reader.holdout(sequence..sequence + 1)].into_iter();
                let seen = xrun::train::evaluate(&network, &device, alone, None, Without::Nothing, |_, _| ()).expect("finite");
                let document = reader.holdout_document(sequence);
                assert_eq!(seen.tokens, record.tokens[document]);
                assert!((seen.ce * seen.tokens as f64 - record.ce[document].0).abs() < 1e-4, "{document}");
            }
        }
        // A phase that is not evaluated at its end has no such file.
        work.measures = vec![(Metric::ValidationCe, vec![0])];
        store.done("silent", Work::Phase(Box::new(work)));
        assert!(!store.files("silent").contains_key("documents.json"));
    }
}

#[test]
fn a_checkpoint_of_another_model_is_refused() {
    let store = Store::new(Layout::Packed);
    let work = |steps, parent| {
        let second = grown(steps, FirstValues::Init);
        Work::Phase(Box::new(phase(bytes(pre(), 4), second, ce(), parent)))
    };
    let fails = |key, work| store.work(key, work, None, Duration::ZERO).expect_err("it cannot").to_string();
    assert_eq!(fails("orphan", work(0..2, None)), "layer 0 is neither new nor in the phase before");
    let first = phase(bytes(pre(), 4), segment(2, 0..2, 1e-2), ce(), None);
    store.done("first", Work::Phase(Box::new(first)));
    assert_eq!(fails("late", work(3..4, Some("first"))), "the phase before ends at step 2, this one begins at 3");
    let path = store.folder("first").join(CHECKPOINT);
    let whole = std::fs::read(&path).expect("a checkpoint");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("writes");
    assert!(fails("cut", work(2..4, Some("first"))).starts_with("the checkpoint of the phase before cannot be read"));
}

/// A rate beyond all reason: the node stops, says where, and keeps the last good checkpoint.
#[test]
fn a_diverged_phase_says_where_and_keeps_what_was_good() {
    let store = Store::new(Layout::Packed);
    let mut wild = phase(bytes(pre(), 2), segment(2, 0..9, 1e38), ce(), None);
    wild.segment.rate.pieces[0].steps = 2..9;
    let failure = store.work("wild", Work::Phase(Box::new(wild)), None, Duration::ZERO).expect_err("it diverges");
    let Failure::Diverged { step, what } = failure else { panic!("{failure}") };
    assert!(step > 2 && !what.is_empty());
    let kept = Checkpoint::load(&store.folder("wild").join("partial.safetensors")).expect("it is whole");
    assert_eq!(kept.meta.step, step);
    assert!(!store.folder("wild").join(CHECKPOINT).exists());
}
