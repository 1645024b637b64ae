//! Nodes: the units of work, closed, each with all that its worker needs to know.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::transition::Transition;
use crate::study::{Cache, Data, Metric, Model, ProbeKind, Training};
use crate::timeline::Segment;

/// The content key of a node: 128 bits of BLAKE3 as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..12).unwrap_or(&self.0))
    }
}

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its identity.
    pub key: Key,
    /// For people: `phase 2 of [post, grow], seed 0`; names the first run that needs it.
    pub label: String,
    /// Keys of the nodes whose results it reads; the ones that `work` names.
    pub needs: Vec<Key>,
    /// What is done.
    pub work: Work,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Reads, splits and tokenises the text of a `data` declaration.
    Corpus {
        /// What is read; context, layout and shard do not matter here.
        data: Arc<Data>,
        /// Hash of the texts and the tokenizer as planned ([`crate::data::facts::CorpusFacts::content`]); a corpus that is another by now is
        /// refused. `None`: it was not at hand, and the node cannot run.
        content: Option<String>,
    },
    /// Trains the tokenizer of a `data` declaration on the training part of its text. The corpus needs it.
    Tokenizer {
        /// As for a corpus.
        data: Arc<Data>,
        /// As for a corpus, whose content it is.
        content: Option<String>,
    },
    /// Trains a teacher from its first step to its last.
    Teacher(Box<Phase>),
    /// Looks at a teacher that others have trained: that its weights are those of the plan, and what it makes of the holdout.
    Checkpoint(Box<Checkpoint>),
    /// Runs a teacher over the sequences that students will see and over the holdout.
    TeacherLogits(Box<TeacherLogits>),
    /// Trains from one checkpoint to the next.
    Phase(Box<Phase>),
    /// Looks closely at the checkpoint of a phase.
    Probe(Box<Probe>),
}

impl Work {
    /// The kind's word in plans and records.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Corpus { .. } => "corpus",
            Work::Tokenizer { .. } => "tokenizer",
            Work::Teacher(_) | Work::Checkpoint(_) => "teacher",
            Work::TeacherLogits(_) => "teacher_logits",
            Work::Phase(_) => "phase",
            Work::Probe(_) => "probe",
        }
    }
}

/// A stretch of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The run's seed: first values and order of sequences.
    pub seed: u64,
    /// The tokens.
    pub corpus: Key,
    /// How they are laid into sequences.
    pub data: Arc<Data>,
    /// The architecture at its final depth.
    pub model: Arc<Model>,
    /// Optimizer, clip, micro-batch; loss, rate and batch are those of the segment.
    pub training: Arc<Training>,
    /// The phase before, whose checkpoint this one goes on from.
    pub parent: Option<Key>,
    /// Depth, loss, learning rate, what learns, what is read.
    pub segment: Segment,
    /// What the event at its start does to each parameter, its optimizer state and the data; no part of the key, being settled by what is.
    pub transition: Transition,
    /// Where logits, embedding and head of others come from; what it takes is the first's, and the KL is measured against it.
    pub teachers: Vec<TeacherUse>,
    /// What is measured after which steps of the run, ascending; its first and last step among them.
    pub measures: Vec<(Metric, Vec<u64>)>,
}

/// A model of Hugging Face's format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where it lies, relative to the folder of the `.exp` file.
    pub folder: String,
    /// Hash of its weights ([`crate::data::facts::Weights::content`]); weights that are others by now are refused. `None`: it was not at hand.
    pub content: Option<String>,
    /// Its architecture, as found or as declared.
    pub model: Arc<Model>,
    /// The tokens.
    pub corpus: Key,
    /// How they are laid into sequences.
    pub data: Arc<Data>,
}

/// How a phase uses a teacher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeacherUse {
    /// As losses name it.
    pub name: String,
    /// Who it is.
    pub at: TeacherAt,
    /// How its logits are kept; `None` too where they are not asked for.
    pub cache: Cache,
    /// The nodes that hold its cached logits, by temperature; without any it runs online.
    pub logits: Vec<(f64, Key)>,
}

impl TeacherUse {
    /// Nodes that are read.
    pub fn nodes(&self) -> impl Iterator<Item = &Key> {
        self.at.node().into_iter().chain(self.logits.iter().map(|(_, key)| key))
    }
}

/// A teacher, and where its weights are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TeacherAt {
    /// It has a node.
    Node {
        /// That trained it, or looked at it.
        node: Key,
        /// Its architecture.
        model: Arc<Model>,
        /// Where its weights lie, if others have trained it, relative to the folder of the `.exp` file; `None`: in its node.
        folder: Option<String>,
    },
    /// A checkpoint that is not at hand and whose architecture is not declared: such a phase can be planned, and neither priced nor run.
    Absent(String),
}

impl TeacherAt {
    /// Its node.
    pub fn node(&self) -> Option<&Key> {
        match self {
            TeacherAt::Node { node, .. } => Some(node),
            TeacherAt::Absent(_) => None,
        }
    }
}

/// A cache of logits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeacherLogits {
    /// The tokens.
    pub corpus: Key,
    /// How they are laid into sequences.
    pub data: Arc<Data>,
    /// The teacher.
    pub teacher: Key,
    /// Its architecture.
    pub model: Arc<Model>,
    /// As in [`TeacherAt::Node`].
    pub folder: Option<String>,
    /// `All` or `Top`.
    pub cache: Cache,
    /// Softening of the teacher; log-probabilities are kept at this temperature.
    pub temperature: f64,
    /// So many shards from the first are covered, and the holdout.
    pub shards: u64,
}

/// A close look at a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// What is looked at.
    pub kind: ProbeKind,
    /// Sequences of the fixed batch, from the start of the holdout.
    pub sequences: u64,
    /// Tokens of each.
    pub tokens: u64,
    /// The tokens.
    pub corpus: Key,
    /// How they are laid into sequences.
    pub data: Arc<Data>,
    /// The phase whose checkpoint is read.
    pub phase: Key,
    /// The architecture.
    pub model: Arc<Model>,
    /// The segment of that phase, for stack and blocks.
    pub segment: Segment,
}
