//! How one parameter moves in one step, and that composed from dfdx's operations.
//!
//! Owns the formulas. Deliberately knows no name and no group of a parameter: who calls has decided which rule it moves by.

use dfdx::prelude::*;

use super::composed::linear;
use super::{Fault, Matrix, Param, Real};

/// Coefficients of one update of one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// How it moves.
    pub rule: Rule,
    /// Learning rate of the step.
    pub lr: f64,
    /// 0 where the parameter is spared.
    pub decay: f64,
    /// The gradient is multiplied by it: clipping.
    pub scale: f64,
    /// t: this update's number for this parameter, from 1.
    pub number: u64,
}

/// How a parameter w moves along its clipped gradient g, by the step's rate, after w ← w·(1 − lr·decay).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// 1711.05101, keeping m and v: m ← β₁m + (1−β₁)g; v ← β₂v + (1−β₂)g²; w ← w − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + eps).
    AdamW {
        /// β₁, β₂.
        betas: (f64, f64),
        /// Outside the root.
        eps: f64,
    },
    /// w ← w − lr·g, keeping nothing; or keeping m ← μm + g, w ← w − lr·m, by Nesterov w − lr·(g + μm), as in PyTorch.
    Sgd {
        /// μ; 0 keeps nothing.
        momentum: f64,
        /// Looks ahead.
        nesterov: bool,
    },
    /// 2302.06675, keeping m: w ← w − lr·sign(β₁m + (1−β₁)g); m ← β₂m + (1−β₂)g. The sign of 0 is 0.
    Lion {
        /// β₁, β₂.
        betas: (f64, f64),
    },
    /// For matrices (A, B), keeping m ← μm + (1−μ)g; u = m, by Nesterov (1−μ)g + μm; w ← w − lr · 0.2·√max(A, B) · O(u).
    ///
    /// O brings the singular values of u / ‖u‖ near 1 by `NEWTON_SCHULZ` (kellerjordan.github.io/posts/muon); the factor gives the
    /// update the size that AdamW's have (2502.16982).
    Muon {
        /// μ.
        momentum: f64,
        /// Looks ahead.
        nesterov: bool,
    },
}

/// Coefficients a, b, c of each of five steps X ← aX + (b·XXᵀ + c·(XXᵀ)²)·X, from the shorter side (Keller Jordan's).
pub const NEWTON_SCHULZ: (usize, [f64; 3]) = (5, [3.4445, -4.775, 2.0315]);
/// Least norm that a matrix is divided by before them.
pub const LEAST_NORM: f64 = 1e-7;

impl Rule {
    /// What Muon's orthogonal update of an (A, B) matrix is multiplied by: 0.2·√max(A, B).
    pub fn size(rows: usize, columns: usize) -> f64 {
        0.2 * libm::sqrt(rows.max(columns) as f64)
    }
}

/// A parameter after an update, and what is kept of its past.
pub(super) type Updated<P> = (P, Vec<P>);

/// By operations of the device, anew.
pub(super) fn update<E: Real, D: super::Device<E>>(
    weight: &Param<E, D>,
    kept: &[Param<E, D>],
    gradient: &Param<E, D>,
    update: &Update,
) -> Result<Updated<Param<E, D>>, Fault<D>> {
    match (weight, gradient) {
        (Param::Vector(w), Param::Vector(g)) => {
            let kept = kept.iter().filter_map(|kept| if let Param::Vector(kept) = kept { Some(kept) } else { None });
            let (w, kept) = elementwise(w, &kept.collect::<Vec<_>>(), g, update, Ok)?;
            Ok((Param::Vector(w), kept.into_iter().map(Param::Vector).collect()))
        }
        (Param::Matrix(w), Param::Matrix(g)) => {
            let kept = kept.iter().filter_map(|kept| if let Param::Matrix(kept) = kept { Some(kept) } else { None });
            let (w, kept) = elementwise(w, &kept.collect::<Vec<_>>(), g, update, orthogonal)?;
            Ok((Param::Matrix(w), kept.into_iter().map(Param::Matrix).collect()))
        }
        // What a backward pass finds has its parameter's shape.
        _ => unreachable!("a gradient has its parameter's shape"),
    }
}

