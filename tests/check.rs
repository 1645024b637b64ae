//! What the checker says, and what it makes: one walk over `tests/suite/check`, and a few studies looked at closely.
//!
//! `XRUN_SUITE=folder` walks another folder of cases too.

mod cases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xrun::check::{Checked, LIBRARY, Origin, check};
use xrun::diagnostic::{Diagnostic, Severity};
use xrun::source::{Source, World};
use xrun::study::equation::{Scalar, Stream};
use xrun::study::placement::Body;
use xrun::study::schedule::{Action, GrowFrom, Insert};
use xrun::study::{Embedding, Init, Layers, Linear, LossTerm, Quantity, Relation, Study, TeacherSource, Vocabulary};

/// Texts by name.
#[derive(Default)]
struct Memory(BTreeMap<String, String>);

impl World for Memory {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let name = path.trim_start_matches("./");
        self.0.get(name).map(|text| Source::new(name, text.as_str())).ok_or_else(|| "no such file".to_owned())
    }
}

/// Files beside a case.
struct Beside(PathBuf);

impl World for Beside {
    fn read(&self, _: &str, path: &str) -> Result<Source, String> {
        let path = self.0.join(path.trim_start_matches("./"));
        let text = std::fs::read_to_string(&path).map_err(|_| "no such file".to_owned())?;
        Ok(Source::new(path.display().to_string(), text))
    }
}

fn disagreements(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a readable case");
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let checked = check(&Beside(folder), Source::new(name.clone(), text.as_str()));
    cases::disagreements(&name, &text, &checked.sources, checked.problems.sorted())
}

#[test]
fn every_case_says_what_it_expects() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/check");
    let mut all = cases::files(&own, "exp");
    assert!(!all.is_empty());
    if let Ok(other) = std::env::var("XRUN_SUITE") {
        all.extend(cases::files(Path::new(&other), "exp"));
    }
    let faults: Vec<String> = all.iter().flat_map(|path| disagreements(path)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_library_checks() {
    for (name, text) in LIBRARY {
        let checked = check(&Memory::default(), Source::new(format!("{name}.copy"), text));
        assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    }
}

/// Texts cut, doubled and mixed: whatever comes in, something comes out.
#[test]
fn no_text_makes_it_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/check");
    let mut texts: Vec<String> =
        cases::files(&folder, "exp").iter().map(|path| std::fs::read_to_string(path).expect("a readable case")).collect();
    texts.extend(LIBRARY.map(|(_, text)| text.to_owned()));
    // A small linear generator: the same texts in every run.
    let mut state = 42u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    };
    let rounds = std::env::var("XRUN_FUZZ").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(150);
    for _ in 0..rounds {
        let text = &texts[below(texts.len())];
        let mut lines: Vec<&str> = text.lines().collect();
        let other = &texts[below(texts.len())];
        let others: Vec<&str> = other.lines().collect();
        for _ in 0..=below(3) {
            let at = below(lines.len());
            match below(3) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, others[below(others.len())]),
                _ => {
                    let next = below(lines.len());
                    lines.swap(at, next);
                }
            }
            lines.push("");
        }
        let mut words: Vec<String> =
            lines.join("\n").split_inclusive([' ', '(', ')', ',', '{', '}', ':']).map(str::to_owned).collect();
        for _ in 0..=below(4) {
            let (at, from) = (below(words.len()), below(words.len()));
            match below(3) {
                0 => drop(words.remove(at)),
                1 => words[at] = words[from].clone(),
                _ => words.swap(at, from),
            }
            words.push(" ".to_owned());
        }
        let checked = check(&Memory::default(), Source::new("mixed.exp", words.concat()));
        for said in checked.problems.sorted() {
            assert!(!checked.sources.text(said.span).is_empty() || said.span.start == said.span.end);
        }
        checked.problems.render(&checked.sources, false);
    }
}

fn checked(text: &str) -> Checked {
    check(&Memory::default(), Source::new("study.exp", text))
}

fn without_errors(checked: Checked) -> Checked {
    assert!(!checked.problems.has_errors(), "{}", checked.problems.render(&checked.sources, false));
    checked
}

