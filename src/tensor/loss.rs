//! Losses of each token, composed from dfdx operations.

use dfdx::prelude::*;

use super::composed::{linear, off, on};
use super::{Divergence, Fault, Matrix, Real, Targets, TeacherRows, Unspoken, Vector};

/// −log softmax(z)\[label\].
pub(super) fn cross_entropy<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    logits: &Matrix<E, D>,
    targets: &Targets<E, D>,
) -> Result<Vector<E, D>, Fault<D>> {
    let logs = on(tape, logits).try_log_softmax::<Axis<1>>()?;
    let own = logs.try_select::<(usize,), _>(targets.labels.clone())?.try_negate()?;
    Ok(off(tape, own))
}

/// How far teacher and student are apart, q = softmax(z/τ) (1503.02531 without its factor τ²).
///
/// For a truncated teacher the K + 1 outcomes are the K tokens and "any other": log q of the latter is the log-sum-exp over all but the
/// K, which stays finite, in value and gradient, however little is left.
pub(super) fn apart<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    logits: &Matrix<E, D>,
    teacher: &TeacherRows<E, D>,
    divergence: Divergence,
    temperature: f64,
) -> Result<Vector<E, D>, Fault<D>> {
    let log_q = on(tape, logits).try_mul(E::of(1.0 / temperature))?.try_log_softmax::<Axis<1>>()?;
    let log_q = off(tape, log_q);
    match teacher {
        TeacherRows::Full(log_p) => over_outcomes(tape, &log_q, log_p, divergence),
        TeacherRows::Unspoken(Unspoken { x, table }) => {
            let said = linear(&mut NoneTape, x, table)?;
            let log_p = said.try_mul(E::of(1.0 / temperature))?.try_log_softmax::<Axis<1>>()?;
            over_outcomes(tape, &log_q, &log_p, divergence)
        }
        TeacherRows::Top { tokens, logs, rest, mask } => {
            let others = on(tape, &log_q).try_add(mask.clone())?.try_logsumexp::<(usize,), Axis<1>>()?;
            let others = off(tape, others);
            let others = shares(tape, &others, rest, divergence)?;
            let chosen = on(tape, &log_q).try_gather::<(usize, usize), _>(tokens.clone())?;
            let chosen = off(tape, chosen);
            let chosen = over_outcomes(tape, &chosen, logs, divergence)?;
            let both = on(tape, &chosen).try_add(others)?;
            Ok(off(tape, both))
        }
    }
}

/// The mean over the vocabulary of (z − t)².
pub(super) fn squares<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    logits: &Matrix<E, D>,
    teacher: &Unspoken<E, D>,
) -> Result<Vector<E, D>, Fault<D>> {
    let said = linear(&mut NoneTape, &teacher.x, &teacher.table)?;
    let squares = on(tape, logits).try_sub(said)?.try_square()?.try_mean::<(usize,), Axis<1>>()?;
    Ok(off(tape, squares))
}

/// A divergence over the outcomes of each row.
fn over_outcomes<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    log_q: &Matrix<E, D>,
    log_p: &Matrix<E, D>,
    divergence: Divergence,
) -> Result<Vector<E, D>, Fault<D>> {
    let shares = shares(tape, log_q, log_p, divergence)?;
    let sum = on(tape, &shares).try_sum::<(usize,), Axis<1>>()?;
    Ok(off(tape, sum))
}

/// Each outcome's share of a divergence.
fn shares<S: Shape, E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    log_q: &Tensor<S, E, D>,
    log_p: &Tensor<S, E, D>,
    divergence: Divergence,
) -> Result<Tensor<S, E, D>, Fault<D>> {
    let p = log_p.clone().try_exp()?;
    if divergence == Divergence::Kl {
        let shares = on(tape, log_q).try_negate()?.try_add(log_p.clone())?.try_mul(p)?;
        return Ok(off(tape, shares));
    }
    let q = on(tape, log_q).try_exp()?;
    let q = off(tape, q);
    let u = on(tape, log_q).try_sub(log_p.clone())?;
    let u = off(tape, u);
    let Divergence::Jsd { beta } = divergence else {
        let shares = on(tape, &u).try_mul(q)?;
        return Ok(off(tape, shares));
    };
    // log m/q is the logarithm of the sum of e to the power of a = log β − u and of b = log (1 − β): their mean, half their distance,
    // and what the smaller adds.
    let (a, b) = (libm::log(beta), libm::log(1.0 - beta));
    let distance = on(tape, &u).try_negate()?.try_add(E::of(a - b))?.try_abs()?;
    let distance = off(tape, distance);
    let added = on(tape, &distance).try_negate()?.try_exp()?.try_add(E::of(1.0))?.try_ln()?;
    let added = off(tape, added);
    let mean = on(tape, &distance).try_sub(u.clone())?.try_add(E::of(a + b))?.try_mul(E::of(0.5))?;
    let of_q = off(tape, mean.try_add(added)?.try_negate()?);
    // β p log p/m + (1 − β) q log q/m, with log p/m = log q/m − u.
    let of_p = on(tape, &of_q).try_sub(u)?.try_mul(p)?.try_mul(E::of(beta))?;
    let of_p = off(tape, of_p);
    let shares = on(tape, &of_q).try_mul(q)?.try_mul(E::of(1.0 - beta))?.try_add(of_p)?;
    Ok(off(tape, shares))
}
