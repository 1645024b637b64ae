//! Stories built in code: the paper's own numbers, and a study that looks like a real one.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use xrun::report::{Evaluated, Measured, Part, Planned, ProbeStory, RunState, RunStory, Story, TeacherStory};
use xrun::run::record::{BlockRemoval, BoundaryRms, LayerGradient, MetricLine, Moments, ProbeRecord, Real};
use xrun::study::equation::{Branches, Equation, Stream};
use xrun::study::placement::{Body, Wiring};
use xrun::study::schedule::{GrowFrom, Insert};
use xrun::study::training::Shape;
use xrun::study::*;
use xrun::timeline::{DataPosition, FirstValues, Frozen, LayerId, NewLayer, Rate, Segment};

pub fn recipe(placement: &str, schedule: &str) -> Recipe {
    let empty = || Branches::always(Equation { bindings: Vec::new(), result: Stream::X });
    let placement = Placement {
        name: placement.to_owned(),
        doc: None,
        entry: None,
        body: Body::Layer(empty()),
        boundary: None,
        exit: None,
        init: Vec::new(),
    };
    let model = Model {
        name: "student".to_owned(),
        doc: None,
        layers: 9,
        block: 3,
        width: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        ffn: Ffn::SwiGlu { width: 384 },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: false,
        wiring: Wiring::uniform(Arc::new(placement), 9),
        positions: Positions::Rope { base: 10_000.0 },
        embedding: Embedding::Own,
        head: Head::Own,
        init: Init::Normal { std: 0.02 * 32.0_f64.sqrt() },
        vocabulary: Vocabulary::OfTokenizer,
    };
    let data = Data {
        name: "shelf".to_owned(),
        doc: None,
        text: Text::Tales { documents: 4_000, seed: 1 },
        documents: Documents::Paragraph,
        tokenizer: Tokenizer::Bytes,
        context: 128,
        layout: Layout::Packed,
        shard: Shard::Tokens(2_000_000),
        holdout: Holdout::Fraction(0.05),
        tokens_per_step: None,
    };
    let training = Training {
        name: "distilled".to_owned(),
        doc: None,
        loss: Loss {
            terms: vec![(0.7, LossTerm::Kl { teacher: "big".to_owned(), temperature: 1.0 }), (0.3, LossTerm::CrossEntropy)],
        },
        optimizer: Optimizer::AdamW { lr: 1e-3, betas: (0.9, 0.95), eps: 1e-8, decay: 0.0, decay_all: false },
        rate: RateShape { warmup: Warmup::Steps(100), shape: Shape::Cosine { to: Floor::OfPeak(0.01) } },
        batch: Batch { sequences: 16, micro: 16 },
        clip: Some(0.5),
        precision: Precision::F32,
    };
    Recipe {
        data: Arc::new(data),
        model: Arc::new(model),
        training: Arc::new(training),
        schedule: Arc::new(Schedule {
            name: schedule.to_owned(),
            doc: None,
            start: Start::All,
            events: Vec::new(),
            end: Moment::Step(3_000),
        }),
        teachers: vec![],
    }
}

pub fn axis(name: &str, values: &[&str]) -> Axis {
    let value = |label: &&str| AxisValue { label: (*label).to_owned(), text: (*label).to_owned() };
    Axis { name: name.to_owned(), fields: vec![name.to_owned()], values: values.iter().map(value).collect() }
}

/// Placements × schedules.
pub fn study(placements: &[&str], schedules: &[&str], seeds: &[u64]) -> Study {
    let mut arms = Vec::new();
    for placement in placements {
        for schedule in schedules {
            arms.push(Arm {
                name: format!("[{placement}, {schedule}]"),
                values: IndexMap::from([
                    ("placement".to_owned(), (*placement).to_owned()),
                    ("schedule".to_owned(), (*schedule).to_owned()),
                ]),
                control: None,
                recipe: recipe(placement, schedule),
            });
        }
    }
    Study {
        name: "placement_by_curriculum".to_owned(),
        doc: Some("Does the preference for pre-norm survive when depth is grown?".to_owned()),
        axes: vec![axis("placement", placements), axis("schedule", schedules)],
        arms,
        seeds: seeds.to_vec(),
        measures: vec![Measure { metric: Metric::ValidationCe, every: 100 }],
        probes: Vec::new(),
        claims: Vec::new(),
        reports: vec![Ablation { rows: vec!["placement".to_owned()], columns: vec!["schedule".to_owned()] }],
        defaults: Vec::new(),
    }
}

