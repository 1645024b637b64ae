//! A worker whose result is a hash of its inputs, nodes for it, and what a store holds.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xrun::plan::node::{Key, Node, Work};
use xrun::run::event::Line;
use xrun::run::lock::PATIENCE;
use xrun::run::record::{METRICS, MetricLine, Real};
use xrun::run::worker::{Desk, Failure, Outcome, Progress, Worker};
use xrun::run::{Listener, Options, Store, Summary, execute};
use xrun::study::{Data, Documents, Holdout, Layout, Shard, Text, Tokenizer};

/// Counts to ten in a file, a line at a time; then writes the hash of its inputs and of the count.
#[derive(Default)]
pub struct Counting {
    pub attempts: AtomicUsize,
    pub fails: Option<Key>,
    /// Stops the run at this count of that node.
    pub stops: Option<(Key, u64)>,
    pub stop: AtomicBool,
    /// Before each count.
    pub pause: Duration,
    /// A line for each node that was counted to its end.
    pub log: Option<PathBuf>,
    /// Threads that each node was given.
    pub threads: Mutex<BTreeMap<String, usize>>,
}

impl Worker for Counting {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.threads.lock().expect("no panic").insert(node.label.clone(), desk.threads);
        if self.fails.as_ref() == Some(&node.key) {
            return Err(Failure::Diverged { step: 3, what: "loss".into() });
        }
        let path = desk.folder.join("count");
        let mut count: u64 = std::fs::read_to_string(&path).map_or(0, |text| text.parse().unwrap_or(0));
        while count < 10 {
            if self.stops == Some((node.key.clone(), count)) {
                self.stop.store(true, Ordering::Relaxed);
            }
            if desk.stopping() {
                return Ok(Outcome::Interrupted);
            }
            std::thread::sleep(self.pause);
            count += 1;
            let measured: Vec<MetricLine> = (1..=count).map(measured).collect();
            let lines: String = measured.iter().map(|line| serde_json::to_string(line).expect("JSON") + "\n").collect();
            std::fs::write(desk.folder.join(METRICS), lines).map_err(unwritten)?;
            std::fs::write(&path, count.to_string()).map_err(unwritten)?;
            (desk.tell)(Progress { done: count, total: 10, tokens: 1, measured: measured.into_iter().next_back() });
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(node.key.0.as_bytes());
        for need in &node.needs {
            hasher.update(&std::fs::read((desk.finished)(need).join("result")).expect("the input is whole"));
        }
        std::fs::write(desk.folder.join("result"), hasher.finalize().to_hex().as_str()).map_err(unwritten)?;
        if let Some(log) = &self.log {
            let mut log = OpenOptions::new().append(true).create(true).open(log).expect("opens");
            log.write_all(format!("{}\n", node.label).as_bytes()).expect("writes");
        }
        Ok(Outcome::Done(BTreeMap::from([("steps".into(), count)])))
    }
}

/// What is measured at a count.
pub fn measured(count: u64) -> MetricLine {
    let value = if count == 7 { f64::NAN } else { 1.0 / count as f64 };
    MetricLine { step: count, values: BTreeMap::from([("train_loss".to_owned(), Real(value))]) }
}

fn unwritten(source: std::io::Error) -> Failure {
    Failure::Io { context: "cannot write".to_owned(), source }
}

pub struct Silent;
impl Listener for Silent {
    fn hear(&self, _: &Line) {}
}

pub fn key(name: &str) -> Key {
    Key(name.repeat(32))
}

pub fn node(name: &str, needs: &[&str]) -> Node {
    let data = Data {
        name: "d".into(),
        doc: None,
        text: Text::Tales { documents: 1, seed: 1 },
        documents: Documents::File,
        tokenizer: Tokenizer::Bytes,
        context: 8,
        layout: Layout::Packed,
        shard: Shard::Whole,
        holdout: Holdout::Fraction(0.0),
        tokens_per_step: None,
    };
    let needs = needs.iter().map(|name| key(name)).collect();
    Node { key: key(name), label: name.into(), needs, work: Work::Corpus { data: Arc::new(data), content: None } }
}

/// a → b → d, a → c → e.
pub fn nodes() -> Vec<Node> {
    vec![node("a", &[]), node("b", &["a"]), node("c", &["a"]), node("d", &["b"]), node("e", &["c"])]
}

pub fn run(folder: &Path, worker: &Counting, jobs: usize) -> Summary {
    patient(folder, worker, jobs, PATIENCE)
}

pub fn patient(folder: &Path, worker: &Counting, jobs: usize, patience: Duration) -> Summary {
    heard(folder, worker, jobs, patience, &Silent)
}

pub fn heard(folder: &Path, worker: &Counting, jobs: usize, patience: Duration, listener: &dyn Listener) -> Summary {
    let options = Options { jobs, threads: 4, save_every: Duration::from_secs(1), patience, asked: Instant::now() };
    execute(&nodes(), &Store::at(folder), worker, &options, &worker.stop, listener).expect("the store works")
}

pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for node in std::fs::read_dir(folder.join("nodes")).expect("lists") {
        for file in std::fs::read_dir(node.expect("entry").path()).expect("lists") {
            let path = file.expect("entry").path();
            all.insert(path.strip_prefix(folder).expect("inside").display().to_string(), std::fs::read(&path).expect("reads"));
        }
    }
    all
}
