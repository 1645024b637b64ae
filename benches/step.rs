//! One training step at three shapes: `cargo bench --bench step -- [S] [M] [L] [pre|post] [ce|kd] [composed] [frozen=N] [threads=N] [steps=N]`.
//!
//! Prints a line of JSON for each shape: the median and the best of the steps, and the process' largest resident size so far.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use indexmap::IndexMap;
use xrun::budget::params::{parameters, whole};
use xrun::data::Batch;
use xrun::model::{Params, first_values};
use xrun::run::worker::Stop;
use xrun::study::equation::{Branches, Equation, Stream, Sublayer};
use xrun::study::placement::{Body, Wiring};
use xrun::study::{self, Embedding, Ffn, Init, Model, Norm, NormKind, Placement, Positions, Vocabulary};
use xrun::tensor::{Composed, Cpu, Divergence, Fused, Operations};
use xrun::timeline::{DataPosition, FirstValues, Frozen, LayerId, NewLayer, Rate, RateFormula, RatePiece, Segment};
use xrun::train::{Learning, OnlineTeacher, Optimizer, Setting, Sources, State, Teacher, Term, groups, step};

const LAYERS: usize = 9;

/// Name, width, heads, key/value heads, hidden width, vocabulary, context, batch: those of the peers' benchmark.
type Shape = (&'static str, usize, usize, usize, usize, usize, usize, usize);
const SHAPES: [Shape; 3] =
    [("S", 128, 4, 2, 384, 512, 128, 16), ("M", 256, 8, 4, 768, 4096, 256, 8), ("L", 512, 8, 4, 1536, 16_384, 256, 4)];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let number = |key: &str, default: usize| {
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number("threads", 2)).build().expect("threads");
    let any = SHAPES.iter().any(|shape| has(shape.0));
    for shape in SHAPES.into_iter().filter(|shape| has(shape.0) || !any && shape.0 == "S") {
        let steps = number("steps", 9);
        let ((post, kd), frozen) = ((has("post"), has("kd")), number("frozen", 0));
        let times = pool.install(|| match has("composed") {
            true => run::<Composed>(shape, post, kd, frozen, steps),
            false => run::<Fused>(shape, post, kd, frozen, steps),
        });
        let (losses, mut times) = times;
        times.sort_by(f64::total_cmp);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("", str::trim);
        println!(
            r#"{{"shape": "{}", "placement": "{}", "loss": "{}", "frozen": {frozen}, "median_step_ms": {:.1}, "best_step_ms": {:.1}, "loss_first": {:.6}, "loss_last": {:.6}, "peak": "{peak}"}}"#,
            shape.0,
            if post { "post" } else { "pre" },
            if kd { "kd" } else { "ce" },
            times[times.len() / 2],
            times[0],
            losses[0],
            losses[losses.len() - 1],
        );
    }
}

