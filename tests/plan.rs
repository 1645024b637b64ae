//! Plans of a small study: what is shared, what changes a key, what it costs.

#[path = "plan/events.rs"]
mod events;
#[path = "plan/full_scale.rs"]
mod full_scale;
#[path = "plan/paper.rs"]
mod paper;
#[path = "plan/small.rs"]
mod small;
#[path = "plan/teachers.rs"]
mod teachers;

use std::collections::BTreeSet;
use std::sync::Arc;

use small::{facts, grow, joint, study};
use xrun::check::arms;
use xrun::plan::node::Work;
use xrun::plan::{Key, Plan, PlanError, PlannedRun, Why, build};
use xrun::study::training::{Floor, RateShape, Shape};
use xrun::study::{Data, Matched, Model, Norm, NormKind, Optimizer, Quantity, Study, Training};

fn plan(study: &Study) -> Plan {
    build(study, &facts(&study.arms[0].recipe.data)).expect("a plan")
}

fn run<'a>(plan: &'a Plan, name: &str, seed: u64) -> &'a PlannedRun {
    plan.runs.iter().find(|run| run.name == name && run.seed == seed).expect("a run")
}

#[test]
fn too_few_seeds_are_told_before_anything_is_trained() {
    use xrun::study::{ArmSet, Claim, Linear, Metric, Relation, Term};
    let mut study = study();
    let side = |arm| Linear {
        terms: vec![(1.0, Term { metric: Metric::ValidationCe, arms: ArmSet { text: String::new(), arms: vec![arm] } })],
        constant: 0.0,
    };
    let claim = |relation| Claim {
        name: "c".to_owned(),
        doc: None,
        text: String::new(),
        at_step: None,
        relation,
        left: side(0),
        right: side(1),
    };
    study.claims = vec![claim(Relation::Less)];
    let said = |study: &Study, words: &str| plan(study).warnings.iter().any(|warning| warning.contains(words));
    study.seeds = vec![0];
    assert!(said(
        &study,
        "one seed decides no claim, whatever comes out: 2 seeds give an interval, 5 decide a difference of 1.2"
    ));
    study.seeds = vec![0, 1];
    assert!(said(&study, "2 seeds decide a claim only where the difference is 9.0 of its standard deviations"));
    study.seeds = vec![0, 1, 2];
    assert!(!said(&study, "seed"));
}

fn keys(plan: &Plan) -> BTreeSet<Key> {
    plan.nodes().into_iter().map(|node| node.key.clone()).collect()
}

#[test]
fn the_first_phase_of_grow_serves_grow_frozen_and_nobody_else() {
    let plan = plan(&study());
    let phases = |name: &str, seed| run(&plan, name, seed).phases.clone();
    for name in ["pre", "post"] {
        let (grown, frozen) = (phases(&format!("[{name}, grow]"), 0), phases(&format!("[{name}, grow_frozen]"), 0));
        assert_eq!((grown.len(), frozen.len()), (3, 3));
        assert_eq!(grown[0], frozen[0]);
        assert_ne!(grown[1], frozen[1]);
        assert_ne!(grown[0], phases(&format!("[{name}, grow]"), 1)[0]);
        assert_ne!(grown[0], phases(&format!("[{name}, joint]"), 0)[0]);
    }
    assert_ne!(phases("[pre, grow]", 0)[0], phases("[post, grow]", 0)[0]);
    // Per placement and seed: 1 joint, 1 shared, 2 of grow, 2 of grow_frozen, probes at their ends; per seed one control with a probe.
    let count = |kind| plan.nodes().iter().filter(|node| node.work.kind() == kind).count();
    assert_eq!((count("corpus"), count("phase"), count("probe")), (1, 4 * 6 + 2, 4 * 6 + 2));
    assert_eq!(plan.totals.steps_planned, 4 * 6 * 20 + 2 * 40);
    assert_eq!(plan.totals.steps_if_unshared, 4 * 7 * 20 + 2 * 40);
    assert!(plan.totals.flops_planned < plan.totals.flops_if_unshared);
    assert_eq!(plan.runnable(), Ok(()));
    assert_eq!(plan.warnings, Vec::<String>::new());
}

