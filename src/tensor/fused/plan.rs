//! A program ready for shards: where its weights are, and, while it runs, the weights themselves. Matrices that are used together lie
//! together.

use std::borrow::Cow;

use dfdx::prelude::Cpu;

use super::Pool;
use super::host::view;
use crate::kernel::{self, AttentionShape, HeadNorms, Norm};
use crate::tensor::program::{Action, Program};
use crate::tensor::{NormRule, NormWeights, Param};

/// A norm's weights by their places in [`Plan::origins`].
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedNorm {
    rule: PlacedRule,
    pub weight: usize,
    pub bias: Option<usize>,
}

/// What a norm does before weight and shift.
#[derive(Debug, Clone, Copy)]
enum PlacedRule {
    Root { centered: bool, eps: f32 },
    Tanh { alpha: usize },
}

impl PlacedNorm {
    /// The scalar of a Dynamic Tanh.
    pub fn alpha(&self) -> Option<usize> {
        match self.rule {
            PlacedRule::Root { .. } => None,
            PlacedRule::Tanh { alpha } => Some(alpha),
        }
    }
}

/// What a step does; weights by their places in [`Plan::origins`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Norm { input: usize, norm: PlacedNorm },
    Attention { input: usize, shape: AttentionShape, qkv: usize, o: usize, norms: [Option<PlacedNorm>; 3] },
    Ffn { input: usize, gated: bool, inward: usize, down: usize },
    Gain { input: usize, gain: usize },
    Learned { input: usize, factor: usize },
    Scale { input: usize, factor: f32 },
    Add(usize, usize),
    Subtract(usize, usize),
    Stop(usize),
}

impl Step {
    /// The values that it reads.
    pub fn inputs(&self) -> [Option<usize>; 2] {
        match *self {
            Step::Norm { input, .. }
            | Step::Attention { input, .. }
            | Step::Ffn { input, .. }
            | Step::Gain { input, .. }
            | Step::Learned { input, .. }
            | Step::Scale { input, .. }
            | Step::Stop(input) => [Some(input), None],
            Step::Add(left, right) | Step::Subtract(left, right) => [Some(left), Some(right)],
        }
    }
    /// Whether its reverse needs what it read.
    pub fn keeps_input(&self) -> bool {
        !matches!(self, Step::Scale { .. } | Step::Add(..) | Step::Subtract(..) | Step::Stop(_))
    }
}

/// A program and its weights by their places.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub result: usize,
    /// The parameters at each place, in order; q|k|v and gate|up are one place each, (out, in).
    pub origins: Vec<Vec<Param<f32, Cpu>>>,
}

impl Plan {
    pub fn new(program: &Program<'_, f32, Cpu>) -> Self {
        let mut plan = Self { result: program.result, ..Self::default() };
        for instruction in &program.instructions {
            let step = plan.step(&instruction.action);
            plan.steps.push(step);
        }
        plan
    }

    fn step(&mut self, action: &Action<'_, f32, Cpu>) -> Step {
        let matrix = |matrix: &crate::tensor::Matrix<f32, Cpu>| Param::Matrix(matrix.clone());
        match action {
            Action::Norm(input, weights) => Step::Norm { input: *input, norm: self.norm(weights) },
            Action::Attention(input, weights) => {
                let heads = weights.heads;
                let shape = AttentionShape { queries: heads.queries, keys: heads.keys, width: heads.width };
                let qkv = self.place(vec![matrix(weights.q), matrix(weights.k), matrix(weights.v)]);
                let o = self.place(vec![matrix(weights.o)]);
                let mut norm = |weights: &Option<NormWeights<'_, f32, Cpu>>| weights.as_ref().map(|weights| self.norm(weights));
                let norms = [norm(&weights.q_norm), norm(&weights.k_norm), norm(&weights.v_norm)];
                Step::Attention { input: *input, shape, qkv, o, norms }
            }
            Action::Ffn(input, weights) => {
                let inward = weights.gate.into_iter().chain([weights.up]).map(matrix).collect();
                let (inward, down) = (self.place(inward), self.place(vec![matrix(weights.down)]));
                Step::Ffn { input: *input, gated: weights.gate.is_some(), inward, down }
            }
            Action::Gain(input, gain) => Step::Gain { input: *input, gain: self.place(vec![Param::Vector((*gain).clone())]) },
            Action::Learned(input, factor) => {
                Step::Learned { input: *input, factor: self.place(vec![Param::Vector((*factor).clone())]) }
            }
            Action::Scale(input, factor) => Step::Scale { input: *input, factor: *factor as f32 },
            Action::Add(left, right) => Step::Add(*left, *right),
            Action::Subtract(left, right) => Step::Subtract(*left, *right),
            Action::Stop(input) => Step::Stop(*input),
        }
    }

