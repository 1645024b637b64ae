//! Plans with teachers: trained here, cached, or a checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use xrun::budget::speaking::{resident, together};
use xrun::data::facts::Corpus;
use xrun::plan::node::Work;
use xrun::plan::{Key, Plan, Why, build};
use xrun::study::{
    Action, Cache, Data, Embedding, EventSpec, Layout, Loss, LossTerm, Measure, Metric, Model, Moment, Shard, Study, Teacher,
    TeacherSource, Tokenizer, Training, Vocabulary,
};

use super::plan;
use super::small::{facts, grow, model, study, training};

fn trained(cache: Cache) -> Teacher {
    let training = Arc::new(training());
    let source = TeacherSource::Trained { model: Arc::new(model(false)), training, steps: 30, teachers: vec![] };
    Teacher { name: "big".into(), doc: None, source, cache }
}

/// All arms learn from one teacher, with a KL.
fn taught(teacher: Teacher) -> Study {
    let mut study = study();
    let teacher = Arc::new(teacher);
    let kl = LossTerm::Kl { teacher: "big".into(), temperature: 2.0 };
    let loss = Loss { terms: vec![(0.5, LossTerm::CrossEntropy), (0.5, kl)] };
    let training = Arc::new(Training { loss, ..training() });
    for arm in &mut study.arms {
        (arm.recipe.teachers, arm.recipe.training) = (vec![Arc::clone(&teacher)], Arc::clone(&training));
    }
    study
}

fn count(plan: &Plan, kind: &str) -> usize {
    plan.nodes().iter().filter(|node| node.work.kind() == kind).count()
}

#[test]
fn one_teacher_serves_all_arms_and_seeds() {
    let plan = plan(&taught(trained(Cache::None)));
    assert_eq!((count(&plan, "teacher"), count(&plan, "teacher_logits")), (1, 0));
    assert!(plan.runs.iter().all(|run| run.teachers == plan.runs[0].teachers && run.teachers[0].1.is_some()));
    let teacher = plan.node(plan.runs[0].teachers[0].1.as_ref().expect("a teacher")).expect("a node");
    let Work::Teacher(phase) = &teacher.work else { panic!("a teacher") };
    assert_eq!((phase.seed, phase.measures.clone()), (0, vec![(Metric::ValidationCe, vec![0, 30])]));
    assert_eq!(phase.model.vocabulary, Vocabulary::Size(257));
    // It runs beside the student, and the student's own FLOPs are told apart.
    let student = plan.cost(&plan.runs[0].phases[0]).expect("a cost");
    assert!(student.flops_teacher > Some(0.0) && student.flops_teacher < student.flops_student_with_head);
    let own = plan.cost(&teacher.key).expect("a cost");
    assert_eq!((own.flops_student, own.steps), (Some(0.0), 30));
    assert!(plan.runs[0].flops_teacher > own.flops_teacher);
    assert_eq!(plan.totals.steps_planned, 30 + 560);
}

/// What a loss measures, its temperature and its β are in the key; the teacher is there by what it is, not by its name.
#[test]
fn losses_have_keys_of_their_own() {
    let of = |term: LossTerm| {
        let mut study = taught(trained(Cache::None));
        for arm in &mut study.arms {
            let training = &mut arm.recipe.training;
            *training = Arc::new(Training { loss: Loss { terms: vec![(1.0, term.clone())] }, ..(**training).clone() });
        }
        plan(&study).runs[0].phases[0].clone()
    };
    let (teacher, jsd) = ("big".to_owned(), |temperature, beta| LossTerm::Jsd { teacher: "big".into(), temperature, beta });
    let all = [
        LossTerm::Kl { teacher: teacher.clone(), temperature: 1.0 },
        LossTerm::ReverseKl { teacher: teacher.clone(), temperature: 1.0 },
        jsd(1.0, 0.5),
        jsd(1.0, 0.4),
        jsd(2.0, 0.5),
        LossTerm::Mse { teacher },
    ];
    let keys: BTreeSet<_> = all.map(of).into();
    assert_eq!(keys.len(), 6);
}

