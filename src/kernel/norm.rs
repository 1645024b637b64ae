//! RMS norm (1910.07467) and layer norm (1607.06450) over rows.

use super::simd::{fma, multiversion, sum};

/// A norm over the last axis, of width C.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// Subtract the mean.
    pub centered: bool,
    /// Added to the mean square, respectively the variance.
    pub eps: f32,
    /// (C).
    pub weight: &'a [f32],
    /// (C).
    pub bias: Option<&'a [f32]>,
}

multiversion! {
    /// y = (x − μ) ρ w + b for rows of x (M, C), with ρ = 1/√(mean (x − μ)² + eps), and μ = 0 unless centered.
    ///
    /// `stats` (M) is left holding μ and ρ of each row, as [`norm_backward`] wants them.
    pub fn norm(norm: Norm<'_>, x: &[f32], y: &mut [f32], stats: &mut [[f32; 2]]) {
        let width = norm.weight.len();
        for ((x, y), stats) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(stats) {
            let mean = if norm.centered { sum(width, |at, sum| sum + x[at]) / width as f32 } else { 0.0 };
            let square = sum(width, |at, sum| {
                let apart = x[at] - mean;
                fma::<FMA>(apart, apart, sum)
            });
            let root = 1.0 / (square / width as f32 + norm.eps).sqrt();
            *stats = [mean, root];
            let weight = &norm.weight[..width];
            match norm.bias {
                Some(bias) => (0..width).for_each(|at| y[at] = fma::<FMA>((x[at] - mean) * root, weight[at], bias[at])),
                None => (0..width).for_each(|at| y[at] = (x[at] - mean) * root * weight[at]),
            }
        }
    }

    /// Of [`norm`]: dx += ρ (dy w − mean(dy w) − n · mean(dy w n)) with n = (x − μ) ρ, the first mean only if centered;
    /// dw += Σ rows dy n; db += Σ rows dy.
    pub fn norm_backward(
        norm: Norm<'_>,
        dy: &[f32],
        x: &[f32],
        stats: &[[f32; 2]],
        dx: &mut [f32],
        dweight: &mut [f32],
        dbias: Option<&mut [f32]>,
    ) {
        let width = norm.weight.len();
        let (weight, dweight) = (&norm.weight[..width], &mut dweight[..width]);
        let rows = dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(stats);
        for (((dy, x), dx), [mean, root]) in rows {
            let (mean, root) = (*mean, *root);
            let along = sum(width, |at, sum| fma::<FMA>(dy[at] * weight[at], (x[at] - mean) * root, sum)) / width as f32;
            let level = if norm.centered {
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
        if let Some(dbias) = dbias {
            for dy in dy.chunks_exact(width) {
                for (dbias, dy) in dbias.iter_mut().zip(dy) {
                    *dbias += *dy;
                }
            }
        }
    }
}