/// One segment of a run: `depth` layers, what happened at its start.
pub fn segment(steps: std::ops::Range<u64>, depth: u32, actions: Vec<Action>) -> Segment {
    let new_layers = (depth - 3..depth).map(|layer| NewLayer { layer: LayerId(layer), first: FirstValues::Init }).collect();
    Segment {
        steps,
        actions,
        stack: (0..depth).map(LayerId).collect(),
        block_ends: (1..=depth as usize / 3).map(|block| block * 3).collect(),
        new_layers,
        frozen: Frozen::default(),
        reset_optimizer: true,
        rate: Rate { pieces: Vec::new() },
        loss: Loss { terms: Vec::new() },
        batch: 16,
        data: DataPosition::START,
    }
}

pub fn segments(schedule: &str, phase: u64) -> Vec<Segment> {
    if schedule.starts_with("joint") {
        return vec![segment(0..phase, 9, Vec::new())];
    }
    let mut actions = vec![Action::Grow { layers: 3, at: Insert::Top, from: GrowFrom::Init }];
    if schedule == "grow_frozen" {
        actions.push(Action::Freeze(Layers::Prefix));
    }
    actions.extend([Action::ResetOptimizer, Action::RestartLr]);
    vec![
        segment(0..phase, 3, Vec::new()),
        segment(phase..2 * phase, 6, actions.clone()),
        segment(2 * phase..3 * phase, 9, actions),
    ]
}

pub fn line(step: u64, values: &[(&str, f64)]) -> MetricLine {
    MetricLine { step, values: values.iter().map(|(name, value)| ((*name).to_owned(), Real(*value))).collect::<BTreeMap<_, _>>() }
}

/// What these lines say, in their order.
pub fn measured(lines: &[MetricLine]) -> Measured {
    let mut measured = Measured::default();
    measured.append(Arc::new(part(lines)));
    measured
}

/// What a node measured that wrote these lines.
pub fn part(lines: &[MetricLine]) -> Part {
    let mut part = Part::default();
    for line in lines {
        for metric in Metric::ALL {
            if let Some(value) = line.values.get(metric.name()) {
                assert!(part.push(metric, line.step, value.0), "a step that goes back");
            }
        }
    }
    part
}

/// The same, each value as `change` has it, or without it.
pub fn changed(measured: &Measured, change: impl Fn(Metric, u64, f64) -> Option<f64>) -> Measured {
    let mut part = Part::default();
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Perplexity) {
        for (step, value) in measured.iter(metric) {
            if let Some(value) = change(metric, step, value) {
                part.push(metric, step, value);
            }
        }
    }
    let mut measured = Measured::default();
    measured.append(Arc::new(part));
    measured
}

/// A finished run with one value, at its end.
pub fn run(arm: usize, seed: u64, schedule: &str, phase: u64, ce: f64) -> RunStory {
    let segments = segments(schedule, phase);
    let steps = segments.last().expect("segments").steps.end;
    RunStory {
        arm,
        seed,
        state: RunState::Finished,
        phase_keys: segments.iter().enumerate().map(|(place, _)| format!("{arm:08x}{seed:08x}{place:016x}")).collect(),
        segments,
        metrics: measured(&[line(steps, &[("validation_ce", ce)])]),
        evaluated: None,
        probes: Vec::new(),
        planned: Planned { steps, tokens: Some(steps * 62_200), ..Planned::default() },
    }
}

pub fn term(metric: Metric, text: &str, arms: &[usize]) -> Term {
    Term { metric, arms: ArmSet { text: text.to_owned(), arms: arms.to_vec() } }
}

