//! Teachers of a plan: one for each declaration and data, whoever learns from it, and one cache of its logits.
//!
//! Owns how far a cache reaches: as far as any run reads. Invariant: a teacher that we train is trained under seed 0 from its first step to its last.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build::Builder;
use super::cost::Cost;
use super::error::PlanError;
use super::key::{self, Taught};
use super::measure;
use super::node::{Checkpoint, Key, Phase, TeacherLogits, TeacherUse, Work};
use super::proof;
use super::settle::{Settled, Settler};
use crate::budget::hub;
use crate::budget::params::{FirstValue, ParamSpec, parameters, vocabulary, whole};
use crate::budget::tokens::Count;
use crate::data::facts::Found;
use crate::study::{
    Cache, Embedding, Measure, Metric, Model, Moment, Recipe, Schedule, Start, Study, Teacher, TeacherSource, Training,
};
use crate::timeline::{Segment, Timeline};

/// Seed of every teacher.
const SEED: u64 = 0;

/// What is known of teachers so far.
#[derive(Debug, Default)]
pub(super) struct Teachers {
    /// By the address of the declaration, which the study keeps alive, and the world.
    known: BTreeMap<(*const Teacher, usize), Known>,
    /// Shards that a cache has to cover, by its key for none.
    shards: BTreeMap<Key, u64>,
}

/// A teacher with a node.
#[derive(Debug, Clone)]
struct Known {
    /// That trains it, or looks at it.
    node: Key,
    model: Arc<Model>,
    /// Where its weights lie, if others have trained it.
    folder: Option<String>,
}

/// What a run has from its teacher.
#[derive(Debug)]
pub(super) struct Lesson {
    source: Source,
    cache: Cache,
    /// The student takes tensors of it.
    lends: bool,
    /// It is heard in every segment, since the KL is measured.
    measured: bool,
    /// Nodes of its caches, by temperature.
    logits: Vec<(f64, Key)>,
}

#[derive(Debug)]
enum Source {
    AtHand(Known),
    /// A checkpoint that is not there.
    Absent(String),
}

impl Lesson {
    /// Its nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Key> {
        self.node().into_iter().chain(self.logits.iter().map(|(_, key)| key))
    }
    /// The node of the teacher itself.
    pub(super) fn node(&self) -> Option<&Key> {
        match &self.source {
            Source::AtHand(known) => Some(&known.node),
            Source::Absent(_) => None,
        }
    }
    /// The student hears its logits: in the loss, or in what is measured.
    fn speaks(&self, segment: &Segment) -> bool {
        self.measured || segment.loss.is_taught()
    }
    /// The node of the cache that a segment hears it through.
    fn through(&self, segment: &Segment) -> Option<&Key> {
        let wanted = segment.loss.temperature();
        let found = self.logits.iter().find(|(temperature, _)| *temperature == wanted);
        found.filter(|_| self.speaks(segment)).map(|(_, key)| key)
    }
    /// For the phase of a segment that uses it; a checkpoint that is not there cannot be used.
    pub(super) fn used(&self, segment: &Segment) -> Option<TeacherUse> {
        let Source::AtHand(Known { node, model, folder }) = &self.source else { return None };
        (self.lends || self.speaks(segment)).then(|| TeacherUse {
            node: node.clone(),
            model: Arc::clone(model),
            folder: folder.clone(),
            logits: self.through(segment).cloned(),
        })
    }
    /// For the key of that phase.
    pub(super) fn taught(&self, segment: &Segment) -> Option<Taught<'_>> {
        let cache = if self.speaks(segment) { self.cache } else { Cache::None };
        (self.lends || self.speaks(segment)).then_some(match &self.source {
            Source::AtHand(known) => Taught::Trained(&known.node, cache),
            Source::Absent(path) => Taught::Checkpoint(path, cache),
        })
    }
    /// FLOPs of the teacher beside a student that reads so much.
    pub(super) fn beside(&self, settler: &mut Settler<'_>, segment: &Segment, read: Option<&Count>) -> Option<f64> {
        match &self.source {
            _ if !self.speaks(segment) || self.through(segment).is_some() => Some(0.0),
            Source::AtHand(known) => read.map(|read| settler.forward(&known.model, read)),
            Source::Absent(_) => None,
        }
    }
}

