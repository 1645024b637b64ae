//! [`Operations`] on the processor with kernels of our own: one tape operation for the embedding, one for each layer, one for head and loss.
//!
//! Owns how a program becomes kernel calls and how their gradients reach dfdx's tape. A batch is cut by rows into [`SHARDS`] parts, each
//! worked on by one thread from a layer's input to its output; gradients of weights are summed shard by shard. Invariant: the cut depends
//! on the batch alone, so that results are the same bytes for any number of threads.

mod embedding;
mod host;
mod loss;
mod plan;
mod pool;
mod reverse;
mod shard;
mod update;

use dfdx::prelude::{Cpu, Gradients};

use self::host::{take_gradient, view};
pub(super) use self::pool::Pool;
use super::operations::Term;
use super::program::Program;
use super::{
    AttentionWeights, Composed, Divergence, Fault, FfnWeights, Matrix, Moved, NormWeights, Operations, Param, Rows, Scalar, Tape,
    Targets, TeacherRows, Unspoken, Vector,
};
use crate::kernel;

/// Parts of a batch that may run side by side.
const SHARDS: usize = 2;

/// Fused operations. What stands outside a program goes the way of [`Composed`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Fused;

/// Rows of each shard, of `rows` in all.
fn shards(rows: usize) -> [std::ops::Range<usize>; SHARDS] {
    let first = rows.div_ceil(SHARDS);
    [0..first, first..rows]
}

impl Operations<f32, Cpu> for Fused {
    fn embedding<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        table: &Matrix<f32, Cpu>,
        rows: &Rows<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        embedding::embedding(tape, table, rows)
    }

    fn run<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        program: &Program<'_, f32, Cpu>,
        rows: &Rows<f32, Cpu>,
        x: &Matrix<f32, Cpu>,
        embedded: &Matrix<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        shard::run(tape, program, rows, x, embedded)
    }

    fn loss<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        table: &Matrix<f32, Cpu>,
        targets: &Targets<f32, Cpu>,
        terms: &[Term<'_, f32, Cpu>],
    ) -> Result<Scalar<f32, Cpu>, Fault<Cpu>> {
        loss::loss(tape, x, table, targets, terms)
    }

    fn gradient(&self, param: &Param<f32, Cpu>, found: &mut Gradients<f32, Cpu>) -> Result<Param<f32, Cpu>, Fault<Cpu>> {
        Param::new(&Cpu::default(), take_gradient(param, found)?, &param.shape())
    }

    fn sum_of_squares(&self, gradient: &Param<f32, Cpu>) -> f64 {
        let values = view(gradient);
        let (low, high) = values.split_at(values.len() / 2);
        let (low, high) = rayon::join(|| kernel::sum_of_squares(low), || kernel::sum_of_squares(high));
        low + high
    }

    fn update(&self, moves: &mut [Moved<'_, f32, Cpu>]) -> Result<(), Fault<Cpu>> {
        moves.iter_mut().for_each(update::update);
        Ok(())
    }

    fn norm<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        weights: &NormWeights<'_, f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.norm(tape, x, weights)
    }
    fn attention<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        weights: &AttentionWeights<'_, f32, Cpu>,
        rows: &Rows<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.attention(tape, x, weights, rows)
    }
    fn ffn<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        weights: &FfnWeights<'_, f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.ffn(tape, x, weights)
    }
    fn gain<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        gain: &Vector<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.gain(tape, x, gain)
    }
    fn learned<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        factor: &Vector<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.learned(tape, x, factor)
    }
    fn scale<T: Tape<f32, Cpu>>(&self, tape: &mut T, x: &Matrix<f32, Cpu>, factor: f64) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.scale(tape, x, factor)
    }
    fn add<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        left: &Matrix<f32, Cpu>,
        right: &Matrix<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.add(tape, left, right)
    }
    fn subtract<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        left: &Matrix<f32, Cpu>,
        right: &Matrix<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.subtract(tape, left, right)
    }
    fn head<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        x: &Matrix<f32, Cpu>,
        table: &Matrix<f32, Cpu>,
    ) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.head(tape, x, table)
    }
    fn cross_entropy<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        logits: &Matrix<f32, Cpu>,
        targets: &Targets<f32, Cpu>,
    ) -> Result<Vector<f32, Cpu>, Fault<Cpu>> {
        Composed.cross_entropy(tape, logits, targets)
    }
    fn apart<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        logits: &Matrix<f32, Cpu>,
        teacher: &TeacherRows<f32, Cpu>,
        divergence: Divergence,
        temperature: f64,
    ) -> Result<Vector<f32, Cpu>, Fault<Cpu>> {
        Composed.apart(tape, logits, teacher, divergence, temperature)
    }
    fn squares<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        logits: &Matrix<f32, Cpu>,
        teacher: &Unspoken<f32, Cpu>,
    ) -> Result<Vector<f32, Cpu>, Fault<Cpu>> {
        Composed.squares(tape, logits, teacher)
    }
    fn log_probabilities(&self, logits: &Matrix<f32, Cpu>, temperature: f64) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
        Composed.log_probabilities(logits, temperature)
    }
    fn weighted_sum<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        terms: &Vector<f32, Cpu>,
        targets: &Targets<f32, Cpu>,
    ) -> Result<Scalar<f32, Cpu>, Fault<Cpu>> {
        Composed.weighted_sum(tape, terms, targets)
    }
    fn combine<T: Tape<f32, Cpu>>(
        &self,
        tape: &mut T,
        terms: &[(f64, Scalar<f32, Cpu>)],
    ) -> Result<Scalar<f32, Cpu>, Fault<Cpu>> {
        Composed.combine(tape, terms)
    }
}