#[test]
fn nodes_follow_what_they_need_and_arms_have_theirs() {
    let plan = plan(&study());
    let mut seen = BTreeSet::new();
    for node in plan.nodes() {
        assert!(node.needs.iter().all(|need| seen.contains(need)), "{}", node.label);
        seen.insert(node.key.clone());
    }
    let own = plan.nodes_of_arms(&arms(&plan.study, "[post, grow]").expect("an arm"));
    assert_eq!(own.len(), 1 + 2 * (3 + 3));
    assert!(own.iter().all(|node| node.needs.iter().all(|need| own.iter().any(|other| other.key == *need))));
    let all: Vec<usize> = (0..plan.study.arms.len()).collect();
    assert_eq!(plan.nodes_of_arms(&all).len(), plan.nodes().len());
    assert!(plan.nodes_of_arms(&[]).is_empty());
}

#[test]
fn a_segment_is_measured_at_both_ends() {
    let plan = plan(&study());
    let second = plan.node(&run(&plan, "[pre, grow]", 0).phases[1]).expect("a node");
    let Work::Phase(phase) = &second.work else { panic!("a phase") };
    assert_eq!(phase.measures[0].1, [20, 24, 32, 40]);
    assert_eq!(run(&plan, "[pre, grow]", 0).probes.iter().map(|(_, step, _)| *step).collect::<Vec<_>>(), [20, 40, 60]);
}

/// Placements that differ in their norms alone are one where norms are nothing.
#[test]
fn without_norms_pre_and_post_are_the_same_work() {
    let mut bare = study();
    for arm in &mut bare.arms {
        let model = Model { norm: Norm { kind: NormKind::None, eps: 0.0 }, qk_norm: false, ..(*arm.recipe.model).clone() };
        arm.recipe.model = Arc::new(model);
    }
    let plan = plan(&bare);
    assert_eq!(run(&plan, "[pre, grow]", 0).phases, run(&plan, "[post, grow]", 0).phases);
    let (pre, post) = (run(&plan, "[pre, joint]", 0), run(&plan, "[post, joint]", 1));
    assert_ne!(pre.phases, post.phases);
}

#[test]
fn names_and_texts_are_in_no_key() {
    let mut renamed = study();
    renamed.name = "other".into();
    renamed.doc = None;
    for arm in &mut renamed.arms {
        arm.name.push('!');
        let recipe = &mut arm.recipe;
        recipe.data = Arc::new(Data { name: "d".into(), doc: Some("d".into()), ..(*recipe.data).clone() });
        recipe.model = Arc::new(Model { name: "m".into(), doc: Some("m".into()), ..(*recipe.model).clone() });
        recipe.training = Arc::new(Training { name: "t".into(), doc: Some("t".into()), ..(*recipe.training).clone() });
    }
    assert_eq!(keys(&plan(&renamed)), keys(&plan(&study())));
}

#[test]
fn a_learning_rate_changes_the_phases_that_train_under_it() {
    let before = plan(&study());
    let mut edited = study();
    let training = &mut edited.arms[1].recipe.training;
    let optimizer = training.optimizer.with_lr(2e-3);
    *training = Arc::new(Training { optimizer, ..(**training).clone() });
    let after = plan(&edited);
    let changed: Vec<_> = (0..before.runs.len()).filter(|at| before.runs[*at].nodes != after.runs[*at].nodes).collect();
    assert_eq!(changed, [2, 3], "[pre, grow] under both seeds");
    assert_eq!(before.runs[2].nodes[0], after.runs[2].nodes[0], "the corpus");
    assert!((0..3).all(|phase| before.runs[2].phases[phase] != after.runs[2].phases[phase]));
    // `set lr` from the second event on leaves the first two phases alone.
    let mut later = grow(20, false);
    let event = later.events.remove(0);
    let at = |step, extra: Option<xrun::study::Action>| xrun::study::EventSpec {
        moment: xrun::study::Moment::Step(step),
        actions: event.actions.iter().cloned().chain(extra).collect(),
    };
    later.events = vec![at(20, None), at(40, Some(xrun::study::Action::SetLr(1e-4)))];
    let mut edited = study();
    edited.arms[1].recipe.schedule = Arc::new(later);
    let after = plan(&edited);
    let same = |phase: usize| before.runs[2].phases[phase] == after.runs[2].phases[phase];
    assert_eq!([same(0), same(1), same(2)], [true, true, false]);
}

