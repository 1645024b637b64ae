//! The paper's student (2608.13156) and small declarations, for tests of counts.

use std::sync::Arc;

use crate::study::equation::{Branches, Equation, Stream, Sublayer};
use crate::study::placement::{Body, Wiring};
use crate::study::schedule::{GrowFrom, Insert};
use crate::study::training::Shape;
use crate::study::*;

/// Nine layers of width 4096 in blocks of three, pre-norm.
pub fn model() -> Model {
    let embedding = Embedding::Teacher { frozen: true };
    Model {
        name: "student".into(),
        doc: None,
        layers: 9,
        block: 3,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        ffn: Ffn::SwiGlu { width: 12_288 },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: true,
        wiring: Wiring { placements: vec![Arc::new(pre())], layers: vec![(0, 0); 9] },
        positions: Positions::Rope { base: 1e6 },
        embedding,
        head: Embedding::Teacher { frozen: false },
        init: Init::Normal { std: 0.02 },
        vocabulary: Vocabulary::Size(151_936),
    }
}

/// `sublayer x + f(norm(x)), exit norm(x)`.
fn pre() -> Placement {
    let norm = || Stream::Norm { slot: 0, input: Box::new(Stream::X) };
    let equation = |result| Equation { bindings: Vec::new(), result };
    let branch = |sublayer| Branches {
        cases: Vec::new(),
        otherwise: equation(Stream::Add(Box::new(Stream::X), Box::new(Stream::Sublayer { sublayer, input: Box::new(norm()) }))),
    };
    Placement {
        name: "pre".into(),
        doc: None,
        entry: None,
        body: Body::Sublayers { attention: branch(Sublayer::Attention { qkv_norm: false }), ffn: branch(Sublayer::Ffn) },
        boundary: None,
        exit: Some(equation(norm())),
        init: Vec::new(),
    }
}

/// A constant learning rate, one sequence a step.
pub fn training() -> Training {
    Training {
        name: "base".into(),
        doc: None,
        loss: Loss { terms: vec![(1.0, LossTerm::CrossEntropy)] },
        optimizer: Optimizer::AdamW { lr: 1e-4, betas: (0.9, 0.95), eps: 1e-8, decay: 0.0, decay_all: true },
        rate: RateShape { warmup: Warmup::Steps(0), shape: Shape::Constant },
        batch: Batch { sequences: 1, micro: 1 },
        clip: None,
        precision: Precision::F32,
    }
}

/// Sequences of four tokens.
pub fn data(layout: Layout, shard: Shard, tokens_per_step: Option<u64>) -> Data {
    Data {
        name: "shelf".into(),
        doc: None,
        text: Text::Tales { documents: 1, seed: 0 },
        documents: Documents::File,
        tokenizer: Tokenizer::Bytes,
        context: 4,
        layout,
        shard,
        holdout: Holdout::Fraction(0.0),
        tokens_per_step,
    }
}

/// All layers from the start.
pub fn joint(steps: u64) -> Schedule {
    Schedule { name: "joint".into(), doc: None, start: Start::All, events: Vec::new(), end: Moment::Step(steps) }
}

/// A block more every phase.
pub fn grow(phase: u64) -> Schedule {
    let block = Action::Grow { layers: 3, at: Insert::Top, from: GrowFrom::Init };
    let events = vec![EventSpec {
        moment: Moment::Every { steps: phase, times: None },
        actions: vec![block, Action::ResetOptimizer, Action::RestartLr],
    }];
    Schedule { name: "grow".into(), start: Start::Blocks(1), events, end: Moment::After(phase), ..joint(1) }
}
