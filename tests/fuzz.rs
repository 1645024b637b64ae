//! Texts that nobody would write: whatever they hold, they are read, checked, planned and laid out without a panic, in time, and in little
//! memory.
//!
//! `XRUN_FUZZ_SECONDS` sets how long new ones are tried (a few seconds if it is not set), `XRUN_FUZZ_SEED` which ones. What went wrong once is kept in
//! `tests/suite/fuzz` and tried first.

#[path = "cases/files.rs"]
mod files;
#[path = "cases/generate.rs"]
mod generate;
#[path = "fuzz/memory.rs"]
mod memory;
#[path = "cases/mutate.rs"]
mod mutate;
#[path = "cases/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xrun::check::{LIBRARY, begins_statement, check};
use xrun::data::facts::{Corpus, CorpusFacts, Facts};
use xrun::plan::{self, node::Work};
use xrun::source::{Source, World};
use xrun::study::Study;
use xrun::syntax::print;

use mutate::Material;
use random::Random;

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;

/// What a text may take of a processor, also where nothing is optimised.
const LONGEST: Duration = Duration::from_secs(20);
const MOST_MEMORY: usize = 200 << 20;

/// How long this thread has had a processor, where the system tells; else how late it is.
fn spent(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    told.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Every text of the repository, and every example of its pages.
fn texts() -> Vec<String> {
    let folders = ["stdlib", "experiments", "tests/suite"].into_iter();
    let paths = folders.flat_map(|folder| files::files(&root().join(folder), "exp"));
    let mut texts: Vec<String> = paths.map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    for page in ["README.md", "grammar/reference.md"] {
        let page = std::fs::read_to_string(root().join(page)).expect("a page");
        texts.extend(
            page.split("\n```exp")
                .skip(1)
                .filter_map(|block| block.split_once('\n')?.1.split_once("\n```"))
                .map(|(text, _)| text.to_owned()),
        );
    }
    assert!(texts.len() > 30, "{} texts", texts.len());
    texts
}

/// Files that a text may use.
struct Shelf(BTreeMap<&'static str, String>);

impl Shelf {
    fn new() -> Self {
        let experiment = root().join("experiments/001_quickstart.exp");
        let experiment = std::fs::read_to_string(experiment).expect("a text");
        let circle = "use \"./circle.exp\" (a)\nlet a = 1\n".to_owned();
        Self(BTreeMap::from([("parts.exp", experiment), ("circle.exp", circle), ("library.exp", LIBRARY[0].1.to_owned())]))
    }
}

impl World for Shelf {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let name = path.trim_start_matches("./");
        self.0.get(name).map(|text| Source::new(name, text.as_str())).ok_or_else(|| "no such file".to_owned())
    }
}

/// Corpora for a study, as if they had been found: no file is read.
fn facts(study: &Study, random: &mut Random) -> Facts {
    let mut facts = Facts::default();
    for arm in &study.arms {
        let data = &arm.recipe.data;
        if facts.corpora.iter().any(|(known, _)| known == data) {
            continue;
        }
        let corpus = if random.once_in(3) {
            Corpus::Absent("not here".to_owned())
        } else {
            let lengths =
                |count: usize, random: &mut Random| Arc::new((0..count).map(|_| 1 + random.below(300) as u32).collect());
            let count = [1, 2, 60, 2_000][random.below(4)];
            Corpus::Known(CorpusFacts {
                content: "0".repeat(64),
                vocabulary: 257,
                train_documents: lengths(count, random),
                holdout_documents: lengths(count / 20, random),
            })
        };
        facts.corpora.push((Arc::clone(data), corpus));
    }
    facts
}

/// How far a text came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// Its shape is wrong.
    Text,
    /// It can be read.
    Tree,
    /// Nothing is wrong with it.
    Study,
    /// Its study is planned.
    Plan,
}