/// Declarations that most tests begin with.
const PARTS: &str = "
use std.placements (pre, post, deepnorm, mix_ln)
use std.schedules (joint, grow, grow_frozen)
data tales { generate tales(documents: 100), context 16 tokens }
model tiny { layers 4, block 2 layers, width 8, heads 2, ffn swiglu(2 * width), placement pre, init normal(0.02 * sqrt(4096 / width)) }
training plain { loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }
";

fn study(body: &str) -> Study {
    let text = format!("{PARTS}\nstudy s {{\n{body}\n}}\n");
    without_errors(checked(&text)).studies.pop().expect("a study")
}

fn names(study: &Study) -> Vec<&str> {
    study.arms.iter().map(|arm| arm.name.as_str()).collect()
}

#[test]
fn arms_are_the_cells_of_the_axes_and_then_the_controls() {
    let study = study(
        "data tales, model tiny, training plain
         vary placement over pre, post
         vary schedule over joint(steps: 10), grow(phase: 5 steps), grow(phase: 6 steps)
         except [post, grow(phase: 6 steps)]
         seeds [1, 7]
         /// As much computed.
         control long: [post, joint] matched to [post, grow(phase: 5 steps)] on active_layer_tokens
         control wide: [pre, joint] with { width 16, schedule joint(steps: 12), optimizer.lr 1e-4 } matched to [long] on tokens",
    );
    let expected = [
        "[pre, joint]",
        "[pre, grow(phase: 5 steps)]",
        "[pre, grow(phase: 6 steps)]",
        "[post, joint]",
        "[post, grow(phase: 5 steps)]",
        "long",
        "wide",
    ];
    assert_eq!(names(&study), expected);
    assert_eq!(study.seeds, [1, 7]);
    let long = study.arms[5].control.as_ref().expect("a control");
    assert_eq!(long.doc.as_deref(), Some("As much computed."));
    assert_eq!(long.matched.map(|matched| (matched.to, matched.on)), Some((4, Quantity::ActiveLayerTokens)));
    assert_eq!(study.arms[5].values["schedule"], "joint");
    let wide = &study.arms[6];
    assert_eq!(wide.control.as_ref().and_then(|control| control.matched).map(|matched| matched.to), Some(5));
    assert_eq!((wide.recipe.model.width, study.arms[0].recipe.model.width), (16, 8));
    let lr = wide.recipe.training.optimizer.lr();
    assert_eq!(lr, 1e-4);
    // Fields that follow from others follow from the new ones, and equal parts are shared.
    assert_eq!(wide.recipe.model.ffn, xrun::study::Ffn::SwiGlu { width: 32 });
    assert_eq!(wide.recipe.model.init, Init::Normal { std: 0.02 * 16.0 });
    assert!(std::sync::Arc::ptr_eq(&study.arms[0].recipe.data, &wide.recipe.data));
}

/// Names of a kind that a library text declares.
fn declared(kind: &str, text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    names.map(|rest| rest.split([' ', '(']).next().unwrap_or("").to_owned()).collect()
}

#[test]
fn everything_in_the_library_serves_a_model() {
    let (placements, schedules) = (declared("placement", LIBRARY[0].1), declared("schedule", LIBRARY[1].1));
    assert!(placements.len() >= 15 && schedules.len() >= 12);
    let text = format!(
        "use std.placements ({0})\nuse std.schedules ({1})
         data tales {{ generate tales(documents: 100), context 16 tokens }}
         model tiny {{ layers 12, block 3 layers, width 8, heads 2, ffn swiglu(16) }}
         training plain {{ loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }}
         study s {{ data tales, model tiny, training plain\n vary placement over {0}\n vary schedule over {1} }}",
        placements.join(", "),
        schedules.join(", ")
    );
    let checked = without_errors(checked(&text));
    assert_eq!(checked.studies[0].arms.len(), placements.len() * schedules.len());
    for placement in checked.studies[0].arms.iter().flat_map(|arm| &arm.recipe.model.wiring.placements) {
        assert!(placement.doc.is_some(), "{}", placement.name);
    }
}

#[test]
fn every_experiment_checks() {
    let all = cases::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments"), "exp");
    assert!(!all.is_empty());
    for path in all {
        let text = std::fs::read_to_string(&path).expect("a readable experiment");
        without_errors(check(
            &Beside(path.parent().unwrap_or(Path::new("")).into()),
            Source::new(path.display().to_string(), text),
        ));
    }
}

