//! What moves, what does not, and by how much at first.

use xrun::run::worker::Stop;
use xrun::study::Embedding;
use xrun::tensor::{Composed, Cpu, Fused, Operations, Param};
use xrun::timeline::{Frozen, LayerId};
use xrun::train::{State, step};

use crate::build::*;

fn bits(bench: &Bench<f32, Cpu>, name: &str) -> Vec<u32> {
    bench.state.params.0[name].values().into_iter().map(f32::to_bits).collect()
}

/// A hundred steps with momentum before and decay on everything: what is frozen stays the same to the bit and has no state.
#[test]
fn frozen_is_frozen() {
    frozen_is_frozen_by::<Composed>();
    frozen_is_frozen_by::<Fused>();
}

fn frozen_is_frozen_by<O: Operations<f32, Cpu>>() {
    let mut bench: Bench<f32, Cpu> = Bench::new(model(post(), 4), segment(4, 0..200, 1e-2));
    bench.optimizer = adamw(0.1, true);
    let batch = batch(2, 6, 1, 3);
    for at in 0..5 {
        bench.step_by::<O>(None, &batch, at, 1e-2);
    }
    let layers = [LayerId(0), LayerId(1)].into();
    bench.freeze(Frozen { layers, prefix: 2, head: true, ..Frozen::default() });
    let still =
        |name: &str| ["layers.0.", "layers.1.", "entry.", "embedding", "head"].iter().any(|start| name.starts_with(start));
    let before: Vec<(String, Vec<u32>)> = bench.specs.iter().map(|spec| (spec.name.clone(), bits(&bench, &spec.name))).collect();
    // What is frozen has no part in the norm that is clipped.
    let (_, learning) = bench.gradients_by::<O>(None, &batch, 5);
    assert!(learning.keys().all(|name| !still(name)));
    let norm = learning.values().flatten().map(|slope| slope * slope).sum::<f64>().sqrt();
    for at in 5..105 {
        let seen = bench.step_by::<O>(None, &batch, at, 1e-2);
        assert!(at > 5 || (seen.grad_norm / norm - 1.0).abs() < 1e-6);
    }
    for (name, value) in before {
        assert_eq!(bits(&bench, &name) == value, still(&name), "{name}");
    }
    let kept: Vec<&String> = bench.state.moments.keys().filter(|name| still(name)).collect();
    // Those that merely get no gradient keep the state that they had.
    assert_eq!(kept, ["embedding", "entry.norm"]);
    assert_eq!(bench.state.moments["embedding"].updates, 5);
}

/// Freezing single layers, norms or the embedding without a prefix: the gradient passes through, and they stay.
#[test]
fn frozen_without_a_prefix() {
    let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 4), segment(4, 0..200, 1e-2));
    let all = bench.gradients(None, &batch(2, 6, 1, 3), 0).1;
    bench.freeze(Frozen { layers: [LayerId(2)].into(), norms: true, ..Frozen::default() });
    let some = bench.gradients(None, &batch(2, 6, 1, 3), 0).1;
    assert_eq!(some["layers.0.attention.q"], all["layers.0.attention.q"]);
    assert!(some.keys().all(|name| !name.starts_with("layers.2.") && !name.contains("norm")));
    // A tied embedding above a frozen prefix learns from the head's side alone.
    let mut tied = model(pre(), 4);
    (tied.embedding, tied.head) = (Embedding::Tied, Embedding::Tied);
    let mut bench: Bench<f32, Cpu> = Bench::new(tied, segment(4, 0..200, 1e-2));
    let both = bench.gradients(None, &batch(2, 6, 1, 3), 0).1;
    bench.freeze(Frozen { layers: [LayerId(0), LayerId(1)].into(), prefix: 2, ..Frozen::default() });
    let one = bench.gradients(None, &batch(2, 6, 1, 3), 0).1;
    assert!(one.contains_key("embedding") && one["embedding"] != both["embedding"]);
}

/// A parameter without state is updated at step 1,001 as a fresh AdamW would at its first: by lr · g / (|g| + eps).
#[test]
fn the_first_update_of_a_new_parameter_is_that_of_a_fresh_optimizer() {
    let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..2_000, 1e-2));
    let batch = batch(2, 6, 1, 3);
    for at in 0..5 {
        bench.step(None, &batch, at, 1e-2);
    }
    bench.state.moments.retain(|name, _| !name.starts_with("layers.1."));
    let (_, gradients) = bench.gradients(None, &batch, 1_000);
    let norm = gradients.values().flatten().map(|g| g * g).sum::<f64>().sqrt();
    let scale = (0.5 / (norm + 1e-6)).min(1.0);
    let name = "layers.1.ffn.up";
    let before = bench.values(name);
    let seen = bench.step(None, &batch, 1_000, 1e-2);
    assert!((seen.grad_norm - norm).abs() < 1e-9);
    for ((after, before), g) in bench.values(name).iter().zip(before).zip(&gradients[name]) {
        let g = g * scale;
        let expected = before * (1.0 - 1e-2 * 0.1) - 1e-2 * g / (g.abs() + 1e-8);
        assert!((after - expected).abs() < 1e-6, "{after} against {expected}");
    }
    assert_eq!((bench.state.moments[name].updates, bench.state.moments["head"].updates), (1, 6));
}