#[test]
fn a_cache_reaches_as_far_as_any_arm_reads_and_its_reach_changes_no_phase() {
    let near = taught(trained(Cache::Top(8)));
    let mut far = near.clone();
    let schedule = &mut far.arms[0].recipe.schedule;
    let mut longer = (**schedule).clone();
    longer.events.push(EventSpec { moment: Moment::Step(10), actions: vec![Action::FreshData] });
    *schedule = Arc::new(longer);
    let (near, far) = (plan(&near), plan(&far));
    let logits = |plan: &Plan| {
        let mut found = plan.nodes().into_iter().filter_map(|node| match &node.work {
            Work::TeacherLogits(logits) => Some((logits.shards, logits.temperature)),
            _ => None,
        });
        (found.next(), found.next())
    };
    assert_eq!((logits(&near), logits(&far)), ((Some((1, 2.0)), None), (Some((2, 2.0)), None)));
    assert_eq!(near.runs[2].phases, far.runs[2].phases);
    assert_ne!(near.runs[0].phases, far.runs[0].phases);
    assert_eq!(near.cost(&near.runs[0].phases[0]).expect("a cost").flops_teacher, Some(0.0));
    let text = xrun::plan::text::text(&near, &|_| Why::New, false);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "logits of big: the 8 most likely tokens, the rest as one outcome, at temperature 2, 1 shard and the holdout";
    assert!(said.contains(expected), "{text}");
}

/// A cache is known by teacher, tokens, windows, K and temperature, and by no name and no student.
#[test]
fn a_cache_is_known_by_what_is_in_it() {
    let key = |study: &Study, content: &str| {
        let mut facts = facts(&study.arms[0].recipe.data);
        for (_, corpus) in &mut facts.corpora {
            if let Corpus::Known(known) = corpus {
                known.content = content.to_owned();
            }
        }
        let plan = build(study, &facts).expect("a plan");
        let logits: Vec<_> = plan.nodes().into_iter().filter(|node| node.work.kind() == "teacher_logits").collect();
        assert_eq!(logits.len(), 1);
        logits[0].key.clone()
    };
    let windows = |change: fn(&mut Data)| {
        let mut study = taught(trained(Cache::Top(8)));
        let mut data = (*study.arms[0].recipe.data).clone();
        change(&mut data);
        let data = Arc::new(data);
        study.arms.iter_mut().for_each(|arm| arm.recipe.data = Arc::clone(&data));
        key(&study, "0123")
    };
    let of = |teacher: Teacher| key(&taught(teacher), "0123");
    let base = of(trained(Cache::Top(8)));
    let mut other = taught(trained(Cache::Top(8)));
    for arm in &mut other.arms {
        arm.recipe.model = Arc::new(Model { layers: 3, width: 12, head_dim: 6, ..(*arm.recipe.model).clone() });
    }
    assert_eq!(key(&other, "0123"), base);
    assert_eq!(windows(|data| data.name = "renamed".to_owned()), base);
    let others = [
        base,
        of(named("big", 31, Cache::Top(8), vec![])),
        key(&taught(trained(Cache::Top(8))), "4567"),
        windows(|data| data.tokenizer = Tokenizer::File("tokenizer.json".to_owned())),
        windows(|data| data.context = 4),
        windows(|data| data.layout = Layout::Padded),
        windows(|data| data.shard = Shard::Tokens(320)),
        of(trained(Cache::Top(7))),
        of(trained(Cache::All)),
        key(&taught_by(&[trained(Cache::Top(8))], &[1.0]), "0123"),
    ];
    assert_eq!(others.iter().collect::<BTreeSet<_>>().len(), others.len());
}

