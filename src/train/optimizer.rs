//! The optimizer, with state and step count for each parameter.
//!
//! Owns which rule a parameter moves by, and what is kept of it. Invariants: a parameter without gradient neither decays nor moves; a new
//! or reset parameter's first update is that of a fresh optimizer, whatever the run's step; all parameters of a step are computed before
//! the first is replaced.

use indexmap::IndexMap;

use super::Checkpoint;
use crate::budget::params::Group;
use crate::model::Params;
use crate::study;
use crate::tensor::{Device, Fault, Operations, Param, Real, Rule, Update};

/// Optimizer state of one parameter.
#[derive(Debug, Clone)]
pub struct Moments<E: Real, D: Device<E>> {
    /// The momentum; of AdamW the first and the second moment.
    pub kept: Vec<Param<E, D>>,
    /// t: updates so far.
    pub updates: u64,
}

/// The rule of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimizer {
    /// The optimizer's own numbers.
    pub rule: study::Optimizer,
    /// Global norm to which gradients are clipped.
    pub clip: Option<f64>,
}

impl Optimizer {
    /// What gradients of global norm `norm` are multiplied by: min(1, clip / (norm + 1e-6)), as in PyTorch.
    pub fn clip_scale(&self, norm: f64) -> f64 {
        self.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0))
    }

    /// Whether what a checkpoint keeps of each parameter is what this optimizer keeps.
    pub(super) fn fits(&self, groups: &IndexMap<String, Group>, checkpoint: &Checkpoint) -> bool {
        checkpoint
            .moments
            .iter()
            .all(|(name, kept)| groups.get(name).is_none_or(|group| kept.len() == self.rule.moments(*group == Group::Matrix)))
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
        let (decay, decay_all) = self.rule.decay();
        let mut updated = Vec::with_capacity(gradients.len());
        for (name, gradient) in gradients {
            let weight = &params.0[name];
            let group = groups.get(name).copied();
            let fresh;
            let (kept, before) = match moments.get(name) {
                Some(state) => (&state.kept, state.updates),
                None => {
                    let zeros = (0..self.rule.moments(group == Some(Group::Matrix))).map(|_| weight.zeros_like());
                    fresh = zeros.collect::<Result<_, _>>()?;
                    (&fresh, 0)
                }
            };
            let decays = decay_all || group.is_some_and(decays);
            let decay = if decays { decay } else { 0.0 };
            let update = Update { rule: rule(self.rule, group), lr, decay, scale, number: before + 1 };
            let (weight, kept) = O::default().update(weight, kept, gradient, &update)?;
            updated.push((name, weight, Moments { kept, updates: before + 1 }));
        }
        for (name, weight, state) in updated {
            params.0[name] = weight;
            if !state.kept.is_empty() {
                moments.insert(name.clone(), state);
            }
        }
        Ok(())
    }
}

/// The rule that a parameter of a group moves by.
fn rule(optimizer: study::Optimizer, group: Option<Group>) -> Rule {
    match optimizer {
        study::Optimizer::AdamW { betas, eps, .. } => Rule::AdamW { betas, eps },
        study::Optimizer::Sgd { momentum, nesterov, .. } => Rule::Sgd { momentum, nesterov },
        study::Optimizer::Lion { betas, .. } => Rule::Lion { betas },
        study::Optimizer::Muon { momentum, nesterov, .. } if group == Some(Group::Matrix) => Rule::Muon { momentum, nesterov },
        study::Optimizer::Muon { betas, eps, .. } => Rule::AdamW { betas, eps },
    }
}

/// Whether decay acts on a group by default: on matrices, embeddings and the head, not on norms and gains.
fn decays(group: Group) -> bool {
    matches!(group, Group::Embedding | Group::Head | Group::Matrix)
}
