//! A corpus tokenised and written, beside the `tokenizers` crate used directly on the same documents:
//! `cargo bench --bench corpus -- [files=PATTERN] [tokenizer=FILE] [mb=N] [ours|direct]`.
//!
//! Takes N MB of text (200 unless said otherwise): tales and a tokenizer trained on some of them, unless files and a tokenizer are named, which are repeated, each time with
//! other numbers in front of their lines. Prints a line of JSON for each side: seconds, MB/s, tokens and, where `/proc` tells it, the largest resident size of the process so far; name
//! one side to have its own.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use xrun::data::{bpe, corpus, tales};
use xrun::study::{Data, Documents, Holdout, Layout, Shard, Text, Tokenizer};

fn data(text: Text, tokenizer: Tokenizer) -> Data {
    Data {
        name: "bench".into(),
        doc: None,
        text,
        documents: Documents::Line,
        tokenizer,
        context: 1_024,
        layout: Layout::Packed,
        shard: Shard::Whole,
        holdout: Holdout::Documents(100),
        tokens_per_step: None,
    }
}

/// A file of about so many bytes, a document a line.
fn write(path: &Path, bytes: u64, files: &[PathBuf]) {
    let mut to = BufWriter::new(File::create(path).expect("creates"));
    let mut written = 0;
    for round in 0.. {
        if files.is_empty() {
            let tale = tales::document(1, round).replace('\n', " ");
            writeln!(to, "{tale}").expect("writes");
            written += tale.len() as u64 + 1;
        }
        for file in files {
            for line in BufReader::new(File::open(file).expect("opens")).lines().map_while(Result::ok) {
                writeln!(to, "{round} {line}").expect("writes");
                written += line.len() as u64 + 3;
                if written >= bytes {
                    return;
                }
            }
        }
        if written >= bytes {
            return;
        }
    }
}

/// The crate as it is used without xrun: batches of lines.
fn direct(text: &Path, tokenizer: &Path) -> u64 {
    const BATCH: usize = 10_000;
    let tokenizer = tokenizers::Tokenizer::from_file(tokenizer).expect("a tokenizer");
    let mut lines = BufReader::new(File::open(text).expect("opens")).lines().map(|line| line.expect("reads"));
    let mut tokens = 0;
    loop {
        let batch: Vec<String> = lines.by_ref().take(BATCH).filter(|line| !line.is_empty()).collect();
        if batch.is_empty() {
            return tokens;
        }
        // An end for each document.
        tokens += batch.len() as u64;
        let all = tokenizer.encode_batch_fast(batch, false).expect("encodes");
        tokens += all.iter().map(|encoding| encoding.len() as u64).sum::<u64>();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let text = folder.path().join("text.txt");
    let files =
        value("files").map_or_else(Vec::new, |files| glob::glob(files).expect("a pattern").map_while(Result::ok).collect());
    let bytes = 1_000_000 * value("mb").map_or(200, |mb| mb.parse().expect("a number"));
    write(&text, bytes, &files);
    let tokenizer = match value("tokenizer") {
        Some(path) => std::fs::canonicalize(path).expect("a tokenizer"),
        None => {
            let some = data(Text::Tales { documents: 2_000, seed: 2 }, Tokenizer::Bpe(4_096));
            bpe::write(&some, None, folder.path(), folder.path(), &mut |_| true).expect("trains");
            folder.path().join(bpe::FILE)
        }
    };
    let data = data(Text::Files(vec!["text.txt".into()]), Tokenizer::File(tokenizer.to_string_lossy().into_owned()));
    for side in ["ours", "direct"] {
        if ["ours", "direct"].iter().any(|other| *other != side && words.iter().any(|word| word == other)) {
            continue;
        }
        let began = Instant::now();
        let tokens = if side == "ours" {
            let header = corpus::write(&data, None, folder.path(), None, folder.path(), &mut |_| true).expect("writes");
            header.map_or(0, |header| header.train_tokens + header.holdout_tokens)
        } else {
            direct(&text, &tokenizer)
        };
        let seconds = began.elapsed().as_secs_f64();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim().to_owned();
        let speed = bytes as f64 / 1e6 / seconds;
        println!(
            r#"{{"side": "{side}", "seconds": {seconds:.2}, "mb_per_second": {speed:.2}, "tokens": {tokens}, "peak": "{peak}"}}"#
        );
    }
}