pub fn claim(name: &str, relation: Relation, left: &[(f64, usize)], right: &[(f64, usize)]) -> Claim {
    let linear = |terms: &[(f64, usize)]| Linear {
        terms: terms.iter().map(|(factor, arm)| (*factor, term(Metric::ValidationCe, "", &[*arm]))).collect(),
        constant: 0.0,
    };
    Claim {
        name: name.to_owned(),
        doc: None,
        text: format!("{name} as written"),
        at_step: None,
        relation,
        left: linear(left),
        right: linear(right),
    }
}

/// 2608.13156: what it published, under its one seed.
///
/// Its budgets are at 62,200 tokens a step. The training losses are made so that they have its transition response at 50,000 steps; of its
/// boundary RMS the first and the last block that it tells of are the first and the last here.
pub fn paper() -> Story {
    let schedules = ["joint", "grow", "grow_frozen"];
    let mut study = study(&["pre", "post"], &schedules, &[42]);
    study.measures.extend([Measure { metric: Metric::Kl, every: 2_000 }, Measure { metric: Metric::TrainLoss, every: 1 }]);
    for (name, matched) in [("joint_100k", Quantity::ActiveLayerTokens), ("joint_150k", Quantity::Tokens)] {
        study.arms.push(Arm {
            name: name.to_owned(),
            values: study.arms[3].values.clone(),
            control: Some(Control { text: String::new(), doc: None, matched: Some(Matched { to: 4, on: matched }) }),
            recipe: recipe("post", "joint"),
        });
    }
    study.claims = vec![
        claim("they_interact", Relation::Less, &[(1.0, 4), (-1.0, 1)], &[(1.0, 3), (-1.0, 0)]),
        claim("joint_is_indifferent", Relation::Equivalent { within: 0.005 }, &[(1.0, 0)], &[(1.0, 3)]),
        claim("ranking_crosses", Relation::Overtakes { after_grow: 1 }, &[(1.0, 4)], &[(1.0, 1)]),
    ];
    let ends = [2.7603, 2.7658, 2.9104, 2.7607, 2.7330, 2.8772, 2.7518, 2.7428];
    let removal: [[(f64, f64); 3]; 4] = [
        [(8.05, 0.485), (1.47, 0.245), (2.34, 0.360)],
        [(8.13, 0.499), (2.36, 0.310), (0.02, 0.031)],
        [(0.55, 0.395), (0.99, 0.166), (4.00, 0.437)],
        [(8.32, 0.483), (3.74, 0.365), (2.38, 0.342)],
    ];
    let runs = ends.iter().enumerate().map(|(arm, end)| {
        let (post, schedule) = (arm >= 3, if arm >= 6 { "joint" } else { schedules[arm % 3] });
        let phase = [50_000, 50_000, 50_000, 50_000, 50_000, 50_000, 100_000, 150_000][arm];
        let mut story = run(arm, 42, schedule, phase, *end);
        let steps = story.planned.steps;
        story.planned = Planned {
            unique_tokens: Some(if arm >= 6 { steps } else { 50_000 } * 62_200),
            active_layer_tokens: Some(if schedule == "joint" { 9 } else { 6 } * steps * 62_200),
            trained_layer_tokens: Some(
                if schedule == "joint" {
                    9
                } else if arm % 3 == 1 {
                    6
                } else {
                    3
                } * steps
                    * 62_200,
            ),
            params_total: 2_981_000_000,
            ..story.planned
        };
        if schedule != "joint" {
            // Phase 0 is one node for both ways to grow.
            story.phase_keys[0] = format!("{:032x}", usize::from(post));
            let single = if post { 2.9846 } else { 2.9802 };
            let mut lines = transition(post);
            // After the last line of the phase before comes the first of the next.
            let first = lines.iter().position(|line| line.step == 50_000).expect("a line");
            lines.insert(first, line(50_000, &[("validation_ce", single)]));
            lines.push(line(150_000, &[("validation_ce", *end)]));
            story.metrics = measured(&lines);
        }
        let row = removal[2 * usize::from(post) + usize::from(schedule != "joint")];
        if arm < 6 && arm % 3 < 2 {
            let blocks = row.iter().map(|(ce, angle)| BlockRemoval { delta_ce: Real(*ce), angle: Real(*angle) }).collect();
            let record = ProbeRecord::BlockRemoval { ce: Real(*end), blocks };
            story.probes.push(ProbeStory { kind: ProbeKind::BlockRemoval, step: steps, key: format!("removal{arm}"), record });
        }
        if schedule == "grow" {
            let moments = |n, mean, std, kurtosis| Moments { n, mean: Real(mean), std: Real(std), kurtosis: Real(kurtosis) };
            let block = |std, structural, regular, kurtosis| BoundaryRms {
                all: moments(4_096, regular, std, kurtosis),
                structural: moments(60, structural, 1.0, 3.0),
                regular: moments(4_036, regular, 1.0, 3.0),
            };
            let blocks = if post {
                vec![block(0.07, 2.45, 2.40, 3.0), block(0.19, 2.45, 2.40, 3.0)]
            } else {
                vec![block(5.81, 119.0, 7.1, 2_400.0), block(19.98, 425.0, 11.5, 2_400.0)]
            };
            let record = ProbeRecord::BoundaryRms { blocks };
            story.probes.push(ProbeStory { kind: ProbeKind::BoundaryRms, step: steps, key: format!("rms{arm}"), record });
        }
        story
    });
    Story { runs: runs.collect(), study, teachers: Vec::new() }
}

