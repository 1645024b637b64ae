//! AdamW (1711.05101) and Lion (2302.06675) in one pass, and the squares that clipping needs.

use super::simd::{fma, multiversion, sum};

/// Coefficients of one update by AdamW, with all that does not depend on the element worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
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

/// Coefficients of one update by Lion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signed {
    /// The gradient is multiplied by it: clipping.
    pub scale: f32,
    /// β₁ and 1 − β₁: what is stepped along.
    pub along: [f32; 2],
    /// β₂ and 1 − β₂: what is kept.
    pub kept: [f32; 2],
    /// lr.
    pub rate: f32,
    /// 1 − lr · decay.
    pub keep: f32,
}

multiversion! {
    /// g ← scale g; m ← β₁ m + (1−β₁) g; v ← β₂ v + (1−β₂) g²; w ← keep w − rate · m / (root √v + eps).
    pub fn adamw(w: &mut [f32], m: &mut [f32], v: &mut [f32], gradient: &[f32], rule: Adam) {
        let length = w.len();
        let (m, v, gradient) = (&mut m[..length], &mut v[..length], &gradient[..length]);
        for at in 0..length {
            let g = gradient[at] * rule.scale;
            m[at] = fma::<FMA>(rule.first[0], m[at], rule.first[1] * g);
            v[at] = fma::<FMA>(rule.second[0], v[at], rule.second[1] * (g * g));
            w[at] = fma::<FMA>(rule.keep, w[at], -(rule.rate * m[at] / fma::<FMA>(v[at].sqrt(), rule.root, rule.eps)));
        }
    }

    /// g ← scale g; c = β₁ m + (1−β₁) g; m ← β₂ m + (1−β₂) g; w ← keep w − rate · sign(c), the sign of 0 being 0.
    pub fn lion(w: &mut [f32], m: &mut [f32], gradient: &[f32], rule: Signed) {
        let length = w.len();
        let (m, gradient) = (&mut m[..length], &gradient[..length]);
        for at in 0..length {
            let g = gradient[at] * rule.scale;
            let along = fma::<FMA>(rule.along[0], m[at], rule.along[1] * g);
            m[at] = fma::<FMA>(rule.kept[0], m[at], rule.kept[1] * g);
            let sign = if along > 0.0 { 1.0 } else { 0.0 } - if along < 0.0 { 1.0 } else { 0.0 };
            w[at] = fma::<FMA>(rule.keep, w[at], -rule.rate * sign);
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
