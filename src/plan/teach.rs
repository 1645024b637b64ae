//! Teachers of a plan: one for each declaration and data, whoever learns from it, and one cache of its logits.
//!
//! Owns how far a cache reaches: as far as any run reads. Invariant: a teacher that we train is trained under seed 0 from its first step to its last.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build::Builder;
use super::cost::Cost;
use super::error::PlanError;
use super::key;
use super::measure;
use super::node::{Checkpoint, Key, Phase, TeacherAt, TeacherLogits, TeacherUse, Work};
use super::proof;
use super::settle::{Settled, Settler};
use crate::budget::hub;
use crate::budget::params::{FirstValue, ParamSpec, parameters, vocabulary, whole};
use crate::budget::speaking::{resident, streamed, together};
use crate::budget::tokens::Count;
use crate::data::facts::Found;
use crate::study::{
    Batch, Cache, Data, Embedding, Measure, Metric, Model, Moment, Schedule, Start, Teacher, TeacherSource, Training,
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

/// Caches serve all runs: how far they reach has to be known before the first is laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Notes how far each is read.
    Reach,
    /// Lays teachers and caches.
    Lay,
}

/// A teacher.
#[derive(Debug, Clone)]
struct Known {
    at: TeacherAt,
    /// Nodes of the teachers that it learns from, and of their caches.
    behind: Vec<Key>,
}

/// What a student reads, and its teachers with it.
#[derive(Clone, Copy)]
struct Reading<'a> {
    data: &'a Arc<Data>,
    world: usize,
    /// Of its training.
    batch: Batch,
}

/// Who learns: a model under a timeline.
struct Student<'a> {
    model: &'a Model,
    timeline: &'a Timeline,
    teachers: &'a [Arc<Teacher>],
    /// Its KL is measured.
    measured: bool,
    reads: Reading<'a>,
}

/// What a run has from a teacher.
#[derive(Debug)]
pub(super) struct Lesson {
    name: String,
    known: Known,
    cache: Cache,
    /// The student takes tensors of it.
    lends: bool,
    /// It is heard in every segment, since the KL is measured.
    measured: bool,
    /// Nodes of its caches, by temperature.
    logits: Vec<(f64, Key)>,
}

