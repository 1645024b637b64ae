//! Loss curves against PyTorch; `tests/reference/curves.py` writes the numbers.

use std::collections::BTreeMap;

use serde::Deserialize;
use xrun::budget::params::{parameters, whole};
use xrun::data::Batch;
use xrun::model::Params;
use xrun::study::{Embedding, Ffn, Model, NormKind};
use xrun::tensor::{Composed, Cpu, Device, Divergence, Fused, Operations, Param, Real};
use xrun::timeline::{self, Declared, Frozen, LayerId};
use xrun::train::{Checkpoint, Learning, Meta, Optimizer, Sources, State, Stepped, Teacher, Term, begin};

use crate::build::*;
use crate::library::study;

/// That of the script.
const LR: f64 = 3e-3;

#[derive(Deserialize)]
struct Reference {
    batches: Vec<Cells>,
    curves: BTreeMap<String, Vec<f64>>,
    courses: BTreeMap<String, Course>,
}
/// Sixty steps in float64, and how far float32 is from them.
#[derive(Deserialize)]
pub struct Course {
    loss: Vec<f64>,
    grad_norm: Vec<f64>,
    /// Of losses and of norms.
    apart: [f64; 2],
}

impl Course {
    /// Every step is as expected, by as much as its arithmetic allows.
    pub fn agrees(&self, name: &str, kind: &str, seen: &[Stepped]) {
        assert_eq!(seen.len(), self.loss.len());
        // 2e-5, and as far as PyTorch's own float32 is off, a few times over.
        let [loss_off, norm_off] = self.apart.map(|apart| 4.0 * apart);
        for (step, seen) in seen.iter().enumerate() {
            let (loss, norm) = (self.loss[step], self.grad_norm[step]);
            // Checkpoints hold float32: after the first event, float64 is no longer exact.
            let allowed = if kind == "f64" && step < 15 { [1e-10, 1e-10] } else { [2e-5 + loss_off, 2e-5 * norm + norm_off] };
            let at = format!("{name}, {kind}, step {step}");
            assert!((seen.loss - loss).abs() < allowed[0], "{at}: loss {} against {loss}", seen.loss);
            assert!((seen.grad_norm - norm).abs() < allowed[1], "{at}: norm {} against {norm}", seen.grad_norm);
        }
    }
}
#[derive(Deserialize)]
struct Cells {
    inputs: Vec<u32>,
    labels: Vec<u32>,
    document: Vec<u32>,
    position: Vec<u32>,
    counted: Vec<u32>,
}

fn read() -> Reference {
    serde_json::from_str(include_str!("../reference/curves.json")).expect("a reference")
}

