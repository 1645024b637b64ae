//! Data of every kind, from the file on the disk to a report.

use super::bench::Bench;

const STUDY: &str = r#"
use std.placements (pre)
use std.schedules (joint)
study s {
  data texts
  model student
  training base
  schedule joint(steps: 2)
  seeds 1
  measure validation_ce every 2 steps
}
data texts {
  FILES
  tokenizer TOKENIZER
  context   16 tokens
  holdout   10%
}
model student {
  layers 1
  width  16
  heads  2
  ffn    swiglu(24)
  norm   rms(eps: 1e-5)
  placement pre
  positions rope(base: 500)
  init   normal(0.2)
}
training base {
  loss      cross_entropy
  optimizer adamw(lr: 1e-2)
  batch     4 sequences
}
"#;

fn bench(files: &str, tokenizer: &str) -> Bench {
    Bench::new(&STUDY.replace("FILES", files).replace("TOKENIZER", tokenizer))
}

/// `bpe` is a node that the corpus needs; it is trained once, and every plan counts with it.
#[test]
fn a_tokenizer_is_trained_before_its_corpus() {
    let bench = bench("generate tales(documents: 60, seed: 1)", "bpe(300)");
    let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let nodes = plan["nodes"].as_array().expect("nodes");
    assert_eq!((&nodes[0]["kind"], &nodes[1]["kind"]), (&"tokenizer".into(), &"corpus".into()));
    assert_eq!(nodes[1]["needs"][0], nodes[0]["key"]);
    let tokens = nodes[1]["cost"]["tokens"].clone();
    assert!(tokens.as_u64().is_some_and(|tokens| tokens > 1_000), "{tokens}");
    #[cfg(feature = "train")]
    {
        bench.says(0, &["run", "study.exp"]);
        let again = bench.json(0, &["plan", "study.exp", "--format", "json"]);
        assert_eq!(
            (&again["nodes"][1]["cost"]["tokens"], &again["totals"]["nodes_cached"]),
            (&tokens, &again["totals"]["nodes"])
        );
        let arm = again["arms"][0]["name"].as_str().expect("a name");
        bench.says(0, &["export", "study.exp", arm, "--to", "out"]);
        assert!(bench.path().join("out/tokenizer.json").exists());
    }
}

/// The same documents, however they are packed: one content, and so one key.
#[test]
fn how_a_text_is_packed_is_in_no_key() {
    let lines: String = (0..200).map(|line| format!("{{\"text\": \"line {line} of a text\"}}\n")).collect();
    let corpus = |name: &str, bytes: &[u8]| {
        let bench = bench(&format!("files \"{name}\"\n  document field \"text\""), "bytes");
        std::fs::write(bench.path().join(name), bytes).expect("writes");
        bench.json(0, &["plan", "study.exp", "--format", "json"])["nodes"][0]["key"].clone()
    };
    let plain = corpus("a.jsonl", lines.as_bytes());
    assert!(plain.is_string());
    assert_eq!(corpus("b.jsonl.zst", &zstd::encode_all(lines.as_bytes(), 1).expect("packs")), plain);
}

/// A plan of data that cannot be used says why, and a run of it is refused.
#[test]
fn what_is_wrong_with_data_is_said() {
    for (name, bytes, said) in [
        ("a.bin", &[5u8, 0, 44, 1][..], "token 1 is 300, and the tokenizer has 257"),
        ("a.txt.gz", b"no gzip at all", "is no whole gzip file"),
        ("a.parquet", b"PAR1", "it has columns"),
        ("a.txt", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    ] {
        let bench = bench(&format!("files \"{name}\""), "bytes");
        std::fs::write(bench.path().join(name), bytes).expect("writes");
        let output = bench.xrun(&["run", "study.exp"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(said), "{name}: {told}");
    }
}