/// A step that cannot be taken says which tensor is at fault and changes nothing.
#[test]
fn a_step_happens_whole_or_not_at_all() {
    a_step_happens_whole_by::<Composed>();
    a_step_happens_whole_by::<Fused>();
}

fn a_step_happens_whole_by<O: Operations<f32, Cpu>>() {
    let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..9, 1e-2));
    let name = "layers.1.ffn.up";
    let mut values = bench.state.params.0[name].values();
    values[3] = f32::NAN;
    let shape = bench.state.params.0[name].shape();
    bench.state.params.0[name] = Param::new(&Cpu::default(), values, &shape).expect("memory");
    let mut state: State<f32, Cpu> = bench.state.clone();
    let failure = step::<f32, Cpu, O>(&bench.setting(), &mut state, &[], &batch(2, 6, 1, 3), (7, 1e-2));
    assert_eq!(failure.expect_err("it is not a number").to_string(), "diverged at step 7: layers.1.ffn.up");
    assert!(state.moments.is_empty());
    for (name, value) in &state.params.0 {
        let same = value.values().iter().zip(bench.state.params.0[name].values()).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{name}");
    }
}

/// Asked for an end in the middle of a batch, a step is given up and changes nothing.
#[test]
fn a_step_may_be_given_up() {
    let bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..9, 1e-2));
    let stop = std::sync::atomic::AtomicBool::new(true);
    let setting = xrun::train::Setting { stop: Stop::of(&stop), ..bench.setting() };
    let mut state = bench.state.clone();
    let seen = step::<f32, Cpu, Composed>(&setting, &mut state, &[], &batch(2, 6, 1, 3), (7, 1e-2));
    assert_eq!(seen.expect("finite"), None);
    assert!(state.moments.is_empty());
    for (name, value) in &state.params.0 {
        assert_eq!(value.values(), bench.state.params.0[name].values(), "{name}");
    }
}

#[test]
fn norms_are_spared_from_decay_by_default() {
    for (all, spared) in [(false, true), (true, false)] {
        let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..9, 1e-2));
        bench.optimizer = adamw(0.5, all);
        let plain = {
            let mut plain: Bench<f32, Cpu> = Bench::new(model(pre(), 2), segment(2, 0..9, 1e-2));
            plain.optimizer = adamw(0.0, all);
            plain.step(None, &batch(2, 6, 1, 3), 0, 1e-2);
            bits(&plain, "exit.norm")
        };
        bench.step(None, &batch(2, 6, 1, 3), 0, 1e-2);
        assert_eq!(bits(&bench, "exit.norm") == plain, spared);
    }
}

#[test]
fn the_norm_of_gradients_is_summed_in_f64() {
    let param: Param<f32, Cpu> = Param::new(&Cpu::default(), vec![1e-3; 4_000_000], &[4_000_000]).expect("memory");
    let one = f64::from(1e-3_f32);
    let sum = Operations::<f32, Cpu>::sum_of_squares(&Composed, &param);
    assert!((sum - 4e6 * one * one).abs() < 1e-9);
}

/// Before step 5 the ffn has no norm; its norm then neither moves nor decays nor counts updates, momentum or not.
#[test]
fn a_branch_that_does_not_hold_rests() {
    use xrun::study::equation::{Branches, Comparison, Condition, Scalar};
    use xrun::study::placement::Body;
    let early = Condition { comparison: Comparison::Less, left: Scalar::Step, right: Scalar::Number(5.0) };
    let body = Body::Sublayers {
        attention: Branches::always(equation(add(x(), attention(x())))),
        ffn: Branches { cases: vec![(early, equation(add(x(), ffn(x()))))], otherwise: equation(add(x(), ffn(norm(0, x())))) },
    };
    let mut bench: Bench<f32, Cpu> = Bench::new(model(placement(false, body, true), 2), segment(2, 0..9, 1e-3));
    bench.optimizer = adamw(0.1, true);
    let before = bits(&bench, "layers.0.ffn.norm");
    for at in 0..7 {
        bench.step(None, &batch(2, 6, 1, 3), at, 1e-3);
        assert_eq!(bits(&bench, "layers.0.ffn.norm") == before, at < 5, "step {at}");
    }
    assert_eq!(bench.state.moments["layers.0.ffn.norm"].updates, 2);
}