/// A teacher that runs beside takes memory beside; its cache takes what the teacher takes; and times are those of what has run.
#[test]
fn teachers_are_priced() {
    let memory = |plan: &Plan, key: &Key| plan.cost(key).expect("a cost").memory.expect("known");
    let online = plan(&taught(trained(Cache::None)));
    let cached = plan(&taught(trained(Cache::Top(8))));
    let teacher = online.runs[0].teachers[0].1.clone().expect("a teacher");
    let logits = cached.nodes().into_iter().find(|node| node.work.kind() == "teacher_logits").expect("a cache").key.clone();
    let Work::Teacher(phase) = &online.node(&teacher).expect("a node").work else { panic!("a teacher") };
    let alone = memory(&cached, &cached.runs[0].phases[0]);
    let beside = memory(&online, &online.runs[0].phases[0]) - alone;
    let tokens = |sequences: u64| sequences * 8;
    let recipe = &online.study.arms[0].recipe;
    assert_eq!(beside, resident(&phase.model, tokens(recipe.training.batch.micro.min(recipe.training.batch.sequences))));
    assert_eq!(memory(&cached, &logits), resident(&phase.model, tokens(together(8) as u64)));
    let cost = cached.cost(&logits).expect("a cost");
    assert_eq!((cost.seconds, cached.totals.seconds), (None, None));

    // One teacher has taken ten seconds: whatever trains goes at its speed, and so does its cache until a cache has been filled.
    let study = taught(trained(Cache::Top(8)));
    let with = |seconds: &[(&Key, f64)]| {
        let mut facts = facts(&study.arms[0].recipe.data);
        facts.seconds = seconds.iter().map(|(key, seconds)| (key.0.clone(), *seconds)).collect();
        build(&study, &facts).expect("a plan")
    };
    let seconds = |plan: &Plan, key: &Key| plan.cost(key).expect("a cost").seconds.expect("known");
    let flops = |key: &Key| cached.cost(key).expect("a cost").flops().expect("known");
    let near = |seen: f64, wanted: f64| assert!((seen / wanted - 1.0).abs() < 1e-12, "{seen} and {wanted}");
    let timed = with(&[(&teacher, 10.0)]);
    let phase = &timed.runs[0].phases[0];
    assert_eq!(seconds(&timed, &teacher), 10.0);
    near(seconds(&timed, phase), 10.0 * flops(phase) / flops(&teacher));
    near(seconds(&timed, &logits), 10.0 * flops(&logits) / flops(&teacher));
    assert!(timed.totals.seconds > Some(10.0));
    let timed = with(&[(&teacher, 10.0), (&logits, 3.0)]);
    assert_eq!(seconds(&timed, &logits), 3.0);
    near(seconds(&timed, phase), 10.0 * flops(phase) / flops(&teacher));
}

fn named(name: &str, steps: u64, cache: Cache, teachers: Vec<Arc<Teacher>>) -> Teacher {
    let terms = teachers.iter().map(|teacher| (1.0, LossTerm::Kl { teacher: teacher.name.clone(), temperature: 3.0 }));
    let terms: Vec<_> = terms.chain([(1.0, LossTerm::CrossEntropy)]).collect();
    let training = Arc::new(Training { loss: Loss { terms }, ..training() });
    let source = TeacherSource::Trained { model: Arc::new(model(false)), training, steps, teachers };
    Teacher { name: name.into(), source, ..trained(cache) }
}

/// All arms learn from teachers, with a KL to each.
fn taught_by(teachers: &[Teacher], temperatures: &[f64]) -> Study {
    let mut study = study();
    let kl = |teacher: &Teacher| {
        let kl = |temperature: &f64| (0.5, LossTerm::Kl { teacher: teacher.name.clone(), temperature: *temperature });
        temperatures.iter().map(kl).collect::<Vec<_>>()
    };
    let training = Arc::new(Training { loss: Loss { terms: teachers.iter().flat_map(kl).collect() }, ..training() });
    let teachers: Vec<_> = teachers.iter().cloned().map(Arc::new).collect();
    for arm in &mut study.arms {
        (arm.recipe.teachers, arm.recipe.training) = (teachers.clone(), Arc::clone(&training));
    }
    study
}

#[test]
fn several_teachers_are_all_in_the_key() {
    let [big, old, older] = [("big", 30), ("old", 40), ("old", 50)].map(|(name, steps)| named(name, steps, Cache::None, vec![]));
    let phase = |teachers: &[Teacher]| plan(&taught_by(teachers, &[2.0])).runs[0].phases[0].clone();
    let both = [big.clone(), old.clone()];
    let keys: BTreeSet<_> =
        [phase(&both), phase(&[big.clone(), older]), phase(&[old.clone(), big.clone()]), phase(std::slice::from_ref(&big))]
            .into();
    assert_eq!(keys.len(), 4);
    // A name says nothing.
    assert_eq!(phase(&[big.clone(), Teacher { name: "renamed".into(), ..old.clone() }]), phase(&both));
    let two = plan(&taught_by(&both, &[2.0]));
    assert_eq!((count(&two, "teacher"), two.runs[0].teachers.len()), (2, 2));
    let [one, two] =
        [plan(&taught_by(&[big], &[2.0])), two].map(|plan| plan.cost(&plan.runs[0].phases[0]).expect("a cost").flops_teacher);
    assert_eq!(two, one.map(|one| 2.0 * one));
}