#[test]
fn names_do_not_depend_on_the_layout() {
    let texts = |body: &str| {
        let study = study(&format!("data tales, model tiny, training plain\n{body}"));
        let claims = study.claims.iter().map(|claim| claim.text.clone());
        let controls = study.arms.iter().filter_map(|arm| arm.control.as_ref()).map(|control| control.text.clone());
        study.arms.iter().map(|arm| arm.name.clone()).chain(controls).chain(claims).collect::<Vec<_>>()
    };
    let neat = texts(
        "vary schedule over grow(phase: 5 steps), grow(phase: 2 * 3 steps)
         control c: [grow(phase: 5 steps)] matched to [grow(phase: 2 * 3 steps)] on tokens with { clip -(-1) }
         claim x: validation_ce[grow(phase: 5 steps)] - 1 < validation_ce[c] at step 4",
    );
    let wild = texts(
        "vary schedule over grow( phase:5   steps ),grow(phase  : 2*3 // six
                                                         steps,)
         control c : [ grow(phase:5 steps)]  matched to [grow(phase:2*3 steps)] on tokens with {clip -(-1),}
         claim x:
           validation_ce[grow(phase: 5 steps)]   // mine
             -1<validation_ce[ c ] at step 4",
    );
    assert_eq!(neat, wild);
    assert_eq!(neat[1], "[grow(phase: 2 * 3 steps)]");
    assert_eq!(neat[3], "[grow(phase: 5 steps)] matched to [grow(phase: 2 * 3 steps)] on tokens with { clip -(-1) }");
}

#[test]
fn axes_reach_into_arguments_and_move_together() {
    let study = study(
        "data tales, model tiny, training plain, schedule joint(steps: 10)
         vary training.optimizer.lr over 1e-3, .5e-3
         vary (width, heads) over (8, 2), (16, 4)
         vary schedule.steps over 10, 20 steps
         except [lr: 0.0005, width: 16]
         claim c: validation_ce[lr: 1e-3, heads: 4] < validation_ce[5e-4] + 0.5
         report ablation(rows: lr, columns: [width, steps])",
    );
    assert_eq!(study.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>(), ["lr", "width, heads", "steps"]);
    assert_eq!(names(&study)[0], "[1e-3, (8, 2), 10]");
    let shapes: Vec<_> = study.arms.iter().map(|arm| (arm.recipe.model.width, arm.recipe.model.heads)).collect();
    assert_eq!(shapes, [(8, 2), (8, 2), (16, 4), (16, 4), (8, 2), (8, 2)]);
    let claim = &study.claims[0];
    let arms = |linear: &Linear| linear.terms[0].1.arms.arms.clone();
    assert_eq!((arms(&claim.left), arms(&claim.right), claim.right.constant), (vec![2, 3], vec![4, 5], 0.5));
    assert_eq!(study.reports[0].columns, ["width, heads", "steps"]);
    // Claimed, so measured.
    assert_eq!(study.measures.len(), 1);
}

#[test]
fn a_whole_and_its_argument_are_replaced_in_any_order() {
    let rates = |axes: &str| {
        let study = study(&format!(
            "data tales, model tiny, training plain, schedule joint(steps: 10)
             {axes}
             control c: [lr: 1e-2, adamw] with {{ optimizer.lr 3, optimizer sgd(lr: 1) }}
             control d: [lr: 1e-2, adamw] with {{ optimizer sgd(lr: 1), optimizer.lr 3 }}
             control e: [lr: 1e-2, adamw] with {{ optimizer sgd(lr: 1) }}"
        ));
        let mut rates: Vec<(String, f64)> = (study.arms.iter())
            .map(|arm| {
                let optimizer = arm.recipe.training.optimizer;
                (format!("{optimizer:?}").split(' ').next().unwrap_or("").to_lowercase(), optimizer.lr())
            })
            .collect();
        rates.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        rates
    };
    let (whole, argument) = ("vary optimizer over adamw(lr: 1e-4), lion(lr: 1e-5)\n", "vary optimizer.lr over 1e-3, 1e-2\n");
    let expected = [("adamw", 1e-3), ("adamw", 1e-2), ("lion", 1e-3), ("lion", 1e-2), ("sgd", 1.0), ("sgd", 3.0), ("sgd", 3.0)];
    let expected: Vec<(String, f64)> = expected.map(|(name, lr)| (name.to_owned(), lr)).into();
    assert_eq!(rates(&format!("{whole}{argument}")), expected);
    assert_eq!(rates(&format!("{argument}{whole}")), expected);
}

