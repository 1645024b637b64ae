//! Readers of the stream of events: the log, the watch, curves for TensorBoard; and what was measured as a table.

use std::collections::BTreeMap;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use super::bench::{Bench, TINY};

/// Bytes of the records of an event file, lengths and order checked.
fn records(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().expect("a length")) as usize;
        found.push(&rest[12..12 + length]);
        rest = &rest[16 + length..];
    }
    found
}

/// The same rows as a Parquet file, read back.
fn parquet(bench: &Bench, rows: &[Value]) {
    bench.says(0, &["metrics", "study.exp", "--format", "parquet", "--out", "metrics.parquet"]);
    let file = std::fs::File::open(bench.path().join("metrics.parquet")).expect("opens");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let mut count = 0;
    for (row, expected) in reader.get_row_iter(None).expect("rows").zip(rows) {
        for (name, field) in row.expect("a row").get_column_iter() {
            let expected = &expected[name];
            match field {
                Field::Str(text) => assert_eq!(Some(text.as_str()), expected.as_str()),
                Field::ULong(value) => assert_eq!(Some(*value), expected.as_u64()),
                Field::Double(value) => assert_eq!(Some(*value), expected.as_f64()),
                Field::Null => assert!(expected.is_null()),
                other => panic!("{name}: {other:?}"),
            }
        }
        count += 1;
    }
    assert_eq!(count, rows.len());
}

#[test]
fn what_a_run_measured_is_watched_shown_and_given_to_others() {
    let bench = Bench::new(TINY);
    let before = bench.says(0, &["metrics", "study.exp", "--format", "csv"]);
    assert_eq!(before, "arm,axis.placement,axis.schedule,seed,phase,step\n");
    // Somebody watches from the beginning: a log ends with the run.
    let watch = bench.command(&["watch", "study.exp"]).stdout(std::process::Stdio::piped()).spawn().expect("starts");
    bench.says(0, &["run", "study.exp", "--quiet", "--jobs", "2"]);
    let seen = watch.wait_with_output().expect("ends");
    let seen = String::from_utf8(seen.stdout).expect("UTF-8");
    let finished = seen.lines().filter(|line| line.starts_with("done ")).count();
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!(Some(finished as u64), plan["totals"]["nodes"].as_u64(), "{seen}");
    assert!(seen.trim_end().ends_with("nodes, 100 %"), "{seen}");

    let status = bench.says(0, &["status", "study.exp"]);
    assert!(status.starts_with("tiny: ") && status.contains("nodes, 100 %"), "{status}");

    let rows: Vec<Value> =
        bench.says(0, &["metrics", "study.exp"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let report = bench.json(0, &["report", "study.exp", "--format", "json"]);
    for arm in report["arms"].as_array().expect("arms") {
        let own = |row: &&Value| row["arm"] == arm["name"] && row["seed"] == arm["seed"];
        let last = rows.iter().filter(own).filter_map(|row| row["validation_ce"].as_f64()).next_back();
        assert_eq!(last, arm["metrics"]["validation_ce"].as_f64(), "{}", arm["name"]);
        assert!(rows.iter().filter(own).all(|row| row["axis.placement"] == arm["values"]["placement"]));
    }
    let csv = bench.says(0, &["metrics", "study.exp", "--format", "csv"]);
    assert_eq!(csv.lines().count(), rows.len() + 1);
    assert!(csv.starts_with("arm,axis.placement,axis.schedule,seed,phase,step,validation_ce,train_loss,"), "{csv}");
    assert!(csv.contains("\n\"[pre, joint]\",pre,joint,1,1,0,"), "{csv}");

    parquet(&bench, &rows);

    bench.says(0, &["replay", "study.exp", "--tensorboard", "curves"]);
    let files = Bench::files(&bench.path().join("curves"));
    assert_eq!(files.len(), 14, "{:?}", files.keys());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        let name = format!("{} seed {}", row["arm"].as_str().expect("a name"), row["seed"]);
        *counts.entry(name).or_default() += 1;
    }
    for (path, bytes) in files {
        let folder = path.parent().expect("a folder").display().to_string();
        // Two records begin a file.
        assert_eq!(records(&bytes).len(), counts[&folder] + 2, "{folder}");
    }
}