/// Everything that is made of a text, up to the plan.
fn answer(shelf: &Shelf, text: &str, random: &mut Random) -> Reached {
    let source = Source::new("fuzz.exp", text);
    let laid_out = print(&source, &begins_statement);
    let mut reached = if laid_out.is_ok() { Reached::Tree } else { Reached::Text };
    let checked = check(shelf, source);
    if checked.problems.has_errors() {
        let drawn = checked.problems.render(&checked.sources, false);
        assert!(!drawn.is_empty() && checked.problems.to_json(&checked.sources).is_array());
        return reached;
    }
    assert!(laid_out.is_ok(), "a text that cannot be read has nothing wrong with it");
    reached = Reached::Study;
    for study in checked.studies.iter().take(3) {
        let Ok(plan) = plan::build(study, &facts(study, random)) else { continue };
        reached = Reached::Plan;
        assert!(!plan::text::text(&plan, &|_| plan::Why::New, false).is_empty());
        if random.once_in(8) && plan.nodes().len() < 200 && evaluations(&plan) < 1_000 {
            let written = ron::ser::to_string(&plan).expect("a plan is written");
            let read: plan::Plan = ron::from_str(&written).expect("a plan that was written is read");
            assert!(read == plan, "a plan changes on its way through a file");
        }
    }
    reached
}

/// How many steps a plan lists at which something is measured.
fn evaluations(plan: &plan::Plan) -> usize {
    let of = |work: &Work| match work {
        Work::Phase(phase) | Work::Teacher(phase) => phase.measures.iter().map(|(_, steps)| steps.len()).sum(),
        _ => 0,
    };
    plan.nodes().into_iter().map(|node| of(&node.work)).sum()
}

/// What is being tried, so that it can be named if it never comes back.
struct Bench {
    start: Instant,
    now: Arc<Mutex<Option<(Instant, PathBuf)>>>,
    folder: PathBuf,
    shelf: Shelf,
    reached: BTreeMap<Reached, usize>,
    slowest: (Duration, String),
    largest: (usize, String),
    failed: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let now: Arc<Mutex<Option<(Instant, PathBuf)>>> = Arc::default();
        let watched = Arc::clone(&now);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let Ok(now) = watched.lock() else { return };
                if let Some((_, path)) = now.as_ref().filter(|(began, _)| began.elapsed() > 15 * LONGEST) {
                    eprintln!("no answer to {}", path.display());
                    std::process::exit(101);
                }
            }
        });
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
        std::fs::create_dir_all(&folder).expect("a folder");
        let (slowest, largest) = ((Duration::ZERO, String::new()), (0, String::new()));
        let start = Instant::now();
        Self { start, now, folder, shelf: Shelf::new(), reached: BTreeMap::new(), slowest, largest, failed: Vec::new() }
    }

    /// Tries a text; `seed` chooses its facts.
    fn attempt(&mut self, text: &str, seed: u64) {
        let path = self.folder.join(format!("now-{}.exp", std::process::id()));
        // On the disk before it is tried: what takes all memory takes the process with it.
        std::fs::write(&path, text).expect("writes");
        let (now, began) = (Instant::now(), spent(self.start));
        *self.now.lock().expect("no panic while held") = Some((now, path));
        let before = memory::begin();
        let result = catch_unwind(AssertUnwindSafe(|| answer(&self.shelf, text, &mut Random::new(seed))));
        let (peak, took) = (memory::peak().saturating_sub(before), spent(self.start).saturating_sub(began));
        *self.now.lock().expect("no panic while held") = None;
        let mut fault = match result {
            Ok(reached) => {
                *self.reached.entry(reached).or_default() += 1;
                None
            }
            Err(panic) => {
                let said = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
                Some(said.unwrap_or_default())
            }
        };
        if took > LONGEST {
            fault = Some(format!("took {took:?}"));
        }
        if peak > MOST_MEMORY {
            fault = Some(format!("took {} MB", peak >> 20));
        }
        if let Some(fault) = fault {
            let path = self.folder.join(format!("{}.exp", &blake3::hash(text.as_bytes()).to_hex()[..12]));
            std::fs::write(&path, text).expect("writes");
            self.failed.push(format!("{} (facts {seed}): {fault}", path.display()));
        }
        if took > self.slowest.0 {
            self.slowest = (took, text.to_owned());
        }
        if peak > self.largest.0 {
            self.largest = (peak, text.to_owned());
        }
    }

    fn figures(&self) -> String {
        let keep = |name: &str, text: &str| {
            let path = self.folder.join(name);
            std::fs::write(&path, text).expect("writes");
            path.display().to_string()
        };
        let total: usize = self.reached.values().sum();
        format!(
            "{total} texts: {:?}; slowest {:?} ({}), largest {:.1} MB ({})",
            self.reached,
            self.slowest.0,
            keep("slowest.exp", &self.slowest.1),
            self.largest.0 as f64 / f64::from(1 << 20),
            keep("largest.exp", &self.largest.1),
        )
    }
}

