//! The store in a world that goes wrong, and the verbs that look after it: `verify`, `show`, `gc`, `status`.

use std::path::PathBuf;
use std::process::Command;

use super::bench::{Bench, TINY};
use super::filled::seal;

/// One placement of [`TINY`]: half of its nodes.
fn smaller() -> String {
    TINY.replace("vary placement over pre, post", "vary placement over post").replace(
        "  claim growth_prefers_post: validation_ce[post, grow] < validation_ce[pre, grow]\n  report   ablation(rows: placement, columns: schedule)\n",
        "",
    )
}

fn trained(text: &str) -> Bench {
    let bench = Bench::new(text);
    bench.says(0, &["run", "study.exp", "--quiet", "--jobs", "2"]);
    bench
}

fn results(bench: &Bench) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    Bench::files(&bench.store().join("nodes"))
}

/// A node of a kind that the plan names last.
fn node(bench: &Bench, kind: &str) -> (String, PathBuf) {
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let nodes = plan["nodes"].as_array().expect("nodes");
    let node = nodes.iter().rfind(|node| node["kind"] == kind).expect("a node of the kind");
    let key = node["key"].as_str().expect("a key").to_owned();
    let folder = bench.store().join("nodes").join(&key);
    (key, folder)
}

#[test]
fn verify_hashes_all_and_does_again_what_it_is_asked_for() {
    let bench = trained(&smaller());
    assert!(bench.says(0, &["verify", "study.exp"]).contains(" 0 damaged, 0 not there"));
    let before = Bench::files(&bench.store());
    let (key, folder) = node(&bench, "phase");
    // It has twelve steps: a kill after the last is one before its checkpoint, and one outside it is none.
    let said = bench.says(0, &["verify", "study.exp", "--rerun", &key[..8], "--kill-after", "1,4,7,9,12,15"]);
    assert!(said.contains("killed 5 times") && said.contains("1 node done again: 1 the same to the byte"), "{said}");
    let said = bench.says(0, &["verify", "study.exp", "--rerun", "[post, grow]"]);
    assert!(said.contains("0 another, 0 not there"), "{said}");
    assert!(Bench::files(&bench.store()) == before, "verify writes nothing");

    // A result that somebody has made up, hashes and all: only doing it again tells.
    let metrics = folder.join("metrics.jsonl");
    let text = std::fs::read_to_string(&metrics).expect("reads").replacen("\"lr\":0.00", "\"lr\":0.01", 1);
    std::fs::write(&metrics, text).expect("writes");
    assert!(bench.says(1, &["verify", "study.exp"]).contains("`metrics.jsonl` is not what was written"));
    seal(&folder);
    assert!(bench.says(0, &["verify", "study.exp"]).contains(" 0 damaged"));
    let said = bench.says(1, &["verify", "study.exp", "--rerun", &key]);
    assert!(said.contains("ANOTHER") && said.contains("`metrics.jsonl` is another from line"), "{said}");
}