/// `bent` is what Muon makes of its momentum.
fn elementwise<S: Shape, E: Real, D: super::Device<E>>(
    weight: &Tensor<S, E, D>,
    kept: &[&Tensor<S, E, D>],
    gradient: &Tensor<S, E, D>,
    update: &Update,
    bent: impl FnOnce(Tensor<S, E, D>) -> Result<Tensor<S, E, D>, Fault<D>>,
) -> Result<Updated<Tensor<S, E, D>>, Fault<D>> {
    let Update { rule, lr, decay, scale, number } = *update;
    let w = weight.clone().try_mul(E::of(1.0 - lr * decay))?;
    let g = gradient.clone().try_mul(E::of(scale))?;
    let times = |x: &Tensor<S, E, D>, factor: f64| x.clone().try_mul(E::of(factor));
    match (rule, kept) {
        (Rule::AdamW { betas: (b1, b2), eps }, [m, v]) => {
            let power = |base: f64| libm::pow(base, number as f64);
            let m = times(m, b1)?.try_add(times(&g, 1.0 - b1)?)?;
            let v = times(v, b2)?.try_add(g.try_square()?.try_mul(E::of(1.0 - b2))?)?;
            let root = v.clone().try_sqrt()?.try_mul(E::of(1.0 / libm::sqrt(1.0 - power(b2))))?.try_add(E::of(eps))?;
            let step = times(&m, lr / (1.0 - power(b1)))?.try_div(root)?;
            Ok((w.try_sub(step)?, vec![m, v]))
        }
        (Rule::Sgd { .. }, []) => Ok((w.try_sub(times(&g, lr)?)?, Vec::new())),
        (Rule::Sgd { momentum, nesterov }, [m]) => {
            let m = times(m, momentum)?.try_add(g.clone())?;
            let along = if nesterov { times(&m, momentum)?.try_add(g)? } else { m.clone() };
            Ok((w.try_sub(times(&along, lr)?)?, vec![m]))
        }
        (Rule::Lion { betas: (b1, b2) }, [m]) => {
            let along = times(m, b1)?.try_add(times(&g, 1.0 - b1)?)?;
            // The least normal number: 0 stays 0, and what is not next to it becomes 1 or −1.
            let size = along.clone().try_abs()?.try_add(E::of(f64::from(f32::MIN_POSITIVE)))?;
            let m = times(m, b2)?.try_add(times(&g, 1.0 - b2)?)?;
            Ok((w.try_sub(along.try_div(size)?.try_mul(E::of(lr))?)?, vec![m]))
        }
        (Rule::Muon { momentum, nesterov }, [m]) => {
            let (old, new) = (momentum, 1.0 - momentum);
            let m = times(m, old)?.try_add(times(&g, new)?)?;
            let along = if nesterov { times(&m, old)?.try_add(times(&g, new)?)? } else { m.clone() };
            Ok((w.try_sub(bent(along)?.try_mul(E::of(lr))?)?, vec![m]))
        }
        // Who calls keeps as many tensors as the rule asks for.
        _ => unreachable!("a rule keeps as many tensors as it says"),
    }
}

/// 0.2·√max(A, B) · O(u).
fn orthogonal<E: Real, D: super::Device<E>>(u: Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
    let (rows, columns) = *u.shape();
    let squares: f64 = u.clone().try_square()?.try_sum::<Rank0, _>()?.as_vec()[0].into();
    let size = Rule::size(rows, columns);
    let (steps, [a, b, c]) = NEWTON_SCHULZ;
    let turned = |x: Matrix<E, D>| if rows > columns { x.try_permute::<_, Axes2<1, 0>>() } else { Ok(x) };
    let mut x = turned(u.try_mul(E::of(1.0 / libm::sqrt(squares).max(LEAST_NORM)))?)?;
    for _ in 0..steps {
        // Symmetric: as good as its transposed.
        let square = linear(&mut NoneTape, &x, &x)?;
        let fourth = linear(&mut NoneTape, &square, &square)?;
        let factor = square.try_mul(E::of(b))?.try_add(fourth.try_mul(E::of(c))?)?;
        x = factor.try_matmul(x.clone())?.try_add(x.try_mul(E::of(a))?)?;
    }
    turned(x)?.try_mul(E::of(size))
}