#[test]
fn arms_are_asked_for_as_in_a_claim() {
    let study = study(
        "data tales, model tiny, training plain
         vary placement over pre, post, deepnorm(alpha: 2 * layers)
         vary schedule over joint(steps: 10), grow(phase: 5 steps), grow(phase: 6 steps)
         vary optimizer.lr over 3e-3, 1e-2
         vary (width, heads) over (8, 2), (16, 4)
         vary context over 16, 8
         except [post, grow(phase: 6 steps)], [width: 16, context: 8]
         control long: [pre, joint, lr: 3e-3, width: 8, context: 16] matched to [pre, grow(phase: 5 steps), 3e-3, width: 8, context: 16] on tokens",
    );
    let asked = |said: &str| {
        let arms = xrun::check::arms(&study, said);
        arms.map(|arms| arms.into_iter().map(|arm| study.arms[arm].name.as_str()).collect::<Vec<_>>())
    };
    // In any order, by axis or not, however a number is written, with brackets and without.
    let one = ["[pre, joint, 3e-3, (8, 2), 16]"];
    for said in [
        "[pre, joint, 3e-3, (8, 2), 16]",
        "[pre,joint,3e-3,(8,2),16]",
        "[context: 16, heads: 2, lr: .003, schedule: joint, placement: pre]",
        " lr: 0.0030, width: 8, joint(steps: 10), pre, 16 ",
    ] {
        assert_eq!(asked(said).as_deref(), Ok(&one[..]), "{said}");
    }
    for said in ["long", "[long]", "[ long ]"] {
        assert_eq!(asked(said).as_deref(), Ok(&["long"][..]), "{said}");
    }
    // An axis that is left out leaves all its values, of arms that are there.
    assert_eq!(asked("[post]").map(|arms| arms.len()), Ok(2 * 2 * 3));
    assert_eq!(asked("[]").map(|arms| arms.len()), Ok(study.arms.len() - 1));
    for (said, reason) in [
        ("[pre, jiont]", "no axis has the value `jiont`; did you mean `joint`?"),
        ("[pre, shcedule: joint]", "no axis is called `shcedule`; did you mean `schedule`?"),
        ("[grow]", "`grow` stands for 2 values; write the whole value, `grow(phase: 5 steps)`"),
        ("[pre, post]", "a second value of `placement`"),
        ("[post, grow(phase: 6 steps)]", "no arm has these values"),
        ("[pre, grow(6 steps)]", "no axis has the value `grow(6 steps)`; the values are `pre`,"),
        ("[pre", "`[` is not closed"),
        ("[pre] [post]", "expected values in `[…]`"),
        ("[pre]\nlet b = 2", "expected values in `[…]`"),
        ("[pre] }", "`}` closes nothing"),
    ] {
        let found = asked(said).expect_err(said);
        assert!(found.starts_with(reason), "{said}: {found}");
    }
    // What was read of a plan that someone else wrote.
    let mut wild = study.clone();
    wild.axes[0].values[0].text = "} [".to_owned();
    assert!(xrun::check::arms(&wild, "[pre, joint]").is_err());
    assert_eq!(xrun::check::arms(&wild, "long").map(|arms| arms.len()), Ok(1));
}

