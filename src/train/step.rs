//! One step: the gradient of the loss over a whole batch, clipped, and the update that it makes.
//!
//! A batch may take minutes; between its micro-batches a step looks whether the run should end, and is then given up.

use std::borrow::Cow;
use std::path::Path;

use indexmap::IndexMap;

use super::checkpoint::{CheckpointError, Kept, Values, write};
use super::loss::Term;
use super::optimizer::{Moments, Optimizer};
use super::sets::Learning;
use super::teacher::{Said, Teacher};
use super::{Checkpoint, Meta, refused};
use crate::budget::params::{Group, ParamSpec, timed, used_at, vocabulary};
use crate::data::Batch;
use crate::data::corpus::Part;
use crate::model::{Network, Params};
use crate::run::worker::{Failure, Stop};
use crate::study::Model;
use crate::tensor::{self, Device, NoneTape, Operations, OwnedTape, Param, Real, Tape, Targets, TeacherRows, backward};
use crate::timeline::Segment;

/// Everything that a step changes.
#[derive(Debug, Clone)]
pub struct State<E: Real, D: Device<E>> {
    /// Parameters.
    pub params: Params<E, D>,
    /// Optimizer state of those that have any.
    pub moments: IndexMap<String, Moments<E, D>>,
}

impl<E: Real, D: Device<E>> State<E, D> {
    /// From a checkpoint that has been checked.
    pub fn load(device: &D, checkpoint: Checkpoint) -> Result<Self, Failure> {
        let mut state = Self { params: Params::default(), moments: IndexMap::new() };
        for (name, values) in checkpoint.params {
            state.params.0.insert(name, param(device, values)?);
        }
        for (name, kept) in checkpoint.moments {
            let updates = checkpoint.meta.updates.get(&name).copied().unwrap_or(0);
            state.moments.insert(name, Moments::load(device, kept, updates)?);
        }
        Ok(state)
    }

    /// A checkpoint of it; `meta.updates` is filled in.
    pub fn checkpoint(&self, meta: Meta) -> Checkpoint {
        let values = |param: &Param<E, D>| (param.shape(), param.floats().into_owned());
        Checkpoint {
            params: self.params.0.iter().map(|(name, param)| (name.clone(), values(param))).collect(),
            moments: self.moments.iter().map(|(name, state)| (name.clone(), state.kept.iter().map(values).collect())).collect(),
            meta: self.counted(meta),
        }
    }

    /// Saves [`State::checkpoint`] without holding one.
    pub(super) fn save(&self, meta: Meta, folder: &Path, name: &str) -> Result<(), CheckpointError> {
        let moments = self.moments.iter().map(|(name, state)| (name, state.kept.as_slice()));
        write(self.params.0.iter(), moments, &self.counted(meta), folder, name)
    }

    fn counted(&self, meta: Meta) -> Meta {
        Meta { updates: self.moments.iter().map(|(name, state)| (name.clone(), state.updates)).collect(), ..meta }
    }
}

/// On a device; the values are moved where its element type is theirs.
pub(super) fn param<E: Real, D: Device<E>>(device: &D, (shape, values): Values) -> Result<Param<E, D>, Failure> {
    Param::new(device, values.into_iter().map(|value| E::of(f64::from(value))).collect(), &shape).map_err(refused)
}

impl<E: Real, D: Device<E>> Kept for Param<E, D> {
    fn sides(&self) -> Vec<usize> {
        self.shape()
    }
    fn floats(&self) -> Cow<'_, [f32]> {
        let float = |value: E| {
            let value: f64 = value.into();
            value as f32
        };
        Cow::Owned(self.values().into_iter().map(float).collect())
    }
}

/// What stays the same during a phase.
#[derive(Debug)]
pub struct Setting<'a, D> {
    /// Where tensors live.
    pub device: &'a D,
    /// The architecture.
    pub model: &'a Model,
    /// Stack and blocks.
    pub segment: &'a Segment,
    /// What learns.
    pub learning: &'a Learning,
    /// Groups of parameters by name.
    pub groups: &'a IndexMap<String, Group>,
    /// What is minimised.
    pub terms: &'a [Term],
    /// How parameters move.
    pub optimizer: Optimizer,
    /// Sequences held at a time.
    pub micro: usize,
    /// Set when the run should end soon.
    pub stop: Stop<'a>,
}

