//! Models that leave: what is exported teaches, starts and counts as what was trained.

#[cfg(feature = "train")]
use std::path::Path;

#[cfg(feature = "train")]
use serde_json::Value;

use super::bench::Bench;

const STUDY: &str = r#"
use std.placements (pre, post)
use std.schedules (grow)
/// Is a model the same <b>elsewhere</b>?
study s {
  data tales
  model student
  training base
  vary placement over pre, post
  schedule grow(phase: 4 steps)
  seeds   [3, 5]
  measure validation_ce every 4 steps
}
data tales {
  generate  tales(documents: 30, seed: 1)
  tokenizer TOKENIZER
  context   16 tokens
  holdout   10%
}
model student {
  layers 2
  width  16
  heads  2, kv 1, dim 12
  ffn    swiglu(24)
  norm   rms(eps: 1e-5)
  qk_norm
  positions rope(base: 500)
  init   normal(0.2)
}
training base {
  loss      cross_entropy
  optimizer adamw(lr: 1e-2)
  batch     4 sequences
}
"#;

fn bench(tokenizer: &str) -> Bench {
    Bench::new(&STUDY.replace("TOKENIZER", tokenizer))
}

/// What standard error says; it must have ended with `code`.
fn refused(bench: &Bench, code: i32, arguments: &[&str]) -> String {
    let output = bench.xrun(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

#[cfg(feature = "train")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A metric of an arm under a seed, by steps, from a report.
#[cfg(feature = "train")]
fn series(report: &Value, arm: &str, seed: u64, metric: &str) -> Vec<(u64, f64)> {
    let arms = report["arms"].as_array().expect("arms");
    let run = arms.iter().find(|run| run["name"] == arm && run["seed"] == seed).expect("the run");
    let pairs = run["series"][metric].as_array().expect("a series").iter();
    pairs.map(|pair| (pair[0].as_u64().expect("a step"), pair[1].as_f64().expect("a value"))).collect()
}

/// A study of one step on the same text whose model starts as the exported one.
#[cfg(feature = "train")]
fn next(body: &str, loss: &str, tokenizer: &str) -> String {
    let of = STUDY
        .replace("TOKENIZER", tokenizer)
        .replace("  vary placement over pre, post\n", "")
        .replace("seeds   [3, 5]", "seeds 1");
    of.replace("grow(phase: 4 steps)", "joint(steps: 1)")
        .replace("schedules (grow)", "schedules (joint)")
        .replace("init   normal(0.2)", body)
        .replace("loss      cross_entropy", loss)
}

#[cfg(feature = "train")]
#[test]
fn what_is_exported_says_what_was_trained() {
    let bench = bench("bytes");
    bench.says(0, &["run", "study.exp"]);
    let trained = bench.json(0, &["report", "study.exp", "--format", "json"]);
    bench.says(0, &["export", "study.exp", "[pre]", "--seed", "5", "--to", "out"]);
    let config: Value = serde_json::from_str(&read(&bench.path().join("out/config.json"))).expect("JSON");
    assert_eq!((&config["model_type"], &config["head_dim"]), (&"qwen3".into(), &12.into()));
    assert_eq!((&config["vocab_size"], &config["eos_token_id"]), (&257.into(), &256.into()));
    assert!(!bench.path().join("out/tokenizer.json").exists());

    // It teaches, and the student starts as it: what they say is the same at every token.
    let text = next("init from \"out/model.safetensors\"", "loss kl(theirs)", "bytes")
        .replace("measure validation_ce every 4 steps", "measure validation_ce every 1 steps, kl every 1 steps");
    std::fs::write(bench.path().join("next.exp"), text + "teacher theirs { checkpoint \"out\" }\n").expect("writes");
    bench.says(0, &["run", "next.exp"]);
    let report = bench.json(0, &["report", "next.exp", "--format", "json"]);
    let end = series(&trained, "[pre]", 5, "validation_ce").last().copied().expect("a value");
    let arm = report["arms"][0]["name"].as_str().expect("a name").to_owned();
    let start = series(&report, &arm, 0, "validation_ce")[0];
    assert_eq!((end.0, start), (8, (0, end.1)), "to the bit");
    assert!(series(&report, &arm, 0, "kl")[0].1.abs() < 1e-6);
    let arms = report["tables"]["arms"].to_string();
    assert!(arms.contains("teacher theirs") && arms.contains(&format!("{:.4}", end.1)), "{arms}");

    // The model just before it grew, of half the layers.
    bench.says(0, &["export", "study.exp", "[ pre ]", "--seed", "5", "--at", "grow 1", "--to", "half"]);
    let config: Value = serde_json::from_str(&read(&bench.path().join("half/config.json"))).expect("JSON");
    assert_eq!(config["num_hidden_layers"], 1);
    let text = next("init from \"half/model.safetensors\"", "loss cross_entropy", "bytes").replace("layers 2", "layers 1");
    std::fs::write(bench.path().join("next.exp"), text).expect("writes");
    bench.says(0, &["run", "next.exp"]);
    let report = bench.json(0, &["report", "next.exp", "--format", "json"]);
    let grown = series(&trained, "[pre]", 5, "validation_ce");
    let before = grown.iter().find(|(step, _)| *step == 4).expect("measured before the event");
    assert_eq!(series(&report, &arm, 0, "validation_ce")[0], (0, before.1));
    // The same step by its number is the same folder, and a second time is too.
    bench.says(0, &["export", "study.exp", "[pre]", "--seed", "5", "--at", "step 4", "--to", "again"]);
    assert_eq!(Bench::files(&bench.path().join("half")), Bench::files(&bench.path().join("again")));
}

#[cfg(feature = "train")]
#[test]
fn a_card_tells_of_its_model_and_its_siblings() {
    let bench = bench("bytes");
    bench.says(0, &["run", "study.exp", "--arm", "[pre]"]);
    bench.says(0, &["export", "study.exp", "[pre]", "--to", "out"]);
    let card = read(&bench.path().join("out/README.md"));
    let report = bench.json(0, &["report", "study.exp", "--format", "json"]);
    for seed in [3, 5] {
        let ce = series(&report, "[pre]", seed, "validation_ce").last().expect("a value").1;
        assert!(
            card.contains(&format!("{seed}** (this model) | {ce:.4}")) || card.contains(&format!("| {seed} | {ce:.4}")),
            "{card}"
        );
    }
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let run =
        plan["arms"].as_array().expect("arms").iter().find(|run| run["name"] == "[pre]" && run["seed"] == 3).expect("the run");
    let key = run["nodes"].as_array().expect("keys").last().and_then(Value::as_str).expect("a key");
    for said in ["library_name: transformers", key, "8 of 8 steps, 512 tokens", "a token is a byte", "AutoModelForCausalLM"] {
        assert!(card.contains(said), "{said}: {card}");
    }
    assert!(card.contains("\\<b>elsewhere\\</b>"), "{card}");
}

#[cfg(feature = "train")]
#[test]
fn other_placements_leave_under_our_names_with_their_equations() {
    let bench = bench("bytes");
    bench.says(0, &["run", "study.exp", "--arm", "[post]"]);
    let said = refused(&bench, 0, &["export", "study.exp", "[post]", "--to", "out"]);
    assert!(said.contains("transformers has no such architecture, for it has an entry equation"), "{said}");
    let folder = bench.path().join("out");
    assert!(!folder.join("config.json").exists());
    let card = read(&folder.join("README.md"));
    for said in ["library_name: xrun", "| `layers.0 to 1, attention` | `norm(x + attention(x))` |", "| `entry` | `norm(x)` |"] {
        assert!(card.contains(said), "{said}: {card}");
    }
    let trained = bench.json(0, &["report", "study.exp", "--format", "json"]);
    let text = next("placement post\n  init from \"out/model.safetensors\"", "loss cross_entropy", "bytes");
    std::fs::write(bench.path().join("next.exp"), text).expect("writes");
    bench.says(0, &["run", "next.exp"]);
    let report = bench.json(0, &["report", "next.exp", "--format", "json"]);
    let arm = report["arms"][0]["name"].as_str().expect("a name");
    let end = series(&trained, "[post]", 3, "validation_ce").last().expect("a value").1;
    assert_eq!(series(&report, arm, 0, "validation_ce")[0].1, end);
}

#[cfg(feature = "train")]
#[test]
fn a_tokenizer_goes_along() {
    let bench = bench("\"tokenizer.json\"");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub/qwen3");
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(from.join(name), bench.path().join(name)).expect("copies");
    }
    bench.says(0, &["run", "study.exp", "--arm", "[pre]"]);
    bench.says(0, &["export", "study.exp", "[pre]", "--to", "out"]);
    assert_eq!(read(&bench.path().join("out/tokenizer.json")), read(&from.join("tokenizer.json")));
    let config: Value = serde_json::from_str(&read(&bench.path().join("out/tokenizer_config.json"))).expect("JSON");
    assert_eq!(config["eos_token"], "<|endoftext|>");
    // A study that takes both from the folder reads the same tokens.
    let text = next("init from \"out/model.safetensors\"", "loss kl(theirs)", "teacher");
    std::fs::write(bench.path().join("next.exp"), text + "teacher theirs { checkpoint \"out\" }\n").expect("writes");
    let keys = |file: &str| -> Vec<Value> {
        let plan = bench.json(0, &["plan", file, "--format", "json"]);
        let nodes = plan["nodes"].as_array().expect("nodes").iter().filter(|node| node["kind"] == "corpus");
        nodes.map(|node| node["key"].clone()).collect()
    };
    assert_eq!(keys("study.exp"), keys("next.exp"));
}

#[cfg(feature = "train")]
#[test]
fn nothing_that_is_there_gives_way() {
    let bench = bench("bytes");
    bench.says(0, &["run", "study.exp", "--arm", "[pre]"]);
    let out = bench.path().join("out");
    std::fs::create_dir(&out).expect("a folder");
    std::fs::write(out.join("mine"), "mine").expect("writes");
    std::fs::write(bench.path().join("file"), "mine").expect("writes");
    for to in ["out", "file"] {
        let said = refused(&bench, 2, &["export", "study.exp", "[pre]", "--to", to]);
        assert!(said.contains(&format!("`{to}` is there already")), "{said}");
    }
    assert_eq!((read(&out.join("mine")), std::fs::read_dir(&out).expect("a folder").count()), ("mine".to_owned(), 1));
    // One that is empty has nothing to lose.
    std::fs::remove_file(out.join("mine")).expect("removes");
    bench.says(0, &["export", "study.exp", "[pre]", "--to", "out"]);
    // A checkpoint that is not what was written is not handed on, and leaves nothing behind.
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let run = plan["arms"].as_array().expect("arms").iter().find(|run| run["name"] == "[pre]").expect("the run");
    let key = run["nodes"].as_array().expect("keys").last().and_then(Value::as_str).expect("a key");
    let path = bench.store().join("nodes").join(key).join("checkpoint.safetensors");
    let mut bytes = std::fs::read(&path).expect("reads");
    *bytes.last_mut().expect("bytes") ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    let before = std::fs::read_dir(bench.path()).expect("a folder").count();
    let said = refused(&bench, 1, &["export", "study.exp", "[pre]", "--to", "other"]);
    assert!(said.contains("is damaged: `checkpoint.safetensors` is not what was written"), "{said}");
    assert_eq!(std::fs::read_dir(bench.path()).expect("a folder").count(), before);
}

#[test]
fn what_is_not_there_is_told() {
    let bench = bench("bytes");
    for (arguments, said) in [
        (["[pots]", "--seed", "3"], "`s` has no arm `[pots]`: no axis has the value `pots`; did you mean `post`?"),
        (["[pre]", "--seed", "4"], "`s` has no seed 4; it has 3 and 5"),
        (["[pre]", "--at", "step 5"], "[pre] has no checkpoint at `step 5`; it has them at step 4 (grow 1) and step 8 (end)"),
        (["[pre]", "--at", "grow 2"], "has no checkpoint at `grow 2`"),
        (["[pre]", "--at", "end"], "[pre], seed 3, is not trained: 0 of 2 phases done; `xrun run --arm '[pre]'` does the rest"),
    ] {
        let [arm, option, value] = arguments;
        let heard = refused(&bench, 2, &["export", "study.exp", arm, "--to", "out", option, value]);
        assert!(heard.contains(said), "{heard}");
        assert!(!bench.path().join("out").exists() && !bench.store().exists());
    }
}