#[test]
fn every_text_is_answered() {
    let mut bench = Bench::new();
    for path in files::files(&root().join("tests/suite/fuzz"), "exp") {
        for facts in 0..4 {
            bench.attempt(&std::fs::read_to_string(&path).expect("a text"), facts);
        }
    }
    let material = Material::new(texts());
    for text in &material.texts {
        bench.attempt(text, 0);
    }
    let (time, seed) = (Duration::from_secs(setting("XRUN_FUZZ_SECONDS", 3)), setting("XRUN_FUZZ_SEED", 0));
    let began = Instant::now();
    for number in seed << 32.. {
        if began.elapsed() > time || bench.failed.len() > 20 {
            break;
        }
        bench.attempt(&material.mutant(&mut Random::new(number)), number);
    }
    println!("{}", bench.figures());
    assert!(bench.failed.is_empty(), "\n{}", bench.failed.join("\n"));
    for stage in [Reached::Text, Reached::Tree, Reached::Study, Reached::Plan] {
        assert!(bench.reached.contains_key(&stage), "no text came as far as {stage:?}");
    }
}

#[test]
fn ten_thousand_brackets_are_too_deep() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{ a ", "}"), ("f(", ")")] {
        for closed in [0, 9_999, 10_000] {
            let text = format!("let a = {}1{}\n", open.repeat(10_000), close.repeat(closed));
            let start = Instant::now();
            let began = spent(start);
            let checked = check(&Shelf::new(), Source::new("deep.exp", text));
            let codes: Vec<&str> = checked.problems.iter().map(|said| said.code).collect();
            assert!(codes.contains(&"too-deep"), "{open}: {codes:?}");
            assert!(spent(start) - began < LONGEST);
        }
    }
}

#[test]
fn ten_thousand_arms_take_little() {
    let listed =
        |count: u32, scale: f64| (1..=count).map(|n| format!("{:e}", f64::from(n) * scale)).collect::<Vec<_>>().join(", ");
    let text = format!(
        "use std.placements (pre, post)
         use std.schedules (joint, grow, grow_frozen)
         data d {{ generate tales(documents: 200), context 32 tokens }}
         model m {{ layers 6, block 2 layers, width 16, heads 2, ffn swiglu(32) }}
         training t {{ loss cross_entropy, optimizer adamw(lr: 1e-3), lr warmup 10 steps then cosine, batch 4 sequences }}
         study s {{
           data d, model m, training t
           vary placement over pre, post
           vary schedule over joint(steps: 300), joint(steps: 600), grow(phase: 100 steps), grow_frozen(phase: 100 steps)
           vary training.optimizer.lr over {}
           vary clip over {}
           measure validation_ce every 10 steps
           probe boundary_rms at every grow and at end
         }}",
        listed(50, 1e-4),
        listed(25, 1e-2)
    );
    let start = Instant::now();
    let (before, began) = (memory::begin(), spent(start));
    let checked = check(&Shelf::new(), Source::new("large.exp", text));
    let [study] = checked.studies.as_slice() else { panic!("{}", checked.problems.render(&checked.sources, false)) };
    let plan = plan::build(study, &facts(study, &mut Random::new(1))).expect("a plan");
    assert_eq!(plan.runs.len(), 10_000);
    let shown = plan::text::text(&plan, &|_| plan::Why::New, false).len();
    let listed = serde_json::to_string(&plan::json::json(&plan, &|_| plan::Why::New)).expect("JSON").len();
    let (megabytes, took) = ((memory::peak() - before) >> 20, spent(start) - began);
    println!("{took:?}, {megabytes} MB, {shown} bytes of text, {listed} bytes of JSON");
    assert!(megabytes < 500 && shown > 1 << 20 && listed > 1 << 20, "{megabytes} MB");
    // Two seconds where it is optimised and alone.
    assert!(took < LONGEST, "{took:?}");
}
