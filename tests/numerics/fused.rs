//! Fused operations against the composed ones: the same losses and gradients, and the same bytes for any number of threads.

use indexmap::IndexMap;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xrun::data::Batch;
use xrun::study::equation::{Branches, Equation, Scalar, Stream, Sublayer};
use xrun::study::placement::Body;
use xrun::study::{Embedding, Ffn, Model, NormKind, Placement, Positions};
use xrun::tensor::{Cpu, Divergence, Fused};
use xrun::train::{Teacher, Term, gradients};

use crate::build::*;

fn fused(
    bench: &Bench<f32, Cpu>,
    teacher: Option<&Teacher<f32, Cpu>>,
    batch: &Batch,
    at: u64,
) -> (f64, IndexMap<String, Vec<f32>>) {
    let seen = gradients::<f32, Cpu, Fused>(&bench.setting(), &bench.state, only(teacher), batch, at);
    let (loss, found) = seen.expect("finite").expect("whole");
    (loss, found.into_iter().map(|(name, gradient)| (name, gradient.values())).collect())
}

/// Fused in f32 against composed in f64: both have the same first values.
///
/// Fused may be off by 1e-5 of a gradient's size, and besides by a few times what composed is off in f32 on the same values: where a
/// norm divides by nearly nothing (two or three channels close to their mean) or a gradient cancels, no order of rounding is exact, and
/// composed shows by how much.
pub fn check(model: &Model, terms: &[Term], distilled: Option<&Model>, batch: &Batch, at: u64) {
    const TIMES: f64 = 16.0;
    let depth = model.layers;
    let mut plain: Bench<f64, Cpu> = Bench::new(model.clone(), segment(depth, 0..1, 1e-2));
    let mut fast: Bench<f32, Cpu> = Bench::new(model.clone(), segment(depth, 0..1, 1e-2));
    (plain.terms, plain.micro) = (terms.to_vec(), batch.rows);
    (fast.terms, fast.micro) = (terms.to_vec(), batch.rows);
    let teachers = distilled.map(|model| (teacher(model, 3), teacher(model, 3)));
    let (expected, slopes) = plain.gradients(teachers.as_ref().map(|both| &both.0), batch, at);
    let (rounded_loss, rounded) = fast.gradients(teachers.as_ref().map(|both| &both.1), batch, at);
    let (loss, found) = fused(&fast, teachers.as_ref().map(|both| &both.1), batch, at);
    let allowed = 1e-5 * expected.abs() + TIMES * (rounded_loss - expected).abs();
    assert!((loss - expected).abs() <= allowed, "loss {loss} against {expected}");
    assert_eq!(found.len(), slopes.len());
    // Where no position sees a second token, the gradients of q and k are zero, and differences of float32 numbers are not.
    let nothing = 1e-6 * length(slopes.values().flatten().copied());
    for (name, expected) in &slopes {
        let size = length(expected.iter().copied());
        let apart = |other: &[f64]| length(other.iter().zip(expected).map(|(a, b)| a - b));
        let found: Vec<f64> = found[name].iter().map(|value| f64::from(*value)).collect();
        let (error, rounding) = (apart(&found), apart(&rounded[name]));
        assert!(error <= 1e-5 * size + TIMES * rounding + nothing, "{name}: error {error} of {size}, rounding is {rounding}");
    }
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

fn ce() -> Vec<Term> {
    vec![Term::CrossEntropy { factor: 1.0 }]
}

pub fn mixed(temperature: f64) -> Vec<Term> {
    vec![
        Term::CrossEntropy { factor: 0.3 },
        Term::Apart { factor: 0.7 * temperature * temperature, divergence: Divergence::Kl, temperature, teacher: 0 },
    ]
}

/// Every kind of stream that an equation may hold.
fn everything() -> Placement {
    let hybrid = Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: true }, input: Box::new(x()) };
    let usual = Equation {
        bindings: vec![add(x(), gain(0.5, hybrid)), norm(0, Stream::Bound(0))],
        result: add(
            Stream::Subtract(Box::new(Stream::Bound(1)), Box::new(stop(norm(1, add(x(), x()))))),
            scale(Scalar::Layer, learned(0.7, ffn(add(Stream::Bound(1), Stream::Bound(0))))),
        ),
    };
    let boundary = Some(equation(add(x(), norm(0, add(x(), Stream::Embedded)))));
    Placement { boundary, ..placement(true, Body::Layer(Branches::always(usual)), true) }
}

#[test]
fn every_placement_agrees() {
    let parallel = || {
        let result = add(add(x(), attention(norm(0, x()))), ffn(norm(1, x())));
        placement(false, Body::Layer(Branches::always(equation(result))), true)
    };
    let rezero = || placement(false, sublayers(|f| add(x(), learned(0.4, f(x())))), false);
    for placement in [pre(), post(), sandwich(), parallel(), rezero(), everything()] {
        check(&model(placement, 2), &ce(), None, &batch(3, 21, 2, 5), 3);
    }
}

#[test]
fn layer_norm_gelu_no_positions_and_a_tied_head_agree() {
    let mut model = model(sandwich(), 2);
    (model.norm.kind, model.ffn) = (NormKind::Layer { bias: true }, Ffn::Gelu { width: 20 });
    (model.embedding, model.head) = (Embedding::Tied, Embedding::Tied);
    (model.positions, model.qk_norm) = (Positions::None, false);
    check(&model, &ce(), None, &batch(1, 9, 1, 5), 3);
}

#[test]
fn distillation_agrees_at_any_temperature() {
    let model = model(post(), 2);
    for terms in
        [mixed(1.0), mixed(2.0), vec![Term::Apart { factor: 1.0, divergence: Divergence::Kl, temperature: 1.0, teacher: 0 }]]
    {
        check(&model, &terms, Some(&model), &batch(3, 11, 2, 5), 3);
    }
}

#[test]
fn long_rows_agree() {
    check(&model(pre(), 2), &ce(), None, &batch(2, 150, 7, 3), 3);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let bench: Bench<f32, Cpu> = Bench::new(model(everything(), 2), segment(2, 0..1, 1e-2));
    let batch = batch(4, 33, 3, 7);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let (loss, found) = pool.install(|| fused(&bench, None, &batch, 3));
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        (loss.to_bits(), found.into_values().map(bits).collect::<Vec<_>>())
    };
    let one = run(1);
    assert!([2, 3].into_iter().all(|threads| run(threads) == one));
}

/// A few by default, the same each time; `PROPTEST_CASES` asks for more.
pub fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]
    #[test]
    fn any_shape_agrees(
        (keys, group, half) in (1..3_usize, 1..4_usize, 1..12_usize),
        (width, hidden) in (3..40_usize, 1..40_usize),
        (rows, context, seed) in (1..4_usize, 3..80_usize, any::<u64>()),
        (centered, qk_norm, tau) in (any::<bool>(), any::<bool>(), 0.5..3.0_f64),
    ) {
        let mut model = model(pre(), 2);
        // A norm over two or three channels leaves next to no freedom (a layer norm of two is ±1 whatever they are): its gradient is what
        // rounding leaves of nothing.
        let half = if centered || qk_norm { half + 1 } else { half };
        let width = if centered { width + 5 } else { width };
        (model.kv_heads, model.heads, model.head_dim) = (keys, keys * group, 2 * half);
        (model.width, model.ffn, model.qk_norm) = (width, Ffn::SwiGlu { width: hidden }, qk_norm);
        if centered {
            model.norm.kind = NormKind::Layer { bias: false };
        }
        check(&model, &mixed(tau), Some(&model), &batch(rows, context, 2, seed), 3);
    }
}
