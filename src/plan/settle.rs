//! From arms to timelines: every recipe meets its data, every control its length.
//!
//! Owns what is worked out once and shared by many runs: worlds, counters, models with their vocabulary, shapes, prices. Invariant:
//! a run's timeline depends on its recipe, its seed and the run that it is matched to, and on nothing that was settled before it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::cost::{self, Cost};
use super::error::PlanError;
use super::measure;
use super::memo::Memo;
use super::proof;
use super::run::Mismatch;
use super::world::World;
use crate::budget::hub;
use crate::budget::matching;
use crate::budget::params::{FirstValue, parameters};
use crate::budget::speaking;
use crate::budget::tokens::{Count, Counter};
use crate::budget::transition::{self, Row, Transition};
use crate::data::facts::{Checkpoint, Corpus, Facts, Found};
use crate::study::{Data, Init, Model, Optimizer, Quantity, Recipe, Schedule, Study, Training};
use crate::timeline::{self, DataPosition, Segment, StepTokens, Timeline, TimelineError};

/// A run whose timeline is known.
#[derive(Debug)]
pub(super) struct Settled {
    /// Index of its data.
    pub(super) world: usize,
    pub(super) model: Arc<Model>,
    pub(super) timeline: Timeline,
    /// What each segment reads.
    pub(super) counts: Option<Vec<Count>>,
    pub(super) mismatch: Option<Mismatch>,
}

/// Settles runs.
#[derive(Debug)]
pub(super) struct Settler<'a> {
    pub(super) study: &'a Study,
    facts: &'a Facts,
    pub(super) worlds: Vec<World>,
    /// By the address of the declaration, which the study keeps alive.
    world_at: BTreeMap<*const Data, usize>,
    model_at: BTreeMap<(*const Model, usize), Arc<Model>>,
    models: Memo<Arc<Model>>,
    counters: BTreeMap<(usize, u64, u64), Rc<Counter>>,
    counts: Memo<Option<Vec<Count>>>,
    shapes: Memo<Rc<str>>,
    rows: Memo<Rc<[Arc<[Row]>]>>,
    prices: Memo<Cost>,
    forwards: Memo<f64>,
    sizes: Memo<(u64, u64, u64)>,
    residents: Memo<u64>,
    settled: BTreeMap<(usize, u64), Rc<Settled>>,
}

impl<'a> Settler<'a> {
    pub(super) fn new(study: &'a Study, facts: &'a Facts) -> Self {
        Self {
            study,
            facts,
            worlds: Vec::new(),
            world_at: BTreeMap::new(),
            model_at: BTreeMap::new(),
            models: Memo::default(),
            counters: BTreeMap::new(),
            counts: Memo::default(),
            shapes: Memo::default(),
            rows: Memo::default(),
            prices: Memo::default(),
            forwards: Memo::default(),
            sizes: Memo::default(),
            residents: Memo::default(),
            settled: BTreeMap::new(),
        }
    }

    /// The timeline of an arm under a seed.
    pub(super) fn run(&mut self, arm: usize, seed: u64) -> Result<Rc<Settled>, PlanError> {
        self.along(arm, seed, &mut Vec::new())
    }

    fn along(&mut self, arm: usize, seed: u64, path: &mut Vec<usize>) -> Result<Rc<Settled>, PlanError> {
        if let Some(known) = self.settled.get(&(arm, seed)) {
            return Ok(Rc::clone(known));
        }
        let of = &self.study.arms[arm];
        if path.contains(&arm) {
            return Err(PlanError::Circle(of.name.clone()));
        }
        let world = self.world(&of.recipe.data)?;
        let model = self.model(&of.recipe.model, world)?;
        let mismatch = match of.control.as_ref().and_then(|control| control.matched) {
            None => None,
            Some(matched) => {
                path.push(arm);
                let target = self.along(matched.to, seed, path)?;
                path.pop();
                Some(self.matched(arm, seed, (world, &model), matched.to, &target, matched.on)?)
            }
        };
        let end = mismatch.as_ref().map(|mismatch| mismatch.end);
        let mut timeline = self
            .timeline(&of.recipe.schedule, &model, &of.recipe.training, (world, seed), end)
            .map_err(|error| PlanError::Timeline { arm: of.name.clone(), error })?;
        measure::cut(self.study, &mut timeline);
        self.worlds[world].lays(&timeline)?;
        let counts = self.count(world, &of.recipe.training, seed, &timeline.segments);
        let settled = Rc::new(Settled { world, model, timeline, counts, mismatch });
        self.settled.insert((arm, seed), Rc::clone(&settled));
        Ok(settled)
    }