fn measures_kl(study: &Study) -> bool {
    study.measures.iter().any(|measure| measure.metric == Metric::Kl)
}

/// Temperatures at which a run hears its teacher's logits, in the loss or in what is measured, each with the shards that it reaches.
fn heard(study: &Study, timeline: &Timeline) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> = Vec::new();
    for segment in timeline.segments.iter().filter(|segment| measures_kl(study) || segment.loss.is_taught()) {
        let (temperature, reached) = (segment.loss.temperature(), segment.data.shard + 1);
        match all.iter_mut().find(|(known, _)| *known == temperature) {
            Some((_, shards)) => *shards = reached.max(*shards),
            None => all.push((temperature, reached)),
        }
    }
    all
}

/// Whether a student takes tensors of its teacher.
fn borrows(student: &Model) -> bool {
    [student.embedding, student.head].iter().any(|part| matches!(part, Embedding::Teacher { .. }))
}

/// Parameters of a whole model.
fn size_of(model: &Model) -> u64 {
    let (stack, block_ends) = whole(model);
    parameters(model, &stack, &block_ends).iter().map(ParamSpec::elements).sum()
}

/// Everything that a student takes from its teacher is there, and fits.
fn inherits(student: &Model, teacher: &str, its: &Model) -> Result<(), PlanError> {
    if !borrows(student) {
        return Ok(());
    }
    let all = |model: &Model| {
        let (stack, block_ends) = whole(model);
        parameters(model, &stack, &block_ends)
    };
    let known = all(its);
    for spec in all(student) {
        let FirstValue::Teacher(tensor) = spec.first else { continue };
        let found = tensor.names().iter().find_map(|name| known.iter().find(|other| other.name == **name));
        let its = match found {
            Some(found) if found.shape == spec.shape => continue,
            Some(found) => format!("`{}` of shape {:?}", found.name, found.shape),
            None => format!("no `{}`", tensor.names()[0]),
        };
        let (student, teacher) = (student.name.clone(), teacher.to_owned());
        return Err(PlanError::Inheritance { student, tensor: spec.name, shape: spec.shape, teacher, its });
    }
    Ok(())
}

