//! Norms over rows: RMS norm (1910.07467) and layer norm (1607.06450), which divide by a root, and Dynamic Tanh (2503.10622), which bends.

use super::simd::{exp, fma, multiversion, sum};

/// What a norm does before weight and shift.
#[derive(Debug, Clone, Copy)]
pub enum NormRule {
    /// Division by a root.
    Root {
        /// Subtract the mean.
        centered: bool,
        /// Added to the mean square, respectively the variance.
        eps: f32,
    },
    /// tanh(alpha x).
    Tanh {
        /// Learned.
        alpha: f32,
    },
}

/// A norm over the last axis, of width C.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// What comes first.
    pub rule: NormRule,
    /// (C).
    pub weight: &'a [f32],
    /// (C).
    pub bias: Option<&'a [f32]>,
}

/// Where the gradients of a norm's own parameters are added up.
#[derive(Debug)]
pub struct NormSlopes<'a> {
    /// (C).
    pub weight: &'a mut [f32],
    /// (C); of a norm that has a shift.
    pub bias: Option<&'a mut [f32]>,
    /// Of [`NormRule::Tanh`].
    pub alpha: &'a mut f64,
}

/// The norm of rows of x (M, C). `stats` (M) is left holding what [`norm_backward`] wants to know of each row.
pub fn norm(norm: Norm<'_>, x: &[f32], y: &mut [f32], stats: &mut [[f32; 2]]) {
    match norm.rule {
        NormRule::Root { centered, eps } => root(norm, centered, eps, x, y, stats),
        NormRule::Tanh { alpha } => tanh(norm, alpha, x, y),
    }
}

/// Of [`norm`]: adds to `dx` and to the parameters' gradients.
pub fn norm_backward(norm: Norm<'_>, dy: &[f32], x: &[f32], stats: &[[f32; 2]], dx: &mut [f32], slopes: &mut NormSlopes<'_>) {
    match norm.rule {
        NormRule::Root { centered, .. } => root_backward(norm, centered, dy, x, stats, dx, slopes.weight),
        NormRule::Tanh { alpha } => *slopes.alpha += tanh_backward(norm, alpha, dy, x, dx, slopes.weight),
    }
    if let Some(dbias) = &mut slopes.bias {
        for dy in dy.chunks_exact(dbias.len()) {
            for (dbias, dy) in dbias.iter_mut().zip(dy) {
                *dbias += *dy;
            }
        }
    }
}

/// Below this size of u, tanh u is had from its series: 1 − 2 / (e²ᵘ + 1) loses there what 1 swallows.
const SMALL: f32 = 0.25;

/// tanh u; relative error below 5e-7.
#[inline(always)]
fn tanh_of<const FMA: bool>(u: f32) -> f32 {
    let far = 1.0 - 2.0 / (exp::<FMA>(2.0 * u) + 1.0);
    let square = u * u;
    // u − u³/3 + 2u⁵/15 − 17u⁷/315 + 62u⁹/2835.
    let mut series = 0.021_869_488;
    for coefficient in [-0.053_968_254, 0.133_333_33, -0.333_333_34, 1.0] {
        series = fma::<FMA>(series, square, coefficient);
    }
    if u.abs() < SMALL { u * series } else { far }
}

multiversion! {
    /// y = (x − μ) ρ w + b, with ρ = 1/√(mean (x − μ)² + eps), and μ = 0 unless centered; `stats` are μ and ρ.
    fn root(norm: Norm<'_>, centered: bool, eps: f32, x: &[f32], y: &mut [f32], stats: &mut [[f32; 2]]) {
        let width = norm.weight.len();
        for ((x, y), stats) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(stats) {
            let mean = if centered { sum(width, |at, sum| sum + x[at]) / width as f32 } else { 0.0 };
            let square = sum(width, |at, sum| {
                let apart = x[at] - mean;
                fma::<FMA>(apart, apart, sum)
            });
            let root = 1.0 / (square / width as f32 + eps).sqrt();
            *stats = [mean, root];
            let weight = &norm.weight[..width];
            match norm.bias {
                Some(bias) => (0..width).for_each(|at| y[at] = fma::<FMA>((x[at] - mean) * root, weight[at], bias[at])),
                None => (0..width).for_each(|at| y[at] = (x[at] - mean) * root * weight[at]),
            }
        }
    }

    /// Of [`root`]: dx += ρ (dy w − mean(dy w) − n · mean(dy w n)) with n = (x − μ) ρ, the first mean only if centered; dw += Σ rows dy n.
    fn root_backward(
        norm: Norm<'_>,
        centered: bool,
        dy: &[f32],
        x: &[f32],
        stats: &[[f32; 2]],
        dx: &mut [f32],
        dweight: &mut [f32],
    ) {
        let width = norm.weight.len();
        let (weight, dweight) = (&norm.weight[..width], &mut dweight[..width]);
        let rows = dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(stats);
        for (((dy, x), dx), [mean, root]) in rows {
            let (mean, root) = (*mean, *root);
            let along = sum(width, |at, sum| fma::<FMA>(dy[at] * weight[at], (x[at] - mean) * root, sum)) / width as f32;
            let level = if centered {
                sum(width, |at, sum| fma::<FMA>(dy[at], weight[at], sum)) / width as f32
            } else {
                0.0
            };
            for at in 0..width {
                let unit = (x[at] - mean) * root;
                dweight[at] = fma::<FMA>(dy[at], unit, dweight[at]);
                dx[at] = fma::<FMA>(root, fma::<FMA>(-unit, along, fma::<FMA>(dy[at], weight[at], -level)), dx[at]);
            }
        }
    }

    /// y = tanh(alpha x) w + b.
    fn tanh(norm: Norm<'_>, alpha: f32, x: &[f32], y: &mut [f32]) {
        let width = norm.weight.len();
        let weight = &norm.weight[..width];
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            match norm.bias {
                Some(bias) => (0..width).for_each(|at| y[at] = fma::<FMA>(tanh_of::<FMA>(alpha * x[at]), weight[at], bias[at])),
                None => (0..width).for_each(|at| y[at] = tanh_of::<FMA>(alpha * x[at]) * weight[at]),
            }
        }
    }

    /// Of [`tanh`], with t = tanh(alpha x) and s = dy w (1 − t²): dx += alpha s; dw += Σ rows dy t; gives Σ s x, the gradient of alpha.
    fn tanh_backward(norm: Norm<'_>, alpha: f32, dy: &[f32], x: &[f32], dx: &mut [f32], dweight: &mut [f32]) -> f64 {
        let width = norm.weight.len();
        let (weight, dweight) = (&norm.weight[..width], &mut dweight[..width]);
        let mut total = 0.0;
        for ((dy, x), dx) in dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(dx.chunks_exact_mut(width)) {
            // Bent twice: a sum that also writes is not made vectors of.
            total += f64::from(sum(width, |at, sum| {
                let bent = tanh_of::<FMA>(alpha * x[at]);
                fma::<FMA>(dy[at] * weight[at] * fma::<FMA>(-bent, bent, 1.0), x[at], sum)
            }));
            for at in 0..width {
                let bent = tanh_of::<FMA>(alpha * x[at]);
                dweight[at] = fma::<FMA>(dy[at], bent, dweight[at]);
                dx[at] = fma::<FMA>(alpha * dy[at] * weight[at], fma::<FMA>(-bent, bent, 1.0), dx[at]);
            }
        }
        total
    }
}
