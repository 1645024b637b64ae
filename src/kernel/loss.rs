//! Losses of one token: value and gradient by its logits in one pass over a row.
//!
//! Cross entropy is −log q\[label\]; distillation is a [`Divergence`] of the teacher's p and q = softmax(z/τ) (1503.02531, without its
//! factor τ²), or the mean square of the difference of logits. All terms at one temperature share one softmax. Where a teacher names only
//! its K likeliest tokens, "any other" is one more outcome.

use super::simd::{LANES, across, exp, fma, largest, ln, multiversion, sum, two_sums};

/// How far apart a teacher p and a student q are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Divergence {
    /// KL(p ‖ q) = Σ p log p/q.
    Kl,
    /// KL(q ‖ p).
    ReverseKl,
    /// β · KL(p ‖ m) + (1 − β) · KL(q ‖ m) with m = β p + (1 − β) q (2306.13649).
    Jsd {
        /// Between 0 and 1.
        beta: f64,
    },
}

/// All terms at one temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softening {
    /// τ.
    pub temperature: f32,
    /// Factor of cross entropy; 0 unless τ is 1.
    pub cross_entropy: f32,
    /// What a teacher is held against, and its factor.
    pub divergence: Option<(Divergence, f32)>,
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
    /// log p, (K).
    pub logs: &'a [f32],
    /// log of the missing mass.
    pub rest: f32,
}

/// The student's row: logits, 1/τ, log Σ exp(z/τ).
#[derive(Clone, Copy)]
struct Student<'a> {
    logits: &'a [f32],
    inverse_temperature: f32,
    lse: f32,
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
    let student = Student { logits, inverse_temperature, lse: most + total.ln() };
    let mut value = 0.0;
    let ce = weight * terms.cross_entropy;
    if terms.cross_entropy != 0.0 {
        let own = f64::from(student.lse) - f64::from(logits[label] * inverse_temperature);
        value += f64::from(terms.cross_entropy) * own;
    }
    let (divergence, factor) = terms.divergence.unwrap_or((Divergence::Kl, 0.0));
    let slope = weight * factor * inverse_temperature;
    let apart = match teacher {
        Heard::Nothing => {
            spread(exponentials, ce / total, gradient);
            0.0
        }
        Heard::Logs(logs) => full(divergence, [ce, slope], exponentials, total, student, (logs, 1.0, 0.0), gradient),
        Heard::Logits(other) => {
            let most = largest_of(other) * inverse_temperature;
            let its = most + sum_of_exponentials(other, inverse_temperature, most).ln();
            full(divergence, [ce, slope], exponentials, total, student, (other, inverse_temperature, its), gradient)
        }
        Heard::Top(cells) => {
            let exact = f64::from(most) + libm::log(f64::from(total));
            top(divergence, [ce, slope], exponentials, (total, exact), student, cells, gradient)
        }
    };
    gradient[label] -= ce;
    value + f64::from(factor) * apart
}

/// Adds `weight` times the gradient of the mean of (z − t)² over the vocabulary to `gradient`, and returns that mean.
pub fn squares_of_row(logits: &[f32], teacher: &[f32], weight: f32, gradient: &mut [f32]) -> f64 {
    let size = logits.len() as f32;
    f64::from(squares(logits, teacher, 2.0 * weight / size, gradient)) / f64::from(size)
}

/// A divergence from all of a teacher's outcomes, log p = t · scale − shift, with the gradient of cross entropy (but for the label).
fn full(
    divergence: Divergence,
    [ce, slope]: [f32; 2],
    exponentials: &[f32],
    total: f32,
    student: Student<'_>,
    teacher: (&[f32], f32, f32),
    gradient: &mut [f32],
) -> f64 {
    // dD/dz = (q s − q Σ q s) / τ with s = dD/dq: for KL, q s = −p.
    let (value, pulled) = match divergence {
        Divergence::Kl => {
            return f64::from(against(exponentials, [(ce + slope) / total, slope], student, teacher, gradient));
        }
        Divergence::ReverseKl => {
            let value = against_reverse(exponentials, [1.0 / total, slope], student, teacher, gradient);
            (value, value)
        }
        Divergence::Jsd { beta } => against_mixture(exponentials, [1.0 / total, slope, beta as f32], student, teacher, gradient),
    };
    spread(exponentials, (ce - slope * pulled) / total, gradient);
    f64::from(value)
}

/// The same from a teacher's likeliest tokens and the rest as one outcome. `exponentials` are lost.
fn top(
    divergence: Divergence,
    [ce, slope]: [f32; 2],
    exponentials: &mut [f32],
    (total, lse): (f32, f64),
    student: Student<'_>,
    cells: TeacherCells<'_>,
    gradient: &mut [f32],
) -> f64 {
    let (Student { logits, inverse_temperature, .. }, TeacherCells { tokens, logs, rest }) = (student, cells);
    let (mut value, mut pulled) = (0.0, 0.0);
    for (token, log_p) in tokens.iter().zip(logs) {
        let log_q = f64::from(logits[*token]) * f64::from(inverse_temperature) - lse;
        let (own, pull) = outcome(divergence, log_q, f64::from(*log_p));
        value += own;
        pulled += pull;
        gradient[*token] += slope * pull as f32;
    }
    if tokens.len() == logits.len() {
        spread(exponentials, (ce - slope * pulled as f32) / total, gradient);
        return value;
    }
    // The rest's log-sum-exp is summed over the rest alone: a difference of two sums would lose it.
    let (rest_most, rest_total) = rest_sum(logits, inverse_temperature, exponentials, tokens);
    let log_q = f64::from(rest_most) + libm::log(f64::from(rest_total)) - lse;
    let (own, pull) = outcome(divergence, log_q, f64::from(rest));
    spread(exponentials, (ce - slope * (pulled + pull) as f32) / total, gradient);
    // Each token of the rest takes its part of what pulls at the rest.
    exponentials_of(logits, inverse_temperature, rest_most, exponentials);
    tokens.iter().for_each(|token| exponentials[*token] = 0.0);
    spread(exponentials, slope * pull as f32 / rest_total, gradient);
    value + own
}