pub fn reference() -> (Vec<Batch>, BTreeMap<String, Vec<f64>>) {
    let read = read();
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
    let terms = vec![
        Term::CrossEntropy { factor: 0.3 },
        Term::Apart { factor: 0.7 * 4.0, divergence: Divergence::Kl, temperature: 2.0, teacher: 0 },
    ];
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

/// That of the script, as a study says it.
const COURSE: &str = "
use std.placements (pre)
data tales { generate tales(documents: 9), context 16 tokens }
model tiny { layers 4, block 2 layers, width 16, heads 4, kv 2, ffn swiglu(24), placement pre }
training plain {
  loss cross_entropy, optimizer OPTIMIZER
  lr warmup 3 steps then cosine to 10%, batch 4 sequences, clip 0.5
}
schedule course {
  start with 1 block
  at step 15: grow block
  at step 25: freeze prefix
  at step 35: thaw prefix, restart lr
  at step 45: freeze prefix, reset optimizer, restart lr
  at step 52: thaw prefix
  end at step 60
}
study s { data tales, model tiny, training plain, schedule course }
";

/// Losses and norms of gradients under the course: from text to timeline, from event to event as phases go.
pub fn course<E: Real, O: Operations<E, Cpu>>(
    optimizer: &str,
    who: &str,
    model: &Model,
    teacher: Option<&Teacher<E, Cpu>>,
) -> Vec<Stepped>
where
    Cpu: Device<E>,
{
    let recipe = study(&COURSE.replace("OPTIMIZER", optimizer)).arms.remove(0).recipe;
    let timeline = timeline::build(&recipe.schedule, model, &recipe.training, &Declared::Unknown, None).expect("a schedule");
    assert_eq!(timeline.segments.len(), 6);
    let whole = of::<E>(&weights(who, model, 4));
    let (batches, _) = reference();
    let (mut seen, mut parent): (Vec<Stepped>, Option<Checkpoint>) = (Vec::new(), None);
    for segment in timeline.segments {
        let mut bench: Bench<E, Cpu> = Bench::new(model.clone(), segment);
        bench.optimizer = Optimizer { rule: recipe.training.optimizer, clip: recipe.training.clip };
        bench.micro = 3;
        if teacher.is_some() {
            bench.terms = vec![
                Term::CrossEntropy { factor: 0.3 },
                Term::Apart { factor: 0.7 * 4.0, divergence: Divergence::Kl, temperature: 2.0, teacher: 0 },
            ];
        }
        let (specs, segment, learning) = (&bench.specs, &bench.segment, &bench.learning);
        let sources = Sources::new(None, ".".into());
        let mut state: State<E, Cpu> =
            begin(&bench.device, 0, specs, segment, learning, parent.clone(), &sources).expect("it fits");
        // What is new begins as in PyTorch.
        let known = |name: &str| parent.as_ref().is_some_and(|parent| parent.params.contains_key(name));
        for (name, value) in state.params.0.iter_mut().filter(|(name, _)| !known(name)) {
            *value = whole.0[name].clone();
        }
        bench.state = state;
        for at in bench.segment.steps.clone() {
            let rate = bench.segment.rate.at(at);
            seen.push(bench.step_by::<O>(teacher, &batches[at as usize % batches.len()], at, rate));
        }
        let meta = Meta {
            version: Meta::VERSION,
            step: bench.segment.steps.end,
            data: bench.segment.data,
            stack: bench.segment.stack.clone(),
            updates: BTreeMap::new(),
            counts: BTreeMap::new(),
            metrics_bytes: 0,
        };
        parent = Some(bench.state.checkpoint(meta));
    }
    seen
}

fn of<E: Real>(params: &Params<f32, Cpu>) -> Params<E, Cpu>
where
    Cpu: Device<E>,
{
    let wide = |param: &Param<f32, Cpu>| {
        let values = param.values().into_iter().map(|value| E::of(f64::from(value))).collect();
        Param::new(&Cpu::default(), values, &param.shape()).expect("memory")
    };
    Params(params.0.iter().map(|(name, param)| (name.clone(), wide(param))).collect())
}

fn teacher_of<E: Real>() -> Teacher<E, Cpu>
where
    Cpu: Device<E>,
{
    let its = model(pre(), 4);
    let params = of(&weights("teacher", &its, 4));
    Teacher::Online(Box::new(xrun::train::OnlineTeacher::new(its, params)))
}

#[test]
fn courses_through_every_event() {
    let tied = Model { embedding: Embedding::Tied, head: Embedding::Tied, ..model(pre(), 4) };
    let mut expected = read().courses;
    for (name, who, model) in [
        ("pre_ce", "pre", model(pre(), 4)),
        ("post_ce", "post", model(post(), 4)),
        ("pre_kd", "pre", model(pre(), 4)),
        ("post_kd", "post", model(post(), 4)),
        ("pre_tied_ce", "pre", tied),
    ] {
        let expected = expected.remove(name).expect("a course");
        let (narrow, wide) = (teacher_of::<f32>(), teacher_of::<f64>());
        let taught = name.ends_with("_kd");
        let (narrow, wide) = (taught.then_some(&narrow), taught.then_some(&wide));
        let optimizer = "adamw(lr: 1e-3, betas: (0.9, 0.95), eps: 1e-8, decay: 0.1)";
        expected.agrees(name, "f64", &course::<f64, Composed>(optimizer, who, &model, wide));
        expected.agrees(name, "composed", &course::<f32, Composed>(optimizer, who, &model, narrow));
        expected.agrees(name, "fused", &course::<f32, Fused>(optimizer, who, &model, narrow));
    }
    assert!(expected.is_empty());
}
