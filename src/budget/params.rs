//! Names, shapes, first values and groups of every parameter: one function of architecture and stack.
//!
//! Owns the list that prices, allocates, loads and exports a model. Deliberately knows no tensor and no file. Invariant: names are
//! those of layers' identities, so that growth renames nothing; the n-th norm of an equation is `norm`, `norm2`, `norm3`, …, and
//! likewise its gains and learned scalars, in the order of [`Equation`]'s slots.

use std::collections::BTreeSet;
use std::ops::Range;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::study::equation::{Branches, Equation, Moment, Stream, Sublayer};
use crate::study::placement::{Body, Weight};
use crate::study::{Embedding, Ffn, Init, Model, NormKind, Placement, Vocabulary};
use crate::timeline::LayerId;

/// One parameter tensor, before it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// Stable under growth: `embedding`, `layers.3.attention.q`, `layers.3.ffn.norm`, `layers.5.boundary.norm` (of the block that
    /// layer 5 ends), `exit.norm`, `head`.
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
    /// The same everywhere: 1 for norms, `start` for gains and learned scalars, 0 for shifts, alpha for the scalar of a Dynamic Tanh.
    Constant(f64),
    /// A tensor of the teacher.
    Teacher(TeacherTensor),
    /// The tensor of the same name, ours or Hugging Face's, in a safetensors file.
    File {
        /// Relative to the folder of the `.exp` file.
        file: String,
        /// Hash of its weights, where it is known.
        content: Option<String>,
    },
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

impl TeacherTensor {
    /// The teacher's parameters that serve, the first that it has: one that is tied has no head of its own.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Embedding => &["embedding"],
            Self::Head => &["head", "embedding"],
            Self::FinalNorm => &["exit.norm"],
        }
    }
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
    /// Weights, shifts and scalars of a norm; q and k norms too.
    Norm,
    /// Gains and learned scalars.
    Gain,
}

/// Every parameter of `model` while its layers are `stack`, from the bottom to the top.
///
/// `block_ends` says after how many layers each block ends; `Vocabulary::OfTokenizer` must have been resolved, and counts 0 here.
/// A branch that depends on the step brings its parameters along whether it holds or not.
pub fn parameters(model: &Model, stack: &[LayerId], block_ends: &[usize]) -> Vec<ParamSpec> {
    list(model, stack, block_ends, None)
}

/// The names of those parameters that a pass uses after `step` steps: all, unless a branch depends on the step.
pub fn used_at(model: &Model, stack: &[LayerId], block_ends: &[usize], step: u64) -> Vec<String> {
    list(model, stack, block_ends, Some(step)).into_iter().map(|spec| spec.name).collect()
}

/// Conditions that are looked at, at most, to find out when branches change. Assumption: more would keep a plan waiting.
const MOST_CONDITIONS: u64 = 10_000_000;

/// The stretches of `steps` in which a pass uses the same parameters, with their names; `None` if there are too many steps to look through.
pub fn used_in(
    model: &Model,
    stack: &[LayerId],
    block_ends: &[usize],
    steps: Range<u64>,
) -> Option<Vec<(Range<u64>, BTreeSet<String>)>> {
    let conditions = 2 * stack.len() as u64;
    if (steps.end - steps.start).saturating_mul(conditions) > MOST_CONDITIONS {
        return None;
    }
    let cases = |step: u64| -> Vec<[Option<usize>; 2]> {
        let of = |place: usize| {
            let moment = Moment { layer: place + 1, depth: model.layers, active_depth: stack.len(), step };
            let (first, second) = branches(model, place);
            [first.case_at(&moment), second.and_then(|second| second.case_at(&moment))]
        };
        (0..stack.len()).map(of).collect()
    };
    let mut stretches: Vec<(Range<u64>, BTreeSet<String>)> = Vec::new();
    let mut last = None;
    for step in steps {
        let now = cases(step);
        match stretches.last_mut() {
            Some((range, _)) if last.as_ref() == Some(&now) => range.end = step + 1,
            _ => {
                stretches.push((step..step + 1, used_at(model, stack, block_ends, step).into_iter().collect()));
                last = Some(now);
            }
        }
    }
    Some(stretches)
}