/// Only what comes after it, and nothing where it is the data's own; tokens are exact and the holdout is as it was.
#[test]
fn a_context_that_is_set_changes_what_comes_after_it() {
    let with = |context: Option<usize>| {
        let mut later = grow(20, false);
        let event = later.events.remove(0);
        let at = |step, set: Option<usize>| xrun::study::EventSpec {
            moment: xrun::study::Moment::Step(step),
            actions: event.actions.iter().cloned().chain(set.map(xrun::study::Action::SetContext)).collect(),
        };
        later.events = vec![at(20, None), at(40, context)];
        let mut edited = study();
        edited.arms[1].recipe.schedule = Arc::new(later);
        plan(&edited)
    };
    let own = study().arms[0].recipe.data.context;
    let (before, after) = (plan(&study()), with(Some(own / 2)));
    let same = |phase: usize| before.runs[2].phases[phase] == after.runs[2].phases[phase];
    assert_eq!([same(0), same(1), same(2)], [true, true, false]);
    assert_eq!(with(Some(own)).runs[2].phases, before.runs[2].phases);
    let tokens =
        |plan: &Plan| [0, 1, 2].map(|phase| plan.cost(&plan.runs[2].phases[phase]).expect("a cost").tokens.expect("known"));
    let [first, second, third] = tokens(&before);
    assert_eq!(tokens(&after), [first, second, third / 2]);
    let text = xrun::plan::text::text(&after, &|_| Why::New, false);
    assert!(text.contains(&format!("set context {} tokens", own / 2)), "{text}");
    let text = ron::to_string(&after).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), after);
    // Longer than the corpus: there is nothing to read.
    let mut edited = study();
    let mut long = joint(20);
    let event =
        xrun::study::EventSpec { moment: xrun::study::Moment::Step(5), actions: vec![xrun::study::Action::SetContext(1 << 20)] };
    long.events = vec![event];
    edited.arms[0].recipe.schedule = Arc::new(long);
    let error = build(&edited, &facts(&edited.arms[0].recipe.data)).expect_err("no sequence");
    assert!(error.to_string().ends_with("has not one sequence of 1048576 tokens"), "{error}");
}

#[test]
fn a_depth_that_is_not_reached_yet_is_in_no_key() {
    let mut deeper = study();
    let model = &mut deeper.arms[1].recipe.model;
    let wiring = xrun::study::placement::Wiring { layers: vec![(0, 0); 4], ..model.wiring.clone() };
    *model = Arc::new(Model { layers: 4, wiring, ..(**model).clone() });
    let (before, after) = (plan(&study()), plan(&deeper));
    let (before, after) = (&run(&before, "[pre, grow]", 0).phases, &run(&after, "[pre, grow]", 0).phases);
    assert_eq!(before[..], after[..3]);
    assert_eq!(after.len(), 4);
}

#[test]
fn a_control_is_as_long_as_what_it_is_matched_to_is_dear() {
    let plan = plan(&study());
    let (long, grown) = (run(&plan, "long", 1), run(&plan, "[post, grow]", 1));
    assert_eq!((long.steps, grown.steps), (40, 60));
    assert_eq!(long.active_layer_tokens, grown.active_layer_tokens);
    assert_eq!(grown.tokens, Some(60 * 16));
    let mismatch = long.mismatch.as_ref().expect("a match");
    assert_eq!((mismatch.end, mismatch.relative, mismatch.to.as_str()), (40, 0.0, "[post, grow]"));
    // The same shard is read again in every phase.
    assert_eq!((grown.unique_tokens, long.unique_tokens), (Some(160), Some(160)));

    let mut circular = study();
    circular.arms[6].control.as_mut().expect("a control").matched = Some(Matched { to: 6, on: Quantity::Flops });
    let facts = facts(&circular.arms[0].recipe.data);
    assert_eq!(build(&circular, &facts), Err(PlanError::Circle("long".into())));
}

#[test]
fn a_plan_survives_a_file_and_a_damaged_one_is_refused() {
    let plan = plan(&study());
    let text = ron::to_string(&plan).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), plan);
    let key = plan.runs[0].phases[0].to_string();
    let damaged = text.replacen(&key, &"0".repeat(32), 1);
    assert!(ron::from_str::<Plan>(&damaged).is_err());
    // A phase under the key of another would end up in the store as the other's result.
    let forged = text.replacen("seed:1,corpus", "seed:7,corpus", 1);
    assert_ne!(forged, text);
    let error = ron::from_str::<Plan>(&forged).expect_err("a forged node").to_string();
    assert!(error.contains("is not that of phase 0 of [pre, joint], seed 1"), "{error}");
}

