//! The teacher beside a student: run online, or read from its cache of logits.

use std::path::Path;

use super::checkpoint::Values;
use super::logits::Logits;
use super::step::in_vocabulary;
use super::{Checkpoint, imported, refused};
use crate::budget::params::{parameters, whole};
use crate::budget::speaking::ROWS;
use crate::data::Batch;
use crate::data::corpus::Part;
use crate::model::{Network, Params, Without};
use crate::run::record::CHECKPOINT;
use crate::run::worker::Failure;
use crate::study::Model;
use crate::tensor::{Device, Matrix, NoneTape, Operations, Param, Real, TeacherRows, Unspoken};
use crate::timeline::LayerId;

/// Where a teacher's word comes from.
#[derive(Debug)]
pub enum Teacher<E: Real, D: Device<E>> {
    /// It runs on every batch.
    Online(Box<OnlineTeacher<E, D>>),
    /// It ran once, and was heard at these temperatures.
    Cached(Vec<(f64, Logits)>),
    /// Logits (N, V) that are given, of the one batch that there is.
    Heard {
        /// They.
        logits: Matrix<E, D>,
        /// The loss' temperature.
        temperature: f64,
    },
}

/// What a teacher says about a batch.
pub(super) enum Said<E: Real, D: Device<E>> {
    /// Logits, for any temperature.
    Unspoken(TeacherRows<E, D>),
    /// What was kept, by temperature.
    Kept(Vec<(f64, TeacherRows<E, D>)>),
}

impl<E: Real, D: Device<E>> Said<E, D> {
    /// At a temperature.
    pub(super) fn at(&self, temperature: f64) -> Result<&TeacherRows<E, D>, Failure> {
        match self {
            Said::Unspoken(rows) => Ok(rows),
            Said::Kept(kept) => {
                let found = kept.iter().find(|(known, _)| *known == temperature).map(|(_, rows)| rows);
                found.ok_or_else(|| Failure::Input(format!("no cache of the teacher's logits is of temperature {temperature}")))
            }
        }
    }
}

/// A model that only speaks.
#[derive(Debug)]
pub struct OnlineTeacher<E: Real, D: Device<E>> {
    model: Model,
    stack: Vec<LayerId>,
    block_ends: Vec<usize>,
    params: Params<E, D>,
    step: u64,
}

impl<E: Real, D: Device<E>> OnlineTeacher<E, D> {
    /// The whole model with parameters that fit it.
    pub fn new(model: Model, params: Params<E, D>) -> Self {
        let (stack, block_ends) = whole(&model);
        Self { model, stack, block_ends, params, step: 0 }
    }
    /// The whole model after `step` steps, with a parameter's shape and values by its name.
    pub fn read(
        device: &D,
        model: &Model,
        mut values: impl FnMut(&str) -> Result<Values, Failure>,
        step: u64,
    ) -> Result<Self, Failure> {
        let (stack, block_ends) = whole(model);
        let mut params = Params::default();
        for spec in parameters(model, &stack, &block_ends) {
            let wrong = |what: String| Failure::Input(format!("the teacher's weights do not fit its model: {what}"));
            let (shape, values) = values(&spec.name)?;
            if shape != spec.shape {
                return Err(wrong(format!("`{}` has shape {shape:?}, expected {:?}", spec.name, spec.shape)));
            }
            let values = values.into_iter().map(|value| E::of(f64::from(value))).collect();
            params.0.insert(spec.name, Param::new(device, values, &shape).map_err(refused)?);
        }
        Ok(Self { step, ..Self::new(model.clone(), params) })
    }
    /// The whole model from its node's checkpoint, or from the folder of others that it lies in.
    pub fn load(device: &D, model: &Model, node: &Path, folder: Option<&Path>) -> Result<Self, Failure> {
        match folder {
            Some(folder) => {
                let hub = imported::open(folder)?;
                Self::read(device, model, |name| imported::values(&hub.tensors, name), 0)
            }
            None => {
                let mut checkpoint = load_checkpoint(node, "the teacher")?;
                let (stack, block_ends) = whole(model);
                checkpoint
                    .check(&parameters(model, &stack, &block_ends))
                    .map_err(|error| Failure::Input(format!("the teacher's checkpoint does not fit its model: {error}")))?;
                let step = checkpoint.meta.step;
                let missing = |name: &str| Failure::Input(format!("the teacher's checkpoint has no `{name}`"));
                Self::read(device, model, |name| checkpoint.params.swap_remove(name).ok_or_else(|| missing(name)), step)
            }
        }
    }
    /// Log-probabilities (N, V) under a temperature, row by row, a stretch of rows at a time: a batch of them can be larger than the model.
    pub fn speak<O: Operations<E, D>>(
        &self,
        device: &D,
        batch: &Batch,
        temperature: f64,
        mut hear: impl FnMut(&[E]),
    ) -> Result<(), Failure> {
        let stream = self.stream::<O>(device, batch)?;
        speak::<E, D, O>(device, (&stream, self.model.width), self.network::<O>().table(), temperature, &mut hear)
    }
    /// Logits (N, V).
    pub fn logits<O: Operations<E, D>>(&self, device: &D, batch: &Batch) -> Result<Matrix<E, D>, Failure> {
        let network = self.network::<O>();
        O::default().head(&mut NoneTape, &self.stream::<O>(device, batch)?, network.table()).map_err(refused)
    }
    fn network<O: Operations<E, D>>(&self) -> Network<'_, E, D, O> {
        Network::new(&self.model, &self.stack, &self.block_ends, &self.params, self.step)
    }
    /// What its head reads (N, D).
    fn stream<O: Operations<E, D>>(&self, device: &D, batch: &Batch) -> Result<Matrix<E, D>, Failure> {
        in_vocabulary(&self.model, batch)?;
        let network = self.network::<O>();
        let rows = network.rows(device, batch).map_err(refused)?;
        network.stream(&rows, Without::Nothing, |_, _| ()).map_err(refused)
    }
}

