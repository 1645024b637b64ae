//! Schedules worked out, against what the language says and against the reference curves' formulas.

use proptest::prelude::*;

use super::*;
use crate::budget::testing;
use crate::study::schedule::{GrowFrom, Insert};
use crate::study::training::Shape as Curve;
use crate::study::*;

fn training(warmup: Warmup, shape: Curve) -> Training {
    let optimizer = testing::training().optimizer.with_lr(1e-3);
    Training { optimizer, rate: RateShape { warmup, shape }, batch: Batch { sequences: 4, micro: 4 }, ..testing::training() }
}

fn grow(layers: usize) -> Action {
    Action::Grow { layers, at: Insert::Top, from: GrowFrom::Init }
}

fn event(moment: Moment, actions: &[Action]) -> EventSpec {
    EventSpec { moment, actions: actions.to_vec() }
}

fn schedule(start: Start, events: Vec<EventSpec>, end: Moment) -> Schedule {
    Schedule { name: "test".into(), doc: None, start, events, end }
}

fn work_out_with(schedule: &Schedule, training: &Training, end: Option<u64>) -> Result<Timeline, TimelineError> {
    build(schedule, &testing::model(), training, &Declared::PerStep { tokens: 100, batch: 1 }, end)
}

fn work_out(schedule: &Schedule) -> Result<Timeline, TimelineError> {
    work_out_with(schedule, &training(Warmup::Steps(0), Curve::Constant), None)
}

fn steps(timeline: &Timeline) -> Vec<u64> {
    timeline.segments.iter().map(|segment| segment.steps.start).chain([timeline.end]).collect()
}

#[test]
fn every_without_a_count_stops_when_the_model_is_whole() {
    let every = |times| event(Moment::Every { steps: 50, times }, &[grow(3), Action::RestartLr]);
    let whole = work_out(&schedule(Start::Blocks(1), vec![every(None)], Moment::After(50))).expect("a schedule");
    assert_eq!(steps(&whole), [0, 50, 100, 150]);
    let last = whole.segments.last().expect("a schedule");
    assert_eq!((last.stack.len(), last.block_ends.as_slice()), (9, &[3, 6, 9][..]));
    let once = work_out(&schedule(Start::Blocks(1), vec![every(Some(1))], Moment::After(30))).expect("a schedule");
    assert_eq!(steps(&once), [0, 50, 80]);
    let reset = event(Moment::Every { steps: 30, times: None }, &[Action::ResetOptimizer]);
    let reset = work_out(&schedule(Start::All, vec![reset], Moment::Step(90))).expect("a schedule");
    assert_eq!((steps(&reset), reset.segments[1].reset_optimizer), (vec![0, 30, 60, 90], true));
}

#[test]
fn moments_are_steps_tokens_shares_and_distances() {
    let save = || [Action::Save("a".into())];
    let events = vec![
        event(Moment::Step(10), &[Action::SetBatch(8)]),
        event(Moment::Token(4_000 + 801), &save()), // 10 steps of 400, then 2 of 800
        event(Moment::After(3), &save()),
        event(Moment::Fraction(0.333), &save()),
    ];
    let timeline = work_out(&schedule(Start::All, events, Moment::Step(100))).expect("a schedule");
    assert_eq!(steps(&timeline), [0, 10, 12, 15, 33, 100]);
    let end = |end, events| work_out(&schedule(Start::All, events, end)).expect("a schedule").end;
    assert_eq!(end(Moment::Token(4_001), vec![]), 11);
    assert_eq!(end(Moment::Token(4_001), vec![event(Moment::Step(5), &[Action::SetBatch(8)])]), 8);
    assert_eq!(end(Moment::Token(4_001), vec![event(Moment::Fraction(0.5), &save())]), 11);
    let half = schedule(Start::All, vec![event(Moment::Fraction(0.5), &save())], Moment::Step(100));
    let long = work_out_with(&half, &training(Warmup::Steps(0), Curve::Constant), Some(300)).expect("a schedule");
    assert_eq!(steps(&long), [0, 150, 300]);
}

