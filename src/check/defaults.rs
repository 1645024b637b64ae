//! Every default of the language, with its reason.
//!
//! Owns the only table of values that a file may leave out. Invariant: whatever is taken from here is listed in
//! [`Study::defaults`](crate::study::Study::defaults) (`fill`), so that no default is hidden.

use super::Checker;
use super::names::Kind;
use super::record::Record;
use crate::study::training::Shape;
use crate::study::{
    Cache, Documents, Embedding, Filled, Floor, Holdout, Layout, Norm, NormKind, Positions, Precision, Shard, Tokenizer,
};

/// `block`: layers.
pub(super) const BLOCK: u64 = 1;
/// `norm`.
pub(super) const NORM: Norm = Norm { kind: NormKind::Rms, eps: NORM_EPS };
/// `eps` of a norm.
pub(super) const NORM_EPS: f64 = 1e-6;
/// `bias` of a layer norm.
pub(super) const NORM_BIAS: bool = true;
/// `alpha` of a Dynamic Tanh.
pub(super) const NORM_ALPHA: f64 = 0.5;
/// `positions`.
pub(super) const POSITIONS: Positions = Positions::Rope { base: ROPE_BASE };
/// `base` of RoPE.
pub(super) const ROPE_BASE: f64 = 10_000.0;
/// `embedding` and `head`.
pub(super) const EMBEDDING: Embedding = Embedding::Own;
/// `placement`, of the standard library.
pub(super) const PLACEMENT: &str = "pre";
/// `document` of files.
pub(super) const DOCUMENTS: Documents = Documents::File;
/// `document` of generated tales.
pub(super) const TALE: Documents = Documents::Paragraph;
/// `tokenizer`.
pub(super) const TOKENIZER: Tokenizer = Tokenizer::Bytes;
/// `packed` or `padded`.
pub(super) const LAYOUT: Layout = Layout::Packed;
/// `shard`.
pub(super) const SHARD: Shard = Shard::Whole;
/// `holdout`.
pub(super) const HOLDOUT: Holdout = Holdout::Fraction(0.05);
/// `seed` of generated tales.
pub(super) const TALES_SEED: u64 = 0;
/// `cache`.
pub(super) const CACHE: Cache = Cache::None;
/// `lr` of a training.
pub(super) const RATE: Shape = Shape::Constant;
/// Where `linear` and `cosine` end.
pub(super) const FLOOR: Floor = Floor::Rate(0.0);
/// `betas` of AdamW.
pub(super) const BETAS: (f64, f64) = (0.9, 0.95);
/// `betas` of Lion.
pub(super) const LION_BETAS: (f64, f64) = (0.9, 0.99);
/// `eps` of AdamW.
pub(super) const ADAM_EPS: f64 = 1e-8;
/// `momentum` of SGD.
pub(super) const SGD_MOMENTUM: f64 = 0.0;
/// `nesterov` of SGD.
pub(super) const SGD_NESTEROV: bool = false;
/// `momentum` of Muon.
pub(super) const MUON_MOMENTUM: f64 = 0.95;
/// `nesterov` of Muon.
pub(super) const MUON_NESTEROV: bool = true;
/// `decay` of any optimizer.
pub(super) const DECAY: f64 = 0.0;
/// `precision`.
pub(super) const PRECISION: Precision = Precision::F32;
/// `temperature` of a teacher's loss.
pub(super) const TEMPERATURE: f64 = 1.0;
/// `beta` of `jsd`.
pub(super) const JSD_BETA: f64 = 0.5;
/// `decay` of `wsd`.
pub(super) const WSD_DECAY: f64 = 0.2;
/// `seeds`: how many.
pub(super) const SEEDS: u64 = 1;
/// `measure … every`: steps.
pub(super) const MEASURE_EVERY: u64 = 100;
/// Sequences of a probe's batch.
pub(super) const PROBE_SEQUENCES: u64 = 2;

/// Std of `init`: that of width 4096 at 0.02, its gain kept.
pub(super) fn init_std(width: f64) -> f64 {
    0.02 * libm::sqrt(4096.0 / width)
}

