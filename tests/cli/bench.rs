//! A folder with a study, and the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Trains in a second: two layers of width 8 on generated tales, shared first phases, a matched control, claims.
pub const TINY: &str = r#"
/// Does anything depend on placement in the least of all models?
use std.placements (pre, post)
use std.schedules (joint, grow, grow_frozen)

data tales {
  generate  tales(documents: 60, seed: 1)
  tokenizer bytes
  context   16 tokens, packed
  holdout   10%
}
model student {
  layers 2
  block  1 layer
  width  8
  heads  2, kv 1
  ffn    swiglu(12)
  norm   rms(eps: 1e-6)
  init   normal(0.1)
}
teacher big {
  model student with { width 16 }
  train 12 steps with base
  cache top 4
}
training base {
  loss      cross_entropy
  optimizer adamw(lr: 3e-3)
  lr        warmup 2 steps then cosine to 10%
  batch     4 sequences
  clip      0.5
}
training distilled = base with { loss 0.7 * kl(big, temperature: 1) + 0.3 * cross_entropy }
study tiny {
  data     tales
  model    student
  training distilled
  vary placement over pre, post
  vary schedule over joint(steps: 8), grow(phase: 8 steps), grow_frozen(phase: 8 steps)
  seeds    2
  control joint_long: [post, joint] matched to [post, grow] on active_layer_tokens
  measure  validation_ce every 4 steps
  probe    boundary_rms at every grow and at end on 8 sequences of 16 tokens
  probe    block_removal at end on 8 sequences of 16 tokens
  claim growth_prefers_post: validation_ce[post, grow] < validation_ce[pre, grow]
  report   ablation(rows: placement, columns: schedule)
}
"#;

/// One arm of eight steps, with a checkpoint that has a name.
#[cfg(feature = "train")]
pub const SMALL: &str = r#"
data d { generate tales(documents: 60, seed: 1), context 16 tokens, holdout 10% }
model m { layers 2, width 8, heads 2, ffn swiglu(12), init normal(0.1) }
training t { loss cross_entropy, optimizer adamw(lr: 3e-3), batch 4 sequences }
schedule kept { start with all blocks, at step 4: save "the half", end at step 8 }
study s { data d, model m, training t, schedule kept, measure validation_ce every 4 steps }
"#;

/// A folder of its own, with `study.exp` in it.
pub struct Bench {
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("study.exp"), text).expect("writes");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn store(&self) -> PathBuf {
        self.path().join(".xrun")
    }

    /// The program in this folder, with nothing of the machine's own settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xrun"));
        command.current_dir(self.path()).env_remove("XRUN_STORE").args(arguments);
        command
    }

    pub fn xrun(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("xrun runs")
    }

    /// Its standard output; it must have ended with `code`.
    pub fn says(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.xrun(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub fn json(&self, code: i32, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.says(code, arguments)).expect("JSON")
    }

    /// Every file below a folder with its bytes, by relative path; wall-clock times left out.
    #[cfg(feature = "train")]
    pub fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
        let mut files = std::collections::BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(at) = folders.pop() {
            for entry in std::fs::read_dir(&at).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).expect("reads");
                    files.insert(path.strip_prefix(folder).expect("below").to_path_buf(), bytes);
                }
            }
        }
        files
    }
}