#[test]
fn a_prefix_lies_below_the_newest_layers_and_thaws() {
    let events = vec![
        event(Moment::Step(1), &[grow(3), Action::Freeze(Layers::Prefix)]),
        event(Moment::Step(2), &[grow(3), Action::Freeze(Layers::Prefix), Action::Freeze(Layers::Head)]),
        event(Moment::Step(3), &[Action::Thaw(Layers::Prefix)]),
    ];
    let timeline = work_out(&schedule(Start::Blocks(1), events, Moment::Step(5))).expect("a schedule");
    let frozen: Vec<_> = timeline.segments.iter().map(|s| (s.frozen.prefix, s.frozen.layers.len(), s.frozen.head)).collect();
    assert_eq!(frozen, [(0, 0, false), (3, 3, false), (6, 6, true), (0, 0, true)]);
}

#[test]
fn data_goes_on_unless_it_is_moved() {
    let events = vec![
        event(Moment::Step(10), &[Action::SetBatch(2)]),
        event(Moment::Step(15), &[Action::FreshData]),
        event(Moment::Step(20), &[Action::RewindData]),
    ];
    let timeline = work_out(&schedule(Start::All, events, Moment::Step(30))).expect("a schedule");
    let at: Vec<_> = timeline.segments.iter().map(|s| (s.batch, s.data.shard, s.data.sequence)).collect();
    assert_eq!(at, [(4, 0, 0), (2, 0, 40), (2, 1, 0), (2, 1, 0)]);
}

/// As the reference curves write it.
fn reference(step: u64, restarts: &[u64], end: u64, warmup: u64, floor: f64) -> f64 {
    let last = restarts.iter().copied().filter(|restart| *restart <= step).max().unwrap_or(0);
    let next = restarts.iter().copied().filter(|restart| *restart > step).min().unwrap_or(end);
    let (r, span) = (step - last, next - last);
    if r < warmup {
        return 1e-3 * (r + 1) as f64 / warmup as f64;
    }
    let x = (r - warmup) as f64 / (span.saturating_sub(warmup)).max(1) as f64;
    1e-3 * (floor + (1.0 - floor) * (1.0 + (std::f64::consts::PI * x).cos()) / 2.0)
}

fn rate(timeline: &Timeline, step: u64) -> f64 {
    timeline.segments.iter().find(|segment| segment.steps.contains(&step)).map_or(f64::NAN, |segment| segment.rate.at(step))
}

#[test]
fn restarts_begin_the_shape_anew() {
    let events = vec![
        event(Moment::Step(13), &[grow(3)]),
        event(Moment::Step(20), &[grow(3), Action::RestartLr]),
        event(Moment::Step(23), &[Action::ResetOptimizer]),
        event(Moment::Step(33), &[Action::RestartLr]),
    ];
    let schedule = schedule(Start::Blocks(1), events, Moment::Step(70));
    let cosine = training(Warmup::Steps(5), Curve::Cosine { to: Floor::OfPeak(0.01) });
    let timeline = work_out_with(&schedule, &cosine, None).expect("a schedule");
    for step in 0..70 {
        let wanted = reference(step, &[20, 33], 70, 5, 0.01);
        assert!((rate(&timeline, step) - wanted).abs() < 1e-15, "step {step}");
    }
}

#[test]
fn ramps_peaks_and_decays() {
    let events = vec![event(Moment::Step(10), &[Action::RewarmLr { steps: 4 }]), event(Moment::Step(12), &[Action::SetLr(2e-3)])];
    let wsd = training(Warmup::Fraction(0.1), Curve::Wsd { decay: 0.2 });
    let timeline = work_out_with(&schedule(Start::All, events, Moment::Step(20)), &wsd, None).expect("a schedule");
    let rates = [(0, 5e-4), (1, 1e-3), (9, 1e-3), (10, 2.5e-4), (11, 5e-4), (12, 1.5e-3), (13, 2e-3), (16, 2e-3), (18, 1e-3)];
    for (step, wanted) in rates {
        assert!((rate(&timeline, step) - wanted).abs() < 1e-15, "step {step}: {}", rate(&timeline, step));
    }
}

