//! Inputs of a node by their names: what `xrun plan` calls the cause when a node runs again.
//!
//! Owns the words for inputs, each with a digest of what it is. They name what enters a key (`key`), coarsely, and decide nothing: nodes are
//! the same if their keys are. Invariant: inputs that differ between two nodes of one kind and unequal keys are at least one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::memo::digest;
use super::node::{Node, Phase, TeacherAt, Work};
use super::proof::{shape_of, shape_whole};

/// Digits of a digest: enough to tell the inputs of nodes with one label apart.
const DIGITS: usize = 12;

/// Inputs with their digests, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inputs(BTreeMap<String, String>);

impl Inputs {
    /// Of a node.
    pub fn of(node: &Node) -> Self {
        let mut inputs = Self::default();
        match &node.work {
            Work::Corpus { data, content } | Work::Tokenizer { data, content } => {
                inputs.add("text", content);
                inputs.add("declaration", &(&data.text, &data.tokenizer, &data.documents, data.holdout));
            }
            Work::Teacher(phase) | Work::Phase(phase) => inputs.add_phase(phase),
            Work::Checkpoint(checkpoint) => {
                inputs.add("corpus", &checkpoint.corpus);
                inputs.add("weights", &checkpoint.content);
                inputs.add("model", &shape_whole(&checkpoint.model));
                inputs.add("sequences", &(checkpoint.data.context, checkpoint.data.layout, checkpoint.data.shard));
            }
            Work::TeacherLogits(logits) => {
                inputs.add("corpus", &logits.corpus);
                inputs.add("sequences", &(logits.data.context, logits.data.layout, logits.data.shard));
                inputs.add("teacher", &logits.teacher);
                inputs.add("reach", &logits.shards);
                inputs.add("temperature", &logits.temperature);
                inputs.add("what is kept", &logits.cache);
            }
            Work::Probe(probe) => {
                inputs.add("phase", &probe.phase);
                inputs.add("batch", &(probe.sequences, probe.tokens));
                inputs.add("sequences", &(probe.data.context, probe.data.layout));
            }
        }
        inputs
    }

    fn add(&mut self, name: &str, value: &impl Serialize) {
        let mut text = digest("xrun 2026 plan input v1", value).to_hex().to_string();
        text.truncate(DIGITS);
        self.0.insert(name.to_owned(), text);
    }

    fn add_phase(&mut self, phase: &Phase) {
        let Phase { segment, training, data, .. } = phase;
        self.add("phase before", &phase.parent);
        self.add("corpus", &phase.corpus);
        self.add("sequences", &(segment.context(data), data.context, data.layout, data.shard));
        self.add("seed", &phase.seed);
        self.add("model", &shape_of(&phase.model, segment));
        let who = |at: &TeacherAt| match at {
            TeacherAt::Node { node, .. } => node.to_string(),
            TeacherAt::Absent(declared) => declared.clone(),
        };
        self.add("teacher", &phase.teachers.iter().map(|teacher| (who(&teacher.at), teacher.cache)).collect::<Vec<_>>());
        self.add("loss", &segment.loss);
        // The peak is part of the learning rate.
        self.add("optimizer", &(training.optimizer.with_lr(0.0), training.clip));
        self.add("precision", &training.precision);
        self.add("learning rate", &segment.rate);
        self.add("batch", &(segment.batch, training.batch.micro));
        self.add("steps", &segment.steps);
        self.add("new layers", &segment.new_layers);
        self.add("frozen layers", &segment.frozen);
        self.add("reset of the optimizer", &segment.reset_optimizer);
        self.add("position in the data", &(segment.data.shard, segment.data.sequence));
        self.add("measured steps", &phase.measures);
    }

    /// Names of the inputs that two nodes do not have in common.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let here = self.0.iter().filter(|(name, digest)| other.0.get(*name) != Some(digest));
        let there = other.0.keys().filter(|name| !self.0.contains_key(*name));
        let mut names: Vec<String> = here.map(|(name, _)| name).chain(there).cloned().collect();
        if names.is_empty() {
            names.push("declaration".to_owned());
        }
        names
    }
}