#[test]
fn claims_are_linear_in_their_metrics() {
    let study = study(
        "data tales, model tiny, training plain
         vary placement over pre, post
         vary schedule over joint(steps: 10), grow(phase: 5 steps)
         control long: [post, joint] matched to [post, grow] on tokens
         claim they_interact: (validation_ce[post, grow] - validation_ce[pre, grow])
                              < (validation_ce[post, joint] - validation_ce[pre, joint])
         claim same: 2 * validation_ce[post] / 4 ~ -(perplexity[long] - 3) within 1%
         claim crosses: validation_ce[grow, post] overtakes validation_ce[pre, grow] after grow 1
         claim early: validation_ce[post] > validation_ce[pre] at step 5",
    );
    let [interact, same, crosses, early] = study.claims.as_slice() else { panic!("four claims") };
    let terms = |linear: &Linear| linear.terms.iter().map(|(factor, term)| (*factor, term.arms.arms.clone())).collect::<Vec<_>>();
    assert_eq!(terms(&interact.left), [(1.0, vec![3]), (-1.0, vec![1])]);
    assert_eq!(terms(&interact.right), [(1.0, vec![2]), (-1.0, vec![0])]);
    assert_eq!(terms(&same.left), [(0.5, vec![2, 3])]);
    assert_eq!((terms(&same.right), same.right.constant), (vec![(-1.0, vec![4])], 3.0));
    assert_eq!(same.relation, Relation::Equivalent { within: 0.01 });
    assert_eq!(crosses.relation, Relation::Overtakes { after_grow: 1 });
    assert_eq!((early.at_step, early.relation), (Some(5), Relation::Greater));
}

#[test]
fn teachers_are_found_from_the_loss_and_trained_as_written() {
    let text = format!(
        "{PARTS}
         training distilled = plain with {{ loss 0.7 * kl(big, temperature: 2) + 0.2 * cross_entropy + 0.1 * cross_entropy }}
         teacher big {{ model tiny with {{ layers 6, width 16 }}, train 30 steps with plain, cache top 8 }}
         study s {{ data tales, model tiny with {{ head tied }}, training distilled, schedule joint(steps: 4) }}"
    );
    let checked = without_errors(checked(&text));
    let recipe = &checked.studies[0].arms[0].recipe;
    assert_eq!(recipe.training.loss.terms[0], (0.7, LossTerm::Kl { teacher: "big".into(), temperature: 2.0 }));
    assert!((recipe.training.loss.terms[1].0 - 0.3).abs() < 1e-12 && recipe.training.loss.terms.len() == 2);
    assert_eq!((recipe.model.embedding, recipe.model.head), (Embedding::Tied, Embedding::Tied));
    let teacher = recipe.teachers.first().expect("a teacher");
    let TeacherSource::Trained { model, steps, .. } = &teacher.source else { panic!("trained") };
    assert_eq!((model.layers, model.width, *steps), (6, 16, 30));
    assert_eq!(model.ffn, xrun::study::Ffn::SwiGlu { width: 32 });
    assert_eq!(model.wiring.layers.len(), 6);
}

#[test]
fn placements_become_equations() {
    let study = study(
        "data tales, model tiny, training plain, schedule joint(steps: 4)
         vary placement over deepnorm, deepnorm(alpha: L + layers), mix_ln",
    );
    let [deepnorm, other, mix] = study.arms.as_slice() else { panic!("three arms") };
    assert_eq!(other.name, "[deepnorm(alpha: L + layers)]");
    let placement = &deepnorm.recipe.model.wiring.placements[0];
    let Body::Sublayers { attention, ffn } = &placement.body else { panic!("sublayers") };
    assert_ne!(attention, ffn);
    let Stream::Norm { slot: 0, input } = &attention.otherwise.result else { panic!("a norm") };
    let Stream::Add(left, _) = &**input else { panic!("a sum") };
    let Stream::Scale { factor, .. } = &**left else { panic!("a factor") };
    let twice = Scalar::Multiply(Box::new(Scalar::Number(2.0)), Box::new(Scalar::Depth));
    assert_eq!(*factor, Scalar::Power(Box::new(twice), Box::new(Scalar::Number(0.25))));
    assert_eq!(placement.init[0].weights.len(), 4);
    let Body::Sublayers { attention, .. } = &mix.recipe.model.wiring.placements[0].body else { panic!("sublayers") };
    assert_eq!(attention.cases.len(), 1);
}

#[test]
fn a_model_may_wire_its_layers_differently() {
    let study = study(
        "data tales, training plain, schedule joint(steps: 4)
         model tiny with { placement post in layers 1..1, pre in layers 2..4 }
         control split: [] with { placement attention: pre, ffn: post }",
    );
    assert_eq!(study.arms[0].recipe.model.wiring.layers, [(0, 0), (1, 1), (1, 1), (1, 1)]);
    assert_eq!(study.arms[1].recipe.model.wiring.layers, [(0, 1); 4]);
}

