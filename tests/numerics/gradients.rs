//! Gradients of whole models against central differences, in f64.

use indexmap::IndexMap;
use xrun::study::equation::{Branches, Comparison, Condition, Equation, Scalar, Stream};
use xrun::study::placement::Body;
use xrun::study::{Embedding, Ffn, Model, NormKind, Placement};
use xrun::tensor::{Cpu, Divergence, Param};
use xrun::train::{Teacher, Term};

use crate::build::*;

const H: f64 = 1e-5;

/// Compares the gradients of everything that learns with differences of the loss, after `at` steps.
pub fn check(model: Model, terms: Vec<Term>, teacher: Option<&Teacher<f64, Cpu>>, at: u64) {
    let depth = model.layers;
    let mut bench: Bench<f64, Cpu> = Bench::new(model, segment(depth, 0..1, 1e-2));
    (bench.terms, bench.micro) = (terms, 2);
    let batch = batch(3, 7, 2, 5);
    let (_, found) = bench.gradients(teacher, &batch, at);
    assert_eq!(found.len(), bench.specs.len(), "everything learns");
    compare(&mut bench, &found, |bench| bench.gradients(teacher, &batch, at).0);
}

/// Compares some elements of gradients with (loss(w + h) − loss(w − h)) / 2h.
pub fn compare(bench: &mut Bench<f64, Cpu>, found: &IndexMap<String, Vec<f64>>, loss: impl Fn(&Bench<f64, Cpu>) -> f64) {
    let mut draw = numbers(11);
    for (name, gradient) in found {
        let first = bench.state.params.0[name].clone();
        for _ in 0..3 {
            let element = draw(gradient.len() as u64) as usize;
            let mut shifted = |shift: f64| {
                let mut values = first.values();
                values[element] += shift;
                bench.state.params.0[name] = Param::new(&Cpu::default(), values, &first.shape()).expect("memory");
                loss(bench)
            };
            let expected = (shifted(H) - shifted(-H)) / (2.0 * H);
            let error = (gradient[element] - expected).abs() / (1e-3 + expected.abs());
            assert!(error < 1e-5, "{name}[{element}]: {} against {expected}", gradient[element]);
        }
        bench.state.params.0[name] = first;
    }
}

pub fn ce() -> Vec<Term> {
    vec![Term::CrossEntropy { factor: 1.0 }]
}

#[test]
fn pre() {
    check(model(crate::build::pre(), 2), ce(), None, 3);
}

#[test]
fn post_with_distillation() {
    let model = model(crate::build::post(), 2);
    let teacher = teacher(&model, 3);
    let terms = vec![
        Term::CrossEntropy { factor: 0.3 },
        Term::Apart { factor: 0.7 * 4.0, divergence: Divergence::Kl, temperature: 2.0, teacher: 0 },
    ];
    check(model, terms, Some(&teacher), 3);
}

#[test]
fn sandwich_with_layer_norm_gelu_and_a_tied_head() {
    let mut model = model(sandwich(), 2);
    model.norm.kind = NormKind::Layer { bias: true };
    model.ffn = Ffn::Gelu { width: 20 };
    (model.embedding, model.head) = (Embedding::Tied, Embedding::Tied);
    check(model, ce(), None, 3);
}

/// Gain, learned scalar, x0, scalars of layer, depth and step, a `let`, a `when`, one layer equation, a boundary, qkv norms.
#[test]
fn an_equation_of_ones_own() {
    let ratio = Scalar::Divide(
        Box::new(Scalar::Step),
        Box::new(Scalar::Multiply(Box::new(Scalar::Number(5.0)), Box::new(Scalar::Layer))),
    );
    let weight = Scalar::Min(Box::new(ratio), Box::new(Scalar::Number(1.0)));
    let hybrid =
        Stream::Sublayer { sublayer: xrun::study::equation::Sublayer::Attention { qkv_norm: true }, input: Box::new(x()) };
    let usual = Equation {
        bindings: vec![add(x(), gain(0.5, hybrid)), norm(0, Stream::Bound(0))],
        result: add(Stream::Bound(1), scale(weight, learned(0.7, ffn(add(Stream::Bound(1), Stream::Bound(0)))))),
    };
    let first = equation(add(
        add(x(), Stream::Embedded),
        Stream::Subtract(Box::new(attention(norm(0, x()))), Box::new(ffn(norm(1, x())))),
    ));
    let condition = Condition { comparison: Comparison::Equal, left: Scalar::Layer, right: Scalar::Number(1.0) };
    let body = Body::Layer(Branches { cases: vec![(condition, first)], otherwise: usual });
    let boundary = Some(equation(add(x(), learned(0.3, norm(0, add(x(), Stream::Embedded))))));
    let placement = Placement { boundary, ..placement(true, body, true) };
    check(model(placement, 4), ce(), None, 3);
}

/// x + f(n x) + stop(x) − stop(x) has the value and the gradients of pre-norm; what stands only under `stop` gets none.
#[test]
fn stop_keeps_the_value_and_ends_the_gradient() {
    let around = |f: fn(Stream) -> Stream| {
        let pre = add(x(), f(norm(0, x())));
        Stream::Subtract(Box::new(add(pre, stop(norm(1, x())))), Box::new(stop(norm(1, x()))))
    };
    let batch = batch(2, 6, 1, 9);
    let plain: Bench<f64, Cpu> = Bench::new(model(crate::build::pre(), 2), segment(2, 0..1, 1e-2));
    let stopped: Bench<f64, Cpu> = Bench::new(model(placement(false, sublayers(around), true), 2), segment(2, 0..1, 1e-2));
    let (plain, stopped) = (plain.gradients(None, &batch, 0), stopped.gradients(None, &batch, 0));
    assert!((plain.0 - stopped.0).abs() < 1e-12);
    for (name, gradient) in stopped.1 {
        match plain.1.get(&name) {
            Some(expected) => gradient.iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-10, "{name}")),
            None => assert!(name.ends_with("norm2") && gradient.iter().all(|value| *value == 0.0), "{name}"),
        }
    }
}