#[test]
fn a_cache_is_kept_for_each_temperature() {
    let plan = plan(&taught_by(&[named("big", 30, Cache::Top(8), vec![])], &[1.0, 4.0]));
    let temperatures: Vec<f64> = plan
        .nodes()
        .into_iter()
        .filter_map(|node| match &node.work {
            Work::TeacherLogits(logits) => Some(logits.temperature),
            _ => None,
        })
        .collect();
    assert_eq!(temperatures, [1.0, 4.0]);
    let Work::Phase(phase) = &plan.node(&plan.runs[0].phases[0]).expect("a node").work else { panic!("a phase") };
    assert_eq!(phase.teachers[0].logits.iter().map(|(temperature, _)| *temperature).collect::<Vec<_>>(), [1.0, 4.0]);
    let text = ron::to_string(&plan).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), plan);
}

/// What a teacher learns from comes before it, is in its key, and reaches as far as anyone reads.
#[test]
fn a_teacher_that_learns_has_teachers_of_its_own() {
    let wise = |steps| Arc::new(named("wise", steps, Cache::Top(8), vec![]));
    let pupil = |steps| named("pupil", 20, Cache::None, vec![wise(steps)]);
    let study = taught_by(&[pupil(30), (*wise(30)).clone()], &[3.0]);
    let plan = plan(&study);
    let kinds: Vec<_> = plan.nodes().iter().map(|node| node.work.kind()).take(4).collect();
    assert_eq!(kinds, ["corpus", "teacher", "teacher_logits", "teacher"]);
    assert_eq!((count(&plan, "teacher"), count(&plan, "teacher_logits")), (2, 1));
    let labels: Vec<_> = plan.nodes().iter().map(|node| node.label.as_str()).take(4).collect();
    assert_eq!(labels[1..], ["teacher wise", "logits of wise", "teacher pupil"]);
    let run = &plan.runs[0];
    assert!(plan.nodes()[..4].iter().all(|node| run.nodes.contains(&node.key)));
    assert_eq!(run.nodes.iter().collect::<BTreeSet<_>>().len(), run.nodes.len());
    let other = super::plan(&taught_by(&[pupil(31)], &[3.0]));
    assert_ne!(other.runs[0].teachers[0], run.teachers[0]);
    // The arm that reads two shards decides how far the cache of both reaches.
    let mut far = study.clone();
    let mut longer = (*far.arms[0].recipe.schedule).clone();
    longer.events.push(EventSpec { moment: Moment::Step(10), actions: vec![Action::FreshData] });
    far.arms[0].recipe.schedule = Arc::new(longer);
    let far = super::plan(&far);
    assert_eq!(count(&far, "teacher_logits"), 1);
    assert_eq!(far.runs[2].phases, plan.runs[2].phases);
    let text = ron::to_string(&far).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), far);
}

/// Growth in three phases, the last two under a loss of their own.
fn turned(cache: Cache, temperature: f64) -> Study {
    let mut study = study();
    let mut later = grow(20, false);
    let actions = later.events.remove(0).actions;
    let kl = Loss { terms: vec![(1.0, LossTerm::Kl { teacher: "big".into(), temperature })] };
    let set = [actions.clone(), vec![Action::SetLoss(kl)]].concat();
    later.events = [(20, set), (40, actions)].map(|(step, actions)| EventSpec { moment: Moment::Step(step), actions }).into();
    let recipe = &mut study.arms[1].recipe;
    (recipe.schedule, recipe.teachers) = (Arc::new(later), vec![Arc::new(trained(cache))]);
    study
}

#[test]
fn a_loss_that_is_set_changes_what_comes_after_it() {
    let before = plan(&study());
    let after = plan(&turned(Cache::None, 2.0));
    let same = |phase: usize| before.runs[2].phases[phase] == after.runs[2].phases[phase];
    assert_eq!([same(0), same(1), same(2)], [true, false, false]);
    let phase = |plan: &Plan, number: usize| match &plan.node(&plan.runs[2].phases[number]).expect("a node").work {
        Work::Phase(phase) => (**phase).clone(),
        _ => panic!("a phase"),
    };
    assert_eq!([0, 1, 2].map(|number| !phase(&after, number).teachers.is_empty()), [false, true, true]);
    let teachers = |number: usize| after.cost(&after.runs[2].phases[number]).expect("a cost").flops_teacher > Some(0.0);
    assert_eq!([0, 1, 2].map(teachers), [false, true, true]);
    assert_ne!(after.runs[2].phases[1], plan(&turned(Cache::None, 1.0)).runs[2].phases[1]);
    // A cache is made for the temperature at which the teacher is heard.
    let cached = plan(&turned(Cache::Top(8), 2.0));
    assert_eq!(
        [0, 1].map(|number| phase(&cached, number).teachers.iter().any(|teacher| !teacher.logits.is_empty())),
        [false, true]
    );
    assert_eq!(count(&cached, "teacher_logits"), 1);
    // Where the KL is measured from the first step on, it is heard at two.
    let mut measured = turned(Cache::Top(8), 2.0);
    measured.measures.push(Measure { metric: Metric::Kl, every: 10 });
    assert_eq!(count(&plan(&measured), "teacher_logits"), 2);
    let text = xrun::plan::text::text(&after, &|_| Why::New, false);
    assert!(text.contains("rewind data, set loss kl(big, temperature: 2)"), "{text}");
    let differences = xrun::plan::diff::diff(&plan(&turned(Cache::None, 1.0)), &after).to_string();
    assert!(differences.contains("phase 1 of [pre, grow], seed 0: loss"), "{differences}");
    let text = ron::to_string(&cached).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), cached);
}

