//! A report of many runs: `cargo bench --bench report -- [runs=N] [steps=N] [md|text|html|tex|csv|json]`.
//!
//! Fills a store (a thousand runs of ten thousand steps unless said otherwise), reports with the program, and prints a line of JSON for each
//! form: wall-clock seconds, and the largest resident size of the process where `/proc` tells it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/cli/filled.rs"]
#[expect(dead_code, reason = "the tests of the program tamper with nodes as well")]
mod filled;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |key: &str, default: u64| {
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let (runs, steps) = (number("runs", 1_000), number("steps", 10_000));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let text = filled::study(runs, steps);
    std::fs::write(folder.path().join("study.exp"), &text).expect("writes");
    let runs = filled::fill(folder.path(), &text);
    for form in ["md", "text", "html", "tex", "csv", "json"] {
        if words.iter().any(|word| !word.contains('=') && !word.starts_with('-')) && !words.iter().any(|word| word == form) {
            continue;
        }
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_xrun"))
            .args(["report", "study.exp", "--format", form, "--out", "out"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program");
        let mut peak = String::new();
        let status = loop {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            if let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
                line.trim().clone_into(&mut peak);
            }
            match child.try_wait().expect("waits") {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(folder.path().join("out")).map_or(0, |file| file.len());
        println!(
            r#"{{"runs": {runs}, "steps": {steps}, "form": "{form}", "seconds": {seconds:.2}, "peak": "{peak}", "bytes": {bytes}, "ok": {}}}"#,
            status.success()
        );
    }
}
