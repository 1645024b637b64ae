//! What others have found about placements holds here, before the first step: results that a wrong engine would miss.

use std::f64::consts::PI;

use xrun::data::Batch;
use xrun::model::{Network, Without};
use xrun::study::{Ffn, Init, Model, Placement};
use xrun::tensor::{Composed, Cpu, Param};
use xrun::timeline::Segment;

use crate::build::*;

/// Standard deviation 0.02 at width 4096, a gain of 1.28 a matrix, kept at another width (2608.13156).
fn kept_gain(width: usize) -> Init {
    Init::Normal { std: 0.02 * (4096.0 / width as f64).sqrt() }
}

/// `layers` fresh layers, `block` a block, norms all ones.
fn fresh(placement: Placement, [layers, block, width]: [usize; 3]) -> Bench<f64, Cpu> {
    let own = model(placement, layers);
    let ffn = Ffn::SwiGlu { width: 3 * width };
    let model = Model { block, width, head_dim: width / 4, ffn, qk_norm: false, init: kept_gain(width), ..own };
    let block_ends = (1..=layers / block).map(|number| number * block).collect();
    let mut bench = Bench::new(model, Segment { block_ends, ..segment(layers, 0..1, 1e-3) });
    for (_, param) in bench.state.params.0.iter_mut().filter(|(name, _)| name.contains("norm")) {
        *param = Param::new(&Cpu::default(), vec![1.0; param.shape().iter().product()], &param.shape()).expect("memory");
    }
    bench
}

/// The residual stream before the first and after each block: (N, D) each.
fn streams(bench: &Bench<f64, Cpu>, batch: &Batch) -> Vec<Vec<f64>> {
    let Segment { stack, block_ends, .. } = &bench.segment;
    let network: Network<'_, f64, Cpu, Composed> = Network::new(&bench.model, stack, block_ends, &bench.state.params, 0);
    let rows = network.rows(&bench.device, batch).expect("memory");
    let mut all = Vec::new();
    network.stream(&rows, Without::Nothing, |_, stream| all.push(stream.as_vec())).expect("memory");
    all
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64
}

/// Xiong et al., 2002.04745, lemma 2: the expected square norm of the stream grows linearly with depth under pre-norm, and stays under post-norm.
#[test]
fn variance_grows_linearly_with_depth_under_pre_norm_alone() {
    const LAYERS: usize = 24;
    let batch = batch(8, 16, 0, 3);
    let of = |placement| streams(&fresh(placement, [LAYERS, 1, 64]), &batch).iter().map(|stream| mean_square(stream)).collect();
    let (before, after): (Vec<f64>, Vec<f64>) = (of(pre()), of(post()));
    assert!(after.iter().all(|value| (value - 1.0).abs() < 1e-3), "{after:?}");
    // The coefficient of determination of a line through the values.
    let depth: Vec<f64> = (0..=LAYERS).map(|layer| layer as f64).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let cov = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean(a)) * (y - mean(b))).sum::<f64>();
    let determined = cov(&depth, &before).powi(2) / (cov(&depth, &depth) * cov(&before, &before));
    assert!(determined > 0.995, "{determined}: {before:?}");
    assert!(before[LAYERS] > 10.0 * before[1], "{before:?}");
}

/// Theorem 1 of the same: the gradient of the last layer's feed-forward output matrix falls as 1/√L under pre-norm, and does not under post-norm.
#[test]
fn the_last_layers_gradient_falls_with_depth_under_pre_norm_alone() {
    let batch = batch(8, 16, 0, 5);
    let slope = |placement: Placement, layers: usize| {
        let bench = fresh(placement, [layers, 1, 64]);
        let (_, found) = bench.gradients(None, &batch, 0);
        let own = &found[&format!("layers.{}.ffn.down", layers - 1)];
        own.iter().map(|value| value * value).sum::<f64>().sqrt()
    };
    for (from, to) in [(4, 16), (8, 32)] {
        let fallen = slope(pre(), to) / slope(pre(), from);
        assert!((0.5 * 0.8..0.5 * 1.2).contains(&fallen), "pre-norm, {from} to {to} layers: × {fallen}, expected × 1/2");
        let stayed = slope(post(), to) / slope(post(), from);
        assert!((0.8..1.25).contains(&stayed), "post-norm, {from} to {to} layers: × {stayed}, expected × 1");
    }
}

