//! What an edit did to a plan: `xrun plan --against`.
//!
//! Owns the words for inputs. Nodes are the same if their keys are; a node that is not in the other plan is told as changed where the
//! other has one with its label. Invariant: a changed node names at least one input.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Plan;
use super::node::{Key, Node, Phase, Work};
use super::proof::shape_of;

/// The difference of two plans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Nodes of both.
    pub same: usize,
    /// Nodes of the new plan in the place of one of the old: label, key, inputs that differ.
    pub changed: Vec<(String, Key, Vec<&'static str>)>,
    /// Nodes of the new plan alone.
    pub added: Vec<(String, Key)>,
    /// Nodes of the old plan alone.
    pub gone: Vec<(String, Key)>,
}

/// What `new` has that `old` has not, and the other way round.
pub fn diff(new: &Plan, old: &Plan) -> Difference {
    let mut before: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in old.nodes().into_iter().filter(|node| new.node(&node.key).is_none()) {
        before.entry(&node.label).or_insert(node);
    }
    let mut difference = Difference::default();
    let mut replaced = BTreeSet::new();
    for node in new.nodes() {
        let (label, key) = (node.label.clone(), node.key.clone());
        if old.node(&key).is_some() {
            difference.same += 1;
        } else if let Some(other) = before.get(node.label.as_str()) {
            replaced.insert(&other.key);
            difference.changed.push((label, key, inputs(&node.work, &other.work)));
        } else {
            difference.added.push((label, key));
        }
    }
    let gone = old.nodes().into_iter().filter(|node| new.node(&node.key).is_none() && !replaced.contains(&node.key));
    difference.gone = gone.map(|node| (node.label.clone(), node.key.clone())).collect();
    difference
}

/// Inputs in which two nodes differ.
fn inputs(new: &Work, old: &Work) -> Vec<&'static str> {
    let differ = match (new, old) {
        (Work::Phase(new), Work::Phase(old)) | (Work::Teacher(new), Work::Teacher(old)) => of_phase(new, old),
        (Work::Corpus { content: new, .. }, Work::Corpus { content: old, .. }) => vec![("text", new != old)],
        (Work::Checkpoint(new), Work::Checkpoint(old)) => {
            vec![("corpus", new.corpus != old.corpus), ("weights", new.content != old.content), ("model", new.model != old.model)]
        }
        (Work::TeacherLogits(new), Work::TeacherLogits(old)) => vec![
            ("corpus", new.corpus != old.corpus),
            ("teacher", new.teacher != old.teacher),
            ("reach", new.shards != old.shards),
            ("temperature", new.temperature != old.temperature),
            ("what is kept", new.cache != old.cache),
        ],
        (Work::Probe(new), Work::Probe(old)) => {
            vec![("phase", new.phase != old.phase), ("batch", (new.sequences, new.tokens) != (old.sequences, old.tokens))]
        }
        _ => vec![("kind", true)],
    };
    let differ: Vec<_> = differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
    if differ.is_empty() { vec!["declaration"] } else { differ }
}

fn of_phase(new: &Phase, old: &Phase) -> Vec<(&'static str, bool)> {
    let (a, b) = (&new.segment, &old.segment);
    let (t, u) = (&new.training, &old.training);
    // The peak is part of the learning rate.
    let rule = |phase: &Phase| (phase.training.optimizer.with_lr(0.0), phase.training.clip);
    let lay = |phase: &Phase| (phase.segment.context(&phase.data), phase.data.context, phase.data.layout, phase.data.shard);
    let teachers = |phase: &Phase| phase.teachers.iter().map(|teacher| (teacher.at.clone(), teacher.cache)).collect::<Vec<_>>();
    vec![
        ("phase before", new.parent != old.parent),
        ("corpus", new.corpus != old.corpus),
        ("sequences", lay(new) != lay(old)),
        ("seed", new.seed != old.seed),
        ("model", shape_of(&new.model, a) != shape_of(&old.model, b)),
        ("teacher", teachers(new) != teachers(old)),
        ("loss", a.loss != b.loss),
        ("optimizer", rule(new) != rule(old)),
        ("precision", t.precision != u.precision),
        ("learning rate", a.rate != b.rate),
        ("batch", (a.batch, t.batch.micro) != (b.batch, u.batch.micro)),
        ("steps", a.steps != b.steps),
        ("new layers", a.new_layers != b.new_layers),
        ("frozen layers", a.frozen != b.frozen),
        ("reset of the optimizer", a.reset_optimizer != b.reset_optimizer),
        ("position in the data", (a.data.shard, a.data.sequence) != (b.data.shard, b.data.sequence)),
        ("measured steps", new.measures != old.measures),
    ]
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (changed, added, gone) = (self.changed.len(), self.added.len(), self.gone.len());
        writeln!(f, "{} nodes the same, {changed} changed, {added} new, {gone} gone", self.same)?;
        for (label, _, inputs) in &self.changed {
            writeln!(f, "  ~ {}: {}", label.escape_debug(), inputs.join(", "))?;
        }
        for (label, _) in &self.added {
            writeln!(f, "  + {}", label.escape_debug())?;
        }
        for (label, _) in &self.gone {
            writeln!(f, "  - {}", label.escape_debug())?;
        }
        Ok(())
    }
}