/// Training loss of steps 49,800 to 99,999 whose response is the paper's: the mean of the 200 steps before 50,000 is 2.5; the first step after,
/// and the means over 1,000 and 5,000 steps, lie so much above it; a mean over 200 steps is back when the paper says.
fn transition(post: bool) -> Vec<MetricLine> {
    let (jump, short, long, recovery) = if post { (0.25, 0.182, 0.1464, 19_914) } else { (0.0226, 0.0694, 0.1217, 101) };
    let excess = |since: u64| -> f64 {
        let (early, rest) = if recovery < 200 {
            // Above over the first 200 steps, and not over the 200 that follow the first.
            (-0.01 / 199.0, 1_000.0 * short - jump + 0.01)
        } else {
            (short, 1_000.0 * short - jump - 199.0 * short)
        };
        match since {
            0 => jump,
            1..200 => early,
            200 => 0.0,
            201..1_000 => rest / 799.0,
            1_000..5_000 => (5_000.0 * long - 1_000.0 * short) / 4_000.0,
            // The mean of 200 steps is at the baseline when half of them are as far below as the others are above.
            _ if post && since < recovery => 0.01,
            _ if post => -0.01,
            _ => 0.0,
        }
    };
    let after = (0..50_000).map(|since| (50_000 + since, 2.5 + excess(since)));
    (49_800..50_000).map(|step| (step, 2.5)).chain(after).map(|(step, loss)| line(step, &[("train_loss", loss)])).collect()
}

/// Forty documents of one to thirty tokens whose mean is `mean`, each with something of its own.
fn evaluated(mean: f64, step: u64, own: impl Fn(u64) -> f64) -> Evaluated {
    let tokens: Vec<u64> = (0..40).map(|document| 1 + (document * 7) % 30).collect();
    let all: u64 = tokens.iter().sum();
    let own: Vec<f64> = tokens.iter().zip(0..).map(|(tokens, document)| *tokens as f64 * own(document)).collect();
    let shift = own.iter().sum::<f64>() / all as f64;
    let ce = tokens.iter().zip(own).map(|(tokens, own)| *tokens as f64 * (mean - shift) + own).collect();
    Evaluated { step, tokens, ce }
}