/// An outcome's share of a divergence D, and q dD/dq.
fn outcome(divergence: Divergence, log_q: f64, log_p: f64) -> (f64, f64) {
    let (p, q, u) = (libm::exp(log_p), libm::exp(log_q), log_q - log_p);
    match divergence {
        // An outcome that the teacher excludes has log p = −∞ and contributes nothing.
        Divergence::Kl => (if p > 0.0 { -p * u } else { 0.0 }, -p),
        Divergence::ReverseKl => (q * u, q * u),
        Divergence::Jsd { beta } => {
            let small = libm::exp(-u.abs());
            let (of_q, of_p) = if u > 0.0 {
                let of_q = -libm::log(1.0 - beta + beta * small);
                (of_q, of_q - u)
            } else {
                let of_p = -libm::log(beta + (1.0 - beta) * small);
                (of_p + u, of_p)
            };
            let pull = (1.0 - beta) * q * of_q;
            (if p > 0.0 { beta * p * of_p + pull } else { pull }, pull)
        }
    }
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
        student: Student<'_>,
        teacher: (&[f32], f32, f32),
        gradient: &mut [f32],
    ) -> f32 {
        let ([own, its], Student { logits: z, inverse_temperature: inverse, lse }, (t, scale, shift)) = (factors, student, teacher);
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

    /// gradient += slope · q (log q − log p) with q = e · inverse total; returns Σ q (log q − log p).
    fn against_reverse(
        exponentials: &[f32],
        factors: [f32; 2],
        student: Student<'_>,
        teacher: (&[f32], f32, f32),
        gradient: &mut [f32],
    ) -> f32 {
        let ([inverse_total, slope], Student { logits: z, inverse_temperature: inverse, lse }, (t, scale, shift)) =
            (factors, student, teacher);
        let length = z.len();
        let (exponentials, t, gradient) = (&exponentials[..length], &t[..length], &mut gradient[..length]);
        sum(length, |at, sum| {
            let apart = fma::<FMA>(z[at], inverse, -lse) - fma::<FMA>(t[at], scale, -shift);
            let pull = exponentials[at] * inverse_total * apart;
            gradient[at] = fma::<FMA>(slope, pull, gradient[at]);
            sum + pull
        })
    }

    /// gradient += slope · (1 − β) q log q/m; returns Σ (β p log p/m + (1 − β) q log q/m) and Σ (1 − β) q log q/m.
    fn against_mixture(
        exponentials: &[f32],
        factors: [f32; 3],
        student: Student<'_>,
        teacher: (&[f32], f32, f32),
        gradient: &mut [f32],
    ) -> (f32, f32) {
        let ([inverse_total, slope, beta], Student { logits: z, inverse_temperature: inverse, lse }, (t, scale, shift)) =
            (factors, student, teacher);
        let (length, other) = (z.len(), 1.0 - beta);
        let (exponentials, t, gradient) = (&exponentials[..length], &t[..length], &mut gradient[..length]);
        two_sums(length, |at, value, pulled| {
            let log = fma::<FMA>(t[at], scale, -shift);
            let u = fma::<FMA>(z[at], inverse, -lse) - log;
            // m/q = 1 − β + β e⁻ᵘ and m/p = β + (1 − β) eᵘ: the one of the larger of p and q, which does not overflow.
            let is_more = u > 0.0;
            let small = exp::<FMA>(if is_more { -u } else { u });
            let (large, little) = if is_more { (other, beta) } else { (beta, other) };
            let of_larger = -ln::<FMA>(fma::<FMA>(little, small, large));
            let of_q = if is_more { of_larger } else { of_larger + u };
            let of_p = if is_more { of_larger - u } else { of_larger };
            let pull = other * (exponentials[at] * inverse_total) * of_q;
            gradient[at] = fma::<FMA>(slope, pull, gradient[at]);
            let its = if log > -87.0 { beta * exp::<FMA>(log) * of_p } else { 0.0 };
            (value + (its + pull), pulled + pull)
        })
    }

    /// gradient += slope · (z − t); returns Σ (z − t)².
    fn squares(z: &[f32], t: &[f32], slope: f32, gradient: &mut [f32]) -> f32 {
        let length = z.len();
        let (t, gradient) = (&t[..length], &mut gradient[..length]);
        sum(length, |at, sum| {
            let apart = z[at] - t[at];
            gradient[at] = fma::<FMA>(slope, apart, gradient[at]);
            fma::<FMA>(apart, apart, sum)
        })
    }
}