fn run<O: Operations<f32, Cpu>>(shape: Shape, post: bool, kd: bool, frozen: usize, steps: usize) -> (Vec<f64>, Vec<f64>) {
    let (_, width, heads, kv_heads, hidden, vocabulary, context, rows) = shape;
    let model = Model {
        name: "bench".into(),
        doc: None,
        layers: LAYERS,
        block: 3,
        width,
        heads,
        kv_heads,
        head_dim: width / heads,
        ffn: Ffn::SwiGlu { width: hidden },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: true,
        wiring: Wiring::uniform(std::sync::Arc::new(placement(post)), LAYERS),
        positions: Positions::Rope { base: 10_000.0 },
        embedding: Embedding::Tied,
        head: Embedding::Tied,
        init: Init::Normal { std: 0.02 },
        vocabulary: Vocabulary::Size(vocabulary),
    };
    let (stack, block_ends) = whole(&model);
    let rate = RatePiece { steps: 0..1000, formula: RateFormula::Constant { rate: 3e-4 }, ramp: None };
    let segment = Segment {
        steps: 0..1000,
        actions: vec![],
        new_layers: stack.iter().map(|layer| NewLayer { layer: *layer, first: FirstValues::Init }).collect(),
        frozen: Frozen { layers: (0..frozen as u32).map(LayerId).collect(), prefix: frozen, ..Frozen::default() },
        reset_optimizer: false,
        rate: Rate { pieces: vec![rate] },
        loss: study::Loss { terms: vec![(1.0, study::LossTerm::CrossEntropy)] },
        batch: rows as u64,
        data: DataPosition::START,
        stack,
        block_ends,
    };
    let specs = parameters(&model, &segment.stack, &segment.block_ends);
    let params = |seed: u64| {
        let sources = Sources::new(None, ".".into());
        Params::from_values(&Cpu::default(), &specs, |spec| first_values(seed, spec, false, &sources).expect("drawn"))
            .expect("memory")
    };
    let teacher = kd.then(|| Teacher::Online(Box::new(OnlineTeacher::new(model.clone(), params(1)))));
    let mut state = State { params: params(0), moments: IndexMap::new() };
    let rule = study::Optimizer::AdamW { lr: 3e-4, betas: (0.9, 0.95), eps: 1e-8, decay: 0.1, decay_all: true };
    let terms = match kd {
        true => {
            vec![
                Term::CrossEntropy { factor: 0.3 },
                Term::Apart { factor: 0.7, divergence: Divergence::Kl, temperature: 1.0, teacher: 0 },
            ]
        }
        false => vec![Term::CrossEntropy { factor: 1.0 }],
    };
    let never = AtomicBool::new(false);
    let setting = Setting {
        device: &Cpu::default(),
        model: &model,
        segment: &segment,
        learning: &Learning::new(&model, &specs, &segment),
        groups: &groups(&specs),
        terms: &terms,
        optimizer: Optimizer { rule, clip: Some(1.0) },
        micro: rows,
        stop: Stop::of(&never),
    };
    let (mut losses, mut times) = (Vec::new(), Vec::new());
    for at in 0..steps as u64 + 2 {
        let batch = batch(rows, context, vocabulary, at % 4);
        let start = Instant::now();
        let seen =
            step::<f32, Cpu, O>(&setting, &mut state, teacher.as_slice(), &batch, (at, 3e-4)).expect("finite").expect("whole");
        if at >= 2 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        losses.push(seen.loss);
    }
    (losses, times)
}

fn placement(post: bool) -> Placement {
    let norm = |input| Stream::Norm { slot: 0, input: Box::new(input) };
    let each = |sublayer: Sublayer| {
        let f = |input| Box::new(Stream::Sublayer { sublayer, input: Box::new(input) });
        let result = match post {
            true => norm(Stream::Add(Box::new(Stream::X), f(Stream::X))),
            false => Stream::Add(Box::new(Stream::X), f(norm(Stream::X))),
        };
        Branches::always(Equation { bindings: vec![], result })
    };
    let own = Equation { bindings: vec![], result: norm(Stream::X) };
    let body = Body::Sublayers { attention: each(Sublayer::Attention { qkv_norm: false }), ffn: each(Sublayer::Ffn) };
    let exit = (!post).then_some(own);
    Placement { name: "bench".into(), doc: None, entry: None, body, boundary: None, exit, init: vec![] }
}

/// One document a row, of tokens that look random.
fn batch(rows: usize, context: usize, vocabulary: usize, seed: u64) -> Batch {
    let cells = rows * context;
    let token = |at: usize| {
        let mixed = (at as u64 + (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % vocabulary
    };
    Batch {
        rows,
        context,
        sequences: (0..rows as u64).collect(),
        inputs: (0..cells).map(|at| token(at) as u32).collect(),
        labels: (0..cells).map(|at| token(at + 1) as u32).collect(),
        counted: vec![true; cells],
        document: vec![0; cells],
        position: (0..cells).map(|at| (at % context) as u32).collect(),
        structural: vec![false; cells],
    }
}