#[test]
fn a_checkpoint_that_is_not_at_hand_is_planned_and_not_run() {
    let source = TeacherSource::Checkpoint { folder: "Qwen3-8B-Base".into(), shape: None };
    let plan = plan(&taught(Teacher { source, ..trained(Cache::None) }));
    assert_eq!((count(&plan, "teacher"), plan.runs[0].teachers[0].1.clone(), plan.runs[0].flops_teacher), (0, None, None));
    let reason = plan.runnable().expect_err("cannot run");
    assert!(reason.starts_with("cannot run: the teacher `big`, the checkpoint"), "{reason}");
    assert!(plan.warnings.contains(&reason));
    let text = ron::to_string(&plan).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), plan);
}

#[test]
fn a_teacher_without_a_word_in_the_loss_gives_its_tensors_alone() {
    let mut study = study();
    for arm in &mut study.arms {
        arm.recipe.teachers = vec![Arc::new(trained(Cache::All))];
        let embedding = Embedding::Teacher { frozen: true };
        arm.recipe.model = Arc::new(Model { embedding, ..(*arm.recipe.model).clone() });
    }
    let quiet = plan(&study);
    assert_eq!((count(&quiet, "teacher"), count(&quiet, "teacher_logits")), (1, 0));
    study.measures.push(Measure { metric: Metric::Kl, every: 10 });
    assert_eq!(count(&plan(&study), "teacher_logits"), 1);
}

/// A teacher that ends without a norm has none to give; nor does one of another width.
#[test]
fn what_a_student_takes_its_teacher_must_have() {
    let mut study = taught(trained(Cache::None));
    let head = Embedding::Teacher { frozen: false };
    for arm in &mut study.arms {
        arm.recipe.model = Arc::new(Model { head, ..(*arm.recipe.model).clone() });
    }
    build(&study, &facts(&study.arms[0].recipe.data)).expect("pre has an exit norm, and post needs none");
    let with = |its: Model| {
        let mut study = study.clone();
        let source = TeacherSource::Trained { model: Arc::new(its), training: Arc::new(training()), steps: 30, teachers: vec![] };
        let teacher = Arc::new(Teacher { source, ..trained(Cache::None) });
        study.arms.iter_mut().for_each(|arm| arm.recipe.teachers = vec![Arc::clone(&teacher)]);
        build(&study, &facts(&study.arms[0].recipe.data)).expect_err("it does not fit").to_string()
    };
    let start = "the student `student` takes";
    let expected = format!("{start} `exit.norm` of shape [8] from its teacher `big`, which has no `exit.norm`");
    assert_eq!(with(model(true)), expected);
    let expected = format!("{start} `exit.norm` of shape [8] from its teacher `big`, which has `exit.norm` of shape [12]");
    assert_eq!(with(Model { width: 12, head_dim: 6, ..model(false) }), expected);
    // One that is tied gives its embedding as the head.
    let (embedding, head) = (Embedding::Tied, Embedding::Tied);
    let tied = Model { embedding, head, width: 12, head_dim: 6, ..model(false) };
    assert!(with(tied).contains("shape [12]"));
}

#[test]
fn vocabularies_must_agree() {
    let mut study = taught(trained(Cache::None));
    let model = &mut study.arms[0].recipe.model;
    *model = Arc::new(Model { vocabulary: Vocabulary::Size(300), ..(**model).clone() });
    let error = build(&study, &facts(&study.arms[0].recipe.data)).expect_err("300 and 257");
    assert_eq!(error.to_string(), "the student `student` has 300 token types, its teacher `big` has 257");
}
