//! [`Operations`] composed from those of dfdx: plain, for any device; the reference.

use dfdx::prelude::*;

use super::operations::{AttentionWeights, FfnWeights, NormRule, NormWeights};
use super::{Divergence, Fault, Matrix, Operations, Real, Rows, Scalar, Targets, TeacherRows, Unspoken, Vector, attention, loss};

/// Operations made of dfdx's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Composed;

/// A tensor with the tape of the pass: what is done to it until [`off`] is recorded.
pub(super) fn on<S: Shape, E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    tensor: &Tensor<S, E, D>,
) -> Tensor<S, E, D, T> {
    tensor.clone().put_tape(std::mem::take(tape))
}

/// Gives the tape back to the pass.
pub(super) fn off<S: Shape, E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    tensor: Tensor<S, E, D, T>,
) -> Tensor<S, E, D> {
    let (tensor, returned) = tensor.split_tape();
    *tape = returned;
    tensor
}

/// y = x Wᵀ: (N, in) and (out, in) give (N, out).
pub(super) fn linear<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    weight: &Matrix<E, D>,
) -> Result<Matrix<E, D>, Fault<D>> {
    let transposed = on(tape, weight).try_permute::<_, Axes2<1, 0>>()?;
    let transposed = off(tape, transposed);
    let y = on(tape, x).try_matmul(transposed)?;
    Ok(off(tape, y))
}

/// Norm over the last axis of (M, C); M is N, or N·H for heads.
pub(super) fn norm<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    weights: &NormWeights<'_, E, D>,
) -> Result<Matrix<E, D>, Fault<D>> {
    let shape = *x.shape();
    let unit = match weights.rule {
        NormRule::Root { centered, eps } => rooted(tape, x, centered, eps)?,
        NormRule::Tanh(alpha) => {
            let bent = learned(tape, x, alpha)?;
            let bent = on(tape, &bent).try_tanh()?;
            off(tape, bent)
        }
    };
    let y = on(tape, &unit).try_mul(weights.weight.clone().try_broadcast_like::<_, Axis<0>>(&shape)?)?;
    let y = match weights.bias {
        Some(bias) => y.try_add(bias.clone().try_broadcast_like::<_, Axis<0>>(&shape)?)?,
        None => y,
    };
    Ok(off(tape, y))
}

/// (x − μ) / √(mean (x − μ)² + eps), μ = 0 unless centered.
fn rooted<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    centered: bool,
    eps: f64,
) -> Result<Matrix<E, D>, Fault<D>> {
    let shape = *x.shape();
    let x = if centered {
        let mean = on(tape, x).try_mean::<(usize,), Axis<1>>()?;
        let opposite = off(tape, mean.try_negate()?.try_broadcast_like::<_, Axis<1>>(&shape)?);
        let centered = on(tape, x).try_add(opposite)?;
        off(tape, centered)
    } else {
        x.clone()
    };
    let mean_square = on(tape, &x).try_square()?.try_mean::<(usize,), Axis<1>>()?;
    let root = mean_square.try_add(E::of(eps))?.try_sqrt()?.try_recip()?;
    let root = off(tape, root);
    let scaled = on(tape, &x).try_mul(root.try_broadcast_like::<_, Axis<1>>(&shape)?)?;
    Ok(off(tape, scaled))
}

/// All times a scalar of shape (1).
fn learned<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    factor: &Vector<E, D>,
) -> Result<Matrix<E, D>, Fault<D>> {
    // Summing the one element gives a tensor of no sides, which broadcasts to any shape.
    let factor = on(tape, factor).try_sum::<Rank0, Axis<0>>()?;
    let factor = off(tape, factor).try_broadcast_like::<_, Axes2<0, 1>>(x.shape())?;
    let y = on(tape, x).try_mul(factor)?;
    Ok(off(tape, y))
}

