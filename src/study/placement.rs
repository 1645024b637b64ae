//! Placements: how norms, sublayers and the residual stream are wired.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::equation::{Branches, Equation, Scalar};

/// A `placement` with its parameters filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Its name: `deepnorm`.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Once, on the embeddings.
    pub entry: Option<Equation>,
    /// Each layer.
    pub body: Body,
    /// After each block.
    pub boundary: Option<Equation>,
    /// Once, before the head.
    pub exit: Option<Equation>,
    /// First values scaled by name.
    pub init: Vec<InitFactor>,
}

/// The equations of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// `sublayer …`: the same text for attention and for the feed-forward network, `f` filled in.
    Sublayers {
        /// First.
        attention: Branches,
        /// Second.
        ffn: Branches,
    },
    /// `layer …`: one equation that names both.
    Layer(Branches),
}

/// `init (v, o, up, down) * beta`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitFactor {
    /// The weights scaled.
    pub weights: Vec<Weight>,
    /// By how much.
    pub factor: Scalar,
}

/// The matrices of a layer by their short names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Weight {
    /// Query projection.
    Q,
    /// Key projection.
    K,
    /// Value projection.
    V,
    /// Output projection of attention.
    O,
    /// Gate of the feed-forward network.
    Gate,
    /// Up projection.
    Up,
    /// Down projection.
    Down,
}

/// Which placement serves which part of a model. `entry`, `boundary` and `exit` are those of the first, respectively last, layer's attention
/// and ffn placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wiring {
    /// In the order of first use.
    pub placements: Vec<Arc<Placement>>,
    /// For each layer of the final depth: index of the placement of attention and that of ffn (equal for a `layer` equation).
    pub layers: Vec<(usize, usize)>,
}

impl Wiring {
    /// One placement for the whole model.
    pub fn uniform(placement: Arc<Placement>, layers: usize) -> Self {
        Self { placements: vec![placement], layers: vec![(0, 0); layers] }
    }
}
