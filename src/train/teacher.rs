//! The teacher beside a student: run online, or read from its cache of logits.

use std::path::Path;

use super::logits::Logits;
use super::step::{State, in_vocabulary};
use super::{CHECKPOINT, Checkpoint, refused};
use crate::budget::params::{parameters, whole};
use crate::data::Batch;
use crate::data::corpus::Part;
use crate::model::{Network, Params, Without};
use crate::run::worker::Failure;
use crate::study::Model;
use crate::tensor::{Device, Fault, Matrix, NoneTape, Operations, Real, TeacherRows};
use crate::timeline::LayerId;

/// Where a teacher's word comes from.
#[derive(Debug)]
pub enum Teacher<E: Real, D: Device<E>> {
    /// It runs on every batch.
    Online(Box<OnlineTeacher<E, D>>),
    /// It ran once.
    Cached(Logits),
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
    /// The whole model from the checkpoint in `folder`.
    pub fn load(device: &D, model: &Model, folder: &Path) -> Result<Self, Failure> {
        let checkpoint = load_checkpoint(folder, "the teacher")?;
        let (stack, block_ends) = whole(model);
        checkpoint
            .check(&parameters(model, &stack, &block_ends))
            .map_err(|error| Failure::Input(format!("the teacher's checkpoint does not fit its model: {error}")))?;
        let step = checkpoint.meta.step;
        let checkpoint = Checkpoint { moments: Default::default(), ..checkpoint };
        Ok(Self { model: model.clone(), stack, block_ends, params: State::load(device, &checkpoint)?.params, step })
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

/// The checkpoint of a finished node.
pub(super) fn load_checkpoint(folder: &Path, whose: &str) -> Result<Checkpoint, Failure> {
    Checkpoint::load(&folder.join(CHECKPOINT))
        .map_err(|error| Failure::Input(format!("the checkpoint of {whose} cannot be read: {error}")))
}

impl<E: Real, D: Device<E>> Teacher<E, D> {
    /// What it says about a batch.
    pub(super) fn about<O: Operations<E, D>>(&self, device: &D, batch: &Batch, part: Part) -> Result<Said<E, D>, Failure> {
        match self {
            Teacher::Online(teacher) => {
                let table = teacher.network::<O>().table().clone();
                Ok(Said::Stream(teacher.stream::<O>(device, batch)?, table))
            }
            Teacher::Cached(logits) => Ok(Said::Rows(logits.rows(device, batch, part)?)),
        }
    }
}

/// What a teacher says about a batch, before a temperature is chosen.
pub(super) enum Said<E: Real, D: Device<E>> {
    /// What its head reads (N, D), and the head (V, D).
    Stream(Matrix<E, D>, Matrix<E, D>),
    /// Probabilities that are already softened.
    Rows(TeacherRows<E, D>),
}

impl<E: Real, D: Device<E>> Said<E, D> {
    /// Softened.
    pub(super) fn at<O: Operations<E, D>>(&self, temperature: f64) -> Result<TeacherRows<E, D>, Fault<D>> {
        match self {
            Said::Stream(x, table) => O::default().speak(x, table, temperature),
            Said::Rows(rows) => Ok(rows.clone()),
        }
    }
}
