//! Names, shapes, first values and groups of every parameter: one function of architecture and stack.

use serde::{Deserialize, Serialize};

use crate::timeline::LayerId;

/// One parameter tensor, before it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// Stable under growth: `embedding`, `layers.3.attention.q`, `layers.3.ffn.norm`, `blocks.0.boundary.norm`, `exit.norm`, `head`.
    pub name: String,
    /// Row-major; matrices are (out, in) as in PyTorch and Hugging Face, y = x Wᵀ.
    pub shape: Vec<usize>,
    /// First values.
    pub first: FirstValue,
    /// For counts, decay masks and freezing.
    pub group: Group,
    /// The layer that it belongs to.
    pub layer: Option<LayerId>,
}

impl ParamSpec {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|side| *side as u64).product()
    }
}

/// The first value of a parameter: a function of the run's seed and the parameter's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FirstValue {
    /// Normal with mean 0, times `factor` (a placement's `init`).
    Normal {
        /// Standard deviation.
        std: f64,
        /// Scale by the placement.
        factor: f64,
    },
    /// The same everywhere: 1 for norms, `start` for gains and learned scalars, 0 for shifts.
    Constant(f64),
    /// A tensor of the teacher.
    Teacher(TeacherTensor),
}

/// Tensors that a student may take from its teacher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TeacherTensor {
    /// The input embedding.
    Embedding,
    /// The output head.
    Head,
    /// The norm before the head.
    FinalNorm,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Group {
    /// The embedding (also the head where tied).
    Embedding,
    /// The head.
    Head,
    /// A matrix of a layer.
    Matrix,
    /// Weights or shifts of a norm; q and k norms too.
    Norm,
    /// Gains and learned scalars.
    Gain,
}
