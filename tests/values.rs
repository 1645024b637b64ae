//! Every field says where its value comes from, and every value that was filled in is listed.

use std::collections::BTreeMap;

use xrun::check::explain::value;
use xrun::check::{Checked, fields_of, traced};
use xrun::source::{Source, World};

const KEYWORDS: [&str; 7] = ["data", "model", "teacher", "training", "placement", "schedule", "study"];

struct Memory(BTreeMap<String, String>);

impl World for Memory {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let name = path.trim_start_matches("./");
        self.0.get(name).map(|text| Source::new(name, text.as_str())).ok_or_else(|| "no such file".to_owned())
    }
}

fn study(text: &str) -> Checked {
    let world = Memory([("parts.exp".to_owned(), PARTS.to_owned())].into());
    let checked = traced(&world, Source::new("study.exp", text));
    assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    checked
}

fn told(checked: &Checked, path: &str) -> String {
    value(checked, path).unwrap_or_else(|error| panic!("{error}"))
}

const PARTS: &str = "let hidden = 3 * 8
training plain { loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }
";

/// Between them, these give every field of the language.
const FULL: [&str; 2] = [
    "use std.placements (post)
use \"./parts.exp\" (hidden, plain)
let w = 2 * 8
data d {
  generate tales(documents: 60, seed: 1), document paragraph, tokenizer bytes, context 16 tokens, packed, tokens per step 64
  shard 2k tokens, holdout 10%
}
placement own(alpha: 2) {
  entry norm(x), sublayer x + alpha * f(norm(x)), boundary norm(x), exit norm(x), init (v, o) * 0.5
}
model m {
  layers 4, block 2 layers, width w, heads 2, kv 1, dim w / 2, ffn swiglu(hidden), norm rms(eps: 1e-5), qk_norm, placement own
  positions rope(base: 1_000), embedding own, head own, init normal(0.02 * sqrt(4096 / width)), vocabulary 300
}
teacher big { model m with { width 2 * w, dim 8 }, train 12 steps with plain, cache top 4 }
training t = plain with {
  loss 0.7 * kl(big, temperature: 2) + 0.3 * cross_entropy, optimizer.eps 1e-7, lr warmup 2 steps then cosine to 10%
  batch 4 sequences in 2, clip 0.5, precision f32
}
schedule s(phase: 4 steps) {
  start with 1 block
  at step 2: reset optimizer
  after phase: grow block, freeze prefix
  every phase 2 times: restart lr
  end after 2 * phase
}
study s {
  data d, model m, training t, schedule s(3)
  vary placement over own(alpha: w / 4), post
  vary training.optimizer.lr over 1e-3, 2e-3
  except [post, 2e-3]
  seeds 2
  control long: [own, 1e-3] with { clip 0.25, schedule.phase 5 }
  measure validation_ce every 4 steps
  probe boundary_rms at end on 2 sequences of 16 tokens
  claim c: validation_ce[own, 1e-3] < validation_ce[post]
  report ablation(rows: placement, columns: lr)
}",
    "use std.schedules (joint)
data d { files \"*.txt\", context 16 tokens, layout padded }
data e { files \"*.txt\", context 16 tokens, padded }
placement side { layer x + attention(norm(x)) + ffn(norm(x)) }
model m { layers 2, width 16, heads 2, ffn gelu(32), placement side }
teacher big { checkpoint \"folder\" }
training t { loss kl(big), optimizer adamw(1e-3), batch 4 }
study s { training t, model m, schedule joint(steps: 4)\n vary data over d, e }",
];

#[test]
fn every_field_says_which_words_gave_its_value() {
    let studies = FULL.map(study);
    let mut silent = Vec::new();
    for keyword in KEYWORDS {
        for field in fields_of(keyword) {
            let path = format!("{keyword}.{field}");
            let answers = studies.iter().filter_map(|checked| value(checked, &path).ok());
            if !answers.into_iter().any(|answer| answer.contains(" = ") && answer.contains("\n  written at study.exp:")) {
                silent.push(path);
            }
        }
    }
    assert!(silent.is_empty(), "no study of this test gives, or nothing is said of: {}", silent.join(", "));
}

/// Each way in which words can give a value.
#[test]
fn the_words_behind_a_value_are_followed() {
    let [full, other] = FULL.map(study);
    let says = |path: &str, words: &[&str]| {
        let answer = told(&full, path);
        for words in words {
            assert!(answer.contains(words), "{words}:\n{answer}");
        }
    };
    // A declaration, `let`, arithmetic, fields of the same declaration, another file.
    says("model.width", &["s: model.width = w, that is 16\n", "in `model m`", "`w` is 2 * 8, by the let at study.exp:3:9"]);
    says("model.init", &["that is normal(0.32)", "`width` is w, by the field at study.exp:"]);
    says(
        "model.ffn",
        &["that is swiglu(24)", "`hidden` is 3 * 8, by the let at parts.exp:1:14, taken by `use` at study.exp:2:20"],
    );
    says("width", &["model.width = w"]);
    // `with`, an argument of a call, one that `with` gives.
    says("training.loss", &["by `with` in `training t`", "`big` is the teacher declared at study.exp:"]);
    says("training.loss.temperature", &["= 2\n"]);
    says("training.optimizer.eps", &["= 1e-7\n", "by `with` in `training t`"]);
    says("training.optimizer.betas", &["(0.9, 0.95)", "a default: "]);
    says("training.batch.in", &["4 sequences in 2"]);
    // An axis, and a control.
    says("training.optimizer.lr", &["s for lr = 2e-3: training.optimizer.lr = 2e-3\n", "by the axis `lr`"]);
    says(
        "training.clip",
        &["s for all but long: training.clip = 0.5\n", "s for long: training.clip = 0.25", "by the control `long`"],
    );
    // Placements and their parameters, of the standard library too.
    says("placement.alpha", &["placement.alpha = w / 4, that is 4\n", "by the axis `placement`", "`w` is 2 * 8"]);
    says("placement.sublayer", &["norm(x + f(x))", "written at std.placements:", "that is x + 4 * f(norm(x))"]);
    says("model.placement", &["`post` is the placement declared at std.placements:", ", taken by `use` at study.exp:1:21"]);
    // Schedules and their parameters.
    says("schedule.phase", &["s for all but long: schedule.phase = 3\n", "s for long: schedule.phase = 5\n"]);
    says(
        "schedule.end",
        &["after 2 * phase, that is after 6", "that is after 10", "`phase` is 3, by the argument at study.exp:"],
    );
    says("schedule", &["schedule = s(3)\n", "in `study s`"]);
    // Teachers and what they are made of.
    says("teacher.model.width", &["that is 32", "by `with` in `teacher big`"]);
    says("teacher.train.optimizer.lr", &["1e-3", "parts.exp:2:"]);
    // What stands in the place of a field that was not asked for; a part that an axis gives.
    assert!(told(&other, "data.generate").contains("data.files = \"*.txt\""));
    assert!(told(&other, "data").contains("s for data = d: data = d\n"));
    assert!(told(&other, "layout").contains("data.layout = padded"));
}

#[test]
fn what_has_no_value_is_told_from_what_is_no_field() {
    let [_, other] = FULL.map(study);
    let error = |path: &str| value(&other, path).expect_err(path);
    assert!(error("data.tokens").contains("is a field to which no study of this file gives a value"));
    assert!(error("report").contains("is a field"));
    assert!(error("model.widht").contains("did you mean `model.width`?"));
    assert!(error("training.nothing").starts_with("nothing gives a value to"));
}

/// A field that a file leaves out is filled in and listed with a reason, or there is nothing to fill in: then it stands here.
#[test]
fn every_field_that_is_left_out_is_listed() {
    let bare = "data d { files \"*.txt\", context 16 tokens }
model m { layers 2, width 16, heads 2, ffn gelu(32) }
teacher big { model m, train 3 steps with t }
training t { loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 }
training u = t with { loss kl(big) }
schedule s { start with all blocks, end at step 4 }
study s { data d, model m, training u, schedule s }";
    let nothing = [
        "data.tokens",
        "teacher.checkpoint",
        "placement.entry",
        "placement.boundary",
        "placement.init",
        "schedule.at",
        "schedule.after",
        "schedule.every",
        "study.vary",
        "study.except",
        "study.control",
        "study.probe",
        "study.claim",
        "study.report",
    ];
    let checked = study(bare);
    let study = &checked.studies[0];
    for filled in &study.defaults {
        assert!(!filled.reason.is_empty() && !filled.value.is_empty(), "{filled:?}");
    }
    for keyword in KEYWORDS {
        for field in fields_of(keyword) {
            let path = format!("{keyword}.{field}");
            let answer = value(&checked, &path);
            match (&answer, nothing.contains(&path.as_str())) {
                (Err(_), true) => {}
                (Ok(answer), false) if answer.contains("  written at ") => {}
                (Ok(answer), false) if answer.contains("  a default: ") => {
                    // `check --defaults` and the plan list it under its declaration.
                    let (_, name) = answer.split_once(&format!("{keyword}.")).unwrap_or(answer.split_once(": ").expect("a path"));
                    let name = name.split(' ').next().expect("a field");
                    let listed = study
                        .defaults
                        .iter()
                        .any(|one| one.owner.starts_with(keyword) && one.field.split('.').next() == Some(name));
                    assert!(listed, "{path}: {:?}", study.defaults);
                }
                _ => panic!("{path}: {answer:?}"),
            }
        }
    }
}
