//! A teacher that does not fit: `cargo bench --bench teacher -- [mb=N] [documents=N]`, Linux only.
//!
//! Writes a teacher of `mb` megabytes in BF16, has a study fill a cache of its likeliest tokens, and prints a line of JSON: what the plan said
//! beforehand of memory, disk and time, and what happened. The time is that which a plan states once the teacher has been looked at, by the
//! speed of that look.

#[path = "../tests/cli/teacher.rs"]
mod teacher;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use teacher::{Shape, peak};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |key: &str, default: usize| {
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let shape = Shape { layers: 0, width: 1_024, hidden: 2_816, vocabulary: 32_000 };
    let (around, layer) = (4 * shape.vocabulary * shape.width, 2 * Shape { layers: 1, ..shape }.layered());
    let shape = Shape { layers: (number("mb", 1_000) * 1_000_000).saturating_sub(around).div_ceil(layer).max(1), ..shape };
    let folder = tempfile::tempdir().expect("a folder");
    shape.write(&folder.path().join("big"));
    let study = format!(
        "use std.schedules (joint)
         data tales {{ generate tales(documents: {}, seed: 1), tokenizer bytes, context 256 tokens, packed, holdout 20% }}
         model student {{ layers 1, width 16, heads 2, kv 1, ffn swiglu(24), init normal(0.1), vocabulary 32_000 }}
         teacher big {{ checkpoint \"big\", cache top 32 }}
         training distilled {{ loss kl(big, temperature: 1), optimizer adamw(lr: 3e-3), batch 2 sequences }}
         study s {{ data tales, model student, training distilled, schedule joint(steps: 2), measure validation_ce every 2 steps }}\n",
        number("documents", 150)
    );
    std::fs::write(folder.path().join("study.exp"), study).expect("writes");
    let (store, xrun) = (folder.path().join(".xrun"), |verb: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xrun"));
        command.current_dir(folder.path()).env_remove("XRUN_STORE").args(verb);
        command
    });
    let plan = || -> Value {
        let output = xrun(&["plan", "study.exp", "--format", "json"]).output().expect("xrun runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let before = plan();
    let memory = peak(&mut xrun(&["run", "study.exp"]));
    let disk = size(&store);
    // As it was told before the cache was filled.
    let times = std::fs::read_to_string(store.join("history.jsonl")).expect("times");
    let lines = || times.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line"));
    let took = lines().find(|line| line["kind"] == "teacher_logits").expect("a cache")["seconds"].clone();
    let looked: Vec<String> = lines().filter(|line| line["kind"] == "teacher").map(|line| format!("{line}\n")).collect();
    std::fs::write(store.join("history.jsonl"), looked.concat()).expect("writes");
    let after = plan();
    let stated = after["nodes"].as_array().expect("nodes").iter().find(|node| node["kind"] == "teacher_logits");
    let cost = &stated.expect("a cache")["cost"];
    let line = serde_json::json!({
        "megabytes": size(&folder.path().join("big")) / 1_000_000,
        "layers": shape.layers,
        "flops": cost["flops_teacher"],
        "memory": { "stated": before["totals"]["memory"], "taken": memory },
        "disk": { "stated": before["totals"]["disk"], "taken": disk },
        "seconds": { "stated": cost["seconds"], "taken": took },
    });
    println!("{line}");
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let each = |entry: std::fs::DirEntry| match entry.file_type().expect("a type").is_dir() {
        true => size(&entry.path()),
        false => entry.metadata().expect("a size").len(),
    };
    entries.map(each).sum()
}
