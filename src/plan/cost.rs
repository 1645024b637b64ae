//! What nodes cost.
//!
//! Owns the sum of what `budget` counts and estimates into one line for each node. Invariant: `None` is "not known"; a sum with an
//! unknown part is unknown.

use serde::{Deserialize, Serialize};

use crate::budget::flops::Flops;
use crate::budget::params::{Group, parameters, tied};
use crate::budget::tokens::Count;
use crate::budget::{flops, memory};
use crate::study::{Data, Model, Training};
use crate::timeline::{LayerId, Segment};

/// The price of a node. Zero where a node has nothing of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Optimizer steps.
    pub steps: u64,
    /// Real tokens trained on.
    pub tokens: Option<u64>,
    /// Those that no earlier phase of the run has read.
    pub unique_tokens: Option<u64>,
    /// Σ tokens × layers run.
    pub active_layer_tokens: Option<u64>,
    /// Σ tokens × layers that learn.
    pub trained_layer_tokens: Option<u64>,
    /// FLOPs of a student, without the head.
    pub flops_student: Option<f64>,
    /// FLOPs of a student.
    pub flops_student_with_head: Option<f64>,
    /// FLOPs of a teacher: its training, its cache, or its passes beside the student.
    pub flops_teacher: Option<f64>,
    /// Parameters.
    pub params_total: u64,
    /// Those that learn.
    pub params_trained: u64,
    /// Bytes at the same time: a rough estimate.
    pub memory: Option<u64>,
    /// Bytes that stay in the store.
    pub disk: Option<u64>,
    /// Wall-clock in seconds: what it took, or a rough estimate by what others took.
    pub seconds: Option<f64>,
}

impl Cost {
    /// One that has nothing of anything.
    pub fn nothing() -> Self {
        let (none, zero) = (Some(0), Some(0.0));
        Self {
            tokens: none,
            unique_tokens: none,
            active_layer_tokens: none,
            trained_layer_tokens: none,
            flops_student: zero,
            flops_student_with_head: zero,
            flops_teacher: zero,
            memory: none,
            disk: none,
            ..Self::default()
        }
    }
    /// FLOPs of students and teachers.
    pub fn flops(&self) -> Option<f64> {
        Some(self.flops_student_with_head? + self.flops_teacher?)
    }
}

/// Training in a segment that reads so much, without any teacher.
pub(super) fn training(model: &Model, training: &Training, data: &Data, segment: &Segment, read: Option<&Count>) -> Cost {
    let memory = memory::estimate(model, training, data, segment);
    let spent = read.map(|read| flops::training(model, segment, read));
    Cost {
        steps: segment.length(),
        tokens: read.map(|read| read.tokens),
        unique_tokens: read.map(|read| read.unique_tokens),
        active_layer_tokens: read.map(|read| read.active_layer_tokens),
        trained_layer_tokens: read.map(|read| read.trained_layer_tokens),
        flops_student: spent.as_ref().map(Flops::without_head),
        flops_student_with_head: spent.as_ref().map(Flops::with_head),
        params_total: memory.parameters / 4,
        params_trained: memory.gradients / 4,
        memory: Some(memory.total()),
        disk: Some(memory.parameters + memory.moments),
        ..Cost::nothing()
    }
}

/// FLOPs of a whole model's forward pass over so much.
pub(super) fn forward(model: &Model, read: &Count) -> f64 {
    let stack: Vec<LayerId> = (0..model.layers as u32).map(LayerId).collect();
    flops::forward(model, &stack, &[], read).with_head()
}

/// Parameters of a stack: all, those without the head's own matrix, those of layers.
pub(super) fn sizes(model: &Model, segment: &Segment) -> (u64, u64, u64) {
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let total = specs.iter().map(|spec| spec.elements()).sum();
    let head: u64 = specs.iter().filter(|spec| spec.group == Group::Head && !tied(model)).map(|spec| spec.elements()).sum();
    let stack = specs.iter().filter(|spec| spec.layer.is_some()).map(|spec| spec.elements()).sum();
    (total, total - head, stack)
}
