//! `model` declarations: shapes that fit, and which placement serves which layer.
//!
//! Owns their fields. Knows no equation: `placement` reads those.

use std::sync::Arc;

use super::Checker;
use super::defaults;
use super::names::Kind;
use super::record::{Record, Scope, Statement};
use super::units::Unit;
use super::words::{Spanned, Words, shown};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::model::Positions;
use crate::study::placement::{Body, Wiring};
use crate::study::{Embedding, Ffn, Init, Model, Norm, NormKind, Placement, Vocabulary};
use crate::syntax::ast::{ExprKind, ItemContent, Phrase};

/// Deeper stacks than these are slips of the hand.
const MOST_LAYERS: u64 = 10_000;
/// Wider ones too.
const WIDEST: u64 = 1 << 24;

/// Sizes that belong together.
struct Shape {
    layers: Spanned<u64>,
    block: u64,
    width: u64,
    heads: u64,
    kv: u64,
    dim: u64,
}

impl<'a> Checker<'a> {
    /// Reads a `model` declaration.
    pub(super) fn model(&self, record: &Record<'a>) -> Option<Model> {
        let shape = self.shape(record);
        let ffn = self.needed(record, "ffn", |_, words| self.ffn(words));
        let norm = self.optional(record, "norm", |_, words| self.norm(record, words));
        let qk_norm = self.optional(record, "qk_norm", |_, words| {
            if words.is_end() { Some(true) } else { Some(words.one_of("`on` or `off`", &["on", "off"])?.0 == "on") }
        });
        let positions = self.optional(record, "positions", |_, words| self.positions(record, words));
        let embedding = self.optional(record, "embedding", |_, words| table(words));
        let head = self.optional(record, "head", |_, words| table(words));
        let init = self.optional(record, "init", |_, words| self.init(words));
        let vocabulary = self.optional(record, "vocabulary", |_, words| words.count_in(None, 1, WIDEST));
        let wiring = self.wiring(record, shape.as_ref().map(|shape| shape.layers.value));
        self.complete(record, &[("layers", "layers"), ("width", "width"), ("heads", "heads"), ("ffn", "ffn")])?;
        let shape = shape?;
        let norm = self.or_default(record, "norm", norm?, "rms(eps: 1e-6)", defaults::NORM);
        let qk_norm = self.or_default(record, "qk_norm", qk_norm?, "off", false);
        self.heads_have_norms(record, norm, qk_norm)?;
        let positions = self.or_default(record, "positions", positions?, "rope(base: 10_000)", defaults::POSITIONS);
        if matches!(positions, Positions::Rope { .. }) {
            self.even(record, &shape)?;
        }
        let (embedding, head) = self.tables(record, embedding?, head?)?;
        let init = init?.unwrap_or_else(|| {
            let std = defaults::init_std(shape.width as f64);
            self.fill(record, "init", format!("normal(0.02 * sqrt(4096 / width)), here {}", shown(std)));
            Init::Normal { std }
        });
        let vocabulary = match vocabulary? {
            Some(size) => Vocabulary::Size(size.value as usize),
            None => {
                self.fill(record, "vocabulary", "the tokenizer's");
                Vocabulary::OfTokenizer
            }
        };
        let wiring = wiring?;
        self.factors_are_finite(record, &wiring)?;
        Some(Model {
            name: record.name.to_owned(),
            doc: record.doc.map(str::to_owned),
            layers: shape.layers.value as usize,
            block: shape.block as usize,
            width: shape.width as usize,
            heads: shape.heads as usize,
            kv_heads: shape.kv as usize,
            head_dim: shape.dim as usize,
            ffn: ffn?,
            norm,
            qk_norm,
            wiring,
            positions,
            embedding,
            head,
            init,
            vocabulary,
        })
    }