#[test]
fn schedules_count_blocks_in_layers_of_their_model() {
    let text = format!(
        "{PARTS}
         schedule staged(n: 5) {{
           start with 1 block
           at step n: grow block copying layers 1..2 at bottom, freeze embedding, head
           after 2 * n: thaw all, rewarm lr over n steps, set batch 8 sequences, save \"middle\"
           end after n
         }}
         study s {{ data tales, model tiny, training plain, schedule staged(n: 4 steps) }}"
    );
    let checked = without_errors(checked(&text));
    let schedule = &checked.studies[0].arms[0].recipe.schedule;
    let grow = Action::Grow { layers: 2, at: Insert::Bottom, from: GrowFrom::CopyLayers { first: 1, last: 2 } };
    assert_eq!(schedule.events[0].actions[0], grow);
    assert_eq!(schedule.events[0].actions[1..], [Layers::Embedding, Layers::Head].map(Action::Freeze));
    assert_eq!(schedule.events[1].moment, xrun::study::Moment::After(8));
    assert_eq!(schedule.events[1].actions[1], Action::RewarmLr { steps: 4 });
}

#[test]
fn every_default_is_listed_with_a_reason() {
    let checked = without_errors(checked(
        "data tales { generate tales(documents: 100), context 16 tokens }
         model tiny { layers 2, width 8, heads 2, ffn swiglu(16), norm rms, positions rope }
         training plain { loss kl, optimizer adamw(lr: 1e-3, decay: 0.1), lr wsd, batch 4 }
         teacher big { checkpoint \"folder\" }
         schedule all { start with all blocks, end at step 4 }
         study s { data tales, model tiny, training plain, schedule all, probe boundary_rms at end }",
    ));
    let defaults = &checked.studies[0].defaults;
    for filled in defaults {
        assert!(!filled.reason.is_empty() && !filled.value.is_empty(), "{filled:?}");
    }
    let listed: Vec<String> =
        defaults.iter().map(|filled| format!("{}: {} = {}", filled.owner, filled.field, filled.value)).collect();
    insta::assert_snapshot!(listed.join("\n"));
    assert_eq!(checked.studies[0].arms[0].recipe.model.vocabulary, Vocabulary::OfTokenizer);
}

#[test]
fn files_beside_are_used_and_rings_are_not() {
    let mut world = Memory::default();
    let shared = "use \"more.exp\" (base)\nlet size = 2 * base\nmodel tiny { layers 2, width size, heads 2, ffn swiglu(16) }";
    world.0.insert("shared.exp".into(), shared.into());
    world.0.insert("more.exp".into(), "let base = 8".into());
    let text = "use \"./shared.exp\" (tiny, size)\nlet other = size + 1\nmodel big = tiny with { width 2 * size }";
    let checked = without_errors(check(&world, Source::new("study.exp", text)));
    assert!(checked.problems.is_empty());
    world.0.insert("more.exp".into(), "use \"shared.exp\" (size)\nlet base = 8".into());
    let ring = check(&world, Source::new("study.exp", text));
    let said: Vec<_> = ring.problems.sorted().into_iter().map(|said| (said.code, ring.sources.text(said.span))).collect();
    assert_eq!(said, [("cycle", "\"shared.exp\"")]);
}

#[test]
fn chains_of_names_end() {
    // Doubling at each link, and deeper than a stack.
    let doubling: String = (1..60).map(|n| format!("let a{n} = a{} + a{}\n", n - 1, n - 1)).collect();
    let chain: String = (1..5_000).map(|n| format!("let b{n} = b{} + 1\n", n - 1)).collect();
    let derived: String = (1..5_000).map(|n| format!("data d{n} = d{} with {{ holdout 1% }}\n", n - 1)).collect();
    let data = "data d0 { generate tales(documents: 9), context 16 tokens }\n";
    let checked = checked(&format!("let a0 = 1\n{doubling}let b0 = 1\n{chain}{data}{derived}"));
    assert!(checked.problems.sorted().iter().all(|said| ["too-deep", "too-many-faults"].contains(&said.code)));
    assert!(checked.problems.has_errors());
}

#[test]
fn what_was_written_where_can_be_told() {
    let text = format!(
        "{PARTS}study s {{ data tales, model tiny, training plain, schedule joint(steps: 4)
         vary training.optimizer.lr over 1e-3, 1e-4 }}"
    );
    let checked = without_errors(xrun::check::traced(&Memory::default(), Source::new("study.exp", text.as_str())));
    let of = |path: &str| checked.origins.iter().filter(|origin| origin.path == path).collect::<Vec<_>>();
    let width = of("model.width");
    assert!(matches!(width[0].origin, Origin::Written(span, _) if checked.sources.text(span) == "8"));
    let rates: Vec<_> = of("training.optimizer.lr").iter().map(|one| (one.arms.clone(), one.value.clone())).collect();
    let axis = |value: &str| (Some(format!("lr = {value}")), value.to_owned());
    assert_eq!(rates, [axis("1e-3"), axis("1e-4")]);
    assert!(matches!(&of("training.lr")[0].origin, Origin::Default(reason) if !reason.is_empty()));
}