impl Lesson {
    /// As losses name it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
    /// All nodes that it takes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Key> {
        self.known.behind.iter().chain(self.node()).chain(self.logits.iter().map(|(_, key)| key))
    }
    /// The node of the teacher itself.
    pub(super) fn node(&self) -> Option<&Key> {
        self.known.at.node()
    }
    /// The student hears its logits: in the loss, or in what is measured.
    fn speaks(&self, segment: &Segment) -> bool {
        self.measured || segment.loss.teachers().contains(&self.name.as_str())
    }
    /// The temperatures at which it does.
    fn temperatures(&self, segment: &Segment) -> Vec<f64> {
        let mut all = segment.loss.temperatures_of(&self.name);
        let measured = segment.loss.temperature_of(&self.name);
        if self.measured && !all.contains(&measured) {
            all.push(measured);
        }
        all
    }
    /// For the phase of a segment that uses it.
    pub(super) fn used(&self, segment: &Segment) -> Option<TeacherUse> {
        let speaks = self.speaks(segment);
        let temperatures = self.temperatures(segment);
        (self.lends || speaks).then(|| TeacherUse {
            name: self.name.clone(),
            at: self.known.at.clone(),
            cache: if speaks { self.cache } else { Cache::None },
            logits: self.logits.iter().filter(|(temperature, _)| temperatures.contains(temperature)).cloned().collect(),
        })
    }
    /// FLOPs of the teacher beside a student that reads so much.
    fn beside(&self, settler: &mut Settler<'_>, segment: &Segment, read: Option<&Count>) -> Option<f64> {
        let is_cached = self.cache != Cache::None && self.node().is_some();
        if is_cached { Some(0.0) } else { self.online(settler, segment, read) }
    }
    /// As many if it had no cache.
    pub(super) fn online(&self, settler: &mut Settler<'_>, segment: &Segment, read: Option<&Count>) -> Option<f64> {
        match &self.known.at {
            _ if !self.speaks(segment) => Some(0.0),
            TeacherAt::Absent(_) => None,
            TeacherAt::Node { model, .. } => read.map(|read| settler.forward(model, read)),
        }
    }
    /// Bytes of the teacher beside a student with so many tokens at a time; one that is not at hand is left out.
    fn memory_beside(&self, settler: &mut Settler<'_>, segment: &Segment, tokens: u64) -> u64 {
        match &self.known.at {
            TeacherAt::Node { model, .. } if self.speaks(segment) && self.cache == Cache::None => settler.resident(model, tokens),
            TeacherAt::Node { .. } | TeacherAt::Absent(_) => 0,
        }
    }
    /// Temperatures at which a run hears its logits, each with the shards that it reaches.
    fn heard(&self, timeline: &Timeline) -> Vec<(f64, u64)> {
        let mut all: Vec<(f64, u64)> = Vec::new();
        for segment in &timeline.segments {
            let reached = segment.data.shard + 1;
            for temperature in self.temperatures(segment) {
                match all.iter_mut().find(|(known, _)| *known == temperature) {
                    Some((_, shards)) => *shards = reached.max(*shards),
                    None => all.push((temperature, reached)),
                }
            }
        }
        all
    }
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
    /// The price of training with what the teachers take that run beside it.
    pub(super) fn taught(
        &mut self,
        price: Cost,
        lessons: &[Lesson],
        (training, data, segment): (&Training, &Data, &Segment),
        read: Option<&Count>,
    ) -> Cost {
        let tokens = training.batch.micro.min(segment.batch) * segment.context(data) as u64;
        let settler = &mut self.settler;
        let beside: u64 = lessons.iter().map(|lesson| lesson.memory_beside(settler, segment, tokens)).sum();
        let flops_teacher = lessons.iter().map(|lesson| lesson.beside(settler, segment, read)).sum();
        Cost { flops_teacher, memory: price.memory.map(|own| own + beside), ..price }
    }

    /// What the runs of an arm have from its teachers.
    pub(super) fn arms_lessons(&mut self, arm: usize, settled: &Settled, pass: Pass) -> Result<Vec<Lesson>, PlanError> {
        let recipe = &self.study.arms[arm].recipe;
        let student = Student {
            model: &settled.model,
            timeline: &settled.timeline,
            teachers: &recipe.teachers,
            measured: self.study.measures.iter().any(|measure| measure.metric == Metric::Kl),
            reads: Reading { data: &recipe.data, world: settled.world, batch: recipe.training.batch },
        };
        self.lessons(&student, pass)
    }

    /// What a student has from its teachers, who fit it.
    fn lessons(&mut self, student: &Student<'_>, pass: Pass) -> Result<Vec<Lesson>, PlanError> {
        let mut lessons = Vec::with_capacity(student.teachers.len());
        for (place, teacher) in student.teachers.iter().enumerate() {
            let is_first = place == 0;
            let mut lesson = Lesson {
                name: teacher.name.clone(),
                known: self.teacher(teacher, student.reads, pass)?,
                cache: teacher.cache,
                lends: is_first && borrows(student.model),
                measured: is_first && student.measured,
                logits: Vec::new(),
            };
            if let TeacherAt::Node { node, model, folder } = &lesson.known.at {
                let (own, its) = (vocabulary(student.model), vocabulary(model));
                if own != its && student.timeline.segments.iter().any(|segment| lesson.speaks(segment)) {
                    let (student, teacher) = (student.model.name.clone(), teacher.name.clone());
                    return Err(PlanError::Vocabularies { student, own, teacher, its });
                }
                if lesson.lends {
                    inherits(student.model, &teacher.name, model)?;
                }
                if teacher.cache != Cache::None {
                    for (temperature, last) in lesson.heard(student.timeline) {
                        let (corpus, data) =
                            (self.settler.worlds[student.reads.world].key.clone(), Arc::clone(student.reads.data));
                        let (node, model, folder) = (node.clone(), Arc::clone(model), folder.clone());
                        let cache = teacher.cache;
                        let of = TeacherLogits { corpus, data, teacher: node, model, folder, cache, temperature, shards: last };
                        match pass {
                            Pass::Reach => self.reach(&of, student.reads.world),
                            Pass::Lay => lesson.logits.push((temperature, self.logits(of, &teacher.name, student.reads))),
                        }
                    }
                }
            }
            lessons.push(lesson);
        }
        Ok(lessons)
    }

    /// A teacher, and its node in the graph where that is being laid.
    fn teacher(&mut self, teacher: &Arc<Teacher>, reads: Reading<'_>, pass: Pass) -> Result<Known, PlanError> {
        let at = (Arc::as_ptr(teacher), reads.world);
        if let Some(known) = self.teachers.known.get(&at)
            && (pass == Pass::Reach || known.at.node().is_none_or(|node| self.graph.has(node)))
        {
            return Ok(known.clone());
        }
        let known = match &teacher.source {
            TeacherSource::Checkpoint { folder, shape } => {
                let at = self.imported(teacher, (folder, shape.as_ref()), reads, pass)?;
                Known { at, behind: Vec::new() }
            }
            TeacherSource::Trained { model, training, steps, teachers } => {
                self.trained(teacher, (model, training, *steps, teachers), reads, pass)?
            }
        };
        self.teachers.known.insert(at, known.clone());
        Ok(known)
    }

    /// One that others have trained; while it is not at hand, one of the architecture that is declared for it.
    fn imported(
        &mut self,
        teacher: &Teacher,
        (folder, declared): (&str, Option<&Arc<Model>>),
        Reading { data, world, batch }: Reading<'_>,
        pass: Pass,
    ) -> Result<TeacherAt, PlanError> {
        let refused = |reason: String| PlanError::Weights { of: format!("the teacher `{}`", teacher.name), reason };
        let declared = declared.map(|shape| self.settler.model(shape, world)).transpose()?;
        let (model, content) = match self.settler.checkpoint(folder) {
            Some(Found::Known(found)) => {
                let fits = |model: &Model| hub::compare(model, &found.weights.tensors);
                fits(&found.model).map_err(|reason| refused(format!("`{folder}`: {reason}")))?;
                if let Some(declared) = declared {
                    fits(&declared)
                        .map_err(|reason| refused(format!("`{folder}` is not of the model `{}`: {reason}", declared.name)))?;
                }
                let (model, content) = (found.model.clone(), found.weights.content.clone());
                (self.settler.theirs(&model), Some(content))
            }
            Some(Found::Broken(reason)) => return Err(refused(reason.clone())),
            Some(Found::Absent(_)) | None => match declared {
                Some(declared) => (declared, None),
                None => return Ok(TeacherAt::Absent(folder.to_owned())),
            },
        };
        let (corpus, needed) = (self.settler.worlds[world].key.clone(), self.settler.worlds[world].vocabulary());
        let size = vocabulary(&model);
        if let Some(needed) = needed.filter(|needed| *needed > size) {
            return Err(PlanError::Vocabulary { model: teacher.name.clone(), size, data: data.name.clone(), needed });
        }
        let (folder, data) = (folder.to_owned(), Arc::clone(data));
        let checkpoint = Checkpoint { folder: folder.clone(), content, model: Arc::clone(&model), corpus: corpus.clone(), data };
        let key = key::checkpoint(&checkpoint, &proof::shape_whole(&model));
        if pass == Pass::Lay && !self.graph.has(&key) {
            let held = self.settler.worlds[world].covered(0, batch);
            let cost = Cost {
                flops_teacher: held.as_ref().map(|held| self.settler.forward(&model, held)),
                params_total: size_of(&model),
                memory: held.map(|held| streamed(&model, checkpoint.data.context, held.sequences)),
                ..Cost::nothing()
            };
            let label = || format!("teacher {}", teacher.name);
            self.lay(&key, cost, label, vec![corpus], Work::Checkpoint(Box::new(checkpoint)));
        }
        Ok(TeacherAt::Node { node: key, model, folder: Some(folder) })
    }

    /// One that we train.
    fn trained(
        &mut self,
        teacher: &Teacher,
        (model, training, steps, teachers): (&Arc<Model>, &Arc<Training>, u64, &[Arc<Teacher>]),
        Reading { data, world, .. }: Reading<'_>,
        pass: Pass,
    ) -> Result<Known, PlanError> {
        let model = self.settler.model(model, world)?;
        let schedule =
            Schedule { name: String::new(), doc: None, start: Start::All, events: Vec::new(), end: Moment::Step(steps) };
        let timeline = self
            .settler
            .timeline(&schedule, &model, training, (world, SEED), None)
            .map_err(|error| PlanError::Teacher { teacher: teacher.name.clone(), error })?;
        let student = Student {
            model: &model,
            timeline: &timeline,
            teachers,
            measured: false,
            reads: Reading { data, world, batch: training.batch },
        };
        let lessons = self.lessons(&student, pass)?;
        let read = self.settler.count(world, training, SEED, &timeline.segments).and_then(|counts| counts.first().copied());
        let corpus = self.settler.worlds[world].key.clone();
        let measured = [Measure { metric: Metric::ValidationCe, every: steps.max(1) }];
        let mut last = None;
        let transitions = self.settler.transitions(&model, &training.optimizer, &timeline.segments);
        for (segment, transition) in timeline.segments.iter().zip(transitions) {
            let shape = self.settler.shape(&model, segment);
            let phase = Phase {
                seed: SEED,
                corpus: corpus.clone(),
                data: Arc::clone(data),
                model: Arc::clone(&model),
                training: Arc::clone(training),
                parent: None,
                measures: measure::measures(&measured, segment, false, &mut self.evaluations)?,
                segment: segment.clone(),
                transition,
                teachers: lessons.iter().filter_map(|lesson| lesson.used(segment)).collect(),
            };
            let key = key::phase("teacher", &phase, &shape);
            if pass == Pass::Lay && !self.graph.has(&key) {
                let price = self.settler.price(&model, training, data, segment, read.as_ref());
                let price = self.taught(price, &lessons, (training, data, segment), read.as_ref());
                let cost =
                    Cost { flops_student: Some(0.0), flops_student_with_head: Some(0.0), flops_teacher: price.flops(), ..price };
                let taught = phase.teachers.iter().flat_map(TeacherUse::nodes).cloned();
                let needs = [corpus.clone()].into_iter().chain(taught).collect();
                self.lay(&key, cost, || format!("teacher {}", teacher.name), needs, Work::Teacher(Box::new(phase)));
            }
            last = Some(key);
        }
        let behind = lessons.iter().flat_map(Lesson::nodes).cloned().collect();
        let node = last.expect("this is a bug in xrun: a schedule without a segment");
        Ok(Known { at: TeacherAt::Node { node, model, folder: None }, behind })
    }

    /// A cache by everything but its reach.
    fn cache_of(of: &TeacherLogits) -> Key {
        key::logits(&of.corpus, &of.data, &of.teacher, of.cache, of.temperature, 0)
    }

    /// Notes that a cache is read as far as it says.
    fn reach(&mut self, of: &TeacherLogits, world: usize) {
        let reached = self.settler.worlds[world].shards().map_or(of.shards, |count| of.shards.min(count));
        let shards = self.teachers.shards.entry(Self::cache_of(of)).or_insert(0);
        *shards = reached.max(*shards);
    }

    /// Lays a cache that reaches as far as anyone reads.
    fn logits(&mut self, of: TeacherLogits, name: &str, Reading { world, batch, .. }: Reading<'_>) -> Key {
        let shards = self.teachers.shards.get(&Self::cache_of(&of)).copied().unwrap_or(1);
        let of = TeacherLogits { shards, ..of };
        let key = key::logits(&of.corpus, &of.data, &of.teacher, of.cache, of.temperature, shards);
        if !self.graph.has(&key) {
            let covered = self.settler.worlds[world].covered(shards, batch);
            let (size, context) = (vocabulary(&of.model), of.data.context);
            let each = Cache::bytes(of.cache.kept(size), size) as u64;
            let cost = Cost {
                flops_teacher: covered.as_ref().map(|covered| self.settler.forward(&of.model, covered)),
                params_total: size_of(&of.model),
                memory: match of.folder {
                    Some(_) => covered.as_ref().map(|covered| streamed(&of.model, context, covered.sequences)),
                    None => Some(resident(&of.model, (together(context) * context) as u64)),
                },
                disk: covered.map(|covered| covered.sequences * context as u64 * each),
                ..Cost::nothing()
            };
            let needs = vec![of.corpus.clone(), of.teacher.clone()];
            self.lay(&key, cost, || format!("logits of {name}"), needs, Work::TeacherLogits(Box::new(of)));
        }
        key
    }
}
