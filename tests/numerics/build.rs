//! Tiny models, segments and batches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use xrun::budget::params::{Group, ParamSpec, parameters, whole};
use xrun::data::Batch;
use xrun::model::{Network, Params, Without, first_values};
use xrun::run::worker::Stop;
use xrun::study::equation::{Branches, Equation, Scalar, Stream, Sublayer};
use xrun::study::placement::{Body, Wiring};
use xrun::study::{self, Embedding, Ffn, Init, Model, Norm, NormKind, Placement, Positions, Vocabulary};
use xrun::tensor::{Composed, Cpu, Device, Divergence, Matrix, Operations, Real};
use xrun::timeline::{DataPosition, FirstValues, Frozen, LayerId, NewLayer, Rate, RateFormula, RatePiece, Segment};
use xrun::train::{Learning, Optimizer, Setting, Sources, State, Stepped, Teacher, Term, groups, step};

pub const VOCABULARY: usize = 31;

pub fn x() -> Stream {
    Stream::X
}
pub fn norm(slot: usize, input: Stream) -> Stream {
    Stream::Norm { slot, input: Box::new(input) }
}
pub fn attention(input: Stream) -> Stream {
    Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: false }, input: Box::new(input) }
}
pub fn ffn(input: Stream) -> Stream {
    Stream::Sublayer { sublayer: Sublayer::Ffn, input: Box::new(input) }
}
pub fn add(left: Stream, right: Stream) -> Stream {
    Stream::Add(Box::new(left), Box::new(right))
}
pub fn stop(input: Stream) -> Stream {
    Stream::Stop(Box::new(input))
}
pub fn scale(factor: Scalar, input: Stream) -> Stream {
    Stream::Scale { factor, input: Box::new(input) }
}
pub fn gain(start: f64, input: Stream) -> Stream {
    Stream::Gain { slot: 0, start: Scalar::Number(start), input: Box::new(input) }
}
pub fn learned(start: f64, input: Stream) -> Stream {
    Stream::Learned { slot: 0, start: Scalar::Number(start), input: Box::new(input) }
}
pub fn equation(result: Stream) -> Equation {
    Equation { bindings: vec![], result }
}

/// The same text for both sublayers.
pub fn sublayers(each: impl Fn(fn(Stream) -> Stream) -> Stream) -> Body {
    Body::Sublayers { attention: Branches::always(equation(each(attention))), ffn: Branches::always(equation(each(ffn))) }
}
pub fn placement(entry: bool, body: Body, exit: bool) -> Placement {
    let own = |present: bool| present.then(|| equation(norm(0, x())));
    let (name, init) = ("test".to_owned(), vec![]);
    Placement { name, doc: None, entry: own(entry), body, boundary: None, exit: own(exit), init }
}
pub fn pre() -> Placement {
    placement(false, sublayers(|f| add(x(), f(norm(0, x())))), true)
}
pub fn post() -> Placement {
    placement(true, sublayers(|f| norm(0, add(x(), f(x())))), false)
}
pub fn sandwich() -> Placement {
    placement(false, sublayers(|f| add(x(), norm(1, f(norm(0, x()))))), true)
}

pub fn model(placement: Placement, layers: usize) -> Model {
    Model {
        name: "tiny".into(),
        doc: None,
        layers,
        block: 2,
        width: 16,
        heads: 4,
        kv_heads: 2,
        head_dim: 4,
        ffn: Ffn::SwiGlu { width: 24 },
        norm: Norm { kind: NormKind::Rms, eps: 1e-6 },
        qk_norm: true,
        wiring: Wiring::uniform(Arc::new(placement), layers),
        positions: Positions::Rope { base: 10_000.0 },
        embedding: Embedding::Own,
        head: Embedding::Own,
        init: Init::Normal { std: 0.3 },
        vocabulary: Vocabulary::Size(VOCABULARY),
    }
}

