//! The key of a corpus: of its text, its order and its tokenizer, and of nothing else.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::bench::Bench;

const STUDY: &str = r#"
data d { files "FILES", document paragraph, tokenizer TOKENIZER, context 8 tokens, holdout 1 document }
model m { layers 1, width 8, heads 2, ffn swiglu(12) }
training t { loss cross_entropy, optimizer adamw(lr: 3e-3), batch 2 sequences }
schedule short { start with all blocks, end at step 2 }
study s { data d, model m, training t, schedule short }
"#;

const TEXTS: [(&str, &str); 2] = [
    ("texts/a.txt", "İstanbul and ıssız are two words.\n\nA second paragraph, with a second line\nin it.\n"),
    ("texts/b.txt", "A third one, in another file.\n\nThe fourth.\n\nAnd a fifth, which is the last.\n"),
];

const WORDS: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
    {"id": 2, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "paragraph": 1}, "unk_token": "[UNK]"}}"#;

/// A study in `file` below a folder of its own, and the files that it reads.
fn laid(file: &str, pattern: &str, tokenizer: &str, texts: &[(&str, &str)]) -> Bench {
    let bench = Bench::new("");
    let write = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, text).expect("writes");
    };
    let at = bench.path().join(file);
    for (name, text) in texts {
        write(&at.parent().expect("a folder").join(name), text);
    }
    write(&at, &STUDY.replace("FILES", pattern).replace("TOKENIZER", tokenizer));
    bench
}

fn key_under(bench: &Bench, file: &str, environment: &[(&str, &str)]) -> String {
    let output =
        bench.command(&["plan", file, "--format", "json"]).envs(environment.iter().copied()).output().expect("xrun runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let nodes = plan["nodes"].as_array().expect("nodes");
    let corpus = nodes.iter().find(|node| node["kind"] == "corpus").expect("a corpus");
    corpus["key"].as_str().expect("a key").to_owned()
}

fn key(pattern: &str, tokenizer: &str, texts: &[(&str, &str)]) -> String {
    key_under(&laid("study.exp", pattern, tokenizer, texts), "study.exp", &[])
}

#[test]
fn a_corpus_has_one_key_wherever_and_however_it_lies() {
    let bench = laid("study.exp", "texts/*.txt", "bytes", &TEXTS);
    let expected = key_under(&bench, "study.exp", &[]);
    let environments: [&[(&str, &str)]; 4] = [
        &[("LC_ALL", "tr_TR.UTF-8"), ("LANG", "tr_TR.UTF-8")],
        &[("LC_ALL", "C"), ("TZ", "Pacific/Apia")],
        &[("RAYON_NUM_THREADS", "1"), ("TOKENIZERS_PARALLELISM", "false")],
        &[("RAYON_NUM_THREADS", "7"), ("TOKENIZERS_PARALLELISM", "true")],
    ];
    for environment in environments {
        assert_eq!(key_under(&bench, "study.exp", environment), expected, "{environment:?}");
    }
    for day in [0, 40_000] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400);
        for (name, _) in TEXTS {
            let file = File::options().append(true).open(bench.path().join(name)).expect("opens");
            file.set_modified(time).expect("a time");
        }
        assert_eq!(key_under(&bench, "study.exp", &[]), expected, "{time:?}");
    }
    // Another folder, other names, another division into files.
    let elsewhere = laid("so tief / ünter $(x)/s t u d y.exp", "texts/*.txt", "bytes", &TEXTS);
    assert_eq!(key_under(&elsewhere, "so tief / ünter $(x)/s t u d y.exp", &[]), expected);
    let renamed = [("x/1.text", TEXTS[0].1), ("x/y/2.text", TEXTS[1].1)];
    assert_eq!(key("x/**/*.text", "bytes", &renamed), expected);
    let joined = format!("{}\n\n\n{}", TEXTS[0].1, TEXTS[1].1);
    assert_eq!(key("all.txt", "bytes", &[("all.txt", &joined)]), expected);
}

#[test]
fn a_corpus_of_other_text_or_order_has_another_key() {
    let mut keys = vec![key("texts/*.txt", "bytes", &TEXTS)];
    let one = TEXTS[0].1.replace("second line", "second Line");
    keys.push(key("texts/*.txt", "bytes", &[("texts/a.txt", &one), TEXTS[1]]));
    // Files are read in the order of their names.
    keys.push(key("texts/*.txt", "bytes", &[("texts/c.txt", TEXTS[0].1), TEXTS[1]]));
    keys.push(key("texts/*.txt", "bytes", &TEXTS[..1]));
    keys.push(key("texts/*.txt", "bytes", &[TEXTS[0], TEXTS[1], ("texts/c.txt", TEXTS[0].1)]));
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count);
}

#[test]
fn a_tokenizer_counts_by_its_bytes() {
    let with = |name: &str, json: &str| {
        let path = format!("{name}/tokenizer.json");
        key("texts/*.txt", &format!("\"{path}\""), &[TEXTS[0], TEXTS[1], (&path, json)])
    };
    let expected = with("one", WORDS);
    assert_eq!(with("another", WORDS), expected);
    assert_ne!(with("one", &WORDS.replace("paragraph", "file")), expected);
    assert_ne!(key("texts/*.txt", "bytes", &TEXTS), expected);
}