#[test]
fn show_tells_what_is_known_of_a_node() {
    let bench = Bench::new(&smaller());
    let (key, folder) = node(&bench, "phase");
    assert!(bench.says(0, &["show", "study.exp", &key]).contains("missing"));
    bench.says(0, &["run", "study.exp", "--quiet"]);
    let said = bench.says(0, &["show", "study.exp", &key[..6]]);
    for word in ["done", "reads", "checkpoint.safetensors", "trained_layer_tokens", "validation_ce"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let arm = bench.says(0, &["show", "study.exp", "[post, joint]"]);
    assert!(arm.matches("  key ").count() > 3, "{arm}");
    std::fs::remove_file(folder.join("checkpoint.safetensors")).expect("removes");
    let said = bench.says(0, &["show", "study.exp", &key]);
    assert!(said.contains("damaged: `checkpoint.safetensors`"), "{said}");
    let output = bench.xrun(&["show", "study.exp", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn gc_keeps_all_that_a_plan_reaches() {
    let bench = trained(TINY);
    std::fs::write(bench.path().join("small.exp"), smaller()).expect("writes");
    let before = results(&bench);
    let said = bench.says(0, &["gc", "study.exp", "small.exp"]);
    assert!(said.starts_with("0 nodes that no plan"), "{said}");
    let said = bench.says(0, &["gc", "small.exp"]);
    assert!(said.contains("KiB") && said.contains("--remove"), "{said}");
    assert!(results(&bench) == before, "only --remove removes");
    bench.says(0, &["gc", "small.exp", "--remove"]);
    let kept = results(&bench);
    assert!(!kept.is_empty() && kept.len() < before.len());
    assert!(kept.iter().all(|(path, bytes)| before.get(path) == Some(bytes)));
    let output = bench.xrun(&["run", "small.exp"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("0 of "), "{}", String::from_utf8_lossy(&output.stderr));
    bench.says(0, &["run", "study.exp", "--quiet"]);
    assert!(results(&bench) == before);
    // What cannot be planned keeps everything.
    std::fs::write(bench.path().join("small.exp"), "study nonsense {").expect("writes");
    assert_eq!(bench.xrun(&["gc", "small.exp", "--remove"]).status.code(), Some(2));
    assert!(results(&bench) == before);
}

#[test]
fn what_was_deleted_is_found_and_made_anew() {
    let bench = trained(&smaller());
    let before = results(&bench);
    let (_, phase) = node(&bench, "phase");
    for gone in ["checkpoint.safetensors", "record.ron", ""] {
        let path = phase.join(gone);
        if gone.is_empty() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }.expect("removes");
        let output = bench.xrun(&["run", "study.exp"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 of "), "{told}");
        assert!(gone.is_empty() || told.contains("damaged: ") && told.contains(gone.split('.').next().unwrap_or("")), "{told}");
        assert!(results(&bench) == before);
    }
}

#[test]
fn a_path_may_have_spaces_quotes_and_letters_of_any_kind() {
    let plain = trained(&smaller());
    let bench = Bench::new("");
    let folder = bench.path().join("ein Ordner — 研究 'für' \"alle\" $(x)");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("étude ∂.exp"), smaller()).expect("writes");
    let path = folder.join("étude ∂.exp").display().to_string();
    let store = folder.join("le dépôt").display().to_string();
    bench.says(0, &["run", &path, "--store", &store, "--quiet"]);
    assert!(Bench::files(&folder.join("le dépôt/nodes")) == results(&plain));
    assert!(bench.says(0, &["verify", &path, "--store", &store]).contains(" 0 damaged, 0 not there"));
    let report = |bench: &Bench, path: &str, store: &str| bench.says(0, &["report", path, "--store", store]);
    assert_eq!(report(&bench, &path, &store), report(&plain, "study.exp", ".xrun"));
}

/// A store that cannot be written to can be read, reported and verified; a run of what is done does nothing, and any other says what it cannot do.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_store_is_read() {
    let bench = trained(&smaller());
    std::fs::write(bench.path().join("more.exp"), smaller().replace("seeds    2", "seeds    3")).expect("writes");
    let report = bench.says(0, &["report", "study.exp"]);
    // Permissions do not bind root, so the file system is mounted read-only, where the system lets us.
    let script = "mount --bind .xrun .xrun && mount -o remount,ro,bind .xrun && exec \"$@\"";
    let read_only = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_xrun")]);
        command.args(arguments).current_dir(bench.path()).env_remove("XRUN_STORE").output()
    };
    let Ok(tried) = read_only(&["--version"]) else { return println!("skipped: no `unshare`") };
    if !tried.status.success() {
        return println!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
    }
    let before = Bench::files(&bench.store());
    let says = |arguments: &[&str], code: i32| {
        let output = read_only(arguments).expect("runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), told)
    };
    assert_eq!(says(&["report", "study.exp"], 0).0, report);
    says(&["plan", "study.exp"], 0);
    says(&["status", "study.exp"], 0);
    says(&["verify", "study.exp", "--rerun", "[post, joint]"], 0);
    assert!(says(&["run", "study.exp"], 0).1.contains("0 of "));
    let told = says(&["run", "more.exp"], 1).1;
    assert!(told.contains("cannot create `") && told.contains("Read-only file system"), "{told}");
    assert!(Bench::files(&bench.store()) == before);
}