/// The first segment of a run at `depth` layers.
pub fn segment(depth: usize, steps: std::ops::Range<u64>, lr: f64) -> Segment {
    let stack: Vec<LayerId> = (0..depth as u32).map(LayerId).collect();
    let pieces = vec![RatePiece { steps: steps.clone(), formula: RateFormula::Constant { rate: lr }, ramp: None }];
    Segment {
        steps,
        actions: vec![],
        block_ends: (1..=depth / 2).map(|block| block * 2).collect(),
        new_layers: stack.iter().map(|layer| NewLayer { layer: *layer, first: FirstValues::Init }).collect(),
        stack,
        frozen: Frozen::default(),
        reset_optimizer: false,
        rate: Rate { pieces },
        loss: study::Loss { terms: vec![(1.0, study::LossTerm::CrossEntropy)] },
        batch: 4,
        data: DataPosition::START,
    }
}

pub fn adamw(decay: f64, decay_all: bool) -> Optimizer {
    let rule = study::Optimizer::AdamW { lr: 1e-2, betas: (0.9, 0.95), eps: 1e-8, decay, decay_all };
    Optimizer { rule, clip: Some(0.5) }
}

/// Gradients by name.
pub type Slopes = IndexMap<String, Vec<f64>>;

/// Nobody asks for an end.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A model at work, without any file.
pub struct Bench<E: Real, D: Device<E>> {
    pub device: D,
    pub model: Model,
    pub segment: Segment,
    pub specs: Vec<ParamSpec>,
    pub learning: Learning,
    pub groups: IndexMap<String, Group>,
    pub terms: Vec<Term>,
    pub optimizer: Optimizer,
    pub micro: usize,
    pub state: State<E, D>,
}

impl<E: Real> Bench<E, Cpu>
where
    Cpu: Device<E>,
{
    pub fn new(model: Model, segment: Segment) -> Self {
        let specs = parameters(&model, &segment.stack, &segment.block_ends);
        let sources = Sources::new(None, ".".into());
        let params = Params::from_values(&Cpu::default(), &specs, |spec| {
            let mut values = first_values(7, spec, false, &sources).expect("own values");
            // Norms that are all ones hide faults.
            for (at, value) in values.iter_mut().enumerate().filter(|_| spec.shape.len() == 1) {
                *value += 0.1 * ((at * 7 % 5) as f32 - 2.0);
            }
            values
        });
        let state = State { params: params.expect("memory"), moments: IndexMap::new() };
        Self {
            device: Cpu::default(),
            learning: Learning::new(&model, &specs, &segment),
            groups: groups(&specs),
            terms: vec![Term::CrossEntropy { factor: 1.0 }],
            optimizer: adamw(0.1, false),
            micro: 4,
            model,
            segment,
            specs,
            state,
        }
    }
    pub fn setting(&self) -> Setting<'_, Cpu> {
        Setting {
            device: &self.device,
            model: &self.model,
            segment: &self.segment,
            learning: &self.learning,
            groups: &self.groups,
            terms: &self.terms,
            optimizer: self.optimizer,
            micro: self.micro,
            stop: Stop::of(&NEVER),
        }
    }
    pub fn gradients(&self, teacher: Option<&Teacher<E, Cpu>>, batch: &Batch, at: u64) -> (f64, Slopes) {
        self.gradients_by::<Composed>(teacher, batch, at)
    }
    pub fn gradients_by<O: Operations<E, Cpu>>(
        &self,
        teacher: Option<&Teacher<E, Cpu>>,
        batch: &Batch,
        at: u64,
    ) -> (f64, Slopes) {
        let seen = xrun::train::gradients::<E, Cpu, O>(&self.setting(), &self.state, only(teacher), batch, at);
        let (loss, found) = seen.expect("finite").expect("whole");
        let wide = |values: Vec<E>| values.into_iter().map(Into::into).collect();
        (loss, found.into_iter().map(|(name, gradient)| (name, wide(gradient.values()))).collect())
    }
    pub fn step(&mut self, teacher: Option<&Teacher<E, Cpu>>, batch: &Batch, at: u64, lr: f64) -> Stepped {
        self.step_by::<Composed>(teacher, batch, at, lr)
    }
    pub fn step_by<O: Operations<E, Cpu>>(
        &mut self,
        teacher: Option<&Teacher<E, Cpu>>,
        batch: &Batch,
        at: u64,
        lr: f64,
    ) -> Stepped {
        let mut state = self.state.clone();
        let seen = step::<E, Cpu, O>(&self.setting(), &mut state, only(teacher), batch, (at, lr)).expect("finite");
        self.state = state;
        seen.expect("whole")
    }
    pub fn freeze(&mut self, frozen: Frozen) {
        self.segment.frozen = frozen;
        self.learning = Learning::new(&self.model, &self.specs, &self.segment);
        let learning = &self.learning;
        self.state.moments.retain(|name, _| learning.keeps_state(name));
    }
    pub fn values(&self, name: &str) -> Vec<f64> {
        self.state.params.0[name].values().into_iter().map(Into::into).collect()
    }
    pub fn logits(&self, batch: &Batch) -> Vec<E> {
        self.logits_by::<Composed>(batch).as_vec()
    }
    pub fn logits_by<O: Operations<E, Cpu>>(&self, batch: &Batch) -> Matrix<E, Cpu> {
        let Segment { stack, block_ends, .. } = &self.segment;
        let network: Network<'_, E, Cpu, O> = Network::new(&self.model, stack, block_ends, &self.state.params, 0);
        let rows = network.rows(&self.device, batch).expect("memory");
        network.logits(&rows, Without::Nothing, |_, _| ()).expect("memory")
    }
}

