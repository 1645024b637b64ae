//! Optimizers besides AdamW against PyTorch's; `tests/reference/optimizers.py` writes the numbers.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Deserialize;
use xrun::budget::params::Group;
use xrun::model::Params;
use xrun::study;
use xrun::tensor::{Composed, Cpu, Device, Fused, Operations, Param, Real};
use xrun::train::Optimizer;

use crate::build::*;
use crate::library;
use crate::reference::{Course, course};

/// By the names of the script: the rule as a study says it, and ten times its peak, at which given gradients are followed.
const RULES: [(&str, &str, f64); 6] = [
    ("sgd", "sgd(lr: 0.03, decay: 0.1)", 0.3),
    ("momentum", "sgd(lr: 0.01, momentum: 0.9, decay: 0.1)", 0.1),
    ("nesterov", "sgd(lr: 0.01, momentum: 0.9, nesterov: yes, decay: 0.1)", 0.1),
    ("lion", "lion(lr: 5e-4, decay: 0.1)", 5e-3),
    ("muon", "muon(lr: 1e-3, decay: 0.1)", 1e-2),
    ("muon_plain", "muon(lr: 1e-3, nesterov: no, decay: 0.1)", 1e-2),
];

/// Values by parameter after 1, 8 and 24 updates.
type After = Vec<BTreeMap<String, Vec<f64>>>;

#[derive(Deserialize)]
struct Reference {
    courses: BTreeMap<String, Course>,
    given: BTreeMap<String, After>,
}

fn read() -> Reference {
    serde_json::from_str(include_str!("../reference/optimizers.json")).expect("a reference")
}

/// The optimizer of a text.
pub fn rule(optimizer: &str) -> study::Optimizer {
    let study = library::study(&format!(
        "use std.schedules (joint)
         data tales {{ generate tales(documents: 9), context 16 tokens }}
         model tiny {{ layers 4, block 2 layers, width 16, heads 4, ffn swiglu(24) }}
         training plain {{ loss cross_entropy, optimizer {optimizer}, batch 4 sequences }}
         study s {{ data tales, model tiny, training plain, schedule joint(steps: 4) }}"
    ));
    study.arms[0].recipe.training.optimizer
}

#[test]
fn courses_through_every_event() {
    let mut expected = read().courses;
    for (name, optimizer, _) in RULES {
        let (expected, model) = (expected.remove(name).expect("a course"), model(pre(), 4));
        expected.agrees(name, "f64", &course::<f64, Composed>(optimizer, "pre", &model, None));
        expected.agrees(name, "composed", &course::<f32, Composed>(optimizer, "pre", &model, None));
        expected.agrees(name, "fused", &course::<f32, Fused>(optimizer, "pre", &model, None));
    }
    assert!(expected.is_empty());
}

#[test]
fn given_gradients_move_tensors_as_in_pytorch() {
    let mut expected = read().given;
    for (name, optimizer, peak) in RULES {
        let expected = expected.remove(name).expect("a rule");
        follow::<f64, Composed>(name, optimizer, peak, &expected, 1e-12);
        follow::<f32, Composed>(name, optimizer, peak, &expected, 1e-5);
        follow::<f32, Fused>(name, optimizer, peak, &expected, 1e-5);
    }
    assert!(expected.is_empty());
}

fn follow<E: Real, O: Operations<E, Cpu>>(name: &str, optimizer: &str, peak: f64, expected: &After, allowed: f64)
where
    Cpu: Device<E>,
{
    let shapes: [(&str, &[usize], Group); 3] = [
        ("layers.0.ffn.up", &[7, 3], Group::Matrix),
        ("layers.0.ffn.down", &[4, 6], Group::Matrix),
        ("exit.norm", &[5], Group::Norm),
    ];
    let wave = |shape: &[usize], a: f64, b: f64| {
        let values = (0..shape.iter().product()).map(|at: usize| E::of((a + b * at as f64).sin()));
        Param::new(&Cpu::default(), values.collect(), shape).expect("memory")
    };
    let all = |a: f64, b: f64| shapes.iter().map(|(name, shape, _)| ((*name).to_owned(), wave(shape, a, b))).collect();
    let groups: IndexMap<String, Group> = shapes.iter().map(|(name, _, group)| ((*name).to_owned(), *group)).collect();
    let optimizer = Optimizer { rule: rule(optimizer), clip: None };
    let (mut params, mut moments) = (Params(all(0.5, 1.3)), IndexMap::new());
    let mut expected = expected.iter();
    for t in 0..24 {
        let rate = peak * (1.0 - t as f64 / 40.0);
        let gradients = all(1.0 + 0.9 * t as f64, 0.7);
        optimizer.update::<E, Cpu, O>(&mut params, &mut moments, &gradients, &groups, (rate, 1.0)).expect("memory");
        if ![1, 8, 24].contains(&(t + 1)) {
            continue;
        }
        for (tensor, expected) in expected.next().expect("values") {
            for (seen, expected) in params.0[tensor].values().into_iter().zip(expected) {
                let seen: f64 = seen.into();
                assert!((seen - expected).abs() < allowed, "{name}, {tensor}, update {}: {seen} against {expected}", t + 1);
            }
        }
    }
}
