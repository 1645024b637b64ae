//! The standard library at work: every placement's gradients.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xrun::budget::identity::keeps;
use xrun::budget::params::FirstValue;
use xrun::check::{LIBRARY, check};
use xrun::model::Network;
use xrun::source::{Source, World};
use xrun::study::{Ffn, Init, Model, Study};
use xrun::tensor::{self, Composed, Cpu, NoneTape, Operations, Param, Targets};
use xrun::timeline::{FirstValues, LayerId, NewLayer, Segment};

use crate::build::{Bench, batch, model, pre, segment};
use crate::gradients::ce;
use crate::{fused, gradients};

/// No file but the text itself.
struct Alone;

impl World for Alone {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

/// The one study of a text.
pub fn study(text: &str) -> Study {
    let mut checked = check(&Alone, Source::new("library.exp", text));
    assert!(!checked.problems.has_errors(), "{}", checked.problems.render(&checked.sources, false));
    checked.studies.pop().expect("a study")
}

/// Names of a kind that a text of the library declares.
pub fn declared(kind: &str, library: &str) -> Vec<String> {
    let (_, text) = LIBRARY.iter().find(|(name, _)| *name == library).expect("a text of the library");
    let names = text.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    names.map(|rest| rest.split([' ', '(']).next().unwrap_or("").to_owned()).collect()
}

/// A schedule of the library with every length at `steps`; blocks have two layers.
pub fn calls(schedule: &str, steps: u64) -> String {
    let (_, text) = LIBRARY.iter().find(|(name, _)| *name == "std.schedules").expect("a text of the library");
    let head = text.lines().find_map(|line| line.strip_prefix("schedule ")?.strip_prefix(schedule)?.strip_prefix('('));
    let parameters = head.and_then(|rest| rest.split_once(") {")).map_or("", |(inside, _)| inside);
    let names = parameters.split(", ").filter_map(|part| Some(part.split_once(':')?.0));
    let given = names.map(|name| if name == "block" { "block: 2".to_owned() } else { format!("{name}: {steps} steps") });
    format!("{schedule}({})", given.collect::<Vec<_>>().join(", "))
}

/// A tiny model of four layers in two blocks for every placement.
fn models() -> Vec<Model> {
    let names = declared("placement", "std.placements").join(", ");
    let study = study(&format!(
        "use std.placements ({names})
         use std.schedules (joint)
         data tales {{ generate tales(documents: 9), context 16 tokens }}
         model tiny {{ layers 4, block 2 layers, width 16, heads 4, ffn swiglu(24) }}
         training plain {{ loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }}
         study s {{ data tales, model tiny, training plain, schedule joint(steps: 4)\n vary placement over {names} }}"
    ));
    let models = study.arms.into_iter().map(|arm| Model { wiring: arm.recipe.model.wiring.clone(), ..model(pre(), 4) });
    let models: Vec<Model> = models.collect();
    assert!(models.len() >= 17, "{}", models.len());
    models
}

/// Steps after which no scalar of the library that grows with them is next to nothing, and not all are at their end.
const LATER: u64 = 1_500;

fn name(model: &Model) -> &str {
    &model.wiring.placements[0].name
}

#[test]
fn every_placement_has_the_gradient_of_its_loss() {
    // A stream that is partly stopped has by intent another: see below.
    for model in models().into_iter().filter(|model| name(model) != "pre_boundary") {
        eprintln!("{}", name(&model));
        gradients::check(model, ce(), None, LATER);
    }
}

/// `x + stop(norm(x) - x)`: the gradient is that of x + c, whatever c is.
#[test]
fn a_boundary_that_is_stopped_passes_gradients_as_if_it_were_not_there() {
    let model = models().into_iter().find(|model| name(model) == "pre_boundary").expect("in the library");
    let plain = Model { wiring: crate::build::model(pre(), 4).wiring, ..model.clone() };
    let mut bench: Bench<f64, Cpu> = Bench::new(model, Segment { block_ends: vec![2], ..segment(4, 0..1, 1e-2) });
    let batch = batch(3, 7, 2, 5);
    let none = &mut NoneTape;
    let below = |bench: &Bench<f64, Cpu>, model: &Model, none: &mut NoneTape| {
        let network: Network<'_, f64, Cpu> = Network::new(model, &bench.segment.stack, &[2], &bench.state.params, 0);
        let rows = network.rows(&bench.device, &batch).expect("memory");
        let embedded = network.embed(none, &rows).expect("memory");
        network.layers(none, 0..2, &rows, embedded.clone(), &embedded).expect("memory")
    };
    let added = below(&bench, &bench.model, none) - below(&bench, &plain, none);
    assert!(added.as_vec().iter().any(|value| value.abs() > 0.1));
    let (value, found) = bench.gradients(None, &batch, 0);
    let loss = |bench: &Bench<f64, Cpu>| {
        let none = &mut NoneTape;
        let x = below(bench, &plain, none) + added.clone();
        let network: Network<'_, f64, Cpu> = Network::new(&plain, &bench.segment.stack, &[2], &bench.state.params, 0);
        let rows = network.rows(&bench.device, &batch).expect("memory");
        let x = network.layers(none, 2..4, &rows, x, &added).expect("memory");
        let x = network.exit(none, &rows, &x, &added).expect("memory");
        let targets = Targets::new(&bench.device, &batch.labels, &batch.counted, batch.tokens()).expect("memory");
        let terms = [tensor::Term::CrossEntropy { factor: 1.0 }];
        Composed.loss(none, &x, network.table(), &targets, &terms).expect("memory").as_vec()[0]
    };
    assert!((loss(&bench) - value).abs() < 1e-12);
    gradients::compare(&mut bench, &found, loss);
    assert!(found["layers.1.boundary.norm"].iter().all(|slope| *slope == 0.0));
}

/// Two layers that arrive as identity, on top or in between, change the loss where the plan says so, and nowhere else.
#[test]
fn layers_arrive_as_identity_where_the_placement_lets_them() {
    let mut kept = Vec::new();
    for (at, order) in [("on top", [0, 1, 2, 3]), ("in between", [0, 2, 1, 3])] {
        for model in models() {
            let before = segment(2, 0..1, 1e-2);
            let new = |layer| NewLayer { layer: LayerId(layer), first: FirstValues::Identity };
            let new_layers = vec![new(2), new(3)];
            let after = Segment { stack: order.map(LayerId).to_vec(), new_layers, ..segment(4, 1..2, 1e-2) };
            let mut small: Bench<f64, Cpu> = Bench::new(model.clone(), before);
            let mut large: Bench<f64, Cpu> = Bench::new(model, after);
            for (name, value) in &mut large.state.params.0 {
                if let Some(old) = small.state.params.0.get(name) {
                    *value = old.clone();
                } else if name.ends_with("attention.o") || name.ends_with("ffn.down") {
                    *value = value.zeros_like().expect("memory");
                } else if name.contains("learned") || name.contains("gain") || name.contains("bias") {
                    // Unlike norms, these must have their own first values here.
                    let spec = large.specs.iter().find(|spec| spec.name == *name).expect("its own");
                    let FirstValue::Constant(first) = spec.first else { panic!("{name}") };
                    *value = Param::new(&Cpu::default(), vec![first; value.values().len()], &value.shape()).expect("memory");
                }
            }
            (small.micro, large.micro) = (3, 3);
            let batch = batch(3, 9, 2, 5);
            let step = large.segment.steps.start;
            let change = (small.gradients(None, &batch, step).0 - large.gradients(None, &batch, step).0).abs();
            let said = keeps(&large.model, &small.segment, &large.segment);
            assert_eq!(change < 1e-6, said, "{} {at}: {change}", name(&large.model));
            kept.extend(said.then(|| format!("{} {at}", name(&large.model))));
        }
    }
    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
    assert!(["pre on top", "pre in between", "sandwich on top", "scaled_pre on top"].iter().all(|name| kept.contains(name)));
    assert!(["post on top", "deepnorm on top", "scaled_pre in between"].iter().all(|name| !kept.contains(name)), "{kept:?}");
}

#[test]
fn every_placement_agrees_when_fused() {
    for model in models() {
        eprintln!("{}", name(&model));
        fused::check(&model, &fused::mixed(2.0), Some(&model), &batch(3, 21, 2, 5), LATER);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: fused::cases(2), failure_persistence: None, rng_seed: RngSeed::Fixed(4), ..ProptestConfig::default() })]
    #[test]
    fn every_placement_agrees_when_fused_at_any_shape(
        (keys, group, half) in (1..3_usize, 1..3_usize, 2..9_usize),
        (width, hidden) in (8..40_usize, 1..40_usize),
        (rows, context, padding, seed) in (1..4_usize, 3..40_usize, 0..3_usize, any::<u64>()),
        tau in 0.5..3.0_f64,
    ) {
        for mut model in models() {
            eprintln!("{}", name(&model));
            (model.kv_heads, model.heads, model.head_dim) = (keys, keys * group, 2 * half);
            (model.width, model.ffn) = (width, Ffn::SwiGlu { width: hidden });
            // Streams of one size at any width: without a norm they would grow until differences of roundings are all that is left.
            model.init = Init::Normal { std: 1.0 / (width.max(hidden) as f64).sqrt() };
            fused::check(&model, &fused::mixed(tau), Some(&model), &batch(rows, context, padding, seed), LATER);
        }
    }
}