/// A weight whose answer goes into an RMS norm and nowhere else has no say in its length: ⟨∂L/∂W, W⟩ = 0 (Euler's theorem for functions of degree 0).
#[test]
fn weights_that_only_feed_a_norm_have_gradients_across_them() {
    let after = placement(false, sublayers(|f| add(x(), norm(0, f(x())))), true);
    let mut own = model(after, 2);
    own.norm.eps = 0.0;
    let bench: Bench<f64, Cpu> = Bench::new(own, segment(2, 0..1, 1e-3));
    let (_, found) = bench.gradients(None, &batch(3, 7, 0, 5), 0);
    // The cosine of the angle between a weight and its gradient.
    let along = |name: &str| {
        let (gradient, weight) = (&found[name], bench.values(name));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        (dot(gradient, &weight) / (dot(gradient, gradient) * dot(&weight, &weight)).sqrt()).abs()
    };
    for layer in 0..2 {
        // q and k feed the norms of QK-norm; v, o, up and down are factors of what the norm after the sublayer reads.
        for part in ["attention.q", "attention.k", "attention.v", "attention.o", "ffn.up", "ffn.down"] {
            let along = along(&format!("layers.{layer}.{part}"));
            assert!(along < 1e-12, "layers.{layer}.{part}: {along}");
        }
        let gate = along(&format!("layers.{layer}.ffn.gate"));
        assert!(gate > 1e-6, "a gate is no factor: {gate}");
    }
    assert!(along("head") > 1e-6);
}

/// Mean over tokens of arccos(cos(before, after))/π of a fresh block of three layers of width 128, on a stream of the given RMS.
fn turned(placement: Placement, rms: f64, init: Option<Init>) -> f64 {
    let mut bench = fresh(placement, [3, 3, 128]);
    if let Some(init) = init {
        let model = Model { init, ..bench.model.clone() };
        let (norms, segment) = (bench.state.params.clone(), bench.segment.clone());
        bench = Bench::new(model, segment);
        for (name, param) in norms.0.into_iter().filter(|(name, _)| name.contains("norm")) {
            bench.state.params.0.insert(name, param);
        }
    }
    let embedding = &bench.state.params.0["embedding"];
    let (values, shape) = (embedding.values(), embedding.shape());
    let scale = rms / mean_square(&values).sqrt();
    let scaled = values.into_iter().map(|value| value * scale).collect();
    bench.state.params.0.insert("embedding".into(), Param::new(&Cpu::default(), scaled, &shape).expect("memory"));
    let seen = streams(&bench, &batch(16, 32, 0, 5));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let tokens = seen[0].chunks_exact(128).zip(seen[1].chunks_exact(128));
    let angles: Vec<f64> =
        tokens.map(|(a, b)| (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).clamp(-1.0, 1.0).acos() / PI).collect();
    angles.iter().sum::<f64>() / angles.len() as f64
}

/// A fresh block turns the stream by as much as at full scale if the gain is kept, less the larger the stream is under pre-norm; with the
/// standard deviation of the full scale in its place it is next to an identity under either placement. Figures: 2608.13156's shape at width 128.
#[test]
fn a_fresh_block_turns_the_stream_by_as_much_as_its_gain_lets_it() {
    let near = |seen: f64, expected: f64, what: &str| {
        assert!((seen / expected - 1.0).abs() < 0.15, "{what}: {seen}, expected about {expected}");
    };
    near(turned(pre(), 1.0, None), 0.43, "pre at RMS 1");
    near(turned(pre(), 7.0, None), 0.17, "pre at RMS 7");
    near(turned(pre(), 11.0, None), 0.11, "pre at RMS 11");
    near(turned(post(), 1.0, None), 0.49, "post");
    // Here the angle is as good as the length of what is added: it goes with the widths of the sublayers, which the source does not tell.
    for (placement, name) in [(pre(), "pre"), (post(), "post")] {
        let seen = turned(placement, 1.0, Some(Init::Normal { std: 0.02 }));
        assert!((0.011 * 0.7..0.011 * 1.3).contains(&seen), "{name} with std 0.02: {seen}, expected about 0.011");
    }
}
