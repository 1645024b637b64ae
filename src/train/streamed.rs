//! A teacher that need not fit into memory: its layers are read one after the other, each once for a group of sequences.
//!
//! Owns the group: what runs together while a layer is at hand. In memory are the head, one layer, the streams of a group and what a few
//! sequences need to run; embeddings are read row by row. Invariant: what it says is what the whole model says, to the bit.

use std::ops::Range;

use super::step::in_vocabulary;
use super::teacher::speak;
use super::{imported, refused};
use crate::budget::params::{ParamSpec, parameters, tied, whole};
use crate::budget::speaking::together;
use crate::data::Batch;
use crate::data::hub::Tensors;
use crate::model::{Network, Params};
use crate::run::worker::{Failure, Stop};
use crate::study::Model;
use crate::tensor::{Home, Matrix, NoneTape, Param};
use crate::timeline::LayerId;

/// A group in batches.
pub(super) fn batches(group: Range<u64>, context: usize) -> impl Iterator<Item = Range<u64>> {
    let each = together(context) as u64;
    let end = group.end;
    group.step_by(each as usize).map(move |start| start..(start + each).min(end))
}

/// A model whose layers stay on the disk.
#[derive(Debug)]
pub(super) struct Streamed<'a, D: Home> {
    model: &'a Model,
    tensors: Tensors,
    stack: Vec<LayerId>,
    block_ends: Vec<usize>,
    specs: Vec<ParamSpec>,
    /// What stands outside layers, but for the embedding where that is not the head.
    around: Params<f32, D>,
}

impl<'a, D: Home> Streamed<'a, D> {
    /// A model of others, whose names and shapes have been compared.
    pub(super) fn new(device: &D, model: &'a Model, tensors: Tensors) -> Result<Self, Failure> {
        let (stack, block_ends) = whole(model);
        let specs = parameters(model, &stack, &block_ends);
        let mut around = Params::default();
        for spec in specs.iter().filter(|spec| spec.layer.is_none() && (spec.name != "embedding" || tied(model))) {
            around.0.insert(spec.name.clone(), param(device, &tensors, spec)?);
        }
        Ok(Self { model, tensors, stack, block_ends, specs, around })
    }

    /// Log-probabilities (N, V) of the batches of a group under a temperature, a stretch of rows at a time, in their order. `false`: it was
    /// given up.
    pub(super) fn speak(
        &self,
        device: &D,
        group: &[Batch],
        temperature: f64,
        stop: Stop<'_>,
        mut hear: impl FnMut(&[f32]),
    ) -> Result<bool, Failure> {
        let tape = &mut NoneTape;
        let mut streams = Vec::with_capacity(group.len());
        for batch in group {
            in_vocabulary(self.model, batch)?;
            let rows = imported::rows(&self.tensors, "embedding", &batch.inputs)?;
            streams.push(matrix(device, rows, self.model.width)?);
        }
        for place in 0..self.stack.len() {
            let mut params = Params::default();
            for spec in self.specs.iter().filter(|spec| spec.layer == Some(self.stack[place])) {
                params.0.insert(spec.name.clone(), param(device, &self.tensors, spec)?);
            }
            let network = self.network(&params);
            for (batch, x) in group.iter().zip(&mut streams) {
                if stop.is_asked_for() {
                    return Ok(false);
                }
                let rows = network.rows(device, batch).map_err(refused)?;
                // Pre-norm models of others look at no embedding above the first layer.
                *x = network.layers(tape, place..place + 1, &rows, x.clone(), x).map_err(refused)?;
            }
        }
        let network = self.network(&self.around);
        for (batch, x) in group.iter().zip(streams) {
            let rows = network.rows(device, batch).map_err(refused)?;
            let x = network.exit(tape, &rows, &x, &x).map_err(refused)?;
            speak::<f32, D, D::Operations>(device, (&x, self.model.width), network.table(), temperature, &mut hear)?;
        }
        Ok(true)
    }

    fn network<'n>(&'n self, params: &'n Params<f32, D>) -> Network<'n, f32, D, D::Operations> {
        Network::new(self.model, &self.stack, &self.block_ends, params, 0)
    }
}

fn param<D: Home>(device: &D, tensors: &Tensors, spec: &ParamSpec) -> Result<Param<f32, D>, Failure> {
    let (shape, values) = imported::values(tensors, &spec.name)?;
    match shape == spec.shape {
        true => Param::new(device, values, &shape).map_err(refused),
        false => Err(Failure::Input(format!("`{}` has shape {shape:?}, expected {:?}", spec.name, spec.shape))),
    }
}

fn matrix<D: Home>(device: &D, values: Vec<f32>, width: usize) -> Result<Matrix<f32, D>, Failure> {
    let rows = values.len() / width.max(1);
    device.try_tensor_from_vec(values, (rows, width)).map_err(refused)
}
