//! A small study built by hand: joint, grow, grow and freeze, in two placements, two seeds, and a control as long as grow is dear.

use std::sync::Arc;

use xrun::data::facts::{Corpus, CorpusFacts, Facts};
use xrun::study::equation::{Branches, Equation, Stream, Sublayer};
use xrun::study::placement::{Body, Wiring};
use xrun::study::schedule::{GrowFrom, Insert};
use xrun::study::training::Shape;
use xrun::study::*;

pub fn data() -> Data {
    Data {
        name: "tales".into(),
        doc: None,
        text: Text::Tales { documents: 10, seed: 1 },
        documents: Documents::File,
        tokenizer: Tokenizer::Bytes,
        context: 8,
        layout: Layout::Packed,
        shard: Shard::Tokens(160),
        holdout: Holdout::Documents(1),
        tokens_per_step: None,
    }
}

pub fn facts(data: &Arc<Data>) -> Facts {
    let known = CorpusFacts {
        content: "0123".into(),
        vocabulary: 257,
        train_documents: Arc::new(vec![100; 9]),
        holdout_documents: Arc::new(vec![100]),
    };
    Facts { corpora: vec![(Arc::clone(data), Corpus::Known(known))], ..Facts::default() }
}

/// `sublayer x + f(norm(x))` or `sublayer norm(x + f(x))`.
pub fn placement(post: bool) -> Placement {
    let norm = |input| Stream::Norm { slot: 0, input: Box::new(input) };
    let branch = |sublayer| {
        let of = |input| Stream::Sublayer { sublayer, input: Box::new(input) };
        let add = |f| Stream::Add(Box::new(Stream::X), Box::new(f));
        let result = if post { norm(add(of(Stream::X))) } else { add(of(norm(Stream::X))) };
        Branches::always(Equation { bindings: Vec::new(), result })
    };
    let exit = (!post).then(|| Equation { bindings: Vec::new(), result: norm(Stream::X) });
    let body = Body::Sublayers { attention: branch(Sublayer::Attention { qkv_norm: false }), ffn: branch(Sublayer::Ffn) };
    let name = if post { "post" } else { "pre" };
    Placement { name: name.into(), doc: None, entry: None, body, boundary: None, exit, init: Vec::new() }
}

pub fn model(post: bool) -> Model {
    Model {
        name: "student".into(),
        doc: None,
        layers: 3,
        block: 1,
        width: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        ffn: Ffn::SwiGlu { width: 16 },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: true,
        wiring: Wiring::uniform(Arc::new(placement(post)), 3),
        positions: Positions::Rope { base: 1e4 },
        embedding: Embedding::Own,
        head: Embedding::Own,
        init: Init::Normal { std: 0.02 },
        vocabulary: Vocabulary::OfTokenizer,
    }
}

pub fn training() -> Training {
    Training {
        name: "base".into(),
        doc: None,
        loss: Loss { terms: vec![(1.0, LossTerm::CrossEntropy)] },
        optimizer: Optimizer::AdamW { lr: 1e-3, betas: (0.9, 0.95), eps: 1e-8, decay: 0.1, decay_all: false },
        rate: RateShape { warmup: Warmup::Steps(5), shape: Shape::Cosine { to: Floor::OfPeak(0.01) } },
        batch: Batch { sequences: 2, micro: 2 },
        clip: Some(1.0),
        precision: Precision::F32,
    }
}

pub fn joint(steps: u64) -> Schedule {
    Schedule { name: "joint".into(), doc: None, start: Start::All, events: Vec::new(), end: Moment::Step(steps) }
}

pub fn grow(phase: u64, freeze: bool) -> Schedule {
    let mut actions = vec![
        Action::Grow { layers: 1, at: Insert::Top, from: GrowFrom::Init },
        Action::ResetOptimizer,
        Action::RestartLr,
        Action::RewindData,
    ];
    actions.extend(freeze.then_some(Action::Freeze(Layers::Prefix)));
    let events = vec![EventSpec { moment: Moment::Every { steps: phase, times: None }, actions }];
    let name = if freeze { "grow_frozen" } else { "grow" };
    Schedule { name: name.into(), doc: None, start: Start::Blocks(1), events, end: Moment::After(phase) }
}

/// `[pre, joint]`, `[pre, grow]`, `[pre, grow_frozen]`, the same for post, and a control.
pub fn study() -> Study {
    let (data, training) = (Arc::new(data()), Arc::new(training()));
    let schedules = [joint(20), grow(20, false), grow(20, true)].map(Arc::new);
    let mut arms = Vec::new();
    for post in [false, true] {
        let model = Arc::new(model(post));
        for schedule in &schedules {
            let (placement, curriculum) = (if post { "post" } else { "pre" }, schedule.name.clone());
            arms.push(Arm {
                name: format!("[{placement}, {curriculum}]"),
                values: [("placement".to_owned(), placement.to_owned()), ("schedule".to_owned(), curriculum)]
                    .into_iter()
                    .collect(),
                control: None,
                recipe: Recipe {
                    data: Arc::clone(&data),
                    model: Arc::clone(&model),
                    training: Arc::clone(&training),
                    schedule: Arc::clone(schedule),
                    teachers: vec![],
                },
            });
        }
    }
    let matched = Some(Matched { to: 4, on: Quantity::ActiveLayerTokens });
    let control = Some(Control { text: "[post, joint] matched to [post, grow]".into(), doc: None, matched });
    arms.push(Arm { name: "long".into(), control, ..arms[3].clone() });
    Study {
        name: "small".into(),
        doc: Some("Does it matter where the norm is?".into()),
        axes: Vec::new(),
        arms,
        seeds: vec![0, 1],
        measures: vec![Measure { metric: Metric::ValidationCe, every: 8 }],
        probes: vec![Probe {
            kind: ProbeKind::BoundaryRms,
            moments: vec![ProbeMoment::EveryGrow, ProbeMoment::End],
            sequences: 2,
            tokens: 8,
        }],
        claims: Vec::new(),
        reports: Vec::new(),
        defaults: Vec::new(),
    }
}