/// Reading goes on behind the tokens that were read, in whole sequences, and in no others than before where the context is the data's own.
#[test]
fn a_context_holds_until_the_next_and_reading_goes_on_by_tokens() {
    let events = vec![
        event(Moment::Step(10), &[Action::SetContext(24)]),
        event(Moment::Token(1_240), &[Action::SetContext(64), Action::SetBatch(2)]),
        event(Moment::Step(20), &[Action::FreshData]),
        event(Moment::Step(21), &[Action::SetContext(16)]),
    ];
    let schedule = schedule(Start::All, events, Moment::Step(30));
    let plain = training(Warmup::Steps(0), Curve::Constant);
    let timeline = build(&schedule, &testing::model(), &plain, &Declared::Packed { context: 16 }, None).expect("a schedule");
    // 10 steps of 4 × 16 tokens are 640, of which 27 sequences of 24; 7 steps of 96 reach 1,312, which 55 sequences of 24 hold.
    let at = |shard, sequence, context| DataPosition { shard, sequence, context };
    let read: Vec<_> = timeline.segments.iter().map(|segment| (segment.steps.start, segment.data)).collect();
    let expected = [
        (0, at(0, 0, None)),
        (10, at(0, 27, Some(24))),
        (17, at(0, 21, Some(64))),
        (20, at(1, 0, Some(64))),
        (21, at(1, 8, None)),
    ];
    assert_eq!(read, expected);
    assert_eq!(timeline.segments[2].position(19), at(0, 25, Some(64)));
}

#[test]
fn a_loss_holds_until_the_next() {
    let kl =
        Loss { terms: vec![(0.5, LossTerm::Kl { teacher: "big".into(), temperature: 2.0 }), (-1.0, LossTerm::CrossEntropy)] };
    let events = vec![
        event(Moment::Step(10), &[Action::SetLoss(kl.clone())]),
        event(Moment::Step(12), &[Action::ResetOptimizer]),
        event(Moment::Step(15), &[Action::SetLoss(testing::training().loss)]),
    ];
    let timeline = work_out(&schedule(Start::All, events, Moment::Step(20))).expect("a schedule");
    let ce = testing::training().loss;
    let losses: Vec<Loss> = timeline.segments.into_iter().map(|segment| segment.loss).collect();
    assert_eq!(losses, [ce.clone(), kl.clone(), kl.clone(), ce]);
    assert_eq!(kl.to_string(), "0.5 * kl(big, temperature: 2) - cross_entropy");
}

proptest! {
    #[test]
    fn segments_and_rates_tile(
        gaps in prop::collection::vec((1u64..40, 0usize..5), 0..6), tail in 1u64..40, warmup in 0u64..30, share in 0.0f64..1.0,
    ) {
        let actions = [grow(1), Action::RestartLr, Action::RewarmLr { steps: 7 }, Action::SetLr(1e-4), Action::FreshData];
        let events = gaps.iter().map(|(gap, action)| event(Moment::After(*gap), &actions[*action..=*action])).collect();
        let schedule = schedule(Start::Layers(1), events, Moment::After(tail));
        let wsd = training(Warmup::Steps(warmup), Curve::Wsd { decay: share });
        let timeline = work_out_with(&schedule, &wsd, None).expect("a schedule");
        let mut at = 0;
        for segment in &timeline.segments {
            prop_assert_eq!(segment.steps.start, at);
            for piece in &segment.rate.pieces {
                prop_assert_eq!(piece.steps.start, at);
                prop_assert!(piece.steps.end > at);
                at = piece.steps.end;
            }
            prop_assert_eq!(segment.steps.end, at);
            prop_assert!(segment.steps.clone().all(|step| segment.rate.at(step).is_finite()));
        }
        prop_assert_eq!(at, timeline.end);
    }
}