    fn matched(
        &mut self,
        arm: usize,
        seed: u64,
        (world, model): (usize, &Arc<Model>),
        to: usize,
        target: &Settled,
        on: Quantity,
    ) -> Result<Mismatch, PlanError> {
        let study = self.study;
        let (name, recipe) = (&study.arms[arm].name, &study.arms[arm].recipe);
        let other = &study.arms[to];
        let uncounted = |of: &str| PlanError::Uncounted { arm: name.clone(), of: of.to_owned() };
        let counts = target.counts.as_deref().ok_or_else(|| uncounted(&other.name))?;
        let wanted = self.quantity(&target.model, &other.recipe, &target.timeline, counts, on);
        let found = matching::solve(wanted, |end| {
            let timeline = self.timeline(&recipe.schedule, model, &recipe.training, (world, seed), Some(end)).ok()?;
            let counts = self.count(world, &recipe.training, seed, &timeline.segments)?;
            Some(self.quantity(model, recipe, &timeline, &counts, on))
        });
        match found {
            Some(found) => Ok(Mismatch {
                to: other.name.clone(),
                on,
                end: found.end,
                wanted,
                reached: found.quantity,
                relative: found.mismatch,
            }),
            None if self.counter(world, &recipe.training, seed).tokens(DataPosition::START, 1, 1).is_none() => {
                Err(uncounted(name))
            }
            None => Err(PlanError::Unreached { arm: name.clone(), to: other.name.clone(), quantity: on.name() }),
        }
    }

    fn quantity(&mut self, model: &Arc<Model>, recipe: &Recipe, timeline: &Timeline, counts: &[Count], on: Quantity) -> f64 {
        let total: Count = counts.iter().copied().sum();
        total.quantity(on).map_or_else(
            || {
                let segments = timeline.segments.iter().zip(counts);
                let price = |(segment, count)| self.price(model, &recipe.training, &recipe.data, segment, Some(count));
                segments.map(price).filter_map(|cost| cost.flops_student_with_head).sum()
            },
            |count| count as f64,
        )
    }
}

