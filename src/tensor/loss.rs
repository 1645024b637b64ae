//! Losses of each token, composed from dfdx operations.

use dfdx::prelude::*;

use super::composed::{linear, off, on};
use super::{Fault, Matrix, Real, Targets, TeacherRows, Vector};

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

/// Σ p (log p − log q), q = softmax(z/τ) (1503.02531 without its factor τ²).
///
/// For a truncated teacher the K + 1 outcomes are the K tokens and "any other": log q of the latter is the log-sum-exp over all but
/// the K logits less that over all, which stays finite, in value and gradient, however little is left.
pub(super) fn kl<E: Real, D: super::Device<E>, T: Tape<E, D>>(
    tape: &mut T,
    logits: &Matrix<E, D>,
    teacher: &TeacherRows<E, D>,
    temperature: f64,
) -> Result<Vector<E, D>, Fault<D>> {
    let soft = |tape: &mut T| on(tape, logits).try_mul(E::of(1.0 / temperature));
    match teacher {
        TeacherRows::Full(log_p) => {
            let log_q = soft(tape)?.try_log_softmax::<Axis<1>>()?;
            let p = log_p.clone().try_exp()?;
            let gap = log_q.try_negate()?.try_add(log_p.clone())?;
            let kl = gap.try_mul(p)?.try_sum::<(usize,), Axis<1>>()?;
            Ok(off(tape, kl))
        }
        TeacherRows::Unspoken { x, table, temperature: own } => {
            let said = linear(&mut NoneTape, x, table)?;
            let logs = said.try_mul(E::of(1.0 / own))?.try_log_softmax::<Axis<1>>()?;
            kl(tape, logits, &TeacherRows::Full(logs), temperature)
        }
        TeacherRows::Top { tokens, probabilities, rest, negative_entropy, mask } => {
            let soft = soft(tape)?;
            let soft = off(tape, soft);
            let all = on(tape, &soft).try_logsumexp::<(usize,), Axis<1>>()?;
            let all = off(tape, all);
            let others = on(tape, &soft).try_add(mask.clone())?.try_logsumexp::<(usize,), Axis<1>>()?;
            let others = others.try_mul(rest.clone())?;
            let others = off(tape, others);
            let chosen = on(tape, &soft).try_gather::<(usize, usize), _>(tokens.clone())?;
            let chosen = chosen.try_mul(probabilities.clone())?.try_sum::<(usize,), Axis<1>>()?;
            let expected = off(tape, chosen.try_add(others)?);
            // Σ p log q = Σ p z − log Σ exp z, since the K + 1 probabilities sum to 1.
            let kl = on(tape, &all).try_sub(expected)?.try_add(negative_entropy.clone())?;
            Ok(off(tape, kl))
        }
    }
}
