//! Placements: how norms, sublayers and the residual stream are wired.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::equation::{Branches, Equation, Moment, Scalar};

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

    /// The first placement of which a factor in force before the first step is no finite number when all layers are there, and the layer, from 1;
    /// 0 is outside of layers. Constants are not looked at.
    pub fn not_finite(&self) -> Option<(&Placement, usize)> {
        let depth = self.layers.len();
        let moment = |layer| Moment { layer, depth, active_depth: depth, step: 0 };
        let is_wrong = |numbers: &[Scalar], layer| numbers.iter().any(|number| !number.at(&moment(layer)).is_finite());
        for (index, placement) in self.placements.iter().enumerate() {
            let around = [&placement.entry, &placement.boundary, &placement.exit];
            if around.into_iter().flatten().any(|equation| is_wrong(&equation.changing(), 0)) {
                return Some((placement, 0));
            }
            let bodies = match &placement.body {
                Body::Sublayers { attention, ffn } => vec![(attention, 0), (ffn, 1)],
                Body::Layer(layer) => vec![(layer, 0)],
            };
            let bodies: Vec<_> = bodies.into_iter().map(|(branches, part)| (branches, part, branches.changing())).collect();
            let init: Vec<Scalar> = placement
                .init
                .iter()
                .map(|init| init.factor.clone())
                .filter(|factor| !matches!(factor, Scalar::Number(_)))
                .collect();
            if init.is_empty() && bodies.iter().all(|(_, _, cases)| cases.iter().all(Vec::is_empty)) {
                continue;
            }
            for (layer, (attention, ffn)) in self.layers.iter().enumerate() {
                let in_force = |(branches, part, cases): &(&Branches, usize, Vec<Vec<Scalar>>)| {
                    let case = branches.case_at(&moment(layer + 1)).unwrap_or(branches.cases.len());
                    [*attention, *ffn][*part] == index && is_wrong(&cases[case], layer + 1)
                };
                let is_used = *attention == index || *ffn == index;
                if is_used && is_wrong(&init, layer + 1) || bodies.iter().any(in_force) {
                    return Some((placement, layer + 1));
                }
            }
        }
        None
    }
}
