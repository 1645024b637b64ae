//! What the documents show is true: every example in them is checked.

use std::path::Path;

use xrun::check::check;
use xrun::source::{Source, World};

struct Nothing;

impl World for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("an example stands alone".to_owned())
    }
}

/// The fenced blocks of a page, with the words after the fence and the number of their first line.
fn blocks(page: &str) -> Vec<(String, usize, String)> {
    let mut found: Vec<(String, usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(words) => {
                open = !open;
                if open {
                    found.push((words.to_owned(), number + 2, String::new()));
                }
            }
            None => {
                if let (true, Some((_, _, text))) = (open, found.last_mut()) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    found
}

#[test]
fn examples_check() {
    for (page, least) in [("README.md", 1), ("grammar/reference.md", 7)] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect("reads");
        let examples: Vec<_> = blocks(&text).into_iter().filter(|(words, _, _)| words == "exp").collect();
        assert!(examples.len() >= least, "{page}: {} examples", examples.len());
        for (_, line, example) in examples {
            let checked = check(&Nothing, Source::new(format!("{page}, line {line}"), example));
            assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
        }
    }
}

/// Every metric, probe and field that the language knows has its place in the reference.
#[test]
fn the_reference_names_every_metric_and_probe() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/reference.md")).expect("reads");
    let metrics = xrun::study::Metric::ALL.map(xrun::study::Metric::name);
    let probes = xrun::study::ProbeKind::ALL.map(xrun::study::ProbeKind::name);
    for word in metrics.iter().chain(&probes) {
        assert!(text.contains(&format!("`{word}`")), "{word}");
    }
}
