//! A process that is killed at any moment, again and again: in saves, between phases, anywhere. The store ends as that of one that was left alone.
//!
//! `XRUN_KILLS=200 cargo test --test numerics kills` kills as often as it says.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use xrun::plan::build;
use xrun::plan::node::Node;
use xrun::run::lock::PATIENCE;
use xrun::run::{Options, Store, Summary, execute};

use crate::library::study;
use crate::resume::{Calm, Everything, results};

const STORE: &str = "XRUN_TEST_KILLED";
/// So often within seconds; more by `XRUN_KILLS`.
const KILLS: u32 = 15;

const TEXT: &str = "
    data tales { generate tales(documents: 200), context 32 tokens, holdout 10% }
    model small { layers 2, block 1 layer, width 24, heads 2, kv 1, ffn swiglu(32), init normal(0.1) }
    training plain { loss cross_entropy, optimizer adamw(lr: 3e-3), batch 4 sequences }
    teacher big { model small, train 20 steps with plain, cache top 4 }
    training distilled = plain with { loss 0.5 * kl(big) + 0.5 * cross_entropy }
    schedule steps_of(n) { start with 1 block, at step n: grow block, end at step 2 * n }
    study killed { data tales, model small, training distilled
      vary schedule over steps_of(n: 30), steps_of(n: 40)
      measure validation_ce every 10 steps
      probe boundary_rms at end on 4 sequences of 16 tokens }";

/// No test of its own: what is killed. A phase saves after every step.
#[test]
fn a_process() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let summary = run(Path::new(&store));
    assert!(summary.failed.is_empty() && !summary.interrupted, "{summary:?}");
}

fn run(store: &Path) -> Summary {
    let study = study(TEXT);
    let plan = build(&study, &xrun::data::gather(&study, store, &xrun::data::Reach::whole())).expect("a plan");
    let nodes: Vec<Node> = plan.nodes().into_iter().cloned().collect();
    let stop = AtomicBool::new(false);
    let options = Options { jobs: 2, threads: 2, save_every: Duration::ZERO, patience: PATIENCE, asked: Instant::now() };
    execute(&nodes, &Store::at(store), &Everything, &options, &stop, &Calm).expect("the store works")
}

fn start(store: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kills::a_process", "--quiet"])
        .env(STORE, store)
        .stdout(Stdio::null())
        .spawn()
        .expect("starts")
}

/// Files below a folder, by their paths.
fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found
}

/// A half-written file: somebody saves.
fn is_saving(store: &Path) -> bool {
    let half = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    below(&store.join("work")).iter().any(half)
}

fn done(store: &Path) -> usize {
    std::fs::read_dir(store.join("nodes")).into_iter().flatten().count()
}

#[test]
fn killed_at_any_moment_the_store_ends_in_the_same_bytes() {
    let kills = std::env::var("XRUN_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let whole = tempfile::tempdir().expect("a folder");
    let began = Instant::now();
    run(whole.path());
    let takes = began.elapsed();
    let expected = results(whole.path());
    let mut folder = tempfile::tempdir().expect("a folder");
    // Of the moments alone: what is killed draws its own numbers.
    let mut state = 1u64;
    let (mut killed, mut in_saves, mut between, mut stores) = (0, 0, 0, 1);
    while killed < kills {
        let mut child = start(folder.path());
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 40) as f64 / (1u64 << 24) as f64;
        let began = Instant::now();
        let had = done(folder.path());
        let over = loop {
            let (in_save, further) = (is_saving(folder.path()), done(folder.path()) > had);
            let now = match killed % 3 {
                0 => began.elapsed() > takes.mul_f64(share / 4.0),
                1 => in_save,
                _ => further,
            };
            if now {
                in_saves += u32::from(in_save);
                between += u32::from(further);
                break false;
            }
            if child.try_wait().expect("asks").is_some() {
                break true;
            }
        };
        if over {
            // It was done before its moment came: another store begins.
            assert!(results(folder.path()) == expected);
            (folder, stores) = (tempfile::tempdir().expect("a folder"), stores + 1);
            continue;
        }
        child.kill().expect("kills");
        child.wait().expect("ends");
        killed += 1;
    }
    assert!(start(folder.path()).wait().expect("ends").success());
    assert!(results(folder.path()) == expected);
    assert!(below(&folder.path().join("work")).is_empty(), "{:?}", below(&folder.path().join("work")));
    assert!(in_saves > 0 && between > 0);
    println!("{killed} kills over {stores} stores: {in_saves} in saves, {between} after a node appeared");
}
