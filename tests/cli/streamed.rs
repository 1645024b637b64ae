//! A teacher of others that is larger than the memory that it is heard in.

use super::bench::Bench;
use super::teacher::{Shape, peak};

/// 20 layers of 1.05 million parameters: 42 MB in BF16, 84 MB as they are computed with.
const TEACHER: Shape = Shape { layers: 20, width: 256, hidden: 1_024, vocabulary: 257 };

const STUDY: &str = r#"
use std.schedules (joint)
data tales {
  generate  tales(documents: 10, seed: 1)
  tokenizer bytes
  context   64 tokens, packed
  holdout   10%
}
model student { layers 1, width 16, heads 2, kv 1, ffn swiglu(24), init normal(0.1) }
teacher big { checkpoint "big", cache top 8 }
training distilled {
  loss      0.7 * kl(big, temperature: 1) + 0.3 * cross_entropy
  optimizer adamw(lr: 3e-3)
  batch     4 sequences
}
study s { data tales, model student, training distilled, schedule joint(steps: 4), measure validation_ce every 4 steps }
"#;

/// Its cache is filled in less memory than the teacher takes, and in what the plan says; who damages it has it made anew; and how long it
/// took is how long it takes.
#[test]
fn a_teacher_is_heard_in_less_memory_than_it_takes() {
    let bench = Bench::new(STUDY);
    TEACHER.write(&bench.path().join("big"));
    let plan = |code| bench.json(code, &["plan", "study.exp", "--format", "json"]);
    let before = plan(0);
    let node = |plan: &serde_json::Value, label: &str| {
        plan["nodes"].as_array().expect("nodes").iter().find(|node| node["label"] == label).expect("a node").clone()
    };
    let cache = node(&before, "logits of big");
    assert_eq!((&cache["cost"]["seconds"], &before["totals"]["seconds"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let stated = cache["cost"]["memory"].as_u64().expect("bytes");
    let whole = 4 * TEACHER.layered() as u64;
    assert!(stated < whole / 2, "{stated} of {whole}");
    // The program itself takes as much as the plan states; what counts is that more layers take no more.
    let few = Bench::new(STUDY);
    Shape { layers: 2, ..TEACHER }.write(&few.path().join("big"));
    let [own, most] = [&few, &bench].map(|bench| peak(&mut bench.command(&["run", "study.exp"])));
    assert!(most < whole && most > stated, "{most}, where the plan states {stated} and the teacher takes {whole}");
    assert!(most.saturating_sub(own) < whole / 4, "{most} with all of its layers, {own} with two");

    let after = plan(0);
    let cache = node(&after, "logits of big");
    assert!(cache["cost"]["seconds"].as_f64() > Some(0.0) && after["totals"]["seconds"].as_f64() > Some(0.0), "{cache}");
    let folder = bench.store().join("nodes").join(cache["key"].as_str().expect("a key"));
    let size: u64 =
        ["train.logits", "holdout.logits"].iter().map(|name| std::fs::metadata(folder.join(name)).expect("a file").len()).sum();
    assert_eq!(cache["cost"]["disk"].as_u64(), Some(size));

    // One flipped bit.
    let path = folder.join("train.logits");
    let kept = std::fs::read(&path).expect("reads");
    let mut other = kept.clone();
    other[40] ^= 1;
    std::fs::write(&path, other).expect("writes");
    let output = bench.xrun(&["run", "study.exp"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("`train.logits` is not what was written"), "{said}");
    assert!(std::fs::read(&path).expect("reads") == kept, "made anew, byte for byte");
}
