//! What the plan says that training takes, against what it takes: every byte that a run asks of the allocator is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use xrun::budget::memory::PROGRAM;
use xrun::check::check;
use xrun::data::{Reach, corpus, gather};
use xrun::plan::node::{Phase, Work};
use xrun::plan::{self, Plan};
use xrun::run::profile::Profile;
use xrun::run::worker::{Desk, Failure, Outcome, Stop, Worker};
use xrun::source::{Source, World};
use xrun::train::TrainWorker;

/// Counts what is held, and the most that was held at once.
struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: memory is the system's; only sizes are looked at.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it came from there, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

struct Alone;

impl World for Alone {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

/// The only phase of a study.
pub fn phase(text: &str) -> Phase {
    let plan = planned(text);
    let found = plan
        .nodes()
        .into_iter()
        .find_map(|node| if let Work::Phase(phase) = &node.work { Some((**phase).clone()) } else { None });
    found.expect("a phase")
}

fn planned(text: &str) -> Plan {
    let mut checked = check(&Alone, Source::new("alone.exp", text));
    assert!(!checked.problems.has_errors(), "{}", checked.problems.render(&checked.sources, false));
    let study = checked.studies.pop().expect("a study");
    plan::build(&study, &gather(&study, Path::new(""), &Reach::whole())).expect("a plan")
}

/// Bytes that the only phase of a study is said to take, the program itself aside, and takes.
fn measured(text: &str) -> (u64, u64) {
    let plan = planned(text);
    let folder = tempfile::tempdir().expect("a folder");
    let mut taken = (0, 0);
    for node in plan.nodes() {
        let own = folder.path().join(&node.key.0);
        std::fs::create_dir(&own).expect("a folder");
        if let Work::Corpus { data, content } = &node.work {
            corpus::write(data, content.as_deref(), Path::new(""), None, &own, &mut |_| true).expect("a corpus");
            continue;
        }
        let (stop, finished) = (AtomicBool::new(false), |key: &plan::Key| folder.path().join(&key.0));
        let (mut tell, profile) = (|_| {}, Profile::default());
        let mut desk = Desk {
            folder: &own,
            finished: &finished,
            stop: Stop::of(&stop),
            save_every: Duration::from_secs(3600),
            tell: &mut tell,
            threads: 2,
            profile: &profile,
        };
        let before = HELD.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let outcome: Result<Outcome, Failure> = TrainWorker::default().work(node, &mut desk);
        assert!(matches!(outcome.expect("it trains"), Outcome::Done(_)));
        let said = plan.cost(&node.key).and_then(|cost| cost.memory).expect("known") - PROGRAM;
        taken = (said, (MOST.load(Ordering::Relaxed) - before) as u64);
    }
    taken
}

pub fn study(model: &str, optimizer: &str, placement: &str, schedule: &str, context: u64, rows: u64) -> String {
    format!(
        "use std.placements (pre, post, sandwich)
         use std.schedules (joint)
         data tales {{ generate tales(documents: 400), context {context} tokens }}
         model m {{ {model}, embedding tied, head tied, placement {placement} }}
         training t {{ loss cross_entropy, optimizer {optimizer}, batch {rows} sequences }}
         study s {{ data tales, model m, training t, schedule {schedule}, seeds 1 }}"
    )
}

/// Within 15 %, at the shape S of `xrun bench` and at others where another part is the most: parameters, the head, a long context, the
/// streams of a placement with many norms.
#[test]
fn the_plan_says_what_training_takes() {
    let _alone = crate::alone();
    let shape = |layers: u64, width: u64, heads: u64, ffn: &str, vocabulary: u64| {
        let kv = heads / 2;
        format!("layers {layers}, block 1 layer, width {width}, heads {heads}, kv {kv}, ffn {ffn}, vocabulary {vocabulary}")
    };
    let whole = "joint(steps: 2 steps)";
    for (model, optimizer, placement, schedule, context, rows) in [
        (shape(9, 128, 4, "swiglu(384)", 512), "adamw(lr: 1e-3)", "pre", whole, 128, 16),
        (shape(3, 256, 8, "swiglu(768)", 4096), "adamw(lr: 1e-3)", "post", whole, 64, 8),
        (shape(2, 128, 4, "gelu(256)", 16_384), "sgd(lr: 1e-3, momentum: 0.9)", "pre", whole, 32, 4),
        (shape(2, 32, 2, "swiglu(64)", 300), "lion(lr: 1e-3)", "pre", whole, 2048, 1),
        (shape(4, 128, 4, "swiglu(256)", 300), "adamw(lr: 1e-3)", "sandwich", whole, 256, 8),
    ] {
        // A thread that has trained keeps what it has used for what it trains next.
        let study = study(&model, optimizer, placement, schedule, context, rows);
        let (said, taken) = std::thread::spawn(move || measured(&study)).join().expect("it trains");
        let ratio = said as f64 / taken as f64;
        assert!((ratio - 1.0).abs() < 0.15, "{model}, {placement}, context {context}, rows {rows}: {said} said, {taken} taken");
    }
}

/// Width 128 at a context of 8,192 fits in 2 GB: as the plan says, which the test above holds it to. Measured by
/// `xrun bench --shape S --seq 8192 --batch 1`.
#[test]
fn a_long_context_fits() {
    let model = "layers 9, block 9 layers, width 128, heads 4, kv 2, ffn swiglu(384), vocabulary 512";
    let plan = planned(&study(model, "adamw(lr: 1e-3)", "pre", "joint(steps: 2 steps)", 8192, 1));
    let most = plan.nodes().into_iter().filter_map(|node| plan.cost(&node.key)?.memory).max();
    assert!(most.expect("known") < 2_000_000_000, "{most:?}");
}
