//! Several processes on one store: killed, stopped, continued, on other hosts, under clocks that jump.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use xrun::run::replay::Told;
use xrun::run::{Standing, Store};

use crate::counting::{Counting, contents, key, patient, run};

const STORE: &str = "XRUN_TEST_STORE";
const PATIENCE: Duration = Duration::from_millis(600);
const FOREVER: Duration = Duration::from_secs(3_600);

/// No test of its own: what the other tests start as a process.
#[test]
fn a_process() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let store = PathBuf::from(store);
    let worker = Counting { pause: Duration::from_millis(10), log: Some(store.join("log")), ..Counting::default() };
    let summary = patient(&store, &worker, 1, PATIENCE);
    assert!(summary.failed.is_empty() && !summary.interrupted, "{summary:?}");
}

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    fn start(store: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "processes::a_process", "--quiet"]).env(STORE, store).stdout(Stdio::null());
        Self(command.spawn().expect("starts"))
    }
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().expect("kill runs").success());
    }
    fn kill(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
    fn ends_well(&mut self) {
        assert!(self.0.wait().expect("ends").success());
    }
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that is in the middle of the first node.
fn under_way(store: &Path) -> Process {
    std::fs::create_dir_all(store).expect("a folder");
    let child = Process::start(store);
    let count = || std::fs::read_to_string(Store::at(store).work(&key("a")).join("count")).unwrap_or_default();
    until("the first node is under way", || ["2", "3", "4"].contains(&count().as_str()));
    child
}

fn whole() -> std::collections::BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &Counting::default(), 1);
    contents(folder.path())
}

fn nothing_is_left_of(store: &Path) {
    let left: Vec<_> = std::fs::read_dir(store.join("work")).expect("lists").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn two_and_four_processes_do_no_node_twice() {
    let whole = whole();
    for processes in [2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut children: Vec<Process> = (0..processes).map(|_| Process::start(folder.path())).collect();
        children.iter_mut().for_each(Process::ends_well);
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        let mut done: Vec<&str> = log.lines().collect();
        done.sort_unstable();
        assert_eq!(done, ["a", "b", "c", "d", "e"], "{processes} processes");
        assert!(contents(folder.path()) == whole);
        nothing_is_left_of(folder.path());
    }
}

#[test]
fn a_holder_that_is_stopped_and_continued_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = under_way(folder.path());
    child.signal("-STOP");
    let summary = patient(folder.path(), &Counting::default(), 1, PATIENCE);
    assert_eq!((summary.done, summary.found), (5, 0));
    let node = Store::at(folder.path()).node(&key("a")).join("result");
    let published = || std::fs::metadata(&node).and_then(|file| file.modified()).expect("is there");
    let before = published();
    child.signal("-CONT");
    child.ends_well();
    assert_eq!(published(), before, "what is whole is never replaced");
    assert!(contents(folder.path()) == whole());
    nothing_is_left_of(folder.path());
}

#[test]
fn a_holder_that_was_continued_before_the_other_is_done_leaves_it_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = under_way(folder.path());
    child.signal("-STOP");
    let slow = Counting { pause: Duration::from_millis(40), ..Counting::default() };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| patient(folder.path(), &slow, 1, PATIENCE));
        until("the other took over", || Store::at(folder.path()).work(&key("a")).ends_with("2"));
        child.signal("-CONT");
        child.ends_well();
        assert!(other.join().expect("no panic").failed.is_empty());
    });
    assert!(contents(folder.path()) == whole());
    nothing_is_left_of(folder.path());
}

#[test]
fn a_killed_holder_is_followed_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = under_way(folder.path());
    let store = Store::at(folder.path());
    assert!(matches!(store.standing(&key("a")), Standing::Running(holder) if holder.pid == child.0.id()));
    child.kill();
    assert_eq!(store.standing(&key("a")), Standing::Begun);
    patient(folder.path(), &Counting::default(), 1, FOREVER);
    assert!(contents(folder.path()) == whole());
    let (told, faults) = Told::read(&store.events(), &|_| true);
    assert!(told.is_finished(&key("a")) && faults.is_empty(), "{faults:?}");
    nothing_is_left_of(folder.path());
}

/// Two hundred kills at moments of no order, in the middle of anything; a run of real training is killed in `tests/numerics/kills.rs`.
#[test]
fn killed_two_hundred_times_the_store_and_its_story_are_whole() {
    const KILLS: u32 = 200;
    let whole = whole();
    let mut folder = tempfile::tempdir().expect("a folder");
    let (mut state, mut killed) = (1u64, 0);
    while killed < KILLS {
        let mut child = Process::start(folder.path());
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((state >> 40) % 60_000));
        let over = child.0.try_wait().expect("asks").is_some();
        child.kill();
        killed += u32::from(!over);
        let store = Store::at(folder.path());
        let (told, faults) = Told::read(&store.events(), &|_| true);
        assert!(faults.is_empty(), "{faults:?}");
        if over {
            // It was done before its moment came: another store begins.
            assert!(contents(folder.path()) == whole);
            nothing_is_left_of(folder.path());
            // The last of them may have been killed before it could say so.
            assert!(["a", "b", "c", "d"].iter().all(|name| told.is_finished(&key(name))));
            folder = tempfile::tempdir().expect("a folder");
        }
    }
    Process::start(folder.path()).ends_well();
    assert!(contents(folder.path()) == whole);
    nothing_is_left_of(folder.path());
}

/// A lock of another host: its kernel says nothing here, only its counter does. Times of files jump by years meanwhile.
#[test]
fn another_host_is_known_by_its_counter_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path());
    store.create().expect("creates");
    let work = folder.path().join("work").join(key("a").0);
    std::fs::create_dir(&work).expect("a folder");
    let lock = work.join("1.lock");
    let beat = |beat: u64| {
        let text =
            format!(r#"{{"host":"elsewhere","pid":1,"boot":"another","locked":true,"token":"its own","beat":"{beat:020}"}}"#);
        std::fs::write(&lock, text + "\n").expect("writes");
        let year = Duration::from_secs(365 * 86_400);
        let now = SystemTime::now();
        let time = if beat.is_multiple_of(2) { now - year } else { now + year };
        File::options().append(true).open(&lock).and_then(|file| file.set_modified(time)).expect("a time");
    };
    beat(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| patient(folder.path(), &Counting::default(), 1, PATIENCE));
        for at in 1..30 {
            std::thread::sleep(PATIENCE / 10);
            assert!(!waits.is_finished() && store.standing(&key("a")) != Standing::Done, "beat {at}");
            beat(at);
        }
        let stood = Instant::now();
        let summary = waits.join().expect("no panic");
        assert_eq!(summary.done, 5);
        assert!(stood.elapsed() >= PATIENCE * 3 / 4);
    });
    assert!(contents(folder.path()) == whole());
    nothing_is_left_of(folder.path());
}
