//! A store filled as training would fill it, without training: every phase of a study has its metrics, made up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use xrun::check::check;
use xrun::data::{Reach, gather};
use xrun::plan::{self, node::Work};
use xrun::run::Store;
use xrun::run::lock::{Observer, PATIENCE, Taken};
use xrun::run::record::{DOCUMENTS, DocumentsRecord, METRICS, MetricLine, Real, Record};
use xrun::source::{Source, World};

/// Documents of the holdout, a fifth of the paper's.
const DOCUMENTS_HELD: u64 = 1_000;

/// Two placements, two schedules, learning rates enough for `runs` of so many steps under 25 seeds; every step has a loss, every hundredth step is evaluated.
pub fn study(runs: u64, steps: u64) -> String {
    const SEEDS: u64 = 25;
    let rates: Vec<String> = (1..=runs / (4 * SEEDS)).map(|rate| format!("{rate}e-4")).collect();
    format!(
        r"
use std.placements (pre, post)
use std.schedules (joint, grow)

data tales {{
  generate  tales(documents: 60, seed: 1)
  tokenizer bytes
  context   16 tokens, packed
  holdout   10%
}}
model student {{
  layers 2
  block  1 layer
  width  8
  heads  2, kv 1
  ffn    swiglu(12)
  norm   rms(eps: 1e-6)
  init   normal(0.1)
}}
training base {{
  loss      cross_entropy
  optimizer adamw(lr: 3e-3)
  lr        warmup 2 steps then cosine to 10%
  batch     4 sequences
}}
study wide {{
  data     tales
  model    student
  training base
  vary placement over pre, post
  vary schedule over joint(steps: {steps}), grow(phase: {} steps)
  vary training.optimizer.lr over {}
  seeds    {SEEDS}
  measure  validation_ce every {} steps
  measure  train_loss every 1 step
  claim they_interact: validation_ce[post, grow] - validation_ce[pre, grow] < validation_ce[post, joint] - validation_ce[pre, joint]
  claim ranking_crosses: validation_ce[post, grow] overtakes validation_ce[pre, grow] after grow 1
  report   ablation(rows: placement, columns: schedule)
}}
",
        steps / 2,
        rates.join(", "),
        (steps / 100).max(1)
    )
}

struct Alone;

impl World for Alone {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        Err(format!("there is no {path}"))
    }
}

/// Fills the store of a study that lies in `folder`; returns how many runs it has.
pub fn fill(folder: &Path, text: &str) -> usize {
    let checked = check(&Alone, Source::new("study.exp", text.to_owned()));
    assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    let study = &checked.studies[0];
    let plan = plan::build(study, &gather(study, folder, &Reach::whole())).expect("a plan");
    let store = Store::at(folder.join(".xrun"));
    let observer = Observer::new(PATIENCE);
    store.create().expect("a store");
    let every = study.measures[0].every;
    for (number, node) in (0_u64..).zip(plan.nodes()) {
        let Work::Phase(phase) = &node.work else { continue };
        let mut text = String::new();
        let steps = phase.segment.steps.clone();
        for step in steps.start..=steps.end {
            let mut values = BTreeMap::new();
            let mut add = |name: &str, value: f64| _ = values.insert(name.to_owned(), Real(value));
            // Low bits that need all digits, as those of real losses do.
            let noise = step.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number.wrapping_mul(0xd1b5_4a32_d192_ed03)) >> 40;
            let loss = 2.0 + 1.0 / (1.0 + step as f64 / 700.0) + noise as f64 / 1e10 + number as f64 * 1e-7;
            if step.is_multiple_of(every) {
                add("validation_ce", loss * 0.99);
            }
            if step < steps.end {
                add("train_loss", loss);
                add("grad_norm", loss / 3.0);
                add("lr", 1e-3 / (1.0 + step as f64));
            }
            if !values.is_empty() {
                writeln!(text, "{}", serde_json::to_string(&MetricLine { step, values }).expect("JSON")).expect("writes");
            }
        }
        let Ok(Taken::Ours(lock)) = store.lock(&node.key, &observer) else { panic!("nobody else is here") };
        let work = store.begin(&node.key, &lock).expect("a folder");
        std::fs::write(work.join(METRICS), text).expect("writes");
        if steps.end.is_multiple_of(every) {
            let tokens: Vec<u64> = (0..DOCUMENTS_HELD).map(|document| 100 + document % 900).collect();
            let ce = tokens.iter().map(|tokens| Real(*tokens as f64 * (2.0 + number as f64 * 1e-7))).collect();
            let record = DocumentsRecord { step: steps.end, tokens, ce };
            std::fs::write(work.join(DOCUMENTS), serde_json::to_string(&record).expect("JSON")).expect("writes");
        }
        store.finish(&node.key, &lock, "phase", BTreeMap::new()).expect("finished");
        store.release(&node.key, lock);
    }
    plan.runs.len()
}

/// Seals a node anew, as it is now.
pub fn seal(node: &Path) {
    let path = node.join("record.ron");
    let text = std::fs::read_to_string(&path).expect("a record");
    let mut record: Record = ron::from_str(&text).expect("RON");
    for (name, hash) in &mut record.files {
        *hash = blake3::hash(&std::fs::read(node.join(name)).expect("a file")).to_hex().to_string();
    }
    record.seal = record.seal();
    std::fs::write(path, ron::to_string(&record).expect("RON")).expect("writes");
}
