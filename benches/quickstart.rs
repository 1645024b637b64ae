//! What a run costs beside training, and what `--jobs 2` saves: `cargo bench --bench quickstart -- [rounds=3] [FILE]`.
//!
//! Runs the quickstart into an empty store, one node at a time on all threads and two at a time, in turns, on a machine that should have nothing else to
//! do. Prints the seconds of each, the share that was overhead (planning, checkpoints, store, locks, events, and what is none of these) and how
//! much sooner two at a time are done. Ends with 1 where overhead takes more than 3 % or two processors give less than 1.25.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use xrun::run::Store;
use xrun::run::event::Event;
use xrun::run::profile::overhead;
use xrun::run::replay::{Tail, streams};

/// Seconds and the share of overhead of a run into an empty store.
fn run(file: &Path, jobs: &str) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xrun"));
    command.arg("run").arg(file).args(["--quiet", "--jobs", jobs, "--store"]).arg(&store);
    assert!(command.status().expect("xrun runs").success());
    let path = streams(&Store::at(&store).events()).pop().expect("a stream");
    let mut found = None;
    Tail::new(path).read(|line| {
        if let Event::RunFinished { seconds, spent, .. } = line.event {
            let parts: Vec<String> = spent.iter().map(|(word, seconds)| format!("{word} {seconds:.2}")).collect();
            println!("jobs {jobs}: {seconds:.2} s, {:.2} % overhead; {}", 100.0 * overhead(&spent), parts.join(", "));
            found = Some((seconds, overhead(&spent)));
        }
    });
    found.expect("it ended")
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = words.iter().find_map(|word| word.strip_prefix("rounds=")).map_or(3, |rounds| rounds.parse().expect("a number"));
    let file = words.iter().find(|word| word.ends_with(".exp")).map(PathBuf::from);
    let file = file.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/001_quickstart.exp"));
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(run(&file, "1"));
        two.push(run(&file, "2"));
    }
    // The least of several: what else the machine does only adds.
    let (alone, both) = (least(one.iter().map(|run| run.0)), least(two.iter().map(|run| run.0)));
    let share = least(one.iter().map(|run| run.1));
    println!(
        "overhead {:.2} %; --jobs 2 is done {:.2} times sooner ({alone:.2} s against {both:.2} s)",
        100.0 * share,
        alone / both
    );
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if share < 0.03 && (threads != 2 || alone / both >= 1.25) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
