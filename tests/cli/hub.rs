//! Teachers, tokenizers and first values from Hugging Face's format, from outside; `tests/reference/hub.py` writes the folders.

use std::path::{Path, PathBuf};

use super::bench::Bench;

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub").join(name)
}

const STUDY: &str = r#"
use std.schedules (joint)
data tales {
  generate  tales(documents: 40, seed: 1)
  tokenizer teacher
  context   16 tokens
  holdout   10%
}
model student {
  layers    2
  width     32
  heads     4, kv 2
  ffn       swiglu(24)
  embedding teacher frozen
  head      teacher
  init      normal(0.1)
}
teacher big { checkpoint "qwen3", cache top 8 }
training distilled {
  loss      0.7 * kl(big, temperature: 1) + 0.3 * cross_entropy
  optimizer adamw(lr: 3e-3)
  batch     4 sequences
}
study s {
  data tales, model student, training distilled
  vary schedule over joint(steps: 6), joint(steps: 12)
  measure validation_ce every 3 steps, kl every 3 steps
}
"#;

/// A study beside a copy of a folder.
fn bench(text: &str, folders: &[&str]) -> Bench {
    let bench = Bench::new(text);
    for name in folders {
        let to = bench.path().join(name);
        std::fs::create_dir(&to).expect("a folder");
        for entry in std::fs::read_dir(reference(name)).expect("a folder") {
            let path = entry.expect("an entry").path();
            std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copies");
        }
    }
    bench
}