/// A number in [−1, 1] that depends on its arguments only.
fn noise(seed: u64, key: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 32;
    }
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// A small study as it would come out: five seeds, three schedules, a control, probes, one diverged and one unfinished run.
pub fn rich() -> Story {
    let schedules = ["joint", "grow", "grow_frozen"];
    let mut study = study(&["pre", "post"], &schedules, &[0, 1, 2, 3, 4]);
    study.measures.push(Measure { metric: Metric::TrainLoss, every: 5 });
    study.arms.push(Arm {
        name: "joint_long".to_owned(),
        values: study.arms[3].values.clone(),
        control: Some(Control {
            text: "[post, joint] matched to [post, grow] on active_layer_tokens".to_owned(),
            doc: None,
            matched: Some(Matched { to: 4, on: Quantity::ActiveLayerTokens }),
        }),
        recipe: recipe("post", "joint"),
    });
    study.claims = vec![
        claim("they_interact", Relation::Less, &[(1.0, 4), (-1.0, 1)], &[(1.0, 3), (-1.0, 0)]),
        claim("growth_prefers_post", Relation::Less, &[(1.0, 4)], &[(1.0, 1)]),
        claim("joint_is_indifferent", Relation::Equivalent { within: 0.005 }, &[(1.0, 0)], &[(1.0, 3)]),
        claim("compute_is_not_why", Relation::Less, &[(1.0, 4)], &[(1.0, 6)]),
        claim("freezing_is_harmless", Relation::Equivalent { within: 0.02 }, &[(1.0, 5)], &[(1.0, 4)]),
        claim("ranking_crosses", Relation::Overtakes { after_grow: 1 }, &[(1.0, 4)], &[(1.0, 1)]),
    ];
    study.claims[0].doc = Some("The preference for a placement depends on how depth comes about.".to_owned());
    let ends = [2.7603, 2.7658, 2.9104, 2.7607, 2.7330, 2.8772, 2.7518];
    let mut runs = Vec::new();
    for (arm, end) in ends.iter().enumerate() {
        for seed in 0..5 {
            let schedule = if arm == 6 { "joint" } else { schedules[arm % 3] };
            let phase = if arm == 6 { 2_000 } else { 1_000 };
            let post = arm >= 3;
            let mut story = run(arm, seed, schedule, phase, 0.0);
            let steps = story.planned.steps;
            let shift = 0.012 * noise(seed, 7) + 0.004 * noise(seed, 11 + arm as u64);
            let ce = |step: u64, after: bool| {
                let progress = step as f64 / steps as f64;
                let base = end + shift + 2.6 * (-9.0 * progress).exp() + 0.06 * (1.0 - progress);
                let bump = match (step / phase, after || !step.is_multiple_of(phase)) {
                    (1 | 2, true) => {
                        let since = (step % phase) as f64 / phase as f64;
                        (if post { 0.12 } else { 0.02 }) * (-7.0 * since).exp()
                    }
                    _ => 0.0,
                };
                let behind = if post && schedule != "joint" && progress < 0.45 { 0.25 * (1.0 - progress / 0.45) } else { 0.0 };
                base + bump + behind + 0.0006 * noise(seed, step * 31 + arm as u64) * (1.0 - progress)
            };
            let mut lines = Vec::new();
            for step in (0..=steps).step_by(5) {
                let event = step > 0 && step < steps && step.is_multiple_of(phase);
                let mut values = Vec::new();
                if step.is_multiple_of(100) {
                    values.push(("validation_ce", ce(step, false)));
                }
                if event {
                    lines.push(line(step, &values));
                    values = vec![("validation_ce", ce(step, true))];
                }
                if step < steps {
                    values.push(("train_loss", 0.8 * ce(step, true) + 0.02 * noise(seed, step)));
                }
                lines.push(line(step, &values));
            }
            story.metrics = measured(&lines);
            for (number, segment) in story.segments.clone().iter().enumerate() {
                let blocks = segment.block_ends.len();
                let rms = |block: usize| {
                    let jitter = 1.0 + 0.05 * noise(seed, (arm * 10 + block) as u64);
                    let size = |scale: f64, n: u64| Moments {
                        n,
                        mean: Real(scale * jitter),
                        std: Real(0.8 * scale * jitter),
                        kurtosis: Real(if post { 3.2 } else { 2_410.0 } * jitter),
                    };
                    let depth = (block + 1) as f64 * (1.0 + 0.4 * number as f64);
                    let (regular, structural) = if post { (2.40, 2.45) } else { (3.1 + 1.2 * depth, 60.0 * depth) };
                    BoundaryRms {
                        all: size(regular * 1.02, 4_096),
                        structural: size(structural, 60),
                        regular: size(regular, 4_036),
                    }
                };
                story.probes.push(ProbeStory {
                    kind: ProbeKind::BoundaryRms,
                    step: segment.steps.end,
                    key: format!("probe{arm}{seed}{number}"),
                    record: ProbeRecord::BoundaryRms { blocks: (0..blocks).map(rms).collect() },
                });
            }
            let table: [[(f64, f64); 3]; 4] = [
                [(8.05, 0.485), (1.47, 0.245), (2.34, 0.360)],
                [(8.13, 0.499), (2.36, 0.310), (0.02, 0.031)],
                [(0.55, 0.395), (0.99, 0.166), (4.00, 0.437)],
                [(8.32, 0.483), (3.74, 0.365), (2.38, 0.342)],
            ];
            let row = table[2 * usize::from(post) + usize::from(schedule != "joint")];
            let removal = |block: usize| BlockRemoval {
                delta_ce: Real(row[block].0 * (1.0 + 0.06 * noise(seed, 90 + block as u64))),
                angle: Real(row[block].1 * (1.0 + 0.04 * noise(seed, 95 + block as u64))),
            };
            story.probes.push(ProbeStory {
                kind: ProbeKind::BlockRemoval,
                step: steps,
                key: format!("removal{arm}{seed}"),
                record: ProbeRecord::BlockRemoval { ce: Real(*end), blocks: (0..3).map(removal).collect() },
            });
            let size = |at: u64| Real((1.0 + at as f64) * (1.0 + 0.05 * noise(seed, at)));
            let layer = |layer| LayerGradient { attention: size(layer), ffn: size(layer + 1), norms: size(0), gains: Real(0.0) };
            let looks = [
                ProbeRecord::Identity { ce: Real(*end), delta_ce: (100..103).map(size).collect() },
                ProbeRecord::LogitLens { ce: (0..4).rev().map(size).collect() },
                ProbeRecord::GradientNorms {
                    ce: Real(*end),
                    embedding: size(1),
                    layers: (0..9).map(layer).collect(),
                    ends: Some(size(2)),
                    head: Some(size(3)),
                },
            ];
            for (kind, record) in [ProbeKind::Identity, ProbeKind::LogitLens, ProbeKind::GradientNorms].into_iter().zip(looks) {
                story.probes.push(ProbeStory { kind, step: steps, key: format!("{}{arm}{seed}", kind.name()), record });
            }
            story.evaluated = Some(Arc::new(evaluated(*end + shift, steps, |document| {
                0.02 * noise(seed, 1_000 * arm as u64 + document) + if post { 0.05 * noise(3, document) } else { 0.0 }
            })));
            let tokens = steps * 2_048;
            let depths: u64 =
                story.segments.iter().map(|segment| segment.stack.len() as u64 * (segment.steps.end - segment.steps.start)).sum();
            story.planned = Planned {
                steps,
                tokens: Some(tokens),
                unique_tokens: Some(tokens.min(2_000_000)),
                active_layer_tokens: Some(depths * 2_048),
                trained_layer_tokens: Some(if schedule == "grow_frozen" { steps * 3 * 2_048 } else { depths * 2_048 }),
                flops_student_with_head: Some(depths as f64 * 2.1e9),
                params_total: 1_893_504,
            };
            // Phase 0 is shared by the two schedules that grow.
            if schedule != "joint" {
                story.phase_keys[0] = format!("{:08x}{seed:08x}{:016x}", usize::from(post), 0xabc);
            }
            if arm == 5 && seed == 3 {
                story.state = RunState::Diverged { step: 2_345 };
                story.metrics = changed(&story.metrics, |_, step, value| (step <= 2_000).then_some(value));
                story.probes.retain(|probe| probe.step <= 2_000);
            }
            if arm == 6 && seed == 4 {
                story.state = RunState::Missing;
                story.metrics = Measured::default();
                story.probes.clear();
            }
            runs.push(story);
        }
    }
    let teachers = vec![TeacherStory { name: "big".to_owned(), key: Some("feed".to_owned()), validation_ce: Some(Real(2.51)) }];
    Story { study, runs, teachers }
}
