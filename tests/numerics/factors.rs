//! Learned factors in sums, and shared by `let`: gradients, fused against composed, and the values of the same equation with numbers.

use xrun::study::Model;
use xrun::tensor::{Cpu, Param};

use crate::build::{Bench, batch, model, pre, segment};
use crate::library::study;
use crate::{fused, gradients};

/// A tiny model with a placement as it is written.
fn wired(placement: &str) -> Model {
    let study = study(&format!(
        "use std.schedules (joint)
         placement own {placement}
         data tales {{ generate tales(documents: 9), context 16 tokens }}
         model tiny {{ layers 2, block 2 layers, width 16, heads 4, ffn swiglu(24), placement own }}
         training plain {{ loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }}
         study s {{ data tales, model tiny, training plain, schedule joint(steps: 4) }}"
    ));
    Model { wiring: study.arms[0].recipe.model.wiring.clone(), ..model(pre(), 2) }
}

const LEARNED: [&str; 4] = [
    "{ sublayer { let a = learned(0.5), a * x + (1 - a) * f(norm(x)) }, exit norm(x) }",
    "{ layer { let a = 1 + gain(0), let b = learned(0.2), x + a * b * attention(norm(x)) + 2 * (a - b / 2) * ffn(norm(x)) } }",
    "{ sublayer x + (learned(0.3) + gain(0.1)) * (learned(0.5) - l) * f(norm(x)), boundary (2 - learned(0.5)) * (x - x0) }",
    "{ entry { let g = gain(0.4), let y = -(g + 1) * norm(x), y - g * y }, sublayer norm(x + f(x)) }",
];

#[test]
fn learned_factors_in_sums_have_their_gradients() {
    for placement in LEARNED {
        gradients::check(wired(placement), gradients::ce(), None, 3);
    }
}

#[test]
fn learned_factors_in_sums_agree_when_fused() {
    for placement in LEARNED {
        let model = wired(placement);
        fused::check(&model, &fused::mixed(2.0), Some(&model), &batch(3, 21, 2, 5), 3);
    }
}

/// At the value v everywhere, a model with a learned factor is the one with v written in its place; and what is shared is one parameter.
#[test]
fn a_learned_factor_is_a_number_that_learns() {
    const V: f64 = 0.375;
    for (at, placement) in LEARNED.into_iter().enumerate() {
        let loss = |placement: &str| {
            let mut bench: Bench<f64, Cpu> = Bench::new(wired(placement), segment(2, 0..1, 1e-2));
            let is_factor = |name: &str| name.contains(".learned") || name.contains(".gain");
            for (_, value) in bench.state.params.0.iter_mut().filter(|(name, _)| is_factor(name)) {
                *value = Param::new(&Cpu::default(), vec![V; value.values().len()], &value.shape()).expect("memory");
            }
            let factors = bench.specs.iter().filter(|spec| is_factor(&spec.name)).count();
            (bench.gradients(None, &batch(3, 9, 2, 5), 3).0, factors)
        };
        let mut constant = placement.to_owned();
        for call in ["learned(", "gain("] {
            while let Some((before, after)) = constant.split_once(call) {
                let (_, after) = after.split_once(')').expect("a call");
                constant = format!("{before}{V}{after}");
            }
        }
        let ((learned, factors), (expected, none)) = (loss(placement), loss(&constant));
        assert!((learned - expected).abs() < 1e-12, "{placement}: {learned} against {expected}");
        // Layers or sublayers; the third has a boundary besides, the last its entry alone.
        assert_eq!((factors, none), ([4, 4, 4 * 3 + 1, 1][at], 0), "{placement}");
    }
}