/// Why each default is what it is.
const REASONS: &[(Kind, &str, &str)] = &[
    (Kind::Model, "block", "the smallest block: every layer is one"),
    (Kind::Model, "kv", "as many key/value heads as heads: plain multi-head attention (1706.03762)"),
    (Kind::Model, "dim", "width / heads (1706.03762)"),
    (Kind::Model, "norm", "RMSNorm (1910.07467) with the eps of Qwen3 and Llama 1"),
    (Kind::Model, "norm.eps", "the eps of Qwen3 and Llama 1"),
    (Kind::Model, "norm.bias", "layer norm as it was published (1607.06450)"),
    (Kind::Model, "norm.alpha", "what 2503.10622 uses but for large language models, for which it is tuned by width"),
    (Kind::Model, "qk_norm", "off unless asked for"),
    (Kind::Model, "placement", "what most models of the field use (2002.04745)"),
    (Kind::Model, "positions", "RoPE (2104.09864) with the base of that paper"),
    (Kind::Model, "positions.base", "the base of 2104.09864"),
    (Kind::Model, "embedding", "a matrix of its own"),
    (Kind::Model, "head", "a matrix of its own"),
    (Kind::Model, "init", "std 0.02 at width 4096 with its gain kept at other widths (2608.13156, toy-scale care)"),
    (Kind::Model, "vocabulary", "the tokenizer's"),
    (Kind::Data, "document", "a file is a document; generated tales are paragraphs"),
    (Kind::Data, "tokenizer", "needs no file: one token a byte, and one that ends a document"),
    (Kind::Data, "layout", "no token is spent on padding"),
    (Kind::Data, "shard", "the whole corpus is one shard"),
    (Kind::Data, "holdout", "assumption: a twentieth is enough to compare on"),
    (Kind::Data, "generate.seed", "the first"),
    (Kind::Teacher, "cache", "exact: the teacher runs beside the student"),
    (Kind::Training, "lr", "the peak throughout"),
    (Kind::Training, "lr.to", "down to nothing (1608.03983)"),
    (Kind::Training, "lr.decay", "the last fifth, in the range of 2404.06395"),
    (
        Kind::Training,
        "optimizer.betas",
        "as language models are trained since 2005.14165; those of lion are its paper's (2302.06675)",
    ),
    (Kind::Training, "optimizer.eps", "1412.6980"),
    (
        Kind::Training,
        "optimizer.momentum",
        "sgd has none unless asked for; that of muon is its author's (kellerjordan.github.io/posts/muon)",
    ),
    (Kind::Training, "optimizer.nesterov", "sgd's is off unless asked for; muon's is on, as its author has it"),
    (Kind::Training, "optimizer.decay", "none unless asked for"),
    (Kind::Training, "optimizer.decay_on", "norms, gains and shifts are not decayed, as in 2005.14165's successors"),
    (Kind::Training, "batch.in", "all sequences of a step at once"),
    (Kind::Training, "clip", "none unless asked for"),
    (Kind::Training, "precision", "the reference that others are tested against"),
    (Kind::Training, "loss.temperature", "the teacher as it is"),
    (Kind::Training, "loss.beta", "the Jensen-Shannon divergence, even-handed"),
    (Kind::Schedule, "loss.temperature", "the teacher as it is"),
    (Kind::Schedule, "loss.beta", "the Jensen-Shannon divergence, even-handed"),
    (Kind::Study, "seeds", "one run an arm: no intervals"),
    (Kind::Study, "measure", "what is claimed or compared has to be measured; as often as the first measure, or every 100 steps"),
    (Kind::Study, "probe.on", "2 sequences of the data's context, as in 2608.13156"),
];

/// Whether a field, or a detail of one (`norm.eps`), is filled in where it is left out.
pub(super) fn has_default(kind: Kind, field: &str) -> bool {
    REASONS.iter().any(|(of, name, _)| (*of, *name) == (kind, field))
}

impl<'a> Checker<'a> {
    /// Notes that a default was taken.
    pub(super) fn fill(&self, record: &Record<'a>, field: &str, value: impl Into<String>) {
        let reason = REASONS.iter().find(|(kind, name, _)| *kind == record.kind && *name == field);
        // A default without a reason is a slip of ours; a test looks for them.
        let reason = reason.map_or("", |(_, _, reason)| *reason).to_owned();
        let filled = Filled { owner: record.owner.clone(), field: field.to_owned(), value: value.into(), reason };
        let mut list = record.filled.borrow_mut();
        if !list.contains(&filled) {
            list.push(filled);
        }
    }
}
