//! Grouped-query attention (2305.13245) composed from dfdx operations.
//!
//! Queries are laid out as (B·G, R·T, K): each key/value head meets all queries of its group in one product, and nothing is repeated.

use dfdx::prelude::*;

use super::composed::{linear, norm, off, on};
use super::operations::{AttentionWeights, NormWeights};
use super::rows::Rope;
use super::{Fault, Matrix, Real, Rows, Tensor3};

/// o(softmax(rope(norm q) · rope(norm k)ᵀ / √K + mask) · v).
pub(super) fn attention<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    weights: &AttentionWeights<'_, E, D>,
    rows: &Rows<E, D>,
) -> Result<Matrix<E, D>, Fault<D>> {
    let (b, t) = (rows.rows, rows.context);
    let (h, g, k) = (weights.heads.queries, weights.heads.keys, weights.heads.width);
    let r = h / g;
    let rope = rows.rope()?;

    let q = linear(tape, x, weights.q)?;
    let q = heads(tape, &q, h, k, weights.q_norm.as_ref(), rope)?;
    let q = by_head(tape, &q, (b, t, h, k), (b * g, r * t, k))?;
    let keys = linear(tape, x, weights.k)?;
    let keys = heads(tape, &keys, g, k, weights.k_norm.as_ref(), rope)?;
    let keys = by_head(tape, &keys, (b, t, g, k), (b * g, t, k))?;
    let v = linear(tape, x, weights.v)?;
    let v = heads(tape, &v, g, k, weights.v_norm.as_ref(), None)?;
    let v = by_head(tape, &v, (b, t, g, k), (b * g, t, k))?;

    let keys = on(tape, &keys).try_permute::<_, Axes3<0, 2, 1>>()?;
    let keys = off(tape, keys);
    let scores = on(tape, &q).try_matmul(keys)?.try_mul(E::of(1.0 / libm::sqrt(k as f64)))?;
    let all = (b, h, t, t);
    let scores = scores.try_reshape_like(&all)?.try_add(rows.mask()?.clone().try_broadcast_like::<_, Axis<1>>(&all)?)?;
    let attended = scores.try_softmax::<Axis<3>>()?.try_reshape_like(&(b * g, r * t, t))?.try_matmul(v)?;
    let merged = attended.try_reshape_like(&(b, h, t, k))?.try_permute::<_, Axes4<0, 2, 1, 3>>()?;
    let merged = off(tape, merged.try_reshape_like(&(b * t, h * k))?);
    linear(tape, &merged, weights.o)
}

/// Norm and rotation of each head: (N, heads·K) to (N·heads, K).
fn heads<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    heads: usize,
    k: usize,
    weights: Option<&NormWeights<'_, E, D>>,
    rope: Option<&Rope<E, D>>,
) -> Result<Matrix<E, D>, Fault<D>> {
    let n = x.shape().0;
    let x = on(tape, x).try_reshape_like(&(n * heads, k))?;
    let mut x = off(tape, x);
    if let Some(weights) = weights {
        x = norm(tape, &x, weights)?;
    }
    if let Some(rope) = rope {
        let each = (n, heads, k);
        let turned = on(tape, &x).try_matmul(rope.rotation.clone())?.try_reshape_like(&each)?;
        let turned = turned.try_mul(rope.sines.clone().try_broadcast_like::<_, Axis<1>>(&each)?)?;
        let turned = off(tape, turned);
        let straight = on(tape, &x).try_reshape_like(&each)?;
        let straight = straight.try_mul(rope.cosines.clone().try_broadcast_like::<_, Axis<1>>(&each)?)?;
        x = off(tape, straight.try_add(turned)?.try_reshape_like(&(n * heads, k))?);
    }
    Ok(x)
}

/// (B, T, heads, K) to (B, heads, T, K), seen as `shape`.
fn by_head<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    x: &Matrix<E, D>,
    split: (usize, usize, usize, usize),
    shape: (usize, usize, usize),
) -> Result<Tensor3<E, D>, Fault<D>> {
    let x = on(tape, x).try_reshape_like(&split)?.try_permute::<_, Axes4<0, 2, 1, 3>>()?;
    let x = x.try_reshape_like(&shape)?;
    Ok(off(tape, x))
}
