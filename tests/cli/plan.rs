//! `check` and `plan`: what is wrong, what would be done, and that nothing is.

use std::collections::BTreeSet;

use serde_json::Value;

use super::bench::{Bench, TINY};

fn keys(plan: &Value) -> BTreeSet<String> {
    let nodes = plan["nodes"].as_array().expect("nodes");
    nodes.iter().map(|node| node["key"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn a_wrong_file_exits_with_2_and_says_where() {
    let bench = Bench::new(&TINY.replace("width  8", "widht  8").replace("clip      0.5", "clip      0.5 layers"));
    let said = bench.json(2, &["check", "study.exp", "--format", "json"]);
    let said: Vec<&Value> = said.as_array().expect("a list").iter().collect();
    let texts: Vec<&str> = said.iter().map(|one| one["text"].as_str().expect("text")).collect();
    assert!(texts.contains(&"widht") && texts.iter().any(|text| text.contains("layers")), "{texts:?}");
    let misspelt = said.iter().find(|one| one["text"] == "widht").expect("found");
    assert_eq!((&misspelt["file"], &misspelt["line"], &misspelt["column"]), (&"study.exp".into(), &15.into(), &3.into()));
    assert_eq!((&misspelt["end_line"], &misspelt["end_column"]), (&15.into(), &8.into()));
    assert!(misspelt["hints"].as_array().expect("hints").iter().any(|hint| hint.as_str().expect("text").contains("`width`")));
    for verb in ["plan", "run", "report", "status"] {
        let output = bench.xrun(&[verb, "study.exp"]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(output.stdout.is_empty(), "{verb}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `width`?"), "{verb}");
    }
    assert!(!bench.store().exists());
}

#[test]
fn wrong_arguments_exit_with_2() {
    let bench = Bench::new(TINY);
    for arguments in [
        &["plan", "absent.exp"][..],
        &["plan", "study.exp", "--study", "other"],
        &["plan", "study.exp", "--explain", "training.nothing"],
        &["run", "study.exp", "--arm", "[post, nothing]"],
        &["run", "study.exp", "--device", "tpu"],
        &["run", "study.exp", "--device", "cuda", "--jobs", "0"],
        &["report", "study.exp", "--template", "absent.md"],
        &["frobnicate"],
    ] {
        let output = bench.xrun(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(!bench.store().exists());
}

#[test]
fn planning_writes_nothing_and_shares_first_phases() {
    let bench = Bench::new(TINY);
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!(std::fs::read_dir(bench.path()).expect("a folder").count(), 1);
    let shared = |node: &&Value| {
        let arms: Vec<&str> = node["arms"].as_array().expect("arms").iter().filter_map(Value::as_str).collect();
        node["kind"] == "phase" && arms == ["[post, grow]", "[post, grow_frozen]"]
    };
    let nodes = plan["nodes"].as_array().expect("nodes");
    // One for each seed.
    assert_eq!(nodes.iter().filter(shared).count(), 2);
    let totals = &plan["totals"];
    assert!(totals["steps_planned"].as_u64() < totals["steps_if_unshared"].as_u64(), "{totals}");
    let long = plan["arms"].as_array().expect("arms").iter().find(|arm| arm["name"] == "joint_long").expect("the control");
    let grown = plan["arms"].as_array().expect("arms").iter().find(|arm| arm["name"] == "[post, grow]").expect("the arm");
    assert_eq!(long["active_layer_tokens"], grown["active_layer_tokens"]);
    assert_eq!(long["steps"], 12);
}

#[test]
fn shares_of_a_run_say_how_they_are_rounded() {
    let own = "schedule third { start with 1 block, at 33%: grow block, at 50%: restart lr, end at step 8 }\nstudy tiny {";
    let text = TINY.replace("study tiny {", own).replace("grow_frozen(phase: 8 steps)", "third");
    let said = Bench::new(&text).says(0, &["plan", "study.exp"]);
    assert!(said.contains("33 % of 8 steps is 2.64, rounded to 3"), "{said}");
    assert!(!said.contains("50 %") && said.contains("of 7 arms"), "{said}");
}

#[test]
fn keys_depend_on_what_is_computed_alone() {
    let bench = Bench::new(TINY);
    let keys_of = |bench: &Bench, file: &str| keys(&bench.json(0, &["plan", file, "--format", "json"]));
    let expected = keys_of(&bench, "study.exp");
    assert_eq!(keys_of(&bench, "study.exp"), expected);
    // Another folder, another name, other spacing and comments, another order of declarations, other names of things.
    let spaced = TINY.replace("\n  ", "  // why not\n\n     ").replace("study tiny", "study vast");
    let elsewhere = Bench::new(&spaced);
    let file = elsewhere.path().join("deep/er");
    std::fs::create_dir_all(&file).expect("folders");
    std::fs::rename(elsewhere.path().join("study.exp"), file.join("other.exp")).expect("moves");
    assert_eq!(keys_of(&elsewhere, "deep/er/other.exp"), expected);
    let (before, after) = TINY.split_at(TINY.find("teacher big").expect("a teacher"));
    let (teacher, rest) = after.split_at(after.find("training base").expect("a training"));
    let moved = format!("{before}{rest}{teacher}").replace("student", "pupil").replace("tales {", "stories {");
    let moved = moved.replace("data     tales", "data     stories");
    assert_eq!(keys_of(&Bench::new(&moved), "study.exp"), expected);
    // Another rate changes what trains under it, and nothing else.
    let other = keys_of(&Bench::new(&TINY.replace("batch     4", "batch     8")), "study.exp");
    let corpus = |plan: &BTreeSet<String>| plan.intersection(&expected).count();
    assert_eq!(corpus(&other), 1);
}

#[test]
fn line_ends_and_byte_order_marks_mean_nothing() {
    let expected = keys(&Bench::new(TINY).json(0, &["plan", "study.exp", "--format", "json"]));
    for text in [TINY.replace('\n', "\r\n"), format!("\u{feff}{TINY}"), TINY.replace("  ", "\t")] {
        assert_eq!(keys(&Bench::new(&text).json(0, &["plan", "study.exp", "--format", "json"])), expected);
    }
    for (bytes, said) in [(&b"\xff\xfe\x00"[..], "not UTF-8"), (b"", "has no study")] {
        let bench = Bench::new(TINY);
        std::fs::write(bench.path().join("study.exp"), bytes).expect("writes");
        let output = bench.xrun(&["plan", "study.exp"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said));
    }
}

#[test]
fn every_form_of_a_plan() {
    let bench = Bench::new(TINY);
    assert!(bench.says(0, &["plan", "study.exp"]).contains("joint_long"));
    assert!(bench.says(0, &["plan", "study.exp", "--format", "dot"]).starts_with("digraph"));
    assert!(bench.says(0, &["plan", "study.exp", "--format", "mermaid"]).starts_with("flowchart"));
    assert_eq!(bench.says(0, &["plan", "study.exp", "--format", "ron", "--out", "plan.ron"]), "");
    let stored = keys(&bench.json(0, &["plan", "plan.ron", "--format", "json"]));
    assert_eq!(stored, keys(&bench.json(0, &["plan", "study.exp", "--format", "json"])));
    assert!(bench.says(0, &["plan", "study.exp", "--against", "plan.ron"]).contains("same"));
    let where_from = bench.says(0, &["plan", "study.exp", "--explain", "training.optimizer.lr"]);
    assert!(where_from.contains("3e-3") && where_from.contains("study.exp:28:"), "{where_from}");
    let text =
        std::fs::read_to_string(bench.path().join("plan.ron")).expect("reads").replace("clip: Some(0.5)", "clip: Some(0.25)");
    // Somebody has turned a knob in it: its keys are not those of its nodes any more.
    std::fs::write(bench.path().join("plan.ron"), text).expect("writes");
    let output = bench.xrun(&["plan", "plan.ron"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn defaults_are_shown() {
    let bench = Bench::new(TINY);
    let shown = bench.says(0, &["check", "study.exp", "--defaults"]);
    assert!(shown.contains("clip") || shown.contains("betas"), "{shown}");
    let plan = bench.says(0, &["plan", "study.exp"]);
    assert!(plan.contains("by default") && plan.contains("betas"), "{plan}");
}

#[test]
fn laying_out_keeps_keys_and_is_done_once() {
    let bench = Bench::new(TINY);
    let before = keys(&bench.json(0, &["plan", "study.exp", "--format", "json"]));
    assert_eq!(bench.xrun(&["fmt", "--check", "study.exp"]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(bench.path().join("study.exp")).expect("reads"), TINY);
    bench.says(0, &["fmt", "study.exp"]);
    bench.says(0, &["fmt", "--check", "study.exp"]);
    assert_eq!(keys(&bench.json(0, &["plan", "study.exp", "--format", "json"])), before);
    std::fs::write(bench.path().join("broken.exp"), "model m { width = }").expect("writes");
    assert_eq!(bench.xrun(&["fmt", "broken.exp"]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(bench.path().join("broken.exp")).expect("reads"), "model m { width = }");
}

#[test]
fn codes_placements_commands_and_the_language_are_explained() {
    let bench = Bench::new(&format!("{TINY}\nplacement mine {{ sublayer x + 0.5 * f(norm(x)), exit norm(x) }}\n"));
    assert!(bench.says(0, &["explain", "wrong-unit"]).starts_with("wrong-unit\n"));
    assert!(bench.says(0, &["explain", "placement", "post"]).contains("norm(x + f(x))"));
    assert!(bench.says(0, &["explain", "placement", "mine", "--file", "study.exp"]).contains("0.5"));
    assert_eq!(bench.says(0, &["help", "language"]), include_str!("../../grammar/reference.md"));
    assert!(bench.says(0, &["help", "run"]).contains("--jobs"));
    let output = bench.xrun(&["explain", "wrong-unti"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `wrong-unit`?"));
    assert_eq!(bench.xrun(&["explain", "placement", "nothing"]).status.code(), Some(2));
}

#[test]
fn a_first_study_is_written_once_and_plans() {
    let bench = Bench::new(TINY);
    let output = bench.xrun(&["new", "first.exp"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("xrun plan first.exp"));
    let written = std::fs::read_to_string(bench.path().join("first.exp")).expect("written");
    assert_eq!(bench.xrun(&["fmt", "--check", "first.exp"]).status.code(), Some(0));
    assert_eq!(bench.json(0, &["plan", "first.exp", "--format", "json"])["study"], "first");
    std::fs::write(bench.path().join("first.exp"), "mine").expect("writes");
    for file in ["first.exp", "absent/first.exp", "first.txt"] {
        let output = bench.xrun(&["new", file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(file));
    }
    assert_eq!(std::fs::read_to_string(bench.path().join("first.exp")).expect("kept"), "mine");
    assert!(written.starts_with("///"));
}

#[test]
fn a_shell_learns_every_command() {
    let bench = Bench::new(TINY);
    let help = bench.says(0, &["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The others go on about the command above them.
    let commands: Vec<&str> =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10 && commands.contains(&"completions"), "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = bench.says(0, &["completions", shell]);
        assert!(commands.iter().chain(&["against"]).all(|word| script.contains(*word)), "{shell}");
    }
    let version = bench.xrun(&["--version"]);
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.starts_with(concat!("xrun ", env!("CARGO_PKG_VERSION"), " (trains ")), "{version}");
}
