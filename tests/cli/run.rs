//! `run` and `report`: trained once, resumed to the same bytes, told in tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Bench, SMALL, TINY};

/// One phase long enough to be interrupted in.
fn long() -> String {
    TINY.replace("grow(phase: 8 steps), grow_frozen(phase: 8 steps)", "grow(phase: 600 steps)")
        .replace("joint(steps: 8)", "joint(steps: 1_500)")
        .replace("every 4 steps", "every 300 steps")
        .replace("seeds    2", "seeds    1")
}

/// What the store keeps, without locks and wall-clock times.
fn results(bench: &Bench) -> BTreeMap<PathBuf, Vec<u8>> {
    Bench::files(&bench.store().join("nodes"))
}

fn wait(mut child: Child) -> Option<i32> {
    child.wait().expect("ends").code()
}

/// Waits until some phase has written metrics but is not done.
fn until_training(bench: &Bench) {
    let began = Instant::now();
    let training = || {
        let Ok(entries) = std::fs::read_dir(bench.store().join("work")) else { return false };
        let attempts = entries.flatten().filter_map(|entry| std::fs::read_dir(entry.path()).ok()).flatten();
        let metrics = attempts.flatten().map(|entry| entry.path().join("metrics.jsonl"));
        metrics.into_iter().any(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0))
    };
    while !training() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing trains");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_study_is_trained_once_and_reported() {
    let bench = Bench::new(TINY);
    let half = bench.json(0, &["report", "study.exp", "--format", "json"]);
    assert_eq!(half["missing"].as_array().expect("a list").len(), 14);
    let output = bench.xrun(&["run", "study.exp", "--jobs", "2", "--profile"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(output.stdout.is_empty() && told.contains("0 were there"), "{told}");
    assert!(told.contains("% of it waiting for data"), "{told}");
    let before = results(&bench);
    let again = bench.xrun(&["run", "study.exp"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("0 of "), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(results(&bench), before);
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!(plan["totals"]["nodes"], plan["totals"]["nodes_cached"]);
    counts_agree(&bench, &plan);

    let report = bench.json(0, &["report", "study.exp", "--format", "json"]);
    assert_eq!(report["missing"], Value::Array(Vec::new()));
    let claim = &report["claims"][0];
    assert_eq!((&claim["name"], &claim["n"]), (&"growth_prefers_post".into(), &2.into()));
    let documents = &claim["documents"];
    assert!(documents["n"].as_u64().is_some_and(|n| n > 1) && documents["half_width"].as_f64().is_some_and(|half| half > 0.0));
    assert_eq!(report["arms"].as_array().expect("arms").len(), 14);
    let ends = report["arms"].as_array().expect("arms").iter().map(|arm| arm["metrics"]["validation_ce"].as_f64());
    assert!(ends.into_iter().all(|end| end.is_some_and(|end| (1.0..8.0).contains(&end))));
    let markdown = bench.says(0, &["report", "study.exp"]);
    assert!(markdown.contains("14 of 14 runs finished") && markdown.contains("## Claims") && markdown.contains("n = 2"));
    assert!(markdown.contains("least of all models"), "the text before the first `use` describes the study");
    assert_eq!(bench.says(0, &["report", "study.exp", "--format", "html", "--out", "report.html", "--figures", "figures"]), "");
    assert!(["loss-1.svg", "loss-wide.svg", "plan-1.svg"].iter().all(|name| bench.path().join("figures").join(name).is_file()));
    assert!(std::fs::read_to_string(bench.path().join("report.html")).expect("reads").contains("<svg"));
    assert!(bench.says(0, &["report", "study.exp", "--format", "csv"]).lines().count() > 20);
    replayed(&bench);
    let log = bench.says(0, &["replay", "study.exp"]);
    assert!(log.contains("run      process") && log.contains("done     phase") && log.contains("% overhead"), "{log}");
    let checked = bench.xrun(&["report", "study.exp", "--check"]).status.code();
    assert_eq!(checked, Some(if claim["verdict"] == "supported" { 0 } else { 1 }));
    assert!(bench.says(0, &["status", "study.exp"]).contains("phase"));
}

/// Events alone, without any node, give the report of the store in every form.
fn replayed(bench: &Bench) {
    for format in ["md", "text", "html", "tex", "csv", "json"] {
        let report = bench.says(0, &["report", "study.exp", "--format", format]);
        let nodes = bench.store().join("nodes");
        let away = bench.path().join("away");
        std::fs::rename(&nodes, &away).expect("moves");
        let replay = bench.says(0, &["replay", "study.exp", "--format", format]);
        std::fs::rename(&away, &nodes).expect("moves back");
        assert!(replay == report, "{format}");
    }
}

/// What the workers counted is what the plan said, to the token.
fn counts_agree(bench: &Bench, plan: &Value) {
    let mut seen = 0;
    for node in plan["nodes"].as_array().expect("nodes") {
        if node["kind"] == "phase" || node["kind"] == "teacher" {
            let record = bench.store().join("nodes").join(node["key"].as_str().expect("a key")).join("record.ron");
            let record: xrun::run::record::Record = ron::from_str(&std::fs::read_to_string(record).expect("reads")).expect("RON");
            for name in ["tokens", "active_layer_tokens", "trained_layer_tokens"] {
                assert_eq!(Some(record.counts[name]), node["cost"][name].as_u64(), "{name} of {}", node["label"]);
            }
            seen += 1;
        }
    }
    assert!(seen == 19, "{seen} nodes train");
}

#[test]
fn jobs_and_stores_do_not_matter() {
    let (one, two) = (Bench::new(TINY), Bench::new(TINY));
    one.says(0, &["run", "study.exp", "--jobs", "1", "--quiet"]);
    // A plan that was written down runs elsewhere; two runs of one store share the work.
    two.says(0, &["plan", "study.exp", "--format", "ron", "--out", "plan.ron"]);
    let spawn = || two.command(&["run", "plan.ron", "--jobs", "3", "--quiet"]).spawn().expect("starts");
    let (a, b) = (spawn(), spawn());
    assert_eq!((wait(a), wait(b)), (Some(0), Some(0)));
    assert!(results(&one) == results(&two));
    let said: Vec<u8> = Bench::files(&two.store().join("events")).into_values().flatten().collect();
    let said = String::from_utf8(said).expect("UTF-8");
    let count = results(&two).keys().filter(|path| path.ends_with("record.ron")).count();
    assert_eq!(said.matches(r#""event":"node_finished""#).count(), count, "a node was done twice");
}

#[test]
fn a_killed_run_ends_in_the_same_bytes() {
    let whole = Bench::new(&long());
    whole.says(0, &["run", "study.exp", "--quiet"]);
    let killed = Bench::new(&long());
    for _ in 0..3 {
        let mut child = killed.command(&["run", "study.exp", "--quiet"]).spawn().expect("starts");
        until_training(&killed);
        std::thread::sleep(Duration::from_millis(80));
        child.kill().expect("kills");
        child.wait().expect("ends");
    }
    killed.says(0, &["run", "study.exp", "--quiet"]);
    assert!(results(&killed) == results(&whole));
    replayed(&killed);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_its_progress() {
    let whole = Bench::new(&long());
    whole.says(0, &["run", "study.exp", "--quiet"]);
    let stopped = Bench::new(&long());
    for signal in ["-INT", "-TERM"] {
        let child = stopped.command(&["run", "study.exp", "--quiet"]).spawn().expect("starts");
        until_training(&stopped);
        std::thread::sleep(Duration::from_millis(80));
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        let began = Instant::now();
        assert_eq!(wait(child), Some(130));
        assert!(began.elapsed() < Duration::from_secs(5), "it left after {:?}", began.elapsed());
    }
    let partial = Bench::files(&stopped.store().join("work"));
    assert!(partial.keys().any(|path| path.ends_with("partial.safetensors")), "{:?}", partial.keys());
    let half = stopped.says(0, &["status", "study.exp"]);
    assert!(half.contains("begun"), "{half}");
    assert!(stopped.says(0, &["report", "study.exp"]).contains("0 of 5 runs finished"));
    replayed(&stopped);
    stopped.says(0, &["run", "study.exp", "--quiet"]);
    assert!(results(&stopped) == results(&whole));
}

/// A disk on which no file can become larger than so many blocks of 512 bytes: what did not fit is said, and lost is nothing.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_loses_nothing() {
    let study = TINY.replace("training distilled\n  vary", "training base\n  vary");
    let whole = Bench::new(&study);
    whole.says(0, &["run", "study.exp", "--quiet"]);
    let whole = results(&whole);
    let bench = Bench::new(&study);
    let program = env!("CARGO_BIN_EXE_xrun");
    let mut done = 0;
    // The corpus does not fit; it does, but no checkpoint; some do.
    for blocks in [4, 80, 120] {
        // With the signal ignored, a write that goes beyond the limit fails, as on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} run study.exp");
        let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(bench.path()).output().expect("sh runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{blocks} blocks: {told}");
        assert!(told.contains("File too large"), "{blocks} blocks: {told}");
        // What is there is whole, and nothing else is among it.
        let now = results(&bench);
        assert!(now.iter().all(|(path, bytes)| whole.get(path) == Some(bytes)), "{blocks} blocks");
        assert!(now.len() >= done, "{blocks} blocks");
        done = now.len();
        assert!(bench.says(0, &["status", "study.exp"]).contains("failed"), "{blocks} blocks");
    }
    assert!(0 < done && done < whole.len(), "{done} files");
    bench.says(0, &["run", "study.exp", "--quiet"]);
    assert!(results(&bench) == whole);
    assert!(Bench::files(&bench.store().join("failures")).is_empty());
}

#[test]
fn each_node_says_why_it_runs() {
    let bench = Bench::new(SMALL);
    assert!(bench.says(0, &["plan", "study.exp"]).contains("\nto do\n  3 nodes: new\n"));
    bench.says(0, &["run", "study.exp", "--quiet"]);
    assert!(bench.says(0, &["plan", "study.exp"]).contains("\nto do\n  nothing: every node is in the store\n"));
    let edit = |from: &str, to: &str| std::fs::write(bench.path().join("study.exp"), SMALL.replace(from, to)).expect("writes");
    edit("lr: 3e-3", "lr: 2e-3");
    let text = bench.says(0, &["plan", "study.exp"]);
    assert!(text.contains("\nto do\n  1 node: changed: learning rate (phase 0 of "), "{text}");
    assert!(text.contains("\n  1 node: changed: learning rate, phase before (phase 1 of "), "{text}");
    let text = bench.says(0, &["plan", "study.exp", "--verbose"]);
    assert!(text.contains(": already done\n") && text.contains(", seed 0: changed: learning rate\n"), "{text}");
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let whys: Vec<_> = plan["nodes"].as_array().expect("nodes").iter().map(|node| node["why"]["is"].as_str()).collect();
    assert_eq!(whys, [Some("done"), Some("changed"), Some("changed")]);
    assert_eq!(plan["nodes"][1]["why"]["inputs"], serde_json::json!(["learning rate"]));
    // What the plan says is what the run says.
    let told = bench.xrun(&["run", "study.exp"]);
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("again    phase 0 of ") && told.contains(", seed 0: changed: learning rate\n"), "{told}");
    edit("documents: 60", "documents: 61");
    let text = bench.says(0, &["plan", "study.exp"]);
    assert!(text.contains("\n  1 node: changed: declaration, text ("), "{text}");
}

#[test]
fn what_a_schedule_saves_is_found_and_started_from() {
    let bench = Bench::new(SMALL);
    let not_yet = bench.says(0, &["status", "study.exp"]);
    assert!(not_yet.contains("saved    \"the half\" at step 4 of "), "{not_yet}");
    assert!(not_yet.contains(", seed 0: not yet\n"), "{not_yet}");
    bench.says(0, &["run", "study.exp", "--quiet"]);
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let (arm, saved) = (&plan["arms"][0], &plan["arms"][0]["saved"][0]);
    assert_eq!((&saved["name"], &saved["step"], &saved["key"]), (&"the half".into(), &4.into(), &arm["phases"][0]));
    let key = saved["key"].as_str().expect("a key");
    assert!(bench.says(0, &["plan", "study.exp"]).contains(&format!("\nsaved\n  \"the half\" at step 4 in the node {key}: ")));
    let status = bench.says(0, &["status", "study.exp"]);
    let path = status.lines().find_map(|line| line.strip_prefix("saved ")?.rsplit(": ").next()).expect("a line");
    assert!(bench.path().join(path).is_file(), "{path}");
    let shown = bench.says(0, &["show", "study.exp", "the half"]);
    assert!(shown.contains(&format!("\n  key      {key}\n")) && shown.contains("checkpoint.safetensors"), "{shown}");
    // Another study starts where this one was.
    let path = path.trim_start_matches("./");
    let further = SMALL.replace("init normal(0.1)", &format!("init from \"{path}\""));
    std::fs::write(bench.path().join("further.exp"), further).expect("writes");
    bench.says(0, &["run", "further.exp", "--quiet"]);
    let series = |file: &str| {
        let report = bench.json(0, &["report", file, "--format", "json"]);
        report["arms"][0]["series"]["validation_ce"].as_array().expect("a series").clone()
    };
    let (before, after) = (series("study.exp"), series("further.exp"));
    let at = |series: &[Value], step: u64| series.iter().find(|pair| pair[0] == step).expect("a value")[1].clone();
    assert_eq!(at(&before, 4), at(&after, 0));
}

#[test]
fn one_arm_trains_what_it_needs() {
    let bench = Bench::new(TINY);
    bench.says(0, &["run", "study.exp", "--quiet", "--arm", "[pre,joint]"]);
    let report = bench.says(0, &["report", "study.exp"]);
    assert!(report.contains("2 of 14 runs finished"), "{report}");
    // Values in any order, by their axis, and all arms that have them.
    let shown = bench.says(0, &["show", "study.exp", "[schedule: joint, pre]"]);
    assert!(shown.contains("done") && !shown.contains("missing"), "{shown}");
    assert_eq!(shown, bench.says(0, &["show", "study.exp", "pre, joint"]));
    let both = bench.says(0, &["show", "study.exp", "joint"]);
    assert!(both.contains("missing") && both.len() > shown.len(), "{both}");
    let said = bench.xrun(&["export", "study.exp", "joint", "--to", "out"]).stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("`joint` stands for 2 arms, say which: [pre, joint], [post, joint]"), "{said}");
}

#[test]
fn a_damaged_node_is_made_anew() {
    let bench = Bench::new(TINY);
    bench.says(0, &["run", "study.exp", "--quiet"]);
    let before = results(&bench);
    let metrics = before.keys().find(|path| path.ends_with("metrics.jsonl")).expect("metrics");
    let path = bench.store().join("nodes").join(metrics);
    let mut bytes = std::fs::read(&path).expect("reads");
    bytes[10] ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    let output = bench.xrun(&["report", "study.exp"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged"));
    let output = bench.xrun(&["run", "study.exp"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("damaged: `metrics.jsonl` is not what was written"));
    assert!(results(&bench) == before);
}

#[test]
fn a_loss_that_is_not_finite_stops_its_arm_alone() {
    let wild = TINY.replace("vary placement over pre, post", "vary training.optimizer.lr over 3e-3, 1e30");
    let wild = wild
        .replace("rows: placement", "rows: lr")
        .replace("[post, joint] matched to [post, grow]", "[lr: 3e-3, joint] matched to [lr: 3e-3, grow]");
    let wild =
        wild.replace("validation_ce[post, grow] < validation_ce[pre, grow]", "validation_ce[lr: 3e-3] < validation_ce[lr: 1e30]");
    let bench = Bench::new(&wild);
    let output = bench.xrun(&["run", "study.exp"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("diverged at step") && told.contains("could not be tried"), "{told}");
    let report = bench.says(0, &["report", "study.exp"]);
    assert!(report.contains("diverged") && report.contains("8 of 14 runs finished"), "{report}");
    replayed(&bench);
    let status = bench.says(0, &["status", "study.exp"]);
    assert!(status.contains("failed") && status.contains("diverged at step"), "{status}");
}

/// Heads of the library's declarations of a kind: names with the names of their parameters.
fn library(kind: &str) -> Vec<(String, Vec<String>)> {
    let lines = xrun::check::LIBRARY.iter().flat_map(|(_, text)| text.lines());
    let heads = lines.filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let word = |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect::<String>();
    let head = |head: &str| {
        let name = word(head);
        let rest = head[name.len()..].strip_prefix('(').and_then(|rest| rest.split_once(") {")).map_or("", |(inside, _)| inside);
        let parameters = rest.split(", ").filter(|part| !part.is_empty()).map(word);
        (name, parameters.collect())
    };
    heads.map(head).collect()
}

#[test]
fn the_whole_library_trains() {
    let placements: Vec<String> = library("placement").into_iter().map(|(name, _)| name).collect();
    let schedules = library("schedule");
    assert!(placements.len() >= 17 && schedules.len() >= 13);
    let names: Vec<&str> = schedules.iter().map(|(name, _)| name.as_str()).collect();
    let given = |parameter: &String| {
        // MIDAS' blocks of two layers; all else are steps.
        let value = if parameter == "block" { 2 } else { 6 };
        format!("{parameter}: {value}")
    };
    let called = schedules.iter().map(|(name, parameters)| {
        let arguments: Vec<String> = parameters.iter().map(given).collect();
        if arguments.is_empty() { name.clone() } else { format!("{name}({})", arguments.join(", ")) }
    });
    let study = format!(
        "use std.placements ({placements})\nuse std.schedules ({names})\n\
         data d {{ generate tales(documents: 60), context 16 tokens }}\n\
         model m {{ layers 8, block 2 layers, width 8, heads 2, kv 1, ffn swiglu(12), init normal(0.1) }}\n\
         training t {{ loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences, clip 1 }}\n\
         study wirings {{ data d, model m, training t, schedule joint(steps: 30)\nvary placement over {placements}\n\
         measure validation_ce every 10 steps\nprobe boundary_rms at end\nprobe block_removal at end\nprobe identity at end\n\
         probe logit_lens at end\nprobe gradient_norms at end }}\n\
         study courses {{ data d, model m, training t\nvary placement over pre, post\nvary schedule over {called}\n\
         measure validation_ce every 6 steps }}\n",
        placements = placements.join(", "),
        names = names.join(", "),
        called = called.collect::<Vec<_>>().join(", "),
    );
    let bench = Bench::new(&study);
    for (name, arms) in [("wirings", placements.len()), ("courses", 2 * schedules.len())] {
        bench.says(0, &["run", "study.exp", "--study", name, "--quiet", "--jobs", "2"]);
        let report = bench.json(0, &["report", "study.exp", "--study", name, "--format", "json"]);
        let ends = report["arms"].as_array().expect("arms").iter().map(|arm| arm["metrics"]["validation_ce"].as_f64());
        let ends: Vec<f64> = ends.flatten().collect();
        assert_eq!(ends.len(), arms, "{name}");
        // 257 token types: ln 257 = 5.55 at the start.
        assert!(ends.iter().all(|end| (4.0..5.7).contains(end)), "{name}: {ends:?}");
        // What the plan counts is what is there in the end.
        let plan = bench.json(0, &["plan", "study.exp", "--study", name, "--format", "json"]);
        for arm in plan["arms"].as_array().expect("arms") {
            let last = arm["phases"].as_array().and_then(|phases| phases.last()?.as_str()).expect("a phase");
            let checkpoint = bench.store().join("nodes").join(last).join("checkpoint.safetensors");
            assert_eq!(Some(elements(&checkpoint)), arm["params_total"].as_u64(), "{name}: {}", arm["name"]);
        }
    }
}

/// Elements of the parameters in a checkpoint.
fn elements(checkpoint: &Path) -> u64 {
    let bytes = std::fs::read(checkpoint).expect("reads");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let tensors = header.as_object().expect("a table").iter().filter(|(name, _)| !name.starts_with("__") && !name.contains('/'));
    let sides = |tensor: &Value| tensor["shape"].as_array().expect("a shape").iter().filter_map(Value::as_u64).product::<u64>();
    tensors.map(|(_, tensor)| sides(tensor)).sum()
}