/// What is worked out once.
impl Settler<'_> {
    /// Index of the world of a declaration.
    pub(super) fn world(&mut self, data: &Arc<Data>) -> Result<usize, PlanError> {
        if let Some(at) = self.world_at.get(&Arc::as_ptr(data)) {
            return Ok(*at);
        }
        let known = self.worlds.iter().position(|world| world.data == *data);
        let at = match known {
            Some(at) => at,
            None => {
                let mut corpora = self.facts.corpora.iter();
                let corpus = corpora.find(|(known, _)| known == data).map(|(_, corpus)| corpus.clone());
                let corpus = corpus.unwrap_or_else(|| Corpus::Absent("it has not been looked for".to_owned()));
                self.worlds.push(World::new(data, corpus)?);
                self.worlds.len() - 1
            }
        };
        self.world_at.insert(Arc::as_ptr(data), at);
        Ok(at)
    }

    /// A model with the vocabulary of its data; equal models are one.
    pub(super) fn model(&mut self, model: &Arc<Model>, world: usize) -> Result<Arc<Model>, PlanError> {
        let at = (Arc::as_ptr(model), world);
        if let Some(known) = self.model_at.get(&at) {
            return Ok(Arc::clone(known));
        }
        let sized = self.started(self.worlds[world].with_vocabulary(model)?)?;
        let one = self.models.get(&sized, || Arc::clone(&sized));
        self.model_at.insert(at, Arc::clone(&one));
        Ok(one)
    }

    /// A model that others have made; equal models are one.
    pub(super) fn theirs(&mut self, model: &Model) -> Arc<Model> {
        self.models.get(model, || Arc::new(model.clone()))
    }

    /// A model that starts from a file, with the hash of its weights.
    fn started(&self, model: Arc<Model>) -> Result<Arc<Model>, PlanError> {
        let Init::From { file, content: None } = &model.init else { return Ok(model) };
        let found = self.facts.starts.iter().find(|(known, _)| known == file);
        match found.map(|(_, found)| found) {
            Some(Found::Known(weights)) => {
                let init = Init::From { file: file.clone(), content: Some(weights.content.clone()) };
                Ok(Arc::new(Model { init, ..(*model).clone() }))
            }
            Some(Found::Broken(reason)) => {
                Err(PlanError::Weights { of: format!("the model `{}`", model.name), reason: reason.clone() })
            }
            Some(Found::Absent(_)) | None => Ok(model),
        }
    }

    /// Every parameter of a segment that starts from a file is there, in its shape.
    pub(super) fn starts(&self, model: &Model, segment: &Segment) -> Result<(), PlanError> {
        let Init::From { file, content: Some(_) } = &model.init else { return Ok(()) };
        let Some((_, Found::Known(weights))) = self.facts.starts.iter().find(|(known, _)| known == file) else { return Ok(()) };
        let specs = parameters(model, &segment.stack, &segment.block_ends);
        let drawn = specs.into_iter().filter(|spec| matches!(spec.first, FirstValue::File { .. }));
        hub::holds(drawn, &weights.tensors).map_err(|reason| PlanError::Weights {
            of: format!("the model `{}`", model.name),
            reason: format!("`{file}`: {reason}"),
        })
    }

    /// What was found of a checkpoint.
    pub(super) fn checkpoint(&self, folder: &str) -> Option<&'_ Found<Checkpoint>> {
        self.facts.checkpoints.iter().find(|(known, _)| known == folder).map(|(_, found)| found)
    }

    pub(super) fn counter(&mut self, world: usize, training: &Training, seed: u64) -> Rc<Counter> {
        let World { data, corpus, .. } = &self.worlds[world];
        let make = || Rc::new(Counter::new(data, training.batch, corpus, seed));
        Rc::clone(self.counters.entry((world, training.batch.sequences, seed)).or_insert_with(make))
    }

    pub(super) fn timeline(
        &mut self,
        schedule: &Schedule,
        model: &Model,
        training: &Training,
        (world, seed): (usize, u64),
        end: Option<u64>,
    ) -> Result<Timeline, TimelineError> {
        let counter = self.counter(world, training, seed);
        timeline::build(schedule, model, training, counter.as_ref(), end)
    }

    /// What segments read, one after the other.
    pub(super) fn count(&mut self, world: usize, training: &Training, seed: u64, segments: &[Segment]) -> Option<Vec<Count>> {
        let counter = self.counter(world, training, seed);
        let reads =
            |segment: &Segment| (segment.data, segment.batch, segment.length(), segment.depth(), segment.trained_layers());
        let of: Vec<_> = segments.iter().map(reads).collect();
        self.counts.get(&(world, training.batch.sequences, seed, of), || counter.count(segments))
    }

    /// Digest of a model under a segment's stack. The model is one that [`Settler::model`] gave out: it lives as long as this.
    pub(super) fn shape(&mut self, model: &Arc<Model>, segment: &Segment) -> Rc<str> {
        let (stack, ends) = (&segment.stack, &segment.block_ends);
        let make = || Rc::from(proof::shape_of(model, segment));
        self.shapes.get(&(Arc::as_ptr(model).addr(), stack, ends), make)
    }

    /// Parameters under a segment's stack, as [`cost::sizes`] has them. The model is one that [`Settler::model`] gave out.
    pub(super) fn sizes(&mut self, model: &Arc<Model>, segment: &Segment) -> (u64, u64, u64) {
        self.sizes.get(&(Arc::as_ptr(model).addr(), &segment.stack, &segment.block_ends), || cost::sizes(model, segment))
    }

    /// What the events of a run do. The model is one that [`Settler::model`] gave out.
    pub(super) fn transitions(&mut self, model: &Arc<Model>, optimizer: &Optimizer, segments: &[Segment]) -> Vec<Transition> {
        let of: Vec<_> = segments
            .iter()
            .map(|Segment { steps, stack, block_ends, new_layers, frozen, reset_optimizer, .. }| {
                (steps, stack, block_ends, new_layers, frozen, reset_optimizer)
            })
            .collect();
        let rows = self
            .rows
            .get(&(Arc::as_ptr(model).addr(), kept(optimizer), of), || transition::rows(model, optimizer, segments).into());
        transition::transitions(segments, &rows)
    }

    /// What a segment costs.
    pub(super) fn price(
        &mut self,
        model: &Arc<Model>,
        training: &Training,
        data: &Data,
        segment: &Segment,
        read: Option<&Count>,
    ) -> Cost {
        let shape = self.shape(model, segment);
        let kept = kept(&training.optimizer);
        let of =
            (&*shape, training.batch.micro, kept, segment.context(data), &segment.frozen, segment.batch, segment.length(), read);
        self.prices.get(&of, || cost::training(model, training, data, segment, read))
    }

    /// FLOPs of a whole model's forward pass over so much. The model is one that [`Settler::model`] gave out.
    pub(super) fn forward(&mut self, model: &Arc<Model>, read: &Count) -> f64 {
        let of = (Arc::as_ptr(model).addr(), read.sequences, read.tokens);
        self.forwards.get(&of, || cost::forward(model, read))
    }

    /// Bytes of a whole model that speaks about so many tokens at a time. The model is one that lives as long as this.
    pub(super) fn resident(&mut self, model: &Arc<Model>, tokens: u64) -> u64 {
        self.residents.get(&(Arc::as_ptr(model).addr(), tokens), || speaking::resident(model, tokens))
    }
}

/// What an optimizer keeps of a matrix of a layer, and of all else.
fn kept(optimizer: &Optimizer) -> [usize; 2] {
    [true, false].map(|in_layer| optimizer.moments(in_layer))
}
