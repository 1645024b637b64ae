//! Elementwise arithmetic and plain sums.

use super::simd::{fma, multiversion, sum};

multiversion! {
    /// y += x.
    pub fn add(y: &mut [f32], x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += *x;
        }
    }

    /// y −= x.
    pub fn subtract(y: &mut [f32], x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y -= *x;
        }
    }

    /// y += a x.
    pub fn axpy(y: &mut [f32], a: f32, x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = fma::<FMA>(a, *x, *y);
        }
    }

    /// y ← a y + b x.
    pub fn blend(y: &mut [f32], a: f32, b: f32, x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = fma::<FMA>(a, *y, b * *x);
        }
    }

    /// x ← a x.
    pub fn scaled(x: &mut [f32], a: f32) {
        for x in x.iter_mut() {
            *x *= a;
        }
    }

    /// Σ x y.
    pub fn dot_all(x: &[f32], y: &[f32]) -> f32 {
        let y = &y[..x.len()];
        sum(x.len(), |at, sum| fma::<FMA>(x[at], y[at], sum))
    }

    /// x (N, D) ← each row times `gain` (D).
    pub fn times_gain(x: &mut [f32], gain: &[f32]) {
        for row in x.chunks_exact_mut(gain.len()) {
            for (x, gain) in row.iter_mut().zip(gain) {
                *x *= *gain;
            }
        }
    }

    /// Of y = x · gain by rows: dgain += Σ rows dy · x; dx += dy · gain.
    pub fn times_gain_backward(dy: &[f32], x: &[f32], gain: &[f32], dx: &mut [f32], dgain: &mut [f32]) {
        let width = gain.len();
        for ((dy, x), dx) in dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(dx.chunks_exact_mut(width)) {
            for at in 0..width {
                dgain[at] = fma::<FMA>(dy[at], x[at], dgain[at]);
                dx[at] = fma::<FMA>(dy[at], gain[at], dx[at]);
            }
        }
    }
}
