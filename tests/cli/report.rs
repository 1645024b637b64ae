//! Reports of stores that no training has filled: many runs, and what has been tampered with.

use std::time::{Duration, Instant};

use super::bench::Bench;
use super::filled;

/// Two hundred runs of five hundred steps; `cargo bench --bench report` has the thousand of ten thousand.
#[test]
fn many_runs_are_reported_in_no_time() {
    let text = filled::study(200, 500);
    let bench = Bench::new(&text);
    assert_eq!(filled::fill(bench.path(), &text), 200);
    let began = Instant::now();
    let page = bench.says(0, &["report", "study.exp"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(page.contains("200 of 200 runs finished.") && page.contains("(n = 25)"), "{page}");
    let json = bench.json(0, &["report", "study.exp", "--format", "json"]);
    assert_eq!(json["claims"][0]["documents"]["n"], 1_000);
    let series = &json["arms"][0]["series"];
    assert_eq!(series["train_loss"].as_array().map(Vec::len), Some(500));
    let evaluated = series["validation_ce"].as_array().expect("a series");
    assert_eq!((evaluated.len(), &evaluated[0][0], &evaluated[100][0]), (101, &0.into(), &500.into()));
    assert_eq!(json["arms"][0]["metrics"]["validation_ce"], evaluated[100][1]);
    // What is drawn has no more points than can be told apart; what is kept, all.
    assert!(json["curves"].as_array().expect("curves").iter().all(|curve| curve["points"].as_array().map_or(0, Vec::len) <= 810));
    let template = bench.path().join("mine.txt");
    std::fs::write(
        &template,
        "{% set loss = report.arms[0].series.train_loss %}{{ loss|length }} {{ (loss|last)[0] }} {{ loss[7][1] }}",
    )
    .expect("writes");
    let own = bench.says(0, &["report", "study.exp", "--template", "mine.txt"]);
    assert_eq!(own, format!("500 499 {}", series["train_loss"][7][1]));
}

/// By key: what one store has alone, what came out otherwise, what is damaged.
#[test]
fn stores_are_compared() {
    let text = filled::study(100, 4);
    let (one, two) = (Bench::new(&text), Bench::new(&text));
    for bench in [&one, &two] {
        filled::fill(bench.path(), &text);
    }
    let (first, second) = (one.store(), two.store());
    let (first, second) = (first.to_str().expect("a path"), second.to_str().expect("a path"));
    assert_eq!(one.says(0, &["diff", first, second]), "");
    let mut nodes: Vec<_> =
        std::fs::read_dir(two.store().join("nodes")).expect("nodes").map(|entry| entry.expect("an entry").path()).collect();
    nodes.sort();
    std::fs::remove_dir_all(&nodes[0]).expect("removes");
    let metrics = nodes[1].join("metrics.jsonl");
    std::fs::write(&metrics, std::fs::read_to_string(&metrics).expect("metrics").replace("2.", "1.")).expect("writes");
    filled::seal(&nodes[1]);
    std::fs::write(nodes[2].join("record.ron"), "(").expect("writes");
    let told = one.says(1, &["diff", first, second]);
    let told: Vec<&str> = told.lines().map(|line| line.split_once(": ").expect("a node").1).collect();
    assert_eq!(told[..2], ["phase only in the first", "phase with another `metrics.jsonl`"]);
    assert!(told.len() == 3 && told[2].starts_with("damaged in the second: its record: "), "{told:?}");
    for wrong in ["study.exp", "."] {
        one.says(2, &["diff", first, wrong]);
    }
}

/// A node whose metrics are not what was written, are no lines, or are those of other steps is left out and named.
#[test]
fn tampered_records_are_left_out_and_named() {
    let text = filled::study(100, 20);
    let bench = Bench::new(&text);
    filled::fill(bench.path(), &text);
    let nodes = bench.store().join("nodes");
    let mut keys: Vec<_> = std::fs::read_dir(&nodes).expect("nodes").map(|entry| entry.expect("an entry").path()).collect();
    keys.sort();
    let metrics = keys[0].join("metrics.jsonl");
    let written = std::fs::read_to_string(&metrics).expect("metrics");
    std::fs::write(&metrics, written.replace("2.", "1.")).expect("writes");
    let output = bench.xrun(&["report", "study.exp"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("is damaged: `metrics.jsonl` is not what was written"), "{error}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("(n = 24 of 25, 1 "), "one run is left out");
    // Sealed anew, and still no metrics of this node.
    for (damage, said) in
        [("no line\n".to_owned(), "line 1: "), (written.replace("\"step\":", "\"step\":9"), "steps of another phase")]
    {
        std::fs::write(&metrics, damage).expect("writes");
        filled::seal(&keys[0]);
        let output = bench.xrun(&["report", "study.exp"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && error.contains(said), "{said} not in {error}");
    }
}