#[test]
fn json_has_an_entry_for_each_run_and_counts_what_is_cached() {
    let plan = plan(&study());
    let done = plan.runs[0].phases[0].clone();
    let why = |node: &xrun::plan::Node| if node.key == done { Why::Done } else { Why::New };
    let json = serde_json::to_value(xrun::plan::json::json(&plan, &why)).expect("JSON");
    assert_eq!((&json["schema"], &json["study"]), (&"xrun.plan/1".into(), &"small".into()));
    assert_eq!(json["arms"].as_array().map(Vec::len), Some(14));
    assert_eq!((&json["totals"]["nodes_cached"], &json["totals"]["steps_cached"]), (&1.into(), &20.into()));
    let nodes = json["nodes"].as_array().expect("nodes");
    let shared = nodes.iter().find(|node| node["key"] == run(&plan, "[pre, grow]", 0).phases[0].0).expect("a node");
    assert_eq!(shared["arms"], serde_json::json!(["[pre, grow]", "[pre, grow_frozen]"]));
    assert_eq!((&shared["first_step"], &shared["last_step"], &shared["active_layers"]), (&0.into(), &20.into(), &1.into()));
}

#[test]
fn every_number_of_an_optimizer_is_in_its_phases_keys() {
    let (lr, betas, eps, decay, decay_all) = (1e-3, (0.9, 0.99), 1e-8, 0.1, false);
    let (momentum, nesterov) = (0.9, false);
    let optimizers = [
        Optimizer::AdamW { lr, betas, eps, decay, decay_all },
        Optimizer::Sgd { lr, momentum, nesterov, decay, decay_all },
        Optimizer::Sgd { lr, momentum: 0.8, nesterov, decay, decay_all },
        Optimizer::Sgd { lr, momentum, nesterov: true, decay, decay_all },
        Optimizer::Sgd { lr, momentum, nesterov, decay: 0.2, decay_all },
        Optimizer::Sgd { lr, momentum, nesterov, decay, decay_all: true },
        Optimizer::Lion { lr, betas, decay, decay_all },
        Optimizer::Lion { lr, betas: (0.9, 0.98), decay, decay_all },
        Optimizer::Muon { lr, momentum, nesterov, betas, eps, decay, decay_all },
        Optimizer::Muon { lr, momentum: 0.8, nesterov, betas, eps, decay, decay_all },
        Optimizer::Muon { lr, momentum, nesterov, betas: (0.8, 0.99), eps, decay, decay_all },
        Optimizer::Muon { lr, momentum, nesterov, betas, eps: 1e-6, decay, decay_all },
    ];
    let keys = optimizers.map(|optimizer| {
        let mut study = study();
        let training = &mut study.arms[0].recipe.training;
        *training = Arc::new(Training { optimizer, ..(**training).clone() });
        plan(&study).runs[0].phases[0].clone()
    });
    let different: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
}

