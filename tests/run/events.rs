//! Streams of events: what is kept, in which order, and what is read of them after kills, beside others, and by older and newer programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use xrun::plan::Key;
use xrun::run::Listener;
use xrun::run::Store;
use xrun::run::event::{Event, Line, VERSION};
use xrun::run::lock::PATIENCE;
use xrun::run::record::MetricLine;
use xrun::run::replay::{End, Tail, Told, streams};

use crate::counting::{Counting, heard, key, measured, nodes, run};

/// Keeps what it hears.
#[derive(Default)]
struct Ear(Mutex<Vec<Line>>);

impl Listener for Ear {
    fn hear(&self, line: &Line) {
        self.0.lock().expect("no panic").push(line.clone());
    }
    fn unkept(&self, reason: &str) {
        panic!("{reason}");
    }
}

fn lines(path: &Path) -> Vec<Line> {
    let (mut tail, mut lines) = (Tail::new(path.into()), Vec::new());
    tail.read(|line| lines.push(line));
    assert_eq!(tail.fault(), None);
    lines
}

fn told(folder: &Path) -> Told {
    let (told, faults) = Told::read(&Store::at(folder).events(), &|_| true);
    assert!(faults.is_empty(), "{faults:?}");
    told
}

/// Not a number is not equal to itself, its text is.
fn text<T: std::fmt::Debug>(value: &T) -> String {
    format!("{value:?}")
}

fn all_counts() -> Vec<MetricLine> {
    (1..=10).map(measured).collect()
}

#[test]
fn listeners_hear_what_is_kept_in_its_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let ear = Ear::default();
    heard(folder.path(), &Counting::default(), 3, PATIENCE, &ear);
    let files = streams(&Store::at(folder.path()).events());
    assert_eq!(files.len(), 1);
    let kept = lines(&files[0]);
    assert_eq!(text(&kept), text(&ear.0.into_inner().expect("no panic")));
    assert!((0..).zip(&kept).all(|(number, line)| line.seq == number && line.v == VERSION));
    assert!(matches!(kept[0].event, Event::RunStarted { nodes: 5, jobs: 3, .. }));
    let Some(Event::RunFinished { done: 5, spent, .. }) = kept.last().map(|line| &line.event) else { panic!("{kept:?}") };
    assert!(spent["store"] > 0.0 && spent.contains_key("other"));
    // A node is begun after all that it needs was finished, and measures in between.
    let mut at: BTreeMap<Key, [usize; 3]> = BTreeMap::new();
    for (number, line) in kept.iter().enumerate() {
        match &line.event {
            Event::NodeStarted { key, .. } => at.entry(key.clone()).or_default()[0] = number,
            Event::NodeMeasured { key, .. } => at.entry(key.clone()).or_default()[1] = number,
            Event::NodeFinished { key, tokens, .. } => {
                assert_eq!(*tokens, 10);
                at.entry(key.clone()).or_default()[2] = number;
            }
            _ => {}
        }
    }
    for node in nodes() {
        let [began, measured, finished] = at[&node.key];
        assert!(began < measured && measured < finished, "{}", node.label);
        assert!(node.needs.iter().all(|need| at[need][2] < began), "{}", node.label);
    }
    // A run that has nothing to do leaves no stream.
    run(folder.path(), &Counting::default(), 1);
    assert_eq!(streams(&Store::at(folder.path()).events()), files);
}

#[test]
fn stopped_anywhere_and_cut_anywhere_streams_tell_the_same() {
    let whole = tempfile::tempdir().expect("a folder");
    run(whole.path(), &Counting::default(), 1);
    for count in [0, 1, 5, 9] {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path(), &Counting { stops: Some((key("b"), count)), ..Counting::default() }, 1);
        let half = told(folder.path());
        let attempt = half.attempt(&key("b")).expect("it was begun");
        assert_eq!((attempt.lines.len() as u64, attempt.end.clone()), (count, Some(End::Interrupted)));
        assert!(half.is_finished(&key("a")) && !half.is_finished(&key("b")));
        run(folder.path(), &Counting::default(), 1);
        let (told, whole) = (told(folder.path()), told(whole.path()));
        for node in nodes() {
            let attempt = told.attempt(&node.key).expect("it was done");
            assert_eq!(text(&attempt.lines), text(&all_counts()), "{} stopped at {count}", node.label);
            assert_eq!(text(&attempt.lines), text(&whole.attempt(&node.key).expect("it was done").lines));
        }
    }
    // A kill leaves the beginning of a stream: its whole lines are read, and half a line is waited for.
    let path = streams(&Store::at(whole.path()).events()).pop().expect("a stream");
    let (bytes, kept) = (std::fs::read(&path).expect("reads"), lines(&path));
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&path, &bytes[..length]).expect("writes");
        let complete = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(text(&lines(&path)), text(&kept[..complete].to_vec()));
    }
    let mut tail = Tail::new(path.clone());
    let mut count = 0;
    for length in [10, 500, bytes.len() / 2, bytes.len()] {
        std::fs::write(&path, &bytes[..length]).expect("writes");
        tail.read(|_| count += 1);
    }
    assert_eq!((count, tail.fault()), (kept.len(), None));
}

#[test]
fn runs_side_by_side_have_streams_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let worker = Counting::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run(folder.path(), &worker, 2));
        }
    });
    let all: Vec<Line> = streams(&Store::at(folder.path()).events()).iter().flat_map(|path| lines(path)).collect();
    let finished = all.iter().filter(|line| matches!(line.event, Event::NodeFinished { .. })).count();
    assert_eq!(finished, 5);
    let told = told(folder.path());
    assert!(nodes().iter().all(|node| told.is_finished(&node.key)));
}

#[test]
fn a_stream_that_is_none_is_read_up_to_the_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &Counting { fails: Some(key("b")), ..Counting::default() }, 1);
    let known = told(folder.path());
    let Some(End::Failed(failure)) = &known.attempt(&key("b")).expect("it was begun").end else { panic!("it failed") };
    assert_eq!(failure.diverged_at, Some(3));
    let path = streams(&Store::at(folder.path()).events()).pop().expect("a stream");
    let text = std::fs::read_to_string(&path).expect("reads");
    let (first, rest) = text.split_once('\n').expect("lines");
    let newer = first.replacen(&format!("\"v\":{VERSION}"), &format!("\"v\":{}", VERSION + 1), 1);
    for (damaged, word) in [
        (format!("{first}\nnonsense\n{rest}"), "event 1"),
        (format!("{first}\n{first}\n{rest}"), "event 0 stands in its place"),
        (format!("{newer}\n{rest}"), "version"),
    ] {
        std::fs::write(&path, damaged).expect("writes");
        let (_, faults) = Told::read(&Store::at(folder.path()).events(), &|_| true);
        assert!(faults.len() == 1 && faults[0].contains(word), "{faults:?}");
    }
    // What a newer program says besides is passed over.
    let song = format!("{{\"v\":{VERSION},\"seq\":1,\"at\":0.0,\"event\":\"node_sang\",\"key\":\"x\",\"song\":[1]}}");
    std::fs::write(&path, format!("{first}\n{song}\n")).expect("writes");
    assert_eq!(lines(&path).len(), 2);
}
