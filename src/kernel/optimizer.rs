//! AdamW (1711.05101) in one pass, and the squares that clipping needs.

use super::simd::{fma, multiversion, sum};

/// Coefficients of one update, with all that does not depend on the element worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The gradient is multiplied by it: clipping.
    pub scale: f32,
    /// β₁ and 1 − β₁.
    pub first: [f32; 2],
    /// β₂ and 1 − β₂.
    pub second: [f32; 2],
    /// lr / (1 − β₁ᵗ).
    pub rate: f32,
    /// 1 / √(1 − β₂ᵗ).
    pub root: f32,
    /// Outside the root.
    pub eps: f32,
    /// 1 − lr · decay.
    pub keep: f32,
}

multiversion! {
    /// g ← scale g; m ← β₁ m + (1−β₁) g; v ← β₂ v + (1−β₂) g²; w ← keep w − rate · m / (root √v + eps).
    pub fn adamw(w: &mut [f32], m: &mut [f32], v: &mut [f32], gradient: &[f32], rule: Rule) {
        let length = w.len();
        let (m, v, gradient) = (&mut m[..length], &mut v[..length], &gradient[..length]);
        for at in 0..length {
            let g = gradient[at] * rule.scale;
            m[at] = fma::<FMA>(rule.first[0], m[at], rule.first[1] * g);
            v[at] = fma::<FMA>(rule.second[0], v[at], rule.second[1] * (g * g));
            w[at] = fma::<FMA>(rule.keep, w[at], -(rule.rate * m[at] / fma::<FMA>(v[at].sqrt(), rule.root, rule.eps)));
        }
    }

    /// Σ x², in f64 over pieces that are summed in lanes.
    pub fn sum_of_squares(x: &[f32]) -> f64 {
        // Short enough that the lanes' own rounding stays below 1e-6.
        const PIECE: usize = 1024;
        let mut total = 0.0;
        for piece in x.chunks(PIECE) {
            total += f64::from(sum(piece.len(), |at, sum| fma::<FMA>(piece[at], piece[at], sum)));
        }
        total
    }
}
