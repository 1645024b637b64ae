//! The runner with a worker whose result is a hash of its inputs: resuming, sharing, failing and damage in milliseconds.

mod counting;
mod events;
mod history;
#[cfg(unix)]
mod processes;

use std::sync::atomic::Ordering;

use xrun::run::store::State;
use xrun::run::{Store, Summary};

use counting::{Counting, contents, key, run};

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
fn nodes_that_can_run_together_share_the_threads() {
    for (jobs, expected) in [(1, [4, 4, 4, 4, 4]), (2, [4, 2, 2, 2, 2]), (3, [4, 2, 2, 2, 2]), (9, [4, 2, 2, 2, 2])] {
        let folder = tempfile::tempdir().expect("a folder");
        // As long as both chains take the same time, two nodes run.
        let worker = Counting { pause: std::time::Duration::from_millis(3), ..Counting::default() };
        run(folder.path(), &worker, jobs);
        let given: Vec<usize> = worker.threads.into_inner().expect("no panic").into_values().collect();
        // The last node may find its neighbour done.
        assert!(
            given == expected || given[..3] == expected[..3] && given[3..].iter().all(|count| [2, 4].contains(count)),
            "{given:?}"
        );
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
