//! The budgets of 2608.13156 as a plan, without its texts and its teacher at hand: to the digit.

use std::sync::Arc;

use xrun::data::facts::{Corpus, Facts};
use xrun::plan::{PlanError, Why, build};
use xrun::study::{
    Action, Batch, Cache, Data, Embedding, EventSpec, Ffn, Layout, Matched, Model, Moment, ProbeMoment, Quantity, Schedule,
    Shard, Start, Study, Teacher, TeacherSource, Training, Vocabulary, placement::Wiring,
};

use super::small::{data, grow, joint, model, placement, study, training};

fn student() -> Model {
    Model {
        layers: 9,
        block: 3,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        ffn: Ffn::SwiGlu { width: 12_288 },
        wiring: Wiring::uniform(Arc::new(placement(false)), 9),
        embedding: Embedding::Teacher { frozen: true },
        head: Embedding::Teacher { frozen: false },
        vocabulary: Vocabulary::Size(151_936),
        ..model(false)
    }
}

/// Joint, grow, and joint matched to grow on active-layer tokens and on tokens.
fn paper(tokens_per_step: Option<u64>) -> (Study, Facts) {
    let mut study = study();
    let shard = Shard::Tokens(3_110_000_000);
    let data = Arc::new(Data { layout: Layout::Padded, context: 2048, shard, tokens_per_step, ..data() });
    let source = TeacherSource::Checkpoint { folder: "Qwen3-8B-Base".into(), shape: None };
    let teacher = Some(Arc::new(Teacher { name: "base".into(), doc: None, source, cache: Cache::None }));
    let model = Arc::new(student());
    let training = Arc::new(Training { batch: Batch { sequences: 64, micro: 8 }, ..training() });
    let fresh =
        EventSpec { moment: Moment::Every { steps: 50_000, times: None }, actions: vec![Action::RestartLr, Action::FreshData] };
    let mut grown = grow(50_000, false);
    grown.start = Start::Blocks(1);
    for action in grown.events.iter_mut().flat_map(|event| &mut event.actions) {
        if let Action::Grow { layers, .. } = action {
            *layers = 3;
        }
    }
    let long = Schedule { events: vec![fresh], ..joint(50_000) };
    study.arms = [(joint(50_000), None), (grown, None)]
        .into_iter()
        .chain([Quantity::ActiveLayerTokens, Quantity::Tokens].map(|on| (long.clone(), Some(Matched { to: 1, on }))))
        .enumerate()
        .map(|(number, (schedule, matched))| {
            let mut arm = study.arms[6].clone();
            arm.name = format!("[{number}]");
            arm.control = arm.control.filter(|_| matched.is_some()).map(|control| xrun::study::Control { matched, ..control });
            (arm.recipe.data, arm.recipe.model) = (Arc::clone(&data), Arc::clone(&model));
            arm.recipe.training = Arc::clone(&training);
            (arm.recipe.schedule, arm.recipe.teachers) = (Arc::new(schedule), teacher.clone().into_iter().collect());
            arm
        })
        .collect();
    study.seeds = vec![0];
    study.probes[0].moments.push(ProbeMoment::Step(60_000));
    let facts = Facts { corpora: vec![(data, Corpus::Absent("no files".into()))], ..Facts::default() };
    (study, facts)
}

#[test]
fn budgets_come_out_to_the_digit() {
    let (study, facts) = paper(Some(62_200));
    let plan = build(&study, &facts).expect("a plan");
    let budgets: Vec<_> = plan
        .runs
        .iter()
        .map(|run| {
            [Some(run.steps), run.tokens, run.unique_tokens, run.active_layer_tokens].map(|count| count.unwrap_or(0) / 1_000)
        })
        .collect();
    let (b, steps) = (|billions: f64| (billions * 1e6).round() as u64, |thousands: u64| thousands);
    assert_eq!(
        budgets,
        [
            [steps(50), b(3.11), b(3.11), b(27.99)],
            [steps(150), b(9.33), b(3.11), b(55.98)],
            [steps(100), b(6.22), b(6.22), b(55.98)],
            [steps(150), b(9.33), b(9.33), b(83.97)],
        ]
    );
    // 1.7365B in layers, 2.359B with the embedding, 2.981B with the head.
    let run = &plan.runs[1];
    let sizes = [run.params_stack, run.params_without_head, run.params_total].map(|count| count / 100_000);
    assert_eq!(sizes, [17_365, 23_588, 29_811]);
    // "Matched" leaves out the head: with it, grow costs about an eighth more.
    let dearer = |of: fn(&xrun::plan::PlannedRun) -> Option<f64>| of(run).zip(of(&plan.runs[2])).map_or(0.0, |(a, b)| a / b);
    assert!((dearer(|run| run.flops_student) - 1.0).abs() < 0.02);
    let ratio = dearer(|run| run.flops_student_with_head);
    assert!((ratio - 1.13).abs() < 0.03, "{ratio}");
    // The probe at step 60,000 cuts a phase of those that get so far.
    assert_eq!(plan.runs.iter().map(|run| run.phases.len()).collect::<Vec<_>>(), [1, 4, 3, 4]);
    assert!(plan.warnings.iter().any(|warning| warning == "[0] has no checkpoint at step 60000 for boundary_rms"));
    assert!(plan.runnable().is_err());
}

#[test]
fn tokens_that_nobody_knows_are_unknown_and_match_nothing() {
    let (mut study, facts) = paper(None);
    let error = build(&study, &facts).expect_err("no tokens");
    assert!(matches!(&error, PlanError::Uncounted { arm, of } if arm == "[2]" && of == "[1]"), "{error}");
    study.arms.truncate(2);
    let plan = build(&study, &facts).expect("a plan");
    assert_eq!((plan.runs[1].tokens, plan.runs[1].flops_student, plan.totals.flops_planned), (None, None, None));
    assert!(xrun::plan::text::text(&plan, &|_| Why::New, false).contains('?'));
}
