//! The optimizer, with state and step count for each parameter.
//!
//! Owns which rule a parameter moves by, and what is kept of it. Invariants: a parameter without gradient neither decays nor moves; a new
//! or reset parameter's first update is that of a fresh optimizer, whatever the run's step; a step's parameters move all of them or none.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::Checkpoint;
use super::checkpoint::Values;
use super::step::param;
use crate::budget::params::Group;
use crate::model::Params;
use crate::run::worker::Failure;
use crate::study;
use crate::tensor::{Device, Fault, Moved, Operations, Param, Real, Rule, Update};

/// Optimizer state of one parameter.
#[derive(Debug, Clone)]
pub struct Moments<E: Real, D: Device<E>> {
    /// The momentum; of AdamW the first and the second moment.
    pub kept: Vec<Param<E, D>>,
    /// t: updates so far.
    pub updates: u64,
}

impl<E: Real, D: Device<E>> Moments<E, D> {
    /// From what a checkpoint keeps of a parameter.
    pub(super) fn load(device: &D, kept: Vec<Values>, updates: u64) -> Result<Self, Failure> {
        Ok(Self { kept: kept.into_iter().map(|values| param(device, values)).collect::<Result<_, _>>()?, updates })
    }
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
        let mut fresh = Vec::new();
        for (name, gradient) in gradients {
            let count = self.rule.moments(groups.get(name) == Some(&Group::Matrix));
            if count > 0 && !moments.contains_key(name) {
                let zeros = (0..count).map(|_| gradient.zeros_like());
                fresh.push((name.clone(), Moments { kept: zeros.collect::<Result<_, _>>()?, updates: 0 }));
            }
        }
        let before = moments.len();
        moments.extend(fresh);
        let (decay, decay_all) = self.rule.decay();
        let mut states: HashMap<&str, &mut Moments<E, D>> =
            moments.iter_mut().map(|(name, kept)| (name.as_str(), kept)).collect();
        let mut moves = Vec::with_capacity(gradients.len());
        for (name, weight) in &mut params.0 {
            let Some(gradient) = gradients.get(name) else { continue };
            let group = groups.get(name).copied();
            let decay = if decay_all || group.is_some_and(decays) { decay } else { 0.0 };
            let (kept, updates) = match states.remove(name.as_str()) {
                Some(state) => (state.kept.as_mut_slice(), state.updates),
                None => (&mut [][..], 0),
            };
            let by = Update { rule: rule(self.rule, group), lr, decay, scale, number: updates + 1 };
            moves.push(Moved { weight, kept, gradient, by });
        }
        let done = O::default().update(&mut moves);
        if done.is_err() {
            moments.truncate(before);
        }
        for name in gradients.keys().filter(|_| done.is_ok()) {
            moments.get_mut(name).into_iter().for_each(|state| state.updates += 1);
        }
        done
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
