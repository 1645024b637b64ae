//! From tokens to logits.
//!
//! Shapes: N tokens of all rows, D width, V vocabulary. A pass comes in two parts with a tape each: what lies below everything that
//! learns runs under [`NoneTape`](crate::tensor::NoneTape), the rest under the caller's.

use std::ops::Range;

use super::Params;
use super::equation::{Compiler, Place};
use crate::budget::params::{boundary, branches, entry, exit, tied};
use crate::data::Batch;
use crate::study::Model;
use crate::study::equation::Moment;
use crate::tensor::{Composed, Device, Fault, Matrix, Operations, Program, Real, Rows, Tape};
use crate::timeline::LayerId;

/// A model at some depth, ready to run.
#[derive(Debug)]
pub struct Network<'a, E: Real, D: Device<E>, O = Composed> {
    /// The architecture.
    pub model: &'a Model,
    /// Its layers now, from the bottom to the top.
    pub stack: &'a [LayerId],
    /// After how many layers each block ends.
    pub block_ends: &'a [usize],
    /// Their parameters.
    pub params: &'a Params<E, D>,
    /// Steps done: equations may look at it.
    pub step: u64,
    operations: std::marker::PhantomData<O>,
}

/// What a pass leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Without {
    /// Nothing: every layer runs.
    #[default]
    Nothing,
    /// A block, its norms and its boundary equation with it.
    Block(usize),
    /// What the sublayers of a block say, which becomes 0: the wiring around them still runs, norms included. Equal to a block whose output
    /// projections are zero.
    Sublayers(usize),
}

impl<'a, E: Real, D: Device<E>, O: Operations<E, D>> Network<'a, E, D, O> {
    /// A view on parameters.
    pub fn new(model: &'a Model, stack: &'a [LayerId], block_ends: &'a [usize], params: &'a Params<E, D>, step: u64) -> Self {
        Self { model, stack, block_ends, params, step, operations: std::marker::PhantomData }
    }

    /// Layers of block `block`, by place.
    pub fn block(&self, block: usize) -> Range<usize> {
        let start = if block == 0 { 0 } else { self.block_ends[block - 1] };
        start..self.block_ends[block]
    }

    /// The tensors of a batch that layers need.
    pub fn rows(&self, device: &D, batch: &Batch) -> Result<Rows<E, D>, Fault<D>> {
        let shape = (batch.rows, batch.context);
        Rows::new(device, shape, &batch.inputs, &batch.document, &batch.position, self.rope())
    }

    /// x0: the embeddings, after the entry equation.
    pub fn embed<T: Tape<E, D>>(&self, tape: &mut T, rows: &Rows<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        let x = O::default().embedding(tape, self.params.matrix("embedding"), rows)?;
        match entry(self.model) {
            Some(equation) => {
                let place = Place { own: "entry", layer: "entry", moment: self.moment(0) };
                O::default().run(tape, &Compiler::new(self).equation(equation, place).finish(), rows, &x, &x)
            }
            None => Ok(x),
        }
    }

    /// Layers `places` and the boundary equations of blocks that end there.
    pub fn layers<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        places: Range<usize>,
        rows: &Rows<E, D>,
        x: Matrix<E, D>,
        embedded: &Matrix<E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let mut x = x;
        for place in places {
            x = O::default().run(tape, &self.layer(place, false), rows, &x, embedded)?;
        }
        Ok(x)
    }

    /// The layer at a place, and the boundary equation of a block that ends there; `silent`: its sublayers say 0.
    fn layer(&self, place: usize, silent: bool) -> Program<'_, E, D> {
        let layer = format!("layers.{}", self.stack[place].0);
        let moment = self.moment(place + 1);
        let [own_attention, own_ffn, own_boundary] = ["attention", "ffn", "boundary"].map(|part| format!("{layer}.{part}"));
        let at = |own| Place { own, layer: &layer, moment };
        let compiler = Compiler::new(self).silent(silent);
        let compiler = match branches(self.model, place) {
            (whole, None) => compiler.equation(whole.at(&moment), at(&layer)),
            (attention, Some(ffn)) => {
                compiler.equation(attention.at(&moment), at(&own_attention)).equation(ffn.at(&moment), at(&own_ffn))
            }
        };
        match boundary(self.model, place).filter(|_| self.block_ends.contains(&(place + 1))) {
            Some(equation) => compiler.equation(equation, at(&own_boundary)).finish(),
            None => compiler.finish(),
        }
    }

    /// The stream that the head reads: after the exit equation.
    pub fn exit<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        rows: &Rows<E, D>,
        x: &Matrix<E, D>,
        embedded: &Matrix<E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        match exit(self.model) {
            Some(equation) => {
                let place = Place { own: "exit", layer: "exit", moment: self.moment(0) };
                O::default().run(tape, &Compiler::new(self).equation(equation, place).finish(), rows, x, embedded)
            }
            None => Ok(x.clone()),
        }
    }

    /// The head (V, D): the embedding where they are tied.
    pub fn table(&self) -> &Matrix<E, D> {
        self.params.matrix(if tied(self.model) { "embedding" } else { "head" })
    }

    /// The stream that the head reads, without learning. `seen` is shown the stream before the first and after each block that runs.
    pub fn stream(
        &self,
        rows: &Rows<E, D>,
        without: Without,
        mut seen: impl FnMut(usize, &Matrix<E, D>),
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let tape = &mut crate::tensor::NoneTape;
        let embedded = self.embed(tape, rows)?;
        let mut x = embedded.clone();
        seen(0, &x);
        for block in (0..self.block_ends.len()).filter(|block| Without::Block(*block) != without) {
            for place in self.block(block) {
                let program = self.layer(place, without == Without::Sublayers(block));
                x = O::default().run(tape, &program, rows, &x, &embedded)?;
            }
            seen(block + 1, &x);
        }
        self.exit(tape, rows, &x, &embedded)
    }

    /// Logits without learning; `without` and `seen` as in [`Network::stream`].
    pub fn logits(
        &self,
        rows: &Rows<E, D>,
        without: Without,
        seen: impl FnMut(usize, &Matrix<E, D>),
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let x = self.stream(rows, without, seen)?;
        O::default().head(&mut crate::tensor::NoneTape, &x, self.table())
    }

    fn moment(&self, layer: usize) -> Moment {
        Moment { layer, depth: self.model.layers, active_depth: self.stack.len(), step: self.step }
    }
}
