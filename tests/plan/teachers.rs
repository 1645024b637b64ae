//! Plans with teachers: trained here, cached, or a checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use xrun::plan::node::Work;
use xrun::plan::{Plan, build};
use xrun::study::{
    Action, Cache, Embedding, EventSpec, Loss, LossTerm, Measure, Metric, Model, Moment, Study, Teacher, TeacherSource, Training,
    Vocabulary,
};

use super::plan;
use super::small::{facts, grow, model, study, training};

fn trained(cache: Cache) -> Teacher {
    let training = Arc::new(training());
    let source = TeacherSource::Trained { model: Arc::new(model(false)), training, steps: 30 };
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
        (arm.recipe.teacher, arm.recipe.training) = (Some(Arc::clone(&teacher)), Arc::clone(&training));
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
    assert!(plan.runs.iter().all(|run| run.teacher == plan.runs[0].teacher && run.teacher.is_some()));
    let teacher = plan.node(plan.runs[0].teacher.as_ref().expect("a teacher")).expect("a node");
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
    let text = xrun::plan::text::text(&near, &|_| false);
    assert!(text.contains("logits of big: the 8 most likely tokens at temperature 2, 1 shard and the holdout"), "{text}");
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
    (recipe.schedule, recipe.teacher) = (Arc::new(later), Some(Arc::new(trained(cache))));
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
    assert_eq!([0, 1, 2].map(|number| phase(&after, number).teacher.is_some()), [false, true, true]);
    let teachers = |number: usize| after.cost(&after.runs[2].phases[number]).expect("a cost").flops_teacher > Some(0.0);
    assert_eq!([0, 1, 2].map(teachers), [false, true, true]);
    assert_ne!(after.runs[2].phases[1], plan(&turned(Cache::None, 1.0)).runs[2].phases[1]);
    // A cache is made for the temperature at which the teacher is heard.
    let cached = plan(&turned(Cache::Top(8), 2.0));
    assert_eq!([0, 1].map(|number| phase(&cached, number).teacher.and_then(|teacher| teacher.logits).is_some()), [false, true]);
    assert_eq!(count(&cached, "teacher_logits"), 1);
    // Where the KL is measured from the first step on, it is heard at two.
    let mut measured = turned(Cache::Top(8), 2.0);
    measured.measures.push(Measure { metric: Metric::Kl, every: 10 });
    assert_eq!(count(&plan(&measured), "teacher_logits"), 2);
    let text = xrun::plan::text::text(&after, &|_| false);
    assert!(text.contains("rewind data, set loss kl(big, temperature: 2)"), "{text}");
    let differences = xrun::plan::diff::diff(&plan(&turned(Cache::None, 1.0)), &after).to_string();
    assert!(differences.contains("phase 1 of [pre, grow], seed 0: loss"), "{differences}");
    let text = ron::to_string(&cached).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&text).expect("a plan"), cached);
}

#[test]
fn a_checkpoint_that_is_not_at_hand_is_planned_and_not_run() {
    let source = TeacherSource::Checkpoint("Qwen3-8B-Base".into());
    let plan = plan(&taught(Teacher { source, ..trained(Cache::None) }));
    assert_eq!((count(&plan, "teacher"), plan.runs[0].teacher.clone(), plan.runs[0].flops_teacher), (0, None, None));
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
        arm.recipe.teacher = Some(Arc::new(trained(Cache::All)));
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
        let source = TeacherSource::Trained { model: Arc::new(its), training: Arc::new(training()), steps: 30 };
        let teacher = Arc::new(Teacher { source, ..trained(Cache::None) });
        study.arms.iter_mut().for_each(|arm| arm.recipe.teacher = Some(Arc::clone(&teacher)));
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
