//! What stands between the products of a feed-forward network: SwiGLU (2002.05202), GELU by its tanh approximation (1606.08415).

use super::simd::{LANES, exp, fma, multiversion};

/// √(2/π), of the tanh approximation.
const ROOT: f32 = 0.797_884_6;
/// Its cubic coefficient.
const CUBIC: f32 = 0.044_715;

/// tanh u = 1 − 2 / (e^{2u} + 1).
#[inline(always)]
fn tanh<const FMA: bool>(u: f32) -> f32 {
    1.0 - 2.0 / (exp::<FMA>(2.0 * u) + 1.0)
}

/// dg, du and the output of silu(g) u, from g, u and d of the output.
#[inline(always)]
fn swiglu_slopes<const FMA: bool>(g: f32, u: f32, d: f32) -> [f32; 3] {
    let sigmoid = 1.0 / (1.0 + exp::<FMA>(-g));
    let silu = g * sigmoid;
    [d * u * fma::<FMA>(silu, 1.0 - sigmoid, sigmoid), d * silu, silu * u]
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
            let (mut gate, mut up, mut out) =
                (gate.chunks_exact_mut(LANES), up.chunks_exact_mut(LANES), out.chunks_exact_mut(LANES));
            // Lanes are copied out and back: written where they lie, three slices that change are not made vectors of.
            for ((gate, up), out) in (&mut gate).zip(&mut up).zip(&mut out) {
                let mut lanes = [[0.0; LANES]; 3];
                for lane in 0..LANES {
                    let [g, u, o] = swiglu_slopes::<FMA>(gate[lane], up[lane], out[lane]);
                    (lanes[0][lane], lanes[1][lane], lanes[2][lane]) = (g, u, o);
                }
                gate.copy_from_slice(&lanes[0]);
                up.copy_from_slice(&lanes[1]);
                out.copy_from_slice(&lanes[2]);
            }
            let rest = gate.into_remainder().iter_mut().zip(up.into_remainder()).zip(out.into_remainder());
            for ((g, u), o) in rest {
                [*g, *u, *o] = swiglu_slopes::<FMA>(*g, *u, *o);
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