/// Groups by name.
pub fn groups(specs: &[ParamSpec]) -> IndexMap<String, Group> {
    specs.iter().map(|spec| (spec.name.clone(), spec.group)).collect()
}

/// What a step saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stepped {
    /// The loss before the update.
    pub loss: f64,
    /// Global norm of the gradients of what learns, before clipping.
    pub grad_norm: f64,
}

/// Takes step `step` of the run; `None` if it was given up. A failure, and giving up, leave `state` as it was.
pub fn step<E: Real, D: Device<E>, O: Operations<E, D>>(
    setting: &Setting<'_, D>,
    state: &mut State<E, D>,
    teachers: &[Teacher<E, D>],
    batch: &Batch,
    (step, lr): (u64, f64),
) -> Result<Option<Stepped>, Failure> {
    let Some((loss, gradients)) = gradients::<E, D, O>(setting, state, teachers, batch, step)? else { return Ok(None) };
    let squares: f64 = gradients.values().map(|gradient| O::default().sum_of_squares(gradient)).sum();
    let grad_norm = libm::sqrt(squares);
    if !loss.is_finite() || !grad_norm.is_finite() {
        return Err(Failure::Diverged { step, what: at_fault(state, &gradients) });
    }
    let scale = setting.optimizer.clip_scale(grad_norm);
    setting
        .optimizer
        .update::<E, D, O>(&mut state.params, &mut state.moments, &gradients, setting.groups, (lr, scale))
        .map_err(refused)?;
    Ok(Some(Stepped { loss, grad_norm }))
}

/// Gradients by the names of their parameters, sorted.
pub type ByName<E, D> = IndexMap<String, Param<E, D>>;

/// The loss of a batch and its gradients.
pub type Slopes<E, D> = (f64, ByName<E, D>);

/// The loss of a batch and the gradient of every parameter that learns; `None` if they were given up.
pub fn gradients<E: Real, D: Device<E>, O: Operations<E, D>>(
    setting: &Setting<'_, D>,
    state: &State<E, D>,
    teachers: &[Teacher<E, D>],
    batch: &Batch,
    step: u64,
) -> Result<Option<Slopes<E, D>>, Failure> {
    in_vocabulary(setting.model, batch)?;
    let Segment { stack, block_ends, .. } = setting.segment;
    // A parameter whose branch does not hold at this step has no gradient, which is not a gradient of zero.
    let used = timed(setting.model).then(|| used_at(setting.model, stack, block_ends, step));
    let used = |name: &&String| used.as_ref().is_none_or(|used| used.contains(*name));
    let total = batch.tokens();
    let mut loss = 0.0;
    let mut sums: ByName<E, D> = IndexMap::new();
    let mut start = 0;
    while start < batch.rows {
        if setting.stop.is_asked_for() {
            return Ok(None);
        }
        let end = (start + setting.micro.max(1)).min(batch.rows);
        let part = if end - start == batch.rows { batch.clone() } else { batch.slice(start..end) };
        start = end;
        let mut tape = OwnedTape::default();
        let value = forward::<E, D, O, _>(setting, state, teachers, &part, total, step, &mut tape)?;
        let read: f64 = value.as_vec()[0].into();
        loss += read;
        let mut found = backward(value, tape).map_err(refused)?;
        for name in setting.learning.names.iter().filter(used) {
            let gradient = O::default().gradient(&state.params.0[name], &mut found).map_err(refused)?;
            let sum = match sums.swap_remove(name) {
                Some(sum) => sum.plus(gradient).map_err(refused)?,
                None => gradient,
            };
            sums.insert(name.clone(), sum);
        }
    }
    sums.sort_unstable_keys();
    Ok(Some((loss, sums)))
}