#[test]
fn every_way_to_write_a_number_gives_the_same() {
    let rate = |written: &str| {
        let study =
            study(&format!("data tales, model tiny, training plain with {{ optimizer.lr {written} }}, schedule joint(steps: 4)"));
        study.arms[0].recipe.training.optimizer
    };
    let (small, whole) = (rate("2e-5"), rate("1_200"));
    for written in ["2.0e-5", "2E-5", ".2e-4", "0.2E-04", "0.00002", "20e-6", "0.002%", "2k * 1e-8", "(2e-5)", "2 / 1e5"] {
        assert_eq!(rate(written), small, "{written}");
    }
    for written in ["1200", "1.2k", "1.2e3", "12E+2", "1200.0", "0.0012M", "12 * 100", "120_000%"] {
        assert_eq!(rate(written), whole, "{written}");
    }
}

#[test]
fn what_is_given_twice_shows_both_places() {
    for (text, first, second) in [
        ("model m { width 8, layers 2, width 16 }", "width", "width"),
        ("data d { context 8, generate tales(9), files \"a.txt\" }", "generate", "files"),
        ("data d { context 8, packed, generate tales(9), padded }", "packed", "padded"),
        ("placement p { sublayer x + f(x), layer x + attention(x) + ffn(x) }", "sublayer", "layer"),
        ("model twin { layers 2 }\nmodel twin { layers 3 }", "twin", "twin"),
        ("let a = 1\nlet a = 2", "a", "a"),
        ("training t { optimizer adamw(lr: 1, lr: 2) }", "lr", "lr"),
    ] {
        let checked = checked(text);
        let said = checked.problems.sorted().into_iter().find(|said| ["given-twice", "excluding-fields"].contains(&said.code));
        let said = said.unwrap_or_else(|| panic!("{text}: {}", checked.problems.render(&checked.sources, false)));
        let [label] = said.labels.as_slice() else { panic!("{text}: {said:?}") };
        assert_eq!((checked.sources.text(label.span), checked.sources.text(said.span)), (first, second), "{text}");
        assert!(label.span.start < said.span.start, "{text}");
    }
}

#[test]
fn a_hundred_faults_are_a_hundred_diagnostics() {
    let text: String = (0..100).map(|at| format!("schedule s{at} {{ start with 1 blok, end at step {at} }}\n")).collect();
    assert_eq!(checked(&text).problems.sorted().iter().filter(|said| said.code == "unknown-unit").count(), 100);
}

#[test]
fn ten_thousand_arms_take_no_time() {
    let hundred = |scale: f64| (1..=100).map(|n| format!("{}", f64::from(n) * scale)).collect::<Vec<_>>().join(", ");
    let study = study(&format!(
        "data tales, model tiny, training plain, schedule joint(steps: 4)
         vary training.optimizer.lr over {}\n vary clip over {}",
        hundred(1e-3),
        hundred(0.5)
    ));
    assert_eq!(study.arms.len(), 10_000);
}