    fn norm(&mut self, weights: &NormWeights<'_, f32, Cpu>) -> PlacedNorm {
        let mut vector = |vector: &crate::tensor::Vector<f32, Cpu>| self.place(vec![Param::Vector(vector.clone())]);
        PlacedNorm {
            rule: match weights.rule {
                NormRule::Root { centered, eps } => PlacedRule::Root { centered, eps: eps as f32 },
                NormRule::Tanh(alpha) => PlacedRule::Tanh { alpha: vector(alpha) },
            },
            weight: vector(weights.weight),
            bias: weights.bias.map(vector),
        }
    }

    fn place(&mut self, params: Vec<Param<f32, Cpu>>) -> usize {
        self.origins.push(params);
        self.origins.len() - 1
    }

    /// The weights: where they lie, or, of several at one place, a copy in memory of `pool`.
    pub fn weights<'a>(&'a self, pool: &'a Pool) -> Weights<'a> {
        let load = |params: &'a Vec<Param<f32, Cpu>>| match params.as_slice() {
            [one] => Cow::Borrowed(view(one)),
            several => {
                let mut all = pool.take(several.iter().map(|param| view(param).len()).sum());
                let mut start = 0;
                for part in several.iter().map(view) {
                    all[start..start + part.len()].copy_from_slice(part);
                    start += part.len();
                }
                Cow::Owned(all)
            }
        };
        Weights { pool, at: self.origins.iter().map(load).collect() }
    }
    /// Whether any step reads a value.
    pub fn reads(&self, value: usize) -> bool {
        self.result == value || self.steps.iter().any(|step| step.inputs().contains(&Some(value)))
    }
    /// For each value the last step that reads it; `usize::MAX` for the result.
    pub fn last_reads(&self) -> Vec<usize> {
        let mut last = vec![0; self.steps.len() + 2];
        for (at, step) in self.steps.iter().enumerate() {
            step.inputs().into_iter().flatten().for_each(|input| last[input] = at);
        }
        last[self.result] = usize::MAX;
        last
    }
    /// For each value whether the reverse pass needs it.
    pub fn kept(&self) -> Vec<bool> {
        let mut kept = vec![false; self.steps.len() + 2];
        for step in self.steps.iter().filter(|step| step.keeps_input()) {
            step.inputs().into_iter().flatten().for_each(|input| kept[input] = true);
        }
        kept
    }
}

/// Weights of a program by their places, while it runs.
pub(super) struct Weights<'a> {
    pool: &'a Pool,
    at: Vec<Cow<'a, [f32]>>,
}

impl std::ops::Index<usize> for Weights<'_> {
    type Output = [f32];
    fn index(&self, place: usize) -> &[f32] {
        &self.at[place]
    }
}

impl Drop for Weights<'_> {
    fn drop(&mut self) {
        for weights in self.at.drain(..) {
            if let Cow::Owned(copy) = weights {
                self.pool.give(copy);
            }
        }
    }
}

impl Weights<'_> {
    /// How many places there are.
    pub fn count(&self) -> usize {
        self.at.len()
    }
    /// The kernel's view of a norm.
    pub fn norm(&self, norm: PlacedNorm) -> Norm<'_> {
        let rule = match norm.rule {
            PlacedRule::Root { centered, eps } => kernel::NormRule::Root { centered, eps },
            PlacedRule::Tanh { alpha } => kernel::NormRule::Tanh { alpha: self[alpha][0] },
        };
        Norm { rule, weight: &self[norm.weight], bias: norm.bias.map(|bias| &self[bias]) }
    }
    /// The kernel's view of the norms of heads.
    pub fn norms(&self, norms: [Option<PlacedNorm>; 3]) -> HeadNorms<'_> {
        let [q, k, v] = norms.map(|norm| norm.map(|norm| self.norm(norm)));
        HeadNorms { q, k, v }
    }
}
