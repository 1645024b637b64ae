//! Loss curves against PyTorch; `tests/reference/curves.py` writes the numbers.

use serde::Deserialize;
use xrun::budget::params::{parameters, whole};
use xrun::data::Batch;
use xrun::model::Params;
use xrun::study::{Ffn, Model, NormKind};
use xrun::tensor::{Cpu, Param};
use xrun::timeline::{Frozen, LayerId};
use xrun::train::{Learning, Teacher, Term};

use crate::build::*;

/// That of the script.
const LR: f64 = 3e-3;

#[derive(Deserialize)]
struct Reference {
    batches: Vec<Cells>,
    curves: std::collections::BTreeMap<String, Vec<f64>>,
}
#[derive(Deserialize)]
struct Cells {
    inputs: Vec<u32>,
    labels: Vec<u32>,
    document: Vec<u32>,
    position: Vec<u32>,
    counted: Vec<u32>,
}

fn reference() -> (Vec<Batch>, std::collections::BTreeMap<String, Vec<f64>>) {
    let read: Reference = serde_json::from_str(include_str!("../reference/curves.json")).expect("a reference");
    let batch = |cells: Cells| Batch {
        rows: 4,
        context: 12,
        sequences: (0..4).collect(),
        structural: vec![false; cells.inputs.len()],
        counted: cells.counted.iter().map(|counted| *counted == 1).collect(),
        inputs: cells.inputs,
        labels: cells.labels,
        document: cells.document,
        position: cells.position,
    };
    (read.batches.into_iter().map(batch).collect(), read.curves)
}

fn weights(who: &str, model: &Model, layers: usize) -> Params<f32, Cpu> {
    let bytes = include_bytes!("../reference/curves.safetensors");
    let file = safetensors::SafeTensors::deserialize(bytes).expect("tensors");
    let stack: Vec<LayerId> = (0..layers as u32).map(LayerId).collect();
    let specs = parameters(model, &stack, &whole(model).1);
    Params::from_values(&Cpu::default(), &specs, |spec| {
        let view = file.tensor(&format!("{who}/{}", spec.name)).expect("a tensor of that name");
        assert_eq!(view.shape(), spec.shape);
        let words = view.data().chunks_exact(4);
        words.map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    })
    .expect("memory")
}

fn agrees(curve: &str, seen: &[f64]) {
    let expected = &reference().1[curve];
    assert_eq!(seen.len(), expected.len());
    for (step, (seen, expected)) in seen.iter().zip(expected).enumerate() {
        assert!((seen - expected).abs() < 1e-4, "{curve}, step {step}: {seen} against {expected}");
    }
}

fn curve(who: &str, model: Model, terms: Option<Vec<Term>>, teacher: Option<&Teacher<f32, Cpu>>) -> Vec<f64> {
    let layers = model.layers;
    let mut bench: Bench<f32, Cpu> = Bench::new(model, segment(layers, 0..20, LR));
    bench.state.params = weights(who, &bench.model, layers);
    bench.terms = terms.unwrap_or(bench.terms);
    bench.micro = 3;
    let (batches, _) = reference();
    (0..20).map(|at| bench.step(teacher, &batches[at % batches.len()], at as u64, LR).loss).collect()
}

#[test]
fn pre_cross_entropy() {
    agrees("pre_ce", &curve("pre", model(pre(), 4), None, None));
}

#[test]
fn post_cross_entropy() {
    agrees("post_ce", &curve("post", model(post(), 4), None, None));
}

#[test]
fn post_distillation() {
    let its = model(pre(), 4);
    let params = weights("teacher", &its, 4);
    let teacher = Teacher::Online(Box::new(xrun::train::OnlineTeacher::new(its, params)));
    let terms = vec![Term::CrossEntropy { factor: 0.3 }, Term::Kl { factor: 0.7 * 4.0, temperature: 2.0 }];
    agrees("post_kd", &curve("post", model(post(), 4), Some(terms), Some(&teacher)));
}

#[test]
fn sandwich_with_layer_norm_and_gelu() {
    let mut model = model(sandwich(), 2);
    model.norm.kind = NormKind::Layer { bias: true };
    model.ffn = Ffn::Gelu { width: 24 };
    agrees("sandwich_ce", &curve("sandwich", model, None, None));
}

/// Two layers for ten steps; then two more join and the first two freeze: the old moments of head and exit norm go on.
#[test]
fn growing_and_freezing() {
    let whole = weights("pre", &model(pre(), 4), 4);
    let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 4), segment(2, 0..10, LR));
    let copy = |bench: &mut Bench<f32, Cpu>, names: Vec<String>| {
        for name in names {
            let value: Param<f32, Cpu> = whole.0[&name].clone();
            bench.state.params.0.insert(name, value);
        }
    };
    let names = bench.state.params.0.keys().cloned().collect();
    copy(&mut bench, names);
    let (batches, _) = reference();
    let mut seen: Vec<f64> = Vec::new();
    for at in 0..10 {
        seen.push(bench.step(None, &batches[at % 5], at as u64, LR).loss);
    }
    bench.segment = segment(4, 10..20, LR);
    bench.specs = parameters(&bench.model, &bench.segment.stack, &bench.segment.block_ends);
    bench.groups = xrun::train::groups(&bench.specs);
    let new = bench.specs.iter().filter(|spec| spec.layer >= Some(LayerId(2))).map(|spec| spec.name.clone()).collect();
    copy(&mut bench, new);
    bench.learning = Learning::new(&bench.model, &bench.specs, &bench.segment);
    bench.freeze(Frozen { layers: [LayerId(0), LayerId(1)].into(), prefix: 2, ..Frozen::default() });
    for at in 10..20 {
        seen.push(bench.step(None, &batches[at % 5], at as u64, LR).loss);
    }
    agrees("pre_grow_freeze", &seen);
}
