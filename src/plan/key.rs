//! Keys: for each kind of node a hash of all that determines its result, and of nothing else.
//!
//! No name, label, text or path enters, and nothing of the machine. What a phase reads of its teacher's cache is told by how the
//! cache was made, not by how far it reaches: a cache that covers another shard as well changes no phase. The learning rate is that
//! of the segment's own steps. What the engine writes down at every step (training loss, norm of the gradient) or outside any result
//! (speed) is no part of a key. A file that is not at hand (a corpus, a checkpoint, what `init from` names) stands for itself by its
//! declaration. Invariant: nodes with equal keys end in equal bytes.

use serde::Serialize;

use super::memo::digest;
use super::node::{Checkpoint, Key, Phase, TeacherAt, TeacherUse};
use crate::study::{
    Cache, Data, Documents, Holdout, Layout, LossTerm, Metric, Optimizer, Precision, ProbeKind, Shard, Text, Tokenizer,
};
use crate::timeline::{DataPosition, Frozen, LayerId, NewLayer, Rate};

/// Digits of a key, two for each byte.
const DIGITS: usize = 32;

fn hash(kind: &str, of: &impl Serialize) -> Key {
    let mut text = digest(&format!("xrun 2026 plan {kind} v1"), of).to_hex().to_string();
    text.truncate(DIGITS);
    Key(text)
}

/// A corpus by its content; where it was not at hand, by its declaration.
pub fn corpus(data: &Data, content: Option<&str>) -> Key {
    #[derive(Serialize)]
    enum Which<'a> {
        Known { content: &'a str, tokenizer: &'static str },
        Absent { text: &'a Text, tokenizer: &'a Tokenizer },
    }
    #[derive(Serialize)]
    struct Of<'a> {
        which: Which<'a>,
        documents: &'a Documents,
        holdout: Holdout,
    }
    let kind = match data.tokenizer {
        Tokenizer::Bytes => "bytes",
        Tokenizer::Bpe(_) => "bpe",
        Tokenizer::Teacher => "teacher",
        Tokenizer::File(_) => "file",
    };
    let which = match content {
        Some(content) => Which::Known { content, tokenizer: kind },
        None => Which::Absent { text: &data.text, tokenizer: &data.tokenizer },
    };
    hash("corpus", &Of { which, documents: &data.documents, holdout: data.holdout })
}

/// The training of a corpus' tokenizer, whose size is part of the corpus' content; `None`: it is not trained.
pub fn tokenizer(data: &Data, content: Option<&str>) -> Option<Key> {
    let Tokenizer::Bpe(size) = data.tokenizer else { return None };
    Some(hash("tokenizer", &(size, corpus(data, content))))
}