/// Whether a branch of some placement depends on the step.
pub fn timed(model: &Model) -> bool {
    model.wiring.placements.iter().any(|placement| match &placement.body {
        Body::Sublayers { attention, ffn } => attention.depends_on_step() || ffn.depends_on_step(),
        Body::Layer(branches) => branches.depends_on_step(),
    })
}

fn list(model: &Model, stack: &[LayerId], block_ends: &[usize], step: Option<u64>) -> Vec<ParamSpec> {
    let mut list = List { model, any_step: step.is_none(), specs: IndexMap::new() };
    let around = Moment { layer: 0, depth: model.layers, active_depth: stack.len(), step: step.unwrap_or(0) };
    let table = vec![vocabulary(model), model.width];

    let embedding = list.matrix_first(model.embedding, TeacherTensor::Embedding);
    list.push("embedding".to_owned(), table.clone(), embedding, Group::Embedding, None);
    if let Some(entry) = entry(model) {
        list.equation("entry", entry, &around, None, true);
    }
    for (place, &id) in stack.iter().enumerate() {
        let moment = Moment { layer: place + 1, ..around };
        list.layer(place, id, &moment);
        if block_ends.contains(&(place + 1))
            && let Some(boundary) = boundary(model, place)
        {
            list.equation(&format!("layers.{}.boundary", id.0), boundary, &moment, Some(id), true);
        }
    }
    if let Some(exit) = exit(model) {
        list.equation("exit", exit, &around, None, true);
    }
    if !tied(model) {
        let head = list.matrix_first(model.head, TeacherTensor::Head);
        list.push("head".to_owned(), table, head, Group::Head, None);
    }
    list.specs.into_values().collect()
}

/// All layers of a model, and the ends of its blocks.
pub fn whole(model: &Model) -> (Vec<LayerId>, Vec<usize>) {
    let stack = (0..model.layers as u32).map(LayerId).collect();
    (stack, (1..=model.layers / model.block.max(1)).map(|block| block * model.block).collect())
}

/// Token types; 0 while the tokenizer is unknown.
pub fn vocabulary(model: &Model) -> usize {
    match model.vocabulary {
        Vocabulary::Size(size) => size,
        Vocabulary::OfTokenizer => 0,
    }
}

/// Whether the head is the embedding.
pub fn tied(model: &Model) -> bool {
    model.embedding == Embedding::Tied || model.head == Embedding::Tied
}

/// The placements of attention and of the feed-forward network at a place of the stack, from 0.
pub fn placements(model: &Model, place: usize) -> (&Placement, &Placement) {
    let wiring = &model.wiring;
    let (attention, ffn) = wiring.layers[place.min(wiring.layers.len() - 1)];
    (&wiring.placements[attention], &wiring.placements[ffn])
}

/// What the layer at a place goes through: its whole, or attention and then the feed-forward network.
pub fn branches(model: &Model, place: usize) -> (&Branches, Option<&Branches>) {
    let (first, second) = placements(model, place);
    match (&first.body, &second.body) {
        (Body::Layer(whole), _) | (Body::Sublayers { .. }, Body::Layer(whole)) => (whole, None),
        (Body::Sublayers { attention, .. }, Body::Sublayers { ffn, .. }) => (attention, Some(ffn)),
    }
}

/// The equation on the embeddings: that of the first layer's attention.
pub fn entry(model: &Model) -> Option<&Equation> {
    placements(model, 0).0.entry.as_ref()
}

/// The equation after the block that ends with the layer at this place.
pub fn boundary(model: &Model, place: usize) -> Option<&Equation> {
    placements(model, place).1.boundary.as_ref()
}

/// The equation before the head: that of the last layer's feed-forward network, at the final depth.
pub fn exit(model: &Model) -> Option<&Equation> {
    placements(model, model.layers.saturating_sub(1)).1.exit.as_ref()
}