#[test]
fn ten_thousand_arms_are_planned_in_no_time() {
    let mut large = study();
    large.probes.clear();
    large.seeds = vec![0];
    let cell = large.arms[1].clone();
    let arms = (0..10_000).map(|number| {
        let mut arm = cell.clone();
        arm.name = format!("[{number}]");
        let lr = 1e-5 * f64::from(number + 1);
        let optimizer = Optimizer::AdamW { lr, betas: (0.9, 0.95), eps: 1e-8, decay: 0.1, decay_all: false };
        arm.recipe.training = Arc::new(Training { optimizer, ..(*arm.recipe.training).clone() });
        // As a checker would: nothing is shared.
        arm.recipe.model = Arc::new((*arm.recipe.model).clone());
        arm
    });
    large.arms = arms.collect();
    let began = std::time::Instant::now();
    let plan = plan(&large);
    assert_eq!(plan.totals.nodes, 30_001);
    // Seconds in an optimised build; this one is not, and other tests run beside it.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn text_tells_arms_sharing_and_sums() {
    let plan = plan(&study());
    let text = xrun::plan::text::text(&plan, &|_| Why::New, false);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    for words in [
        "study small",
        "phase 0 shared by [pre, grow], [pre, grow_frozen]",
        "12 % saved by sharing",
        "grow 1 layer at top from init",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn drawings_have_every_node_and_keep_names_inside_their_labels() {
    let mut hostile = study();
    hostile.arms[0].name = "[\"]; x -> y\\\n<script>]".into();
    let plan = plan(&hostile);
    let (dot, mermaid) = (xrun::plan::dot::dot(&plan), xrun::plan::mermaid::mermaid(&plan));
    let edges: usize = plan.nodes().iter().map(|node| node.needs.len()).sum();
    assert_eq!(dot.lines().count(), 4 + plan.nodes().len() + edges);
    assert_eq!(mermaid.lines().count(), 2 + plan.nodes().len() + edges);
    assert!(dot.contains(r#"phase 0 of [\"]; x -> y\\\n<script>]"#) && !mermaid.contains("<script>"));
}

#[test]
fn layers_that_cannot_arrive_as_identity_are_warned_of() {
    let mut study = study();
    for at in [1, 4] {
        let recipe = &mut study.arms[at].recipe;
        let mut schedule = (*recipe.schedule).clone();
        let event = &mut schedule.events[0];
        event.actions[0] = xrun::study::Action::Grow {
            layers: 1,
            at: xrun::study::schedule::Insert::Top,
            from: xrun::study::schedule::GrowFrom::Identity,
        };
        recipe.schedule = Arc::new(schedule);
    }
    let said = plan(&study).warnings;
    let of = |name: &str| said.iter().filter(|warning| warning.starts_with(name) && warning.contains("as identity")).count();
    assert_eq!((of("[pre, grow]"), of("[post, grow]")), (0, 2), "{said:?}");
}

/// A cosine knows its end: of two lengths, not even the first steps are shared. A constant rate does not.
#[test]
fn what_is_shared_is_what_trains_alike() {
    let probed = |shape: Shape| {
        let mut study = study();
        let rate = RateShape { shape, ..study.arms[0].recipe.training.rate };
        let training = Arc::new(Training { rate, ..(*study.arms[0].recipe.training).clone() });
        study.arms.truncate(2);
        for (arm, steps) in study.arms.iter_mut().zip([20, 40]) {
            (arm.name, arm.recipe.schedule) = (format!("{steps}"), Arc::new(joint(steps)));
            arm.recipe.training = Arc::clone(&training);
        }
        study.probes[0].moments = vec![xrun::study::ProbeMoment::Step(20)];
        let plan = plan(&study);
        let [short, long] = ["20", "40"].map(|name| run(&plan, name, 0).phases.clone());
        assert_eq!((short.len(), long.len()), (1, 2));
        short[0] == long[0]
    };
    assert!(!probed(Shape::Cosine { to: Floor::OfPeak(0.01) }));
    assert!(probed(Shape::Constant));
}

#[test]
fn a_model_that_lacks_tokens_of_its_data_is_refused() {
    let mut study = study();
    let model = &mut study.arms[0].recipe.model;
    *model = Arc::new(Model { vocabulary: xrun::study::Vocabulary::Size(256), ..(**model).clone() });
    let error = build(&study, &facts(&study.arms[0].recipe.data)).expect_err("257 are needed");
    assert_eq!(error.to_string(), "the model `student` has 256 token types, and `tales` has 257");
}

#[test]
fn a_difference_names_the_inputs_that_changed() {
    let before = plan(&study());
    let mut edited = study();
    edited.arms[1].recipe.schedule = Arc::new(grow(20, true));
    edited.arms[0].recipe.schedule = Arc::new(small::joint(24));
    edited.seeds = vec![0];
    let difference = xrun::plan::diff::diff(&plan(&edited), &before);
    let inputs = |label: &str| difference.changed.iter().find(|(of, ..)| of == label).map(|(.., inputs)| inputs.join(", "));
    assert_eq!(inputs("phase 0 of [pre, joint], seed 0").as_deref(), Some("learning rate, measured steps, steps"));
    assert_eq!(difference.changed.len(), 1);
    // The probe at the end is at another step: another label.
    assert_eq!(difference.added.len(), 1);
    assert!(difference.to_string().starts_with(&format!("{} nodes the same, 1 changed, 1 new, ", difference.same)));
    assert_eq!(xrun::plan::diff::diff(&before, &before).same, before.nodes().len());
}

#[test]
fn layers_that_are_frozen_and_dropped_leave_a_sound_plan() {
    use xrun::study::{Action, EventSpec, Layers, Moment};
    let mut edited = study();
    let mut schedule = small::joint(30);
    let at = |step, action| EventSpec { moment: Moment::Step(step), actions: vec![action] };
    let frozen = Action::Freeze(Layers::Range { first: 3, last: 3 });
    schedule.events = vec![at(10, frozen), at(20, Action::Drop { layers: 1 })];
    edited.arms[0].recipe.schedule = Arc::new(schedule);
    let plan = plan(&edited);
    let last = &run(&plan, "[pre, joint]", 0).timeline.segments[2];
    assert_eq!((last.depth(), last.frozen.layers.len()), (2, 0));
}