/// A micro-batch's share of the loss, recorded on `tape` from where something learns.
fn forward<E: Real, D: Device<E>, O: Operations<E, D>, T: Tape<E, D>>(
    setting: &Setting<'_, D>,
    state: &State<E, D>,
    teachers: &[Teacher<E, D>],
    part: &Batch,
    total: u64,
    step: u64,
    tape: &mut T,
) -> Result<crate::tensor::Scalar<E, D>, Failure> {
    let Segment { stack, block_ends, .. } = setting.segment;
    let learning = setting.learning;
    let network: Network<'_, E, D, O> = Network::new(setting.model, stack, block_ends, &state.params, step);
    let rows = network.rows(setting.device, part).map_err(refused)?;
    let targets = Targets::new(setting.device, &part.labels, &part.counted, total).map_err(refused)?;
    let none = &mut NoneTape;
    let embedded = if learning.below { network.embed(tape, &rows) } else { network.embed(none, &rows) };
    let embedded = embedded.map_err(refused)?;
    let x = network.layers(none, 0..learning.from, &rows, embedded.clone(), &embedded).map_err(refused)?;
    let x = network.layers(tape, learning.from..stack.len(), &rows, x, &embedded).map_err(refused)?;
    let x = network.exit(tape, &rows, &x, &embedded).map_err(refused)?;
    let missing = || Failure::Input("the loss has a teacher's term, but there is no teacher".to_owned());
    // A teacher that another part of the run hears, and not this loss, is not asked.
    let mut said = Vec::with_capacity(teachers.len());
    for (place, teacher) in teachers.iter().enumerate() {
        let terms = || setting.terms.iter().filter(|term| term.teacher() == Some(place));
        let asked = |wanted: f64| terms().any(|term| matches!(term, Term::Apart { temperature, .. } if *temperature == wanted));
        said.push(match terms().next() {
            Some(_) => Some(teacher.about::<O>(setting.device, (part, Part::Train), asked)?),
            None => None,
        });
    }
    let says = |teacher: usize| said.get(teacher).and_then(Option::as_ref).ok_or_else(missing);
    let mut terms = Vec::with_capacity(setting.terms.len());
    for term in setting.terms {
        terms.push(match *term {
            Term::CrossEntropy { factor } => tensor::Term::CrossEntropy { factor },
            Term::Apart { factor, divergence, temperature, teacher } => {
                tensor::Term::Apart { factor, divergence, temperature, teacher: says(teacher)?.at(temperature)? }
            }
            Term::Squares { factor, teacher } => match says(teacher)? {
                Said::Unspoken(TeacherRows::Unspoken(teacher)) => tensor::Term::Squares { factor, teacher },
                _ => {
                    let text = "the loss compares logits, and the teacher's cache keeps probabilities";
                    return Err(Failure::Input(text.to_owned()));
                }
            },
        });
    }
    O::default().loss(tape, &x, network.table(), &targets, &terms).map_err(refused)
}

/// Every token is one of the model's; dfdx would panic at another.
pub(super) fn in_vocabulary(model: &Model, batch: &Batch) -> Result<(), Failure> {
    let size = vocabulary(model) as u32;
    match batch.inputs.iter().chain(&batch.labels).find(|token| **token >= size) {
        Some(token) => Err(Failure::Input(format!("token {token} is beyond the model's vocabulary of {size}"))),
        None => Ok(()),
    }
}

/// The first parameter, else the first gradient, that is not finite.
fn at_fault<E: Real, D: Device<E>>(state: &State<E, D>, gradients: &ByName<E, D>) -> String {
    let bad = |param: &Param<E, D>| {
        param.values().into_iter().any(|value| {
            let value: f64 = value.into();
            !value.is_finite()
        })
    };
    if let Some((name, _)) = state.params.0.iter().find(|(_, param)| bad(param)) {
        return name.clone();
    }
    match gradients.iter().find(|(_, gradient)| bad(gradient)) {
        Some((name, _)) => format!("the gradient of {name}"),
        None => "loss".to_owned(),
    }
}