/// What standard error says; it must have ended with `code`.
fn refused(bench: &Bench, code: i32, arguments: &[&str]) -> String {
    let output = bench.xrun(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(!bench.store().exists(), "something was written");
    said
}

#[cfg(feature = "train")]
#[test]
fn a_student_learns_from_a_model_of_others() {
    let bench = bench(STUDY, &["qwen3"]);
    let before = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!(before["warnings"], serde_json::json!([]));
    let kinds = |plan: &serde_json::Value, kind: &str| {
        plan["nodes"].as_array().expect("nodes").iter().filter(|node| node["kind"] == kind).cloned().collect::<Vec<_>>()
    };
    assert_eq!((kinds(&before, "teacher").len(), kinds(&before, "teacher_logits").len()), (1, 1));
    bench.says(0, &["run", "study.exp"]);
    // The corpus that has been written counts the same.
    let after = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!((&after["totals"]["nodes"], &after["arms"]), (&after["totals"]["nodes_cached"], &before["arms"]));
    // Six steps are the first half of twelve.
    assert_eq!(kinds(&after, "phase").len(), 2);
    let report = bench.json(0, &["report", "study.exp", "--format", "json"]);
    let arms = report["tables"].to_string();
    assert!(arms.contains("teacher big"), "the teacher stands beside the arms: {arms}");

    // Other weights are another teacher.
    std::fs::remove_dir_all(bench.path().join("qwen3/model.safetensors")).ok();
    let path = bench.path().join("qwen3/model.safetensors");
    let mut bytes = std::fs::read(&path).expect("reads");
    *bytes.last_mut().expect("bytes") ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    let other = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    let cached = |plan: &serde_json::Value, kind: &str| kinds(plan, kind).iter().filter(|node| node["cached"] == true).count();
    assert_eq!((cached(&other, "corpus"), cached(&other, "teacher"), cached(&other, "phase")), (1, 0, 0));
}

/// All of them were made for texts of 64 tokens.
#[test]
fn a_teacher_of_shorter_texts_is_warned_of() {
    let warnings = |context: &str, schedule: &str| {
        let text = STUDY.replace("context   16 tokens", context);
        let text = text.replace(", cache top 8", "").replace("joint(steps: 6), joint(steps: 12)", schedule);
        let text = text + "schedule longer { start with all blocks, at step 3: set context 80 tokens, end at step 6 }\n";
        let bench = bench(&text, &["qwen3"]);
        let plan = bench.json(0, &["plan", "study.exp", "--format", "json"]);
        plan["warnings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|said| said.as_str().expect("a text").to_owned())
            .collect::<Vec<_>>()
    };
    let said = |tokens: u64| {
        format!(
            "the teacher `big` was made for texts of 64 tokens (`max_position_embeddings`) and reads sequences of {tokens}: what it says of later positions is a guess"
        )
    };
    assert_eq!(warnings("context 64 tokens", "joint(steps: 6)"), Vec::<String>::new());
    assert_eq!(warnings("context 65 tokens", "joint(steps: 6)"), [said(65)]);
    assert_eq!(warnings("context 16 tokens\n  shard 512 tokens", "longer"), [said(80)]);
}

#[cfg(feature = "train")]
#[test]
fn a_model_starts_from_a_file_of_others() {
    let text = STUDY
        .replace("layers    2", "layers    1\n  dim       16, qk_norm on")
        .replace("swiglu(24)", "swiglu(48)")
        .replace("embedding teacher frozen\n  head      teacher\n", "")
        .replace("init      normal(0.1)", "init      from \"qwen3/model.safetensors\"");
    let bench = bench(&text, &["qwen3"]);
    let before = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    bench.says(0, &["run", "study.exp"]);
    // The same weights under another name are the same.
    std::fs::copy(bench.path().join("qwen3/model.safetensors"), bench.path().join("first.safetensors")).expect("copies");
    std::fs::write(bench.path().join("study.exp"), text.replace("from \"qwen3/model", "from \"first")).expect("writes");
    let named = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_eq!(named["arms"][0]["nodes"], before["arms"][0]["nodes"]);
    // Other weights of the same name are not.
    edit(bench.path().join("first.safetensors"), |bytes| *bytes.last_mut().expect("bytes") ^= 1);
    let other = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    assert_ne!(other["arms"][0]["nodes"], before["arms"][0]["nodes"]);
    // Half the layers of another width are not.
    let wide = text.replace("swiglu(48)", "swiglu(40)");
    std::fs::write(bench.path().join("study.exp"), wide).expect("writes");
    let said = String::from_utf8_lossy(&bench.xrun(&["plan", "study.exp"]).stderr).into_owned();
    assert!(said.contains("`layers.0.ffn.gate` has shape [48, 32], expected [40, 32]"), "{said}");
}

#[test]
fn a_folder_that_is_not_there_can_be_planned() {
    let bench = Bench::new(STUDY);
    let said = bench.says(0, &["plan", "study.exp"]);
    assert!(said.contains("the teacher `big`, the checkpoint \"qwen3\", is not at hand"), "{said}");
    refused(&bench, 2, &["run", "study.exp"]);
}

#[test]
fn vocabularies_that_differ_are_refused_with_both_sizes() {
    let bench = bench(&STUDY.replace("init      normal", "vocabulary 310\n  init      normal"), &["qwen3"]);
    let said = refused(&bench, 2, &["plan", "study.exp"]);
    assert!(said.contains("310 token types") && said.contains("300"), "{said}");
}

/// One fault in a folder, and what is said of it.
struct Fault {
    folder: &'static str,
    make: fn(&Path),
    said: &'static str,
}

fn edit(path: PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(&path).expect("reads");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("writes");
}

/// The header of a safetensors file, changed in place to one of the same length.
fn header(path: PathBuf, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    edit(path, |bytes| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("there");
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    });
}

#[test]
fn folders_that_cannot_be_used_say_why_before_anything_runs() {
    let faults = [
        Fault {
            folder: "qwen3",
            make: |folder| edit(folder.join("model.safetensors"), |bytes| bytes.truncate(bytes.len() - 100)),
            said: "do not fill its 166140 bytes: it is truncated",
        },
        Fault {
            folder: "llama_sharded_f16",
            make: |folder| edit(folder.join("model-00002-of-00003.safetensors"), |bytes| bytes.truncate(9_000)),
            said: "model-00002-of-00003.safetensors`: the tensors of its header do not fill its 9000 bytes",
        },
        Fault {
            folder: "qwen3",
            make: |folder| header(folder.join("model.safetensors"), "\"dtype\":\"F32\"", "\"dtype\":\"I32\""),
            said: "is of type I32, expected F32, F16 or BF16",
        },
        Fault {
            folder: "qwen3",
            make: |folder| header(folder.join("model.safetensors"), "model.norm.weight", "model.nurm.weight"),
            said: "missing: model.norm.weight; not expected: model.nurm.weight",
        },
        Fault {
            folder: "qwen3",
            make: |folder| header(folder.join("model.safetensors"), "\"shape\":[64,32]", "\"shape\":[32,64]"),
            said: "has shape [32, 64], expected [64, 32]",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                edit(folder.join("config.json"), |text| {
                    let changed = String::from_utf8_lossy(text).replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
                    *text = changed.into_bytes();
                })
            },
            said: "36 tensors expected, 25 present; missing: model.layers.2.self_attn.q_proj.weight",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                edit(folder.join("config.json"), |text| {
                    let changed = String::from_utf8_lossy(text).replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
                    *text = changed.into_bytes();
                })
            },
            said: "missing: none; not expected: model.layers.1.",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                std::fs::write(
                    folder.join("model.safetensors"),
                    "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
                )
                .expect("writes");
            },
            said: "a pointer of Git LFS",
        },
        Fault {
            folder: "llama_sharded_f16",
            make: |folder| std::fs::remove_file(folder.join("model-00003-of-00003.safetensors")).expect("removes"),
            said: "it names `model-00003-of-00003.safetensors`, which is missing",
        },
        Fault {
            folder: "llama_sharded_f16",
            make: |folder| {
                edit(folder.join("model.safetensors.index.json"), |text| {
                    let changed =
                        String::from_utf8_lossy(text).replace("model-00003-of-00003.safetensors", "../other.safetensors");
                    *text = changed.into_bytes();
                })
            },
            said: "it names `../other.safetensors`, which is no file of its folder",
        },
        Fault {
            folder: "llama_sharded_f16",
            make: |folder| header(folder.join("model-00003-of-00003.safetensors"), "lm_head.weight", "lm_hood.weight"),
            said: "it places `lm_head.weight` into `model-00003-of-00003.safetensors`, which has it not",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                edit(folder.join("model.safetensors"), |bytes| bytes[..8].copy_from_slice(&(1u64 << 40).to_le_bytes()))
            },
            said: "its header claims 1099511627776 bytes, the file has 166240",
        },
        Fault {
            folder: "qwen3",
            make: |folder| std::fs::write(folder.join("model.safetensors"), "abc").expect("writes"),
            said: "3 bytes are no safetensors file",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                edit(folder.join("config.json"), |text| {
                    let changed = String::from_utf8_lossy(text).replace("\"vocab_size\": 300", "\"vocab_size\": 9999999");
                    *text = changed.into_bytes();
                })
            },
            said: "has shape [300, 32], expected [9999999, 32]",
        },
        Fault {
            folder: "qwen3",
            make: |folder| std::fs::remove_file(folder.join("config.json")).expect("removes"),
            said: "config.json`: it is missing",
        },
        Fault {
            folder: "qwen3",
            make: |folder| {
                edit(folder.join("config.json"), |text| {
                    let changed = String::from_utf8_lossy(text).replace("\"default\"", "\"yarn\"");
                    *text = changed.into_bytes();
                })
            },
            said: "is of type yarn: positions that are scaled cannot be computed",
        },
    ];
    for Fault { folder, make, said } in faults {
        let text = STUDY.replace("\"qwen3\"", &format!("\"{folder}\"")).replace("tokenizer teacher", "tokenizer bytes");
        let bench = bench(&text.replace("init      normal", "vocabulary 300\n  init      normal"), &[folder]);
        make(&bench.path().join(folder));
        for verb in ["plan", "run"] {
            let heard = refused(&bench, 2, &[verb, "study.exp"]);
            assert!(heard.contains(said), "{verb}: {heard}");
        }
        // Nothing is allocated by what a file claims: little memory is enough to refuse it.
        #[cfg(target_os = "linux")]
        {
            let run = "ulimit -v 524288; exec \"$0\" plan study.exp";
            let mut shell = std::process::Command::new("sh");
            let output = shell.current_dir(bench.path()).args(["-c", run, env!("CARGO_BIN_EXE_xrun")]).output().expect("sh runs");
            let heard = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(2) && heard.contains(said), "in 512 MiB: {heard}");
        }
    }
}