    /// Says where a factor that depends on the layer, the depth or the step is no finite number: `f(norm(x)) / (l - 1)` in layer 1.
    fn factors_are_finite(&self, record: &Record<'a>, wiring: &Wiring) -> Option<()> {
        let Some((placement, layer)) = wiring.not_finite() else { return Some(()) };
        let at = record.field("placement").map_or(record.name_span, Statement::value_span);
        let place = if layer == 0 { "outside of layers".to_owned() } else { format!("in layer {layer}") };
        let message = format!("a factor of `{}` is no finite number {place}, before the first step", placement.name);
        self.fail(
            Diagnostic::error("not-finite", message, at).hint("`l` counts from 1 and `step` from 0: divide by what is never 0"),
        )
    }

    fn shape(&self, record: &Record<'a>) -> Option<Shape> {
        let count =
            |key: &str, unit: Option<Unit>, most: u64| self.optional(record, key, |_, words| words.count_in(unit, 1, most));
        let layers = count("layers", Some(Unit::Layers), MOST_LAYERS);
        let block = count("block", Some(Unit::Layers), MOST_LAYERS);
        let width = count("width", None, WIDEST);
        let heads = count("heads", None, WIDEST);
        let kv = count("kv", None, WIDEST);
        let dim = count("dim", None, WIDEST);
        // One fault does not hide the next: each pair is looked at by itself.
        let mut fine = Some(());
        if let (Some(Some(layers)), Some(Some(block))) = (layers, block)
            && layers.value % block.value != 0
        {
            let message = format!("{} layers are not a whole number of blocks of {}", layers.value, block.value);
            let (at, other) = self.blamed(record, ("block", block.span), ("layers", layers.span));
            let said =
                Diagnostic::error("blocks-do-not-fit", message, at).note_at(other.1, format!("`{}` is given here", other.0));
            fine = self.fail(said.hint(format!("{} would fit", divisors(layers.value))));
        }
        if let (Some(Some(width)), Some(Some(heads)), Some(None)) = (width, heads, dim)
            && width.value % heads.value != 0
        {
            let message = format!("`width` {} is not divisible into {} heads", width.value, heads.value);
            let (at, other) = self.blamed(record, ("heads", heads.span), ("width", width.span));
            let said =
                Diagnostic::error("heads-do-not-fit", message, at).note_at(other.1, format!("`{}` is given here", other.0));
            fine = self.fail(said.hint(format!("{} heads would fit, or give `dim`", divisors(width.value))));
        }
        if let (Some(Some(heads)), Some(Some(kv))) = (heads, kv)
            && heads.value % kv.value != 0
        {
            let message = format!("{} key/value heads do not divide {} heads", kv.value, heads.value);
            let (at, other) = self.blamed(record, ("kv", kv.span), ("heads", heads.span));
            let said = Diagnostic::error("kv-does-not-fit", message, at).note_at(other.1, format!("`{}` is given here", other.0));
            fine = self.fail(said.hint(format!("{} would fit", divisors(heads.value))));
        }
        let (layers, block, width, heads, kv, dim) = (layers??, block?, width??, heads??, kv?, dim?);
        fine?;
        let block = block.map_or_else(
            || {
                self.fill(record, "block", "1 layer");
                defaults::BLOCK
            },
            |block| block.value,
        );
        let kv = kv.map_or_else(
            || {
                self.fill(record, "kv", heads.value.to_string());
                heads.value
            },
            |kv| kv.value,
        );
        let dim = dim.map_or_else(
            || {
                let dim = width.value / heads.value;
                self.fill(record, "dim", dim.to_string());
                dim
            },
            |dim| dim.value,
        );
        Some(Shape { layers, block, width: width.value, heads: heads.value, kv, dim })
    }

