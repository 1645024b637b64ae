//! What stands between the products of a feed-forward network: SwiGLU (2002.05202), GELU by its tanh approximation (1606.08415).

use super::simd::{exp, fma, multiversion};

/// √(2/π), of the tanh approximation.
const ROOT: f32 = 0.797_884_6;
/// Its cubic coefficient.
const CUBIC: f32 = 0.044_715;

/// tanh u = 1 − 2 / (e^{2u} + 1).
#[inline(always)]
fn tanh<const FMA: bool>(u: f32) -> f32 {
    1.0 - 2.0 / (exp::<FMA>(2.0 * u) + 1.0)
}

multiversion! {
    /// out (N, F) = silu(g) u of rows (g, u) (N, 2F).
    pub fn swiglu(gate_up: &[f32], out: &mut [f32], hidden: usize) {
        for (row, out) in gate_up.chunks_exact(2 * hidden).zip(out.chunks_exact_mut(hidden)) {
            let (gate, up) = row.split_at(hidden);
            for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
                *out = *g / (1.0 + exp::<FMA>(-*g)) * *u;
            }
        }
    }

    /// Of [`swiglu`], in place: rows (g, u) become (dg, du), and d of the output becomes the output again.
    pub fn swiglu_backward(gate_up: &mut [f32], out: &mut [f32], hidden: usize) {
        for (row, out) in gate_up.chunks_exact_mut(2 * hidden).zip(out.chunks_exact_mut(hidden)) {
            let (gate, up) = row.split_at_mut(hidden);
            for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
                let sigmoid = 1.0 / (1.0 + exp::<FMA>(-*g));
                let silu = *g * sigmoid;
                let (d, value) = (*out, silu * *u);
                *g = d * *u * fma::<FMA>(silu, 1.0 - sigmoid, sigmoid);
                *u = d * silu;
                *out = value;
            }
        }
    }

    /// out = gelu(x).
    pub fn gelu(x: &[f32], out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            let inner = ROOT * *x * fma::<FMA>(CUBIC * *x, *x, 1.0);
            *out = 0.5 * *x * (1.0 + tanh::<FMA>(inner));
        }
    }

    /// Of [`gelu`], in place: x becomes dx, and d of the output becomes the output again.
    pub fn gelu_backward(x: &mut [f32], out: &mut [f32]) {
        for (x, out) in x.iter_mut().zip(out) {
            let bent = tanh::<FMA>(ROOT * *x * fma::<FMA>(CUBIC * *x, *x, 1.0));
            let slope = ROOT * fma::<FMA>(3.0 * CUBIC * *x, *x, 1.0);
            let value = 0.5 * *x * (1.0 + bent);
            *x = *out * fma::<FMA>(0.5 * *x * fma::<FMA>(-bent, bent, 1.0), slope, 0.5 * (1.0 + bent));
            *out = value;
        }
    }
}
