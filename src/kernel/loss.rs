//! Losses of one token: value and gradient by its logits in one pass over a row.
//!
//! Cross entropy is −log q\[label\]; distillation is KL(p ‖ q) with q = softmax(z/τ) (1503.02531, without its factor τ²). All terms at
//! one temperature share one softmax. Where a teacher names only its K likeliest tokens, "any other" is one more outcome.

use super::simd::{LANES, across, exp, fma, largest, multiversion, sum};

/// All terms at one temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softening {
    /// τ.
    pub temperature: f32,
    /// Factor of cross entropy; 0 unless τ is 1.
    pub cross_entropy: f32,
    /// Factor of KL, 0 without.
    pub kl: f32,
}

/// What a teacher says about one token at the temperature in question.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'a> {
    /// Nothing is asked.
    Nothing,
    /// log p of every token (V).
    Logs(&'a [f32]),
    /// Logits of every token (V), not softened yet.
    Logits(&'a [f32]),
    /// Some tokens and the rest.
    Top(TeacherCells<'a>),
}

/// The K likeliest tokens of a teacher.
#[derive(Debug, Clone, Copy)]
pub struct TeacherCells<'a> {
    /// (K), without repetition.
    pub tokens: &'a [usize],
    /// (K).
    pub probabilities: &'a [f32],
    /// The missing mass.
    pub rest: f32,
    /// Σ p log p over the K + 1 outcomes.
    pub negative_entropy: f32,
}

/// Adds `weight` times the gradient of all terms of one softening to `gradient` (V), and returns the value, not weighted.
///
/// `exponentials` (V) is for the kernel's own use.
pub fn loss_of_row(
    terms: Softening,
    logits: &[f32],
    label: usize,
    teacher: Heard<'_>,
    weight: f32,
    exponentials: &mut [f32],
    gradient: &mut [f32],
) -> f64 {
    let (inverse_temperature, vocabulary) = (1.0 / terms.temperature, logits.len());
    let exponentials = &mut exponentials[..vocabulary];
    let (most, total) = soften(logits, inverse_temperature, exponentials);
    let lse = most + total.ln();
    let mut value = 0.0;
    // d(−log q[label]) = q − [label]; dKL = (q − p) / τ, and the same with a bucket for the rest.
    let (ce, kl) = (weight * terms.cross_entropy, weight * terms.kl * inverse_temperature);
    if terms.cross_entropy != 0.0 {
        value += f64::from(terms.cross_entropy) * (f64::from(lse) - f64::from(logits[label] * inverse_temperature));
    }
    match teacher {
        Heard::Nothing => spread(exponentials, (ce + kl) / total, gradient),
        Heard::Logs(logs) => {
            let apart =
                against(exponentials, [(ce + kl) / total, kl], (logits, inverse_temperature, lse), (logs, 1.0, 0.0), gradient);
            value += f64::from(terms.kl) * f64::from(apart);
        }
        Heard::Logits(other) => {
            let most = largest_of(other) * inverse_temperature;
            let its = most + sum_of_exponentials(other, inverse_temperature, most).ln();
            let sides = ((logits, inverse_temperature, lse), (other, inverse_temperature, its));
            let apart = against(exponentials, [(ce + kl) / total, kl], sides.0, sides.1, gradient);
            value += f64::from(terms.kl) * f64::from(apart);
        }
        Heard::Top(TeacherCells { tokens, probabilities, rest, negative_entropy }) => {
            let mut expected = 0.0;
            for (token, p) in tokens.iter().zip(probabilities) {
                expected += f64::from(*p) * f64::from(logits[*token] * inverse_temperature);
            }
            // The rest's log-sum-exp is summed over the rest alone: a difference of two sums would lose it.
            let kept: Vec<f32> = tokens.iter().map(|token| std::mem::replace(&mut exponentials[*token], 0.0)).collect();
            let (rest_most, rest_total) =
                if rest > 0.0 { rest_sum(logits, inverse_temperature, exponentials, tokens) } else { (most, 1.0) };
            spread(exponentials, (ce + kl) / total, gradient);
            if rest > 0.0 {
                spread_shifted(logits, inverse_temperature, rest_most, -kl * rest / rest_total, tokens, gradient, exponentials);
                expected += f64::from(rest) * f64::from(rest_most + rest_total.ln());
            }
            for ((token, p), e) in tokens.iter().zip(probabilities).zip(kept) {
                gradient[*token] += (ce + kl) / total * e - kl * *p;
            }
            value += f64::from(terms.kl) * (f64::from(negative_entropy) - expected + f64::from(lse));
        }
    }
    gradient[label] -= ce;
    value
}

/// Largest and sum of exponentials of the logits over τ that are not among `tokens`.
fn rest_sum(logits: &[f32], inverse_temperature: f32, rest: &mut [f32], tokens: &[usize]) -> (f32, f32) {
    let saved: Vec<f32> = rest.to_vec();
    rest.copy_from_slice(logits);
    tokens.iter().for_each(|token| rest[*token] = f32::NEG_INFINITY);
    let most = largest_of(rest) * inverse_temperature;
    let total = if most == f32::NEG_INFINITY { 1.0 } else { sum_seen(rest, inverse_temperature, most) };
    rest.copy_from_slice(&saved);
    (most, total)
}

/// gradient += factor · exp(z/τ − most) where the token is not among `tokens`.
fn spread_shifted(
    logits: &[f32],
    inverse_temperature: f32,
    most: f32,
    factor: f32,
    tokens: &[usize],
    gradient: &mut [f32],
    work: &mut [f32],
) {
    exponentials_of(logits, inverse_temperature, most, work);
    tokens.iter().for_each(|token| work[*token] = 0.0);
    spread(work, factor, gradient);
}

multiversion! {
    /// exponentials = exp(z/τ − m), m the largest z/τ; returns m and their sum.
    fn soften(logits: &[f32], inverse_temperature: f32, exponentials: &mut [f32]) -> (f32, f32) {
        let most = largest(logits) * inverse_temperature;
        let mut sums = [0.0; LANES];
        let whole = logits.len() - logits.len() % LANES;
        for (out, z) in exponentials[..whole].chunks_exact_mut(LANES).zip(logits.chunks_exact(LANES)) {
            for ((out, z), sum) in out.iter_mut().zip(z).zip(&mut sums) {
                *out = exp::<FMA>(fma::<FMA>(*z, inverse_temperature, -most));
                *sum += *out;
            }
        }
        let mut total = across(sums);
        for (out, z) in exponentials[whole..].iter_mut().zip(&logits[whole..]) {
            *out = exp::<FMA>(fma::<FMA>(*z, inverse_temperature, -most));
            total += *out;
        }
        (most, total)
    }

    fn largest_of(row: &[f32]) -> f32 {
        largest(row)
    }

    /// out = exp(z/τ − most), clamped.
    fn exponentials_of(logits: &[f32], inverse_temperature: f32, most: f32, out: &mut [f32]) {
        for (out, z) in out.iter_mut().zip(logits) {
            *out = exp::<FMA>(fma::<FMA>(*z, inverse_temperature, -most));
        }
    }

    /// Σ exp(z/τ − most).
    fn sum_of_exponentials(logits: &[f32], inverse_temperature: f32, most: f32) -> f32 {
        sum(logits.len(), |at, sum| sum + exp::<FMA>(fma::<FMA>(logits[at], inverse_temperature, -most)))
    }

    /// The same, over what is not −∞.
    fn sum_seen(logits: &[f32], inverse_temperature: f32, most: f32) -> f32 {
        sum(logits.len(), |at, sum| {
            let z = logits[at];
            let e = exp::<FMA>(fma::<FMA>(z, inverse_temperature, -most));
            if z == f32::NEG_INFINITY { sum } else { sum + e }
        })
    }

    /// gradient += factor · x.
    fn spread(x: &[f32], factor: f32, gradient: &mut [f32]) {
        for (gradient, x) in gradient.iter_mut().zip(x) {
            *gradient = fma::<FMA>(factor, *x, *gradient);
        }
    }

    /// gradient += own · e − its · p with log p = t · scale − shift; returns Σ p (log p − log q) with log q = z/τ − lse.
    fn against(
        exponentials: &[f32],
        factors: [f32; 2],
        student: (&[f32], f32, f32),
        teacher: (&[f32], f32, f32),
        gradient: &mut [f32],
    ) -> f32 {
        let ([own, its], (z, inverse, lse), (t, scale, shift)) = (factors, student, teacher);
        let length = z.len();
        let (exponentials, t, gradient) = (&exponentials[..length], &t[..length], &mut gradient[..length]);
        sum(length, |at, sum| {
            let log = fma::<FMA>(t[at], scale, -shift);
            let p = exp::<FMA>(log);
            gradient[at] = fma::<FMA>(own, exponentials[at], fma::<FMA>(-its, p, gradient[at]));
            // A token that the teacher excludes has log p = −∞ and contributes nothing.
            let term = if log > -87.0 { p * (log - fma::<FMA>(z[at], inverse, -lse)) } else { 0.0 };
            sum + term
        })
    }
}