    /// Which of two values that do not fit is at fault: the `usual` one, unless only the other was put in from outside.
    fn blamed<'k>(&self, record: &Record<'a>, usual: (&'k str, Span), other: (&'k str, Span)) -> (Span, (&'k str, Span)) {
        if record.is_own(usual.0) && !record.is_own(other.0) { (other.1, usual) } else { (usual.1, other) }
    }

    /// RoPE rotates pairs.
    fn even(&self, record: &Record<'a>, shape: &Shape) -> Option<()> {
        if shape.dim.is_multiple_of(2) {
            return Some(());
        }
        let at = record.field("dim").or_else(|| record.field("heads")).map_or(record.name_span, Statement::value_span);
        let message = format!("heads of dim {} cannot be rotated in pairs", shape.dim);
        self.fail(Diagnostic::error("odd-dim", message, at).hint("take an even `dim`, or `positions none`"))
    }

    fn ffn(&self, words: &mut Words<'_, 'a>) -> Option<Ffn> {
        let (kind, part) = words.one_of("a feed-forward network", &["swiglu", "gelu"])?;
        let taken = self.arguments(part, &["width"], words.given);
        let width = taken.need("width", words, |words| words.count_in(None, 1, WIDEST))?.value as usize;
        (!taken.poisoned).then_some(if kind == "swiglu" { Ffn::SwiGlu { width } } else { Ffn::Gelu { width } })
    }

    fn norm(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Norm> {
        let (kind, part) = words.one_of("a normalisation", &["rms", "layer", "dyt", "none"])?;
        let parameters: &[&'static str] = match kind {
            "rms" => &["eps"],
            "layer" => &["eps", "bias"],
            "dyt" => &["alpha"],
            _ => &[],
        };
        let taken = self.arguments(part, parameters, words.given);
        let positive = |name| taken.read(name, words, |words| words.real_that("a positive number", |number| number > 0.0));
        let (eps, alpha) = (positive("eps"), positive("alpha"));
        let bias = taken.read("bias", words, |words| Some(words.one_of("`yes` or `no`", &["yes", "no"])?.0 == "yes"));
        let (eps, alpha) = (eps?.map(|eps| eps.value), alpha?.map(|alpha| alpha.value));
        let eps = || self.or_default(record, "norm.eps", eps, "1e-6", defaults::NORM_EPS);
        let norm = match kind {
            "rms" => Norm { kind: NormKind::Rms, eps: eps() },
            "layer" => {
                let eps = eps();
                Norm {
                    kind: NormKind::Layer { bias: self.or_default(record, "norm.bias", bias?, "yes", defaults::NORM_BIAS) },
                    eps,
                }
            }
            "dyt" => {
                let alpha = self.or_default(record, "norm.alpha", alpha, "0.5", defaults::NORM_ALPHA);
                Norm { kind: NormKind::Dyt { alpha }, eps: 0.0 }
            }
            _ => Norm { kind: NormKind::None, eps: 0.0 },
        };
        (!taken.poisoned).then_some(norm)
    }

    /// `norm none` leaves nothing that queries and keys could be normalised by.
    fn heads_have_norms(&self, record: &Record<'a>, norm: Norm, qk_norm: bool) -> Option<()> {
        if !qk_norm || norm.kind != NormKind::None {
            return Some(());
        }
        let (Some(norm), Some(heads)) = (record.field("norm"), record.field("qk_norm")) else { return Some(()) };
        let (at, other) = self.blamed(record, ("qk_norm", heads.value_span()), ("norm", norm.value_span()));
        let said = Diagnostic::error("excluding-fields", "queries and keys cannot be normalised by `norm none`", at);
        let said = said.note_at(other.1, format!("`{}` is given here", other.0));
        self.fail(said.hint("leave `qk_norm` off, or take another norm"))
    }

    fn positions(&self, record: &Record<'a>, words: &mut Words<'_, 'a>) -> Option<Positions> {
        let (kind, part) = words.one_of("a kind of positions", &["rope", "none"])?;
        if kind == "none" {
            return Some(Positions::None);
        }
        let taken = self.arguments(part, &["base"], words.given);
        let base = taken.read("base", words, |words| words.real_that("a number above 1", |base| base > 1.0))?;
        let base = match base {
            Some(base) => base.value,
            None => {
                self.fill(record, "positions.base", "10_000");
                defaults::ROPE_BASE
            }
        };
        (!taken.poisoned).then_some(Positions::Rope { base })
    }

    fn init(&self, words: &mut Words<'_, 'a>) -> Option<Init> {
        if words.eat("from") {
            return Some(Init::From { file: words.text("a path in quotation marks")?.value, content: None });
        }
        let (_, part) = words.one_of("an initialisation", &["normal"])?;
        let taken = self.arguments(part, &["std"], words.given);
        let std = taken.need("std", words, |words| words.real_that("a positive number", |std| std > 0.0))?.value;
        (!taken.poisoned).then_some(Init::Normal { std })
    }

    /// Embedding and head: tied, if either says so.
    fn tables(
        &self,
        record: &Record<'a>,
        embedding: Option<Embedding>,
        head: Option<Embedding>,
    ) -> Option<(Embedding, Embedding)> {
        if [embedding, head].contains(&Some(Embedding::Tied)) {
            if let (Some(embedding), Some(head)) = (embedding, head)
                && embedding != head
                && let (Some(first), Some(second)) = (record.field("embedding"), record.field("head"))
            {
                let said = Diagnostic::error(
                    "excluding-fields",
                    "one of embedding and head is tied to the other, which is not",
                    second.value_span(),
                );
                return self.fail(said.note_at(first.value_span(), "the embedding is given here"));
            }
            return Some((Embedding::Tied, Embedding::Tied));
        }
        let embedding = self.or_default(record, "embedding", embedding, "own", defaults::EMBEDDING);
        Some((embedding, self.or_default(record, "head", head, "own", defaults::EMBEDDING)))
    }

    /// Which placement serves which layer.
    fn wiring(&self, record: &Record<'a>, layers: Option<u64>) -> Option<Wiring> {
        let Some(statement) = record.field("placement") else {
            self.fill(record, "placement", defaults::PLACEMENT);
            let (placement, of) = self.standard_placement(defaults::PLACEMENT)?;
            record.keep(self, "placement", of);
            return Some(Wiring::uniform(Arc::new(placement), layers? as usize));
        };
        let scope = Scope { env: &statement.env, record: Some(record) };
        let mut pieces = vec![self.piece(statement.label, statement.said, statement, scope)];
        for item in &statement.more {
            pieces.push(match &item.content {
                ItemContent::Phrase(content) if item.label.is_none() && self.looks_like_a_field(content, record) => {
                    self.left_over(statement, item)
                }
                ItemContent::Phrase(content) => {
                    let label = item.label.as_ref().map(|label: &Phrase| label.parts.as_slice());
                    self.piece(label, &content.parts, statement, scope)
                }
                ItemContent::Let(_) => None,
            });
        }
        let pieces = pieces.into_iter().collect::<Option<Vec<_>>>()?;
        self.lay(&pieces, layers? as usize, statement)
    }

    /// `post in layers 1..2`, `attention: pre`.
    fn piece(
        &self,
        label: Option<&'a [crate::syntax::ast::Expr]>,
        said: &'a [crate::syntax::ast::Expr],
        statement: &Statement<'a>,
        scope: Scope<'_, 'a>,
    ) -> Option<Piece> {
        let part = match label {
            None => Part::Both,
            Some(label) => {
                let mut words = self.words(label, statement.head_span, scope);
                let part = words.one_of("`attention` or `ffn`", &["attention", "ffn"])?.0;
                words.finish()?;
                if part == "attention" { Part::Attention } else { Part::Ffn }
            }
        };
        let mut words = self.words(said, statement.head_span, scope);
        words.given = &statement.given;
        let placement = self.reference(Kind::Placement, &mut words)?;
        let mut layers = None;
        if words.eat("in") {
            if !words.eat("layer") {
                words.expect("layers")?;
            }
            layers = Some(self.range(&mut words)?);
        }
        words.finish()?;
        let span = placement.blame;
        let made = Arc::new(self.placement(&placement)?);
        if let Some(record) = scope.record {
            record.keep(self, "placement", placement);
        }
        Some(Piece { part, placement: made, layers, span })
    }

    /// `1..3`, or one place.
    pub(super) fn range(&self, words: &mut Words<'_, 'a>) -> Option<Spanned<(usize, usize)>> {
        let Some(part) = words.peek() else { return words.missing("layers such as `1..3`") };
        let ExprKind::Range { first, last } = &part.kind else {
            let place = words.count_in(None, 1, MOST_LAYERS)?;
            return Some(Spanned { value: (place.value as usize, place.value as usize), span: place.span });
        };
        words.next();
        match (first.whole, last.whole) {
            (Some(first), Some(last)) if 1 <= first && first <= last && last <= MOST_LAYERS => {
                Some(Spanned { value: (first as usize, last as usize), span: part.span })
            }
            _ => self.fail(Diagnostic::error("empty-range", "these are no layers; they are counted from 1", part.span)),
        }
    }

    fn lay(&self, pieces: &[Piece], layers: usize, statement: &Statement<'a>) -> Option<Wiring> {
        let mut placements: Vec<Arc<Placement>> = Vec::new();
        let mut laid: Vec<(Option<usize>, Option<usize>)> = vec![(None, None); layers];
        for piece in pieces {
            if piece.part != Part::Both && matches!(piece.placement.body, Body::Layer(_)) {
                let message = format!("`{}` wires attention and feed-forward network together", piece.placement.name);
                return self.fail(Diagnostic::error("whole-layer-placement", message, piece.span));
            }
            let index = placements.iter().position(|placement| **placement == *piece.placement).unwrap_or_else(|| {
                placements.push(Arc::clone(&piece.placement));
                placements.len() - 1
            });
            let (first, last) = piece.layers.map_or((1, layers), |range| range.value);
            if last > layers {
                let span = piece.layers.map_or(piece.span, |range| range.span);
                return self.fail(Diagnostic::error("no-such-layer", format!("the model has {layers} layers"), span));
            }
            for slot in &mut laid[first - 1..last] {
                let (attention, ffn) = (piece.part != Part::Ffn, piece.part != Part::Attention);
                if (attention && slot.0.is_some()) || (ffn && slot.1.is_some()) {
                    let said = Diagnostic::error("given-twice", "some of these layers have a placement already", piece.span);
                    return self.fail(said);
                }
                slot.0 = if attention { Some(index) } else { slot.0 };
                slot.1 = if ffn { Some(index) } else { slot.1 };
            }
        }
        let bare = laid.iter().position(|(attention, ffn)| attention.is_none() || ffn.is_none());
        if let Some(place) = bare {
            let what = if laid[place].0.is_some() { "the feed-forward network" } else { "attention" };
            let message = format!("{what} of layer {} has no placement", place + 1);
            return self.fail(Diagnostic::error("missing-placement", message, statement.value_span()));
        }
        Some(Wiring { placements, layers: laid.into_iter().map(|(a, f)| (a.unwrap_or(0), f.unwrap_or(0))).collect() })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Both,
    Attention,
    Ffn,
}

struct Piece {
    part: Part,
    placement: Arc<Placement>,
    layers: Option<Spanned<(usize, usize)>>,
    span: Span,
}

fn table(words: &mut Words<'_, '_>) -> Option<Embedding> {
    Some(match words.one_of("`own`, `tied` or `teacher`", &["own", "tied", "teacher"])?.0 {
        "own" => Embedding::Own,
        "tied" => Embedding::Tied,
        _ => Embedding::Teacher { frozen: words.eat("frozen") },
    })
}

/// The divisors of a number, as a hint.
fn divisors(number: u64) -> String {
    let divisors: Vec<String> =
        (1..=number.min(4096)).filter(|d| number.is_multiple_of(*d)).take(12).map(|d| d.to_string()).collect();
    divisors.join(", ")
}