impl<E: Real, D: super::Device<E>> Operations<E, D> for Composed {
    fn embedding<T: Tape<E, D>>(&self, tape: &mut T, table: &Matrix<E, D>, rows: &Rows<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        let x = on(tape, table).try_gather(rows.tokens.clone())?;
        Ok(off(tape, x))
    }

    fn norm<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &NormWeights<'_, E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        norm(tape, x, weights)
    }

    fn attention<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &AttentionWeights<'_, E, D>,
        rows: &Rows<E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        attention::attention(tape, x, weights, rows)
    }

    fn ffn<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &FfnWeights<'_, E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let up = linear(tape, x, weights.up)?;
        let hidden = match weights.gate {
            Some(gate) => {
                let gate = linear(tape, x, gate)?;
                let silu = on(tape, &gate).try_sigmoid()?.try_mul(gate)?;
                silu.try_mul(up)?
            }
            None => on(tape, &up).try_fast_gelu()?,
        };
        let hidden = off(tape, hidden);
        linear(tape, &hidden, weights.down)
    }

    fn gain<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, gain: &Vector<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        let y = on(tape, x).try_mul(gain.clone().try_broadcast_like::<_, Axis<0>>(x.shape())?)?;
        Ok(off(tape, y))
    }

    fn learned<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, factor: &Vector<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        learned(tape, x, factor)
    }

    fn scale<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, factor: f64) -> Result<Matrix<E, D>, Fault<D>> {
        let y = on(tape, x).try_mul(E::of(factor))?;
        Ok(off(tape, y))
    }

    fn add<T: Tape<E, D>>(&self, tape: &mut T, left: &Matrix<E, D>, right: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        let y = on(tape, left).try_add(right.clone())?;
        Ok(off(tape, y))
    }

    fn subtract<T: Tape<E, D>>(&self, tape: &mut T, left: &Matrix<E, D>, right: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        let y = on(tape, left).try_sub(right.clone())?;
        Ok(off(tape, y))
    }

    fn head<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, table: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        linear(tape, x, table)
    }

    fn cross_entropy<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        targets: &Targets<E, D>,
    ) -> Result<Vector<E, D>, Fault<D>> {
        loss::cross_entropy(tape, logits, targets)
    }

    fn apart<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        teacher: &TeacherRows<E, D>,
        divergence: Divergence,
        temperature: f64,
    ) -> Result<Vector<E, D>, Fault<D>> {
        loss::apart(tape, logits, teacher, divergence, temperature)
    }

    fn squares<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        teacher: &Unspoken<E, D>,
    ) -> Result<Vector<E, D>, Fault<D>> {
        loss::squares(tape, logits, teacher)
    }

    fn log_probabilities(&self, logits: &Matrix<E, D>, temperature: f64) -> Result<Matrix<E, D>, Fault<D>> {
        logits.clone().try_mul(E::of(1.0 / temperature))?.try_log_softmax::<Axis<1>>()
    }

    fn weighted_sum<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        terms: &Vector<E, D>,
        targets: &Targets<E, D>,
    ) -> Result<Scalar<E, D>, Fault<D>> {
        let sum = on(tape, terms).try_mul(targets.weights.clone())?.try_sum::<Rank0, Axis<0>>()?;
        Ok(off(tape, sum))
    }

    fn combine<T: Tape<E, D>>(&self, tape: &mut T, terms: &[(f64, Scalar<E, D>)]) -> Result<Scalar<E, D>, Fault<D>> {
        let mut sum: Option<Scalar<E, D>> = None;
        for (factor, term) in terms {
            let term = on(tape, term).try_mul(E::of(*factor))?;
            let term = off(tape, term);
            sum = Some(match sum {
                Some(sum) => {
                    let both = on(tape, &sum).try_add(term)?;
                    off(tape, both)
                }
                None => term,
            });
        }
        match sum {
            Some(sum) => Ok(sum),
            None => D::default().try_zeros(),
        }
    }
}
