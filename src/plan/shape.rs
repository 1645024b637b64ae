//! What a stack makes of a model: the model with everything left out that does not bear on a phase.
//!
//! Owns the folding of equations: `l`, `L` and `L_active` become numbers, conditions that are settled leave one branch, norms that are
//! nothing vanish, only layers that are there are wired. Invariant: two models that train to the same bytes under a stack have the same shape, whatever their
//! names, their texts and the depth that they would have later.

use serde::Serialize;

use crate::budget::params::{boundary, branches, entry, exit, placements, vocabulary};
use crate::study::equation::{Branches, Condition, Equation, Moment, Scalar, Stream};
use crate::study::placement::Weight;
use crate::study::{Embedding, Ffn, Init, Model, Norm, NormKind, Positions};
use crate::timeline::LayerId;

/// A model under a stack.
#[derive(Debug, Serialize)]
pub(super) struct Shape {
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    ffn: Ffn,
    norm: Norm,
    qk_norm: bool,
    positions: Positions,
    embedding: &'static str,
    head: &'static str,
    init: Init,
    vocabulary: usize,
    entry: Option<Equation>,
    layers: Vec<Layer>,
    exit: Option<Equation>,
}

#[derive(Debug, Serialize)]
struct Layer {
    id: LayerId,
    attention: Branches,
    /// `None`: one equation for the whole layer.
    ffn: Option<Branches>,
    boundary: Option<Equation>,
    init: Vec<(Weight, f64)>,
}

/// The shape of `model` while its layers are `stack` and its blocks end after so many of them.
pub(super) fn shape(model: &Model, stack: &[LayerId], block_ends: &[usize]) -> Shape {
    let at = Moment { layer: 0, depth: model.layers, active_depth: stack.len(), step: 0 };
    let around = Fold { at, bare: model.norm.kind == NormKind::None };
    let layer = |(place, id): (usize, &LayerId)| {
        let moment = Moment { layer: place + 1, ..around.at };
        let fold = Fold { at: moment, ..around };
        let (first, second) = placements(model, place);
        let (attention, ffn) = branches(model, place);
        let (attention, ffn) = (fold.branches(attention), ffn.map(|ffn| fold.branches(ffn)));
        let factors = first.init.iter().chain(&second.init);
        let init = factors.flat_map(|factor| factor.weights.iter().map(|weight| (*weight, factor.factor.at(&moment)))).collect();
        let ends = block_ends.contains(&(place + 1));
        let boundary = boundary(model, place).filter(|_| ends).and_then(|boundary| fold.once(boundary));
        Layer { id: *id, attention, ffn, boundary, init }
    };
    Shape {
        width: model.width,
        heads: model.heads,
        kv_heads: model.kv_heads,
        head_dim: model.head_dim,
        ffn: model.ffn,
        norm: model.norm,
        qk_norm: model.qk_norm,
        positions: model.positions,
        embedding: origin(model.embedding),
        head: origin(model.head),
        init: init(&model.init),
        vocabulary: vocabulary(model),
        entry: entry(model).and_then(|entry| around.once(entry)),
        layers: stack.iter().enumerate().map(layer).collect(),
        exit: exit(model).and_then(|exit| around.once(exit)),
    }
}

/// First values by what they are; a file by its weights, where these are known.
fn init(init: &Init) -> Init {
    match init {
        Init::From { content: Some(content), .. } => Init::From { file: String::new(), content: Some(content.clone()) },
        Init::From { content: None, .. } | Init::Normal { .. } => init.clone(),
    }
}

/// Where a table comes from; whether it learns is the segment's to say.
fn origin(table: Embedding) -> &'static str {
    match table {
        Embedding::Own => "own",
        Embedding::Tied => "tied",
        Embedding::Teacher { .. } => "teacher",
    }
}

/// What equations are folded by.
#[derive(Clone, Copy)]
struct Fold {
    at: Moment,
    /// `norm none`.
    bare: bool,
}

impl Fold {
    fn branches(&self, branches: &Branches) -> Branches {
        let mut cases = Vec::new();
        for (condition, case) in &branches.cases {
            if condition.depends_on_step() {
                let Condition { comparison, left, right } = condition;
                let (left, right) = (scalar(left, &self.at), scalar(right, &self.at));
                cases.push((Condition { comparison: *comparison, left, right }, self.equation(case)));
            } else if condition.holds(&self.at) {
                return Branches { cases, otherwise: self.equation(case) };
            }
        }
        Branches { cases, otherwise: self.equation(&branches.otherwise) }
    }

    fn equation(&self, equation: &Equation) -> Equation {
        equation.replaced(&|part| {
            let part = part.with_scalar(|number| scalar(number, &self.at));
            if self.bare { part.bare() } else { part }
        })
    }

    /// An equation that stands once; `None` if norms were all that it did and the model has none.
    fn once(&self, equation: &Equation) -> Option<Equation> {
        let folded = self.equation(equation);
        let does_nothing = folded.result == Stream::X && folded.bindings.is_empty();
        (!self.bare || !does_nothing).then_some(folded)
    }
}

fn scalar(of: &Scalar, at: &Moment) -> Scalar {
    if !of.depends_on_step() {
        return Scalar::Number(of.at(at));
    }
    let inner = |part: &Scalar| Box::new(scalar(part, at));
    match of {
        Scalar::Number(_) | Scalar::Layer | Scalar::Depth | Scalar::ActiveDepth | Scalar::Step => of.clone(),
        Scalar::Add(a, b) => Scalar::Add(inner(a), inner(b)),
        Scalar::Subtract(a, b) => Scalar::Subtract(inner(a), inner(b)),
        Scalar::Multiply(a, b) => Scalar::Multiply(inner(a), inner(b)),
        Scalar::Divide(a, b) => Scalar::Divide(inner(a), inner(b)),
        Scalar::Power(a, b) => Scalar::Power(inner(a), inner(b)),
        Scalar::Sqrt(a) => Scalar::Sqrt(inner(a)),
        Scalar::Min(a, b) => Scalar::Min(inner(a), inner(b)),
        Scalar::Max(a, b) => Scalar::Max(inner(a), inner(b)),
    }
}
