//! The runner with a worker whose result is a hash of its inputs: resuming, sharing, failing and damage in milliseconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use xrun::plan::node::{Key, Node, Work};
use xrun::run::store::State;
use xrun::run::worker::{Desk, Failure, Outcome, Progress, Worker};
use xrun::run::{Listener, Options, Store, Summary, execute};
use xrun::study::{Data, Documents, Holdout, Layout, Shard, Text, Tokenizer};

/// Counts to ten in a file, a line at a time; then writes the hash of its inputs and of the count.
#[derive(Default)]
struct Counting {
    attempts: AtomicUsize,
    fails: Option<Key>,
    /// Stops the run at this count of that node.
    stops: Option<(Key, u64)>,
}

impl Worker for Counting {
    fn work(&self, node: &Node, desk: &mut Desk<'_>) -> Result<Outcome, Failure> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if self.fails.as_ref() == Some(&node.key) {
            return Err(Failure::Diverged { step: 3, what: "loss".into() });
        }
        let path = desk.folder.join("count");
        let mut count: u64 = std::fs::read_to_string(&path).map_or(0, |text| text.parse().expect("a number"));
        while count < 10 {
            if self.stops == Some((node.key.clone(), count)) {
                desk.stop.store(true, Ordering::Relaxed);
            }
            if desk.stopping() {
                return Ok(Outcome::Interrupted);
            }
            count += 1;
            std::fs::write(&path, count.to_string()).expect("writes");
            (desk.tell)(Progress { done: count, total: 10, tokens: 1, loss: None });
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(node.key.0.as_bytes());
        for need in &node.needs {
            hasher.update(&std::fs::read((desk.finished)(need).join("result")).expect("the input is whole"));
        }
        std::fs::write(desk.folder.join("result"), hasher.finalize().to_hex().as_str()).expect("writes");
        Ok(Outcome::Done(BTreeMap::from([("steps".into(), count)])))
    }
}

struct Silent;
impl Listener for Silent {
    fn started(&self, _: &Node, _: &str) {}
    fn progress(&self, _: &Node, _: &Progress) {}
    fn finished(&self, _: &Node, _: f64) {}
    fn failed(&self, _: &Node, _: &str) {}
}

fn key(name: &str) -> Key {
    Key(name.repeat(32))
}

fn node(name: &str, needs: &[&str]) -> Node {
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
fn nodes() -> Vec<Node> {
    vec![node("a", &[]), node("b", &["a"]), node("c", &["a"]), node("d", &["b"]), node("e", &["c"])]
}

fn run(folder: &Path, worker: &Counting, jobs: usize) -> Summary {
    let options = Options { jobs, save_every: Duration::from_secs(1) };
    execute(&nodes(), &Store::at(folder), worker, &options, &AtomicBool::new(false), &Silent).expect("the store works")
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for node in std::fs::read_dir(folder.join("nodes")).expect("lists") {
        for file in std::fs::read_dir(node.expect("entry").path()).expect("lists") {
            let path = file.expect("entry").path();
            all.insert(path.strip_prefix(folder).expect("inside").display().to_string(), std::fs::read(&path).expect("reads"));
        }
    }
    all
}

#[test]
fn a_second_run_does_nothing_and_jobs_do_not_matter() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    assert_eq!(run(one.path(), &Counting::default(), 1), Summary { done: 5, ..Summary::default() });
    let again = Counting::default();
    assert_eq!(run(one.path(), &again, 2), Summary { found: 5, ..Summary::default() });
    assert_eq!(again.attempts.into_inner(), 0);
    run(two.path(), &Counting::default(), 3);
    assert_eq!(contents(one.path()), contents(two.path()));
}

#[test]
fn stopped_at_any_point_and_taken_up_again_the_store_is_the_same() {
    let whole = tempfile::tempdir().expect("a folder");
    run(whole.path(), &Counting::default(), 1);
    for name in ["a", "b", "e"] {
        for count in 0..10 {
            let folder = tempfile::tempdir().expect("a folder");
            let stopped = run(folder.path(), &Counting { stops: Some((key(name), count)), ..Counting::default() }, 1);
            assert!(stopped.interrupted && stopped.failed.is_empty());
            run(folder.path(), &Counting::default(), 1);
            assert_eq!(contents(whole.path()), contents(folder.path()), "stopped in {name} at {count}");
        }
    }
}

#[test]
fn a_failure_stops_only_what_needs_it_and_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let summary = run(folder.path(), &Counting { fails: Some(key("b")), ..Counting::default() }, 2);
    assert_eq!((summary.done, summary.blocked, summary.failed.len()), (3, 1, 1));
    let store = Store::at(folder.path());
    assert_eq!(store.failure(&key("b")).and_then(|failure| failure.diverged_at), Some(3));
    assert_eq!(run(folder.path(), &Counting::default(), 1), Summary { done: 2, found: 3, ..Summary::default() });
    assert_eq!(store.failure(&key("b")), None);
}

#[test]
fn a_flipped_bit_is_found_and_only_that_node_is_done_again() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &Counting::default(), 1);
    let store = Store::at(folder.path());
    for file in ["result", "record.ron"] {
        let path = store.node(&key("b")).join(file);
        let good = std::fs::read(&path).expect("reads");
        let mut bad = good.clone();
        let at = bad.iter().rposition(|byte| byte.is_ascii_hexdigit()).expect("a digit");
        bad[at] ^= 1;
        std::fs::write(&path, bad).expect("writes");
        assert!(matches!(store.state(&key("b")), State::Damaged(_)), "{file}");
        assert_eq!(run(folder.path(), &Counting::default(), 1), Summary { done: 1, found: 4, ..Summary::default() });
        assert_eq!(std::fs::read(&path).expect("reads"), good);
    }
}

#[test]
fn two_runs_side_by_side_do_no_node_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let worker = Counting::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run(folder.path(), &worker, 2));
        }
    });
    assert_eq!(worker.attempts.load(Ordering::Relaxed), 5);
}