impl Builder<'_> {
    /// Notes how far a run reads into the cache of its teacher, and lays the teacher.
    pub(super) fn reach(&mut self, arm: usize, settled: &Settled) -> Result<(), PlanError> {
        let recipe = &self.study.arms[arm].recipe;
        let Some(teacher) = &recipe.teacher else { return Ok(()) };
        let Some(Known { node: key, model, .. }) = self.teacher(teacher, recipe, settled.world)? else { return Ok(()) };
        let heard = heard(self.study, &settled.timeline);
        let (own, its) = (vocabulary(&settled.model), vocabulary(&model));
        if !heard.is_empty() && own != its {
            let (student, teacher) = (settled.model.name.clone(), teacher.name.clone());
            return Err(PlanError::Vocabularies { student, own, teacher, its });
        }
        inherits(&settled.model, &teacher.name, &model)?;
        for (temperature, last) in heard.into_iter().filter(|_| teacher.cache != Cache::None) {
            let reached = self.settler.worlds[settled.world].shards().map_or(last, |count| last.min(count));
            let cache = self.cache_of(recipe, &key, (teacher.cache, temperature), settled.world);
            let shards = self.teachers.shards.entry(cache).or_insert(0);
            *shards = reached.max(*shards);
        }
        Ok(())
    }

    /// What a run of an arm has from its teacher.
    pub(super) fn lesson(&mut self, arm: usize, settled: &Settled) -> Result<Option<Lesson>, PlanError> {
        let recipe = &self.study.arms[arm].recipe;
        let Some(teacher) = &recipe.teacher else { return Ok(None) };
        let cache = teacher.cache;
        let source = match (self.teacher(teacher, recipe, settled.world)?, &teacher.source) {
            (Some(known), _) => Source::AtHand(known),
            (None, TeacherSource::Checkpoint(path)) => Source::Absent(path.clone()),
            (None, TeacherSource::Trained { .. }) => return Ok(None),
        };
        let mut logits = Vec::new();
        if let Source::AtHand(known) = &source
            && cache != Cache::None
        {
            for (temperature, _) in heard(self.study, &settled.timeline) {
                logits.push((temperature, self.logits(recipe, known, (cache, temperature), settled.world)));
            }
        }
        Ok(Some(Lesson { source, cache, lends: borrows(&settled.model), measured: measures_kl(self.study), logits }))
    }

    /// Lays the node of a teacher; `None` for a checkpoint that is not there.
    fn teacher(&mut self, teacher: &Arc<Teacher>, recipe: &Recipe, world: usize) -> Result<Option<Known>, PlanError> {
        let at = (Arc::as_ptr(teacher), world);
        if let Some(known) = self.teachers.known.get(&at) {
            return Ok(Some(known.clone()));
        }
        let known = match &teacher.source {
            TeacherSource::Checkpoint(folder) => self.imported(teacher, folder, recipe, world)?,
            TeacherSource::Trained { model, training, steps } => {
                Some(self.trained(teacher, (model, training, *steps), recipe, world)?)
            }
        };
        self.teachers.known.extend(known.clone().map(|known| (at, known)));
        Ok(known)
    }

    /// Lays the node that looks at a checkpoint, if it is there.
    fn imported(&mut self, teacher: &Teacher, folder: &str, recipe: &Recipe, world: usize) -> Result<Option<Known>, PlanError> {
        let refused = |reason: String| PlanError::Weights { of: format!("the teacher `{}`", teacher.name), reason };
        let found = match self.settler.checkpoint(folder) {
            Some(Found::Known(found)) => found.clone(),
            Some(Found::Broken(reason)) => return Err(refused(reason.clone())),
            Some(Found::Absent(_)) | None => return Ok(None),
        };
        hub::compare(&found.model, &found.weights.tensors).map_err(|reason| refused(format!("`{folder}`: {reason}")))?;
        let model = Arc::new(found.model);
        let (corpus, needed) = (self.settler.worlds[world].key.clone(), self.settler.worlds[world].vocabulary());
        let size = vocabulary(&model);
        if let Some(needed) = needed.filter(|needed| *needed > size) {
            return Err(PlanError::Vocabulary { model: teacher.name.clone(), size, data: recipe.data.name.clone(), needed });
        }
        let content = found.weights.content;
        let checkpoint = Checkpoint {
            folder: folder.to_owned(),
            content,
            model: Arc::clone(&model),
            corpus: corpus.clone(),
            data: Arc::clone(&recipe.data),
        };
        let key = key::checkpoint(&checkpoint, &proof::shape_whole(&model));
        if !self.graph.has(&key) {
            let held = self.settler.worlds[world].covered(0);
            let cost = Cost {
                flops_teacher: held.as_ref().map(|held| self.settler.forward(&model, held)),
                params_total: size_of(&model),
                ..Cost::nothing()
            };
            let label = || format!("teacher {}", teacher.name);
            self.lay(&key, cost, label, vec![corpus], Work::Checkpoint(Box::new(checkpoint)));
        }
        Ok(Some(Known { node: key, model, folder: Some(folder.to_owned()) }))
    }

    /// Lays the node that trains a teacher.
    fn trained(
        &mut self,
        teacher: &Teacher,
        (model, training, steps): (&Arc<Model>, &Arc<Training>, u64),
        recipe: &Recipe,
        world: usize,
    ) -> Result<Known, PlanError> {
        let model = self.settler.model(model, world)?;
        let schedule =
            Schedule { name: String::new(), doc: None, start: Start::All, events: Vec::new(), end: Moment::Step(steps) };
        let timeline = self
            .settler
            .timeline(&schedule, &model, training, (world, SEED), None)
            .map_err(|error| PlanError::Teacher { teacher: teacher.name.clone(), error })?;
        let read = self.settler.count(world, training, SEED, &timeline.segments).and_then(|counts| counts.first().copied());
        let corpus = self.settler.worlds[world].key.clone();
        let measured = [Measure { metric: Metric::ValidationCe, every: steps.max(1) }];
        let mut last = None;
        let transitions = self.settler.transitions(&model, &training.optimizer, &timeline.segments);
        for (segment, transition) in timeline.segments.into_iter().zip(transitions) {
            let price = self.settler.price(&model, training, &recipe.data, &segment, read.as_ref());
            let cost = Cost {
                flops_student: Some(0.0),
                flops_student_with_head: Some(0.0),
                flops_teacher: price.flops_student_with_head,
                ..price
            };
            let shape = self.settler.shape(&model, &segment);
            let phase = Phase {
                seed: SEED,
                corpus: corpus.clone(),
                data: Arc::clone(&recipe.data),
                model: Arc::clone(&model),
                training: Arc::clone(training),
                parent: None,
                measures: measure::measures(&measured, &segment, false),
                segment,
                transition,
                teacher: None,
            };
            let key = key::phase("teacher", &phase, &shape, None);
            self.lay(&key, cost, || format!("teacher {}", teacher.name), vec![corpus.clone()], Work::Teacher(Box::new(phase)));
            last = Some(key);
        }
        let node = last.expect("this is a bug in xrun: a schedule without a segment");
        Ok(Known { node, model, folder: None })
    }

    /// A cache by everything but its reach.
    fn cache_of(&self, recipe: &Recipe, teacher: &Key, (cache, temperature): (Cache, f64), world: usize) -> Key {
        let corpus = &self.settler.worlds[world].key;
        key::logits(corpus, &recipe.data, teacher, cache, temperature, 0)
    }

    fn logits(&mut self, recipe: &Recipe, known: &Known, (cache, temperature): (Cache, f64), world: usize) -> Key {
        let Known { node: teacher, model, folder } = known;
        let shards = self.teachers.shards.get(&self.cache_of(recipe, teacher, (cache, temperature), world)).copied().unwrap_or(1);
        let corpus = self.settler.worlds[world].key.clone();
        let key = key::logits(&corpus, &recipe.data, teacher, cache, temperature, shards);
        if !self.graph.has(&key) {
            let covered = self.settler.worlds[world].covered(shards);
            let each = match cache {
                Cache::Top(top) if top < vocabulary(model) => 8 * top as u64 + 4,
                Cache::Top(_) | Cache::All | Cache::None => 4 * vocabulary(model) as u64,
            };
            let cost = Cost {
                flops_teacher: covered.as_ref().map(|covered| self.settler.forward(model, covered)),
                disk: covered.map(|covered| covered.sequences * recipe.data.context as u64 * each),
                ..Cost::nothing()
            };
            let (model, data) = (Arc::clone(model), Arc::clone(&recipe.data));
            let label = format!("logits of {}", recipe.teacher.as_ref().map_or("the teacher", |teacher| &teacher.name));
            let needs = vec![corpus.clone(), teacher.clone()];
            let (teacher, folder) = (teacher.clone(), folder.clone());
            let work = TeacherLogits { corpus, data, teacher, model, folder, cache, temperature, shards };
            self.lay(&key, cost, || label, needs, Work::TeacherLogits(Box::new(work)));
        }
        key
    }
}