/// What a phase takes from a teacher.
#[derive(Serialize)]
enum Taught<'a> {
    /// One with a node, and how its logits are kept.
    Trained(&'a Key, Cache),
    /// A checkpoint that is not at hand, by its declaration.
    Checkpoint(&'a str, Cache),
}

impl<'a> Taught<'a> {
    fn new(teacher: &'a TeacherUse) -> Self {
        match &teacher.at {
            TeacherAt::Node { node, .. } => Taught::Trained(node, teacher.cache),
            TeacherAt::Absent(path) => Taught::Checkpoint(path, teacher.cache),
        }
    }
}

/// A look at a teacher that others have trained; `shape` is the digest of its model.
pub(super) fn checkpoint(checkpoint: &Checkpoint, shape: &str) -> Key {
    let content = checkpoint.content.clone().unwrap_or_else(|| format!("not at hand: {}", checkpoint.folder));
    hash("checkpoint", &(shape, content, Sequences::new(&checkpoint.corpus, &checkpoint.data)))
}

/// A term of a loss; its teacher is told by its place among those of the phase.
#[derive(Serialize)]
#[serde(untagged)]
enum OfTerm {
    /// Factor of cross entropy, or factor and temperature of a KL to the first teacher.
    First(f64, Option<f64>),
    /// Which, factor, temperature and β, of the first teacher.
    Named(&'static str, f64, Option<f64>, Option<f64>),
    /// The same of another.
    Of(usize, &'static str, f64, Option<f64>, Option<f64>),
}

impl OfTerm {
    fn new((factor, term): &(f64, LossTerm), teachers: &[TeacherUse]) -> Self {
        let place = term.teacher().and_then(|name| teachers.iter().position(|teacher| teacher.name == name));
        let (name, temperature, beta) = match term {
            LossTerm::CrossEntropy => return OfTerm::First(*factor, None),
            LossTerm::Kl { temperature, .. } => ("kl", Some(*temperature), None),
            LossTerm::ReverseKl { temperature, .. } => ("reverse_kl", Some(*temperature), None),
            LossTerm::Jsd { temperature, beta, .. } => ("jsd", Some(*temperature), Some(*beta)),
            LossTerm::Mse { .. } => ("mse", None, None),
        };
        match (place.unwrap_or(0), term) {
            (0, LossTerm::Kl { .. }) => OfTerm::First(*factor, temperature),
            (0, _) => OfTerm::Named(name, *factor, temperature, beta),
            (place, _) => OfTerm::Of(place, name, *factor, temperature, beta),
        }
    }
}

/// How sequences are made of a corpus.
#[derive(Serialize)]
struct Sequences<'a> {
    corpus: &'a Key,
    context: usize,
    layout: Layout,
    shard: Shard,
}

impl<'a> Sequences<'a> {
    fn new(corpus: &'a Key, data: &Data) -> Self {
        Self { corpus, context: data.context, layout: data.layout, shard: data.shard }
    }
}

/// An optimizer without its peak, which is part of the learning rate. The fields tell one from another; AdamW's stand without a word, so that
/// what was trained before there were others keeps its key.
#[derive(Serialize)]
#[serde(untagged)]
enum Rule {
    AdamW { betas: (f64, f64), eps: f64, decay: f64, decay_all: bool },
    Sgd { sgd: (f64, bool), decay: f64, decay_all: bool },
    Lion { lion: (f64, f64), decay: f64, decay_all: bool },
    Muon { muon: (f64, bool), betas: (f64, f64), eps: f64, decay: f64, decay_all: bool },
}

impl Rule {
    fn of(optimizer: Optimizer) -> Self {
        match optimizer {
            Optimizer::AdamW { lr: _, betas, eps, decay, decay_all } => Rule::AdamW { betas, eps, decay, decay_all },
            Optimizer::Sgd { lr: _, momentum, nesterov, decay, decay_all } => {
                Rule::Sgd { sgd: (momentum, nesterov), decay, decay_all }
            }
            Optimizer::Lion { lr: _, betas, decay, decay_all } => Rule::Lion { lion: betas, decay, decay_all },
            Optimizer::Muon { lr: _, momentum, nesterov, betas, eps, decay, decay_all } => {
                Rule::Muon { muon: (momentum, nesterov), betas, eps, decay, decay_all }
            }
        }
    }
}

/// A stretch of training, of a student or (`kind`) a teacher; `shape` is the digest of the model under the segment's stack.
pub(super) fn phase(kind: &str, phase: &Phase, shape: &str) -> Key {
    #[derive(Serialize)]
    struct Of<'a> {
        shape: &'a str,
        seed: u64,
        sequences: Sequences<'a>,
        parent: Option<&'a Key>,
        teacher: Option<Taught<'a>>,
        loss: Vec<OfTerm>,
        #[serde(flatten)]
        rule: Rule,
        clip: Option<f64>,
        precision: Precision,
        micro: u64,
        steps: (u64, u64),
        stack: &'a [LayerId],
        new_layers: &'a [NewLayer],
        frozen: &'a Frozen,
        reset_optimizer: bool,
        rate: &'a Rate,
        batch: u64,
        data: DataPosition,
        measures: Vec<&'a (Metric, Vec<u64>)>,
        /// Teachers beside the first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        teachers: Vec<Taught<'a>>,
    }
    let (training, segment) = (&phase.training, &phase.segment);
    let evaluated = |metric: Metric| matches!(metric, Metric::ValidationCe | Metric::Perplexity | Metric::Kl);
    let of = Of {
        shape,
        seed: phase.seed,
        sequences: Sequences::new(&phase.corpus, &phase.data),
        parent: phase.parent.as_ref(),
        teacher: phase.teachers.first().map(Taught::new),
        loss: segment.loss.terms.iter().map(|term| OfTerm::new(term, &phase.teachers)).collect(),
        rule: Rule::of(training.optimizer),
        clip: training.clip,
        precision: training.precision,
        micro: training.batch.micro,
        steps: (segment.steps.start, segment.steps.end),
        stack: &segment.stack,
        new_layers: &segment.new_layers,
        frozen: &segment.frozen,
        reset_optimizer: segment.reset_optimizer,
        rate: &segment.rate,
        batch: segment.batch,
        data: segment.data,
        measures: phase.measures.iter().filter(|(metric, _)| evaluated(*metric)).collect(),
        teachers: phase.teachers.iter().skip(1).map(Taught::new).collect(),
    };
    hash(kind, &of)
}

/// A cache of a teacher's logits.
pub(super) fn logits(corpus: &Key, data: &Data, teacher: &Key, cache: Cache, temperature: f64, shards: u64) -> Key {
    hash("teacher_logits", &(Sequences::new(corpus, data), teacher, cache, temperature, shards))
}

/// A look at the checkpoint of `phase`; `shape` and `block_ends` are those of its last step.
pub(super) fn probe(kind: ProbeKind, batch: (u64, u64), data: &Data, phase: &Key, shape: &str, block_ends: &[usize]) -> Key {
    hash("probe", &(kind, batch, data.context, data.layout, phase, shape, block_ends))
}