/// Log-probabilities (N, V) of what a head (V, D) reads (N, D), a stretch of rows at a time.
pub(super) fn speak<E: Real, D: Device<E>, O: Operations<E, D>>(
    device: &D,
    (x, width): (&Matrix<E, D>, usize),
    table: &Matrix<E, D>,
    temperature: f64,
    hear: &mut impl FnMut(&[E]),
) -> Result<(), Failure> {
    for rows in x.as_vec().chunks(ROWS * width) {
        let some = device.try_tensor_from_vec(rows.to_vec(), (rows.len() / width, width)).map_err(refused)?;
        let logits = O::default().head(&mut NoneTape, &some, table).map_err(refused)?;
        hear(&O::default().log_probabilities(&logits, temperature).map_err(refused)?.as_vec());
    }
    Ok(())
}

/// The checkpoint of a finished node.
pub(super) fn load_checkpoint(folder: &Path, whose: &str) -> Result<Checkpoint, Failure> {
    Checkpoint::load(&folder.join(CHECKPOINT))
        .map_err(|error| Failure::Input(format!("the checkpoint of {whose} cannot be read: {error}")))
}

impl<E: Real, D: Device<E>> Teacher<E, D> {
    /// What it says about a batch at temperatures that are asked for.
    pub(super) fn about<O: Operations<E, D>>(
        &self,
        device: &D,
        (batch, part): (&Batch, Part),
        asked: impl Fn(f64) -> bool,
    ) -> Result<Said<E, D>, Failure> {
        match self {
            Teacher::Online(teacher) => {
                let table = teacher.network::<O>().table().clone();
                Ok(Said::Unspoken(TeacherRows::Unspoken(Unspoken { x: teacher.stream::<O>(device, batch)?, table })))
            }
            Teacher::Cached(caches) => {
                let caches = caches.iter().filter(|(temperature, _)| asked(*temperature));
                let rows = caches.map(|(temperature, logits)| Ok((*temperature, logits.rows(device, batch, part)?)));
                Ok(Said::Kept(rows.collect::<Result<_, Failure>>()?))
            }
            Teacher::Heard { logits, temperature } => {
                let logs = O::default().log_probabilities(logits, *temperature).map_err(refused)?;
                Ok(Said::Kept(vec![(*temperature, TeacherRows::Full(logs))]))
            }
        }
    }
}