/// The teachers of who has one or none.
pub fn only<E: Real>(teacher: Option<&Teacher<E, Cpu>>) -> &[Teacher<E, Cpu>]
where
    Cpu: Device<E>,
{
    teacher.map_or(&[], std::slice::from_ref)
}

/// A teacher of the given model with first values of its own.
pub fn teacher<E: Real>(model: &Model, seed: u64) -> Teacher<E, Cpu>
where
    Cpu: Device<E>,
{
    let (stack, block_ends) = whole(model);
    let specs = parameters(model, &stack, &block_ends);
    let sources = Sources::new(None, ".".into());
    let first = |spec: &ParamSpec| first_values(seed, spec, false, &sources).expect("own values");
    let params = Params::from_values(&Cpu::default(), &specs, first).expect("memory");
    Teacher::Online(Box::new(xrun::train::OnlineTeacher::new(model.clone(), params)))
}

/// Numbers that look random.
pub fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % below
    }
}

/// Rows of two documents each; the last row is padded by `padding` positions.
pub fn batch(rows: usize, context: usize, padding: usize, seed: u64) -> Batch {
    let mut draw = numbers(seed);
    let mut batch = Batch { rows, context, sequences: (0..rows as u64).collect(), ..Batch::default() };
    for row in 0..rows {
        let cut = 1 + draw(context as u64 - 1) as usize;
        for at in 0..context {
            let real = row + 1 < rows || at + padding < context;
            batch.inputs.push(if real { draw(VOCABULARY as u64) as u32 } else { 0 });
            batch.labels.push(if real { draw(VOCABULARY as u64) as u32 } else { 0 });
            batch.counted.push(real);
            batch.document.push(u32::from(at >= cut));
            batch.position.push(if at < cut { at } else { at - cut } as u32);
            batch.structural.push(at + 1 == cut);
        }
    }
    batch
}

/// Rows with one token less each, the last with two: means of rows, or of micro-batches, would show.
pub fn uneven(rows: usize, context: usize) -> Batch {
    let mut batch = batch(rows, context, 0, 3);
    for row in 0..rows {
        for at in row * context + context.saturating_sub(row).max(2)..(row + 1) * context {
            (batch.inputs[at], batch.labels[at], batch.counted[at]) = (0, 0, false);
        }
    }
    batch
}

/// Every way in which a teacher and a student can be apart.
pub fn every_divergence() -> [Divergence; 5] {
    let jsd = |beta| Divergence::Jsd { beta };
    [Divergence::Kl, Divergence::ReverseKl, jsd(0.1), jsd(0.5), jsd(0.9)]
}