/// Words of the language: keywords and fields; values; actions; units and what joins words; arguments and functions.
const WORDS: &str = "
data model teacher training placement schedule study use let files generate document tokenizer context packed padded tokens shard
holdout layers block width heads kv dim ffn norm qk_norm positions embedding head init vocabulary train checkpoint cache loss optimizer
lr batch clip precision entry sublayer layer boundary exit start at after every end vary except seeds control measure probe claim report
tales bytes line field swiglu gelu rms rope normal frozen adamw sgd lion muon yes cross_entropy kl reverse_kl jsd mse dyt cosine linear wsd none all on no ablation
validation_ce perplexity grad_norm boundary_rms block_removal active_layer_tokens flops
grow freeze thaw reset restart rewarm rewind fresh set drop save copying last prefix norms interleaved identity bottom middle
steps step token documents sequence sequences blocks with warmup then to per over matched within overtakes times and of in the as when
otherwise
seed eps betas momentum nesterov decay decay_on base bias temperature rows columns attention gain learned stop sqrt min max";

/// Words of a text outside of comments and quoted texts, with their places.
fn words_of(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split("//").next().unwrap_or("");
        let mut at = 0;
        for (number, piece) in code.split('"').enumerate() {
            let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let mut inside = 0;
            for word in piece.split(|c| !letters(c)) {
                if number % 2 == 0 && word.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    found.push((start + at + inside, word));
                }
                inside += word.len() + 1;
            }
            at += piece.len() + 1;
        }
        start += line.len();
    }
    found
}

/// A word with one letter changed, left out, put in or exchanged with the next.
fn misspelt(word: &str, choice: usize, mut below: impl FnMut(usize) -> usize) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = below(letters.len());
    let letter = char::from(b'a' + below(26) as u8);
    match choice {
        0 => letters[at] = letter,
        1 if letters.len() > 2 => drop(letters.remove(at)),
        2 if letters.len() > 1 => {
            let at = at.min(letters.len() - 2);
            letters.swap(at, at + 1);
        }
        _ => letters.insert(at, letter),
    }
    letters.into_iter().collect()
}

/// What goes wrong when words of a right text are misspelt, so many of them, one at a time.
fn ill_told(text: &str, rounds: usize, below: &mut impl FnMut(usize) -> usize) -> Vec<String> {
    let known: Vec<&str> = WORDS.split_whitespace().collect();
    let all = words_of(text);
    let words: Vec<(usize, &str)> = all.iter().copied().filter(|(_, word)| known.contains(word)).collect();
    let (mut faults, mut tried) = (Vec::new(), 0);
    while tried < rounds {
        let (at, word) = words[below(words.len())];
        let wrong = misspelt(word, below(4), &mut *below);
        // Another word of the text or of the language may well be meant.
        if known.contains(&wrong.as_str()) || all.iter().any(|(_, other)| *other == wrong) {
            continue;
        }
        tried += 1;
        let changed = format!("{}{wrong}{}", &text[..at], &text[at + word.len()..]);
        let checked = checked(&changed);
        let said = checked.problems.sorted();
        let errors: Vec<&&Diagnostic> = said.iter().filter(|said| said.severity == Severity::Error).collect();
        let line = changed[..at].matches('\n').count() + 1;
        let is_told = |said: &Diagnostic| {
            let place = checked.sources.get(said.span.file).place(said.span.start);
            place.line == line && said.hints.iter().any(|hint| hint.contains(&format!("`{word}`")))
        };
        if !matches!(errors.as_slice(), [one] if is_told(one)) {
            let line = changed[at..].split('\n').next().unwrap_or("");
            let start = changed[..at].rfind('\n').map_or(0, |end| end + 1);
            faults.push(format!(
                "{word} → {wrong}: {}{line}\n{}",
                &changed[start..at],
                checked.problems.render(&checked.sources, false)
            ));
        }
    }
    faults
}

#[test]
fn one_wrong_letter_is_said_once_and_the_word_is_suggested() {
    let mut texts = cases::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/check/ok"), "exp");
    assert!(!texts.is_empty());
    if let Ok(other) = std::env::var("XRUN_SUITE") {
        texts.extend(cases::files(&Path::new(&other).join("ok"), "exp"));
    }
    let mut state = 7u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    };
    let rounds = std::env::var("XRUN_FUZZ").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let mut faults = Vec::new();
    for path in texts {
        let text = std::fs::read_to_string(&path).expect("a readable case");
        faults.extend(ill_told(&text, rounds, &mut below).into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(faults.is_empty(), "{} words, {rounds} were tried in each text\n{}", faults.len(), faults.join("\n"));
}
