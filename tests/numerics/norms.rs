//! Kinds of norms: against finite differences, fused against composed, and against PyTorch (`tests/reference/norms.py`).

use std::collections::BTreeMap;

use serde::Deserialize;
use xrun::model::Params;
use xrun::study::equation::{Branches, Equation, Stream, Sublayer};
use xrun::study::placement::Body;
use xrun::study::{Embedding, Model, Norm, NormKind, Placement};
use xrun::tensor::{Composed, Cpu, Device, Fused, Operations, Real};

use crate::build::*;
use crate::reference::reference;
use crate::{fused, gradients};

const DYT: Norm = Norm { kind: NormKind::Dyt { alpha: 0.5 }, eps: 0.0 };
const NONE: Norm = Norm { kind: NormKind::None, eps: 0.0 };

/// Norms on the stream, of queries, keys and values, of a difference, and under `stop`.
fn everywhere() -> Placement {
    let hybrid = Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: true }, input: Box::new(x()) };
    let equation = Equation {
        bindings: vec![add(x(), hybrid), norm(0, Stream::Bound(0))],
        result: add(norm(1, ffn(Stream::Bound(1))), add(x(), stop(norm(2, add(x(), Stream::Bound(1)))))),
    };
    let away = Stream::Subtract(Box::new(scale(xrun::study::equation::Scalar::Number(1.5), x())), Box::new(norm(0, x())));
    let boundary = Some(crate::build::equation(away));
    Placement { boundary, ..placement(true, Body::Layer(Branches::always(equation)), true) }
}

fn models() -> Vec<Model> {
    let mut models = Vec::new();
    for norm in [DYT, NONE] {
        for placement in [pre(), post(), sandwich(), everywhere()] {
            let mut model = Model { norm, ..model(placement, 2) };
            models.push(model.clone());
            (model.embedding, model.head, model.qk_norm) = (Embedding::Tied, Embedding::Tied, false);
            models.push(model);
        }
    }
    models
}

#[test]
fn every_kind_has_the_gradient_of_its_loss() {
    // What stands under `stop` alone has none, by intent.
    for model in models().into_iter().filter(|model| model.wiring.placements[0].boundary.is_none()) {
        gradients::check(model, gradients::ce(), None, 3);
    }
}

#[test]
fn every_kind_agrees_when_fused() {
    for model in models() {
        fused::check(&model, &fused::mixed(2.0), Some(&model), &batch(3, 21, 2, 5), 3);
    }
}

/// `norm none` is no norm: the same bytes as the placement without any.
#[test]
fn no_norm_is_what_it_reads() {
    let bare = placement(false, sublayers(|f| add(x(), f(x()))), false);
    let run = |model: Model| {
        let bench: Bench<f32, Cpu> = Bench::new(model, segment(2, 0..1, 1e-2));
        bench.gradients_by::<Fused>(None, &batch(3, 21, 2, 5), 3)
    };
    let mut expected = model(bare, 2);
    expected.qk_norm = false;
    for placement in [pre(), post()] {
        assert_eq!(run(Model { norm: NONE, ..model(placement, 2) }), run(expected.clone()));
    }
}

#[derive(Deserialize)]
struct Case {
    loss: f64,
    /// Of each parameter its gradient's norm, and the gradient along cos(k + 1).
    slopes: BTreeMap<String, [f64; 2]>,
}

/// The first values of the script.
fn weights<E: Real>(bench: &mut Bench<E, Cpu>)
where
    Cpu: Device<E>,
{
    let mut names: Vec<&str> = bench.specs.iter().map(|spec| spec.name.as_str()).collect();
    names.sort_unstable();
    let params = Params::from_values(&bench.device, &bench.specs, |spec| {
        let p = names.iter().position(|name| *name == spec.name).expect("a name") as f64;
        let (base, size) = match spec.name.rsplit('.').next() {
            _ if spec.shape.len() == 2 => (0.0, 0.3),
            Some("bias") => (0.0, 0.1),
            Some("alpha") => (0.5, 0.1),
            _ => (1.0, 0.1),
        };
        (1..=spec.elements()).map(|k| (base + size * libm::sin(0.37 * (k * k) as f64 + p)) as f32).collect()
    });
    bench.state.params = params.expect("memory");
}

fn compare<E: Real, O: Operations<E, Cpu>>(name: &str, model: &Model, case: &Case, allowed: f64)
where
    Cpu: Device<E>,
{
    let mut bench: Bench<E, Cpu> = Bench::new(model.clone(), segment(2, 0..1, 1e-2));
    weights(&mut bench);
    let (loss, found) = bench.gradients_by::<O>(None, &reference().0[0], 0);
    assert!((loss - case.loss).abs() < allowed, "{name}: loss {loss} against {}", case.loss);
    assert_eq!(found.keys().collect::<std::collections::BTreeSet<_>>(), case.slopes.keys().collect());
    for (param, gradient) in found {
        let [size, along] = case.slopes[&param];
        let seen = gradient.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
        let seen_along: f64 = gradient.iter().enumerate().map(|(k, slope)| slope * libm::cos((k + 1) as f64)).sum();
        let allowed = allowed * (1.0 + size);
        assert!((seen - size).abs() < allowed && (seen_along - along).abs() < allowed, "{name}, {param}: {seen} against {size}");
    }
}

#[test]
fn values_and_gradients_are_those_of_pytorch() {
    let cases: BTreeMap<String, Case> = serde_json::from_str(include_str!("../reference/norms.json")).expect("a reference");
    let models =
        [("dyt_pre", DYT, pre()), ("dyt_post", DYT, post()), ("dyt_sandwich", DYT, sandwich()), ("none_pre", NONE, pre())];
    assert_eq!(cases.len(), models.len());
    for (name, norm, placement) in models {
        let mut model = Model { norm, ..model(placement, 2) };
        model.qk_norm = norm == DYT;
        compare::<f64, Composed>(name, &model, &cases[name], 1e-10);
        compare::<f32, Composed>(name, &model, &cases[name], 3e-6);
        compare::<f32, Fused>(name, &model, &cases[name], 3e-6);
    }
}
