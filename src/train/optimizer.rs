//! AdamW (1711.05101) with state and step count for each parameter.
//!
//! Invariants: a parameter without gradient neither decays nor moves; a new or reset parameter's first update is that of a fresh
//! AdamW, whatever the run's step; all parameters of a step are computed before the first is replaced.

use indexmap::IndexMap;

use crate::budget::params::Group;
use crate::model::Params;
use crate::study;
use crate::tensor::{AdamW, Device, Fault, Operations, Param, Real};

/// Optimizer state of one parameter.
#[derive(Debug, Clone)]
pub struct Moments<E: Real, D: Device<E>> {
    /// First moment.
    pub m: Param<E, D>,
    /// Second moment.
    pub v: Param<E, D>,
    /// t: updates so far.
    pub updates: u64,
}

/// The rule of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimizer {
    /// AdamW's own numbers.
    pub rule: study::Optimizer,
    /// Global norm to which gradients are clipped.
    pub clip: Option<f64>,
}

impl Optimizer {
    /// What gradients of global norm `norm` are multiplied by: min(1, clip / (norm + 1e-6)), as in PyTorch.
    pub fn clip_scale(&self, norm: f64) -> f64 {
        self.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0))
    }

    /// Updates every parameter that has a gradient, by `lr`; either all of them or, on a failure, none.
    pub fn update<E: Real, D: Device<E>, O: Operations<E, D>>(
        &self,
        params: &mut Params<E, D>,
        moments: &mut IndexMap<String, Moments<E, D>>,
        gradients: &IndexMap<String, Param<E, D>>,
        groups: &IndexMap<String, Group>,
        (lr, scale): (f64, f64),
    ) -> Result<(), Fault<D>> {
        let study::Optimizer::AdamW { betas, eps, decay, decay_all, .. } = self.rule;
        let mut updated = Vec::with_capacity(gradients.len());
        for (name, gradient) in gradients {
            let weight = &params.0[name];
            let (zeros, before) = match moments.get(name) {
                Some(state) => (None, Some(state)),
                None => (Some(weight.zeros_like()?), None),
            };
            let [m, v] = match (before, &zeros) {
                (Some(state), _) => [&state.m, &state.v],
                (None, Some(zeros)) => [zeros, zeros],
                (None, None) => continue,
            };
            let update = before.map_or(0, |state| state.updates) + 1;
            let decays = decay_all || groups.get(name).is_some_and(|group| decays(*group));
            let decay = if decays { decay } else { 0.0 };
            let [weight, m, v] = O::default().adamw(weight, [m, v], gradient, &AdamW { lr, betas, eps, decay, scale, update })?;
            updated.push((name, weight, Moments { m, v, updates: update }));
        }
        for (name, weight, state) in updated {
            params.0[name] = weight;
            moments.insert(name.clone(), state);
        }
        Ok(())
    }
}

/// Whether decay acts on a group by default: on matrices, embeddings and the head, not on norms and gains.
fn decays(group: Group) -> bool {
    matches!(group, Group::Embedding | Group::Head | Group::Matrix)
}