/// Name of the `slot`-th norm, gain or learned scalar of the equation whose parameters begin with `prefix`.
pub fn slot_name(prefix: &str, kind: &str, slot: usize) -> String {
    if slot == 0 { format!("{prefix}.{kind}") } else { format!("{prefix}.{kind}{}", slot + 1) }
}

struct List<'a> {
    model: &'a Model,
    /// Branches that depend on the step all count.
    any_step: bool,
    specs: IndexMap<String, ParamSpec>,
}

impl List<'_> {
    fn push(&mut self, name: String, shape: Vec<usize>, first: FirstValue, group: Group, layer: Option<LayerId>) {
        self.specs.entry(name.clone()).or_insert(ParamSpec { name, shape, first, group, layer });
    }

    fn normal(&self, factor: f64) -> FirstValue {
        match &self.model.init {
            Init::Normal { std } => FirstValue::Normal { std: *std, factor },
            Init::From { file, content } => FirstValue::File { file: file.clone(), content: content.clone() },
        }
    }

    fn constant(&self, value: f64) -> FirstValue {
        match &self.model.init {
            Init::Normal { .. } => FirstValue::Constant(value),
            Init::From { file, content } => FirstValue::File { file: file.clone(), content: content.clone() },
        }
    }

    fn matrix_first(&self, from: Embedding, tensor: TeacherTensor) -> FirstValue {
        match from {
            Embedding::Own | Embedding::Tied => self.normal(1.0),
            Embedding::Teacher { .. } => FirstValue::Teacher(tensor),
        }
    }

    fn layer(&mut self, place: usize, id: LayerId, moment: &Moment) {
        let (attention, ffn) = placements(self.model, place);
        let prefix = format!("layers.{}", id.0);
        match branches(self.model, place) {
            (whole, None) => self.branches(&prefix, &prefix, whole, attention, moment, id),
            (first, Some(second)) => {
                self.branches(&prefix, &format!("{prefix}.attention"), first, attention, moment, id);
                self.branches(&prefix, &format!("{prefix}.ffn"), second, ffn, moment, id);
            }
        }
    }

    /// The sublayers of each equation that may hold at `moment`, then its own parameters.
    fn branches(&mut self, layer: &str, own: &str, branches: &Branches, placement: &Placement, moment: &Moment, id: LayerId) {
        for equation in possible(branches, moment, self.any_step) {
            let mut sublayers = Vec::new();
            for stream in streams(equation) {
                walk(stream, &mut |part| {
                    if let Stream::Sublayer { sublayer, .. } = part {
                        sublayers.push(*sublayer);
                    }
                });
            }
            for sublayer in sublayers {
                match sublayer {
                    Sublayer::Attention { qkv_norm } => self.attention(layer, qkv_norm, placement, moment, id),
                    Sublayer::Ffn => self.ffn(layer, placement, moment, id),
                }
            }
            self.equation(own, equation, moment, Some(id), false);
        }
    }

    fn matrix(&mut self, name: String, shape: [usize; 2], weight: Weight, placement: &Placement, moment: &Moment, id: LayerId) {
        let factors = placement.init.iter().filter(|factor| factor.weights.contains(&weight));
        let first = self.normal(factors.map(|factor| factor.factor.at(moment)).product());
        self.push(name, shape.to_vec(), first, Group::Matrix, Some(id));
    }

    fn attention(&mut self, layer: &str, qkv_norm: bool, placement: &Placement, moment: &Moment, id: LayerId) {
        let Model { width, heads, kv_heads, head_dim, .. } = *self.model;
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let shapes = [
            ("q", [queries, width], Weight::Q),
            ("k", [keys, width], Weight::K),
            ("v", [keys, width], Weight::V),
            ("o", [width, queries], Weight::O),
        ];
        for (short, shape, weight) in shapes {
            self.matrix(format!("{layer}.attention.{short}"), shape, weight, placement, moment, id);
        }
        let normed =
            [("q_norm", qkv_norm || self.model.qk_norm), ("k_norm", qkv_norm || self.model.qk_norm), ("v_norm", qkv_norm)];
        for (short, _) in normed.into_iter().filter(|(_, present)| *present) {
            self.norm(format!("{layer}.attention.{short}"), head_dim, self.constant(1.0), false, Some(id));
        }
    }

    /// The parameters of a norm over `width` channels, if its kind has any; those of heads have no shift.
    fn norm(&mut self, name: String, width: usize, weight: FirstValue, shifted: bool, layer: Option<LayerId>) {
        let (biased, alpha) = match self.model.norm.kind {
            NormKind::Rms => (false, None),
            NormKind::Layer { bias } => (bias, None),
            NormKind::Dyt { alpha } => (true, Some(alpha)),
            NormKind::None => return,
        };
        self.push(name.clone(), vec![width], weight, Group::Norm, layer);
        if let Some(alpha) = alpha {
            self.push(format!("{name}.alpha"), vec![1], self.constant(alpha), Group::Norm, layer);
        }
        if biased && shifted {
            self.push(format!("{name}.bias"), vec![width], self.constant(0.0), Group::Norm, layer);
        }
    }

    fn ffn(&mut self, layer: &str, placement: &Placement, moment: &Moment, id: LayerId) {
        let width = self.model.width;
        let (gated, hidden) = match self.model.ffn {
            Ffn::SwiGlu { width } => (true, width),
            Ffn::Gelu { width } => (false, width),
        };
        if gated {
            self.matrix(format!("{layer}.ffn.gate"), [hidden, width], Weight::Gate, placement, moment, id);
        }
        self.matrix(format!("{layer}.ffn.up"), [hidden, width], Weight::Up, placement, moment, id);
        self.matrix(format!("{layer}.ffn.down"), [width, hidden], Weight::Down, placement, moment, id);
    }

    /// Norms, gains and learned scalars of one equation. `around`: outside layers, where norms may start as the teacher's last.
    fn equation(&mut self, prefix: &str, equation: &Equation, moment: &Moment, layer: Option<LayerId>, around: bool) {
        let width = self.model.width;
        let from_teacher = around && matches!(self.model.head, Embedding::Teacher { .. });
        for stream in streams(equation) {
            walk(stream, &mut |part| match part {
                Stream::Norm { slot, .. } => {
                    let first = if from_teacher { FirstValue::Teacher(TeacherTensor::FinalNorm) } else { self.constant(1.0) };
                    self.norm(slot_name(prefix, "norm", *slot), width, first, true, layer);
                }
                Stream::Gain { slot, start, .. } => {
                    let first = self.constant(start.at(moment));
                    self.push(slot_name(prefix, "gain", *slot), vec![width], first, Group::Gain, layer);
                }
                Stream::Learned { slot, start, .. } => {
                    let first = self.constant(start.at(moment));
                    self.push(slot_name(prefix, "learned", *slot), vec![1], first, Group::Gain, layer);
                }
                _ => {}
            });
        }
    }
}

/// The equations that may hold at `moment`: one, unless a condition looks at the step and any step is meant.
fn possible<'a>(branches: &'a Branches, moment: &Moment, any_step: bool) -> Vec<&'a Equation> {
    if any_step && branches.depends_on_step() {
        branches.cases.iter().map(|(_, equation)| equation).chain([&branches.otherwise]).collect()
    } else {
        vec![branches.at(moment)]
    }
}

/// The expressions of an equation in the order of evaluation.
fn streams(equation: &Equation) -> impl Iterator<Item = &Stream> {
    equation.bindings.iter().chain([&equation.result])
}

/// Visits a stream depth first, left to right, inputs before what reads them.
pub(super) fn walk<'a>(stream: &'a Stream, visit: &mut impl FnMut(&'a Stream)) {
    match stream {
        Stream::X | Stream::Embedded | Stream::Bound(_) => {}
        Stream::Norm { input, .. }
        | Stream::Sublayer { input, .. }
        | Stream::Gain { input, .. }
        | Stream::Learned { input, .. }
        | Stream::Scale { input, .. }
        | Stream::Stop(input) => walk(input, visit),
        Stream::Add(left, right) | Stream::Subtract(left, right) => {
            walk(left, visit);
            walk(right, visit);
        }
    }
    visit(stream);
}
