//! From a study to its plan: settles every run, then lays its nodes into the graph, each once.
//!
//! Owns which nodes there are and what each needs. Invariant: a node is laid after all that it needs, so that the order of creation is
//! an order of work; runs come arm by arm, seed by seed.

use std::rc::Rc;
use std::sync::Arc;

use super::cost::Cost;
use super::error::PlanError;
use super::graph::Graph;
use super::node::{Key, Node, Phase, Probe, TeacherUse, Work};
use super::run::PlannedRun;
use super::settle::{Settled, Settler};
use super::teach::{Lesson, Pass, Teachers};
use super::totals::Totals;
use super::{Plan, gate, key, measure, pace, warn};
use crate::data::facts::Facts;
use crate::study::Study;

/// Plans a study.
pub fn build(study: &Study, facts: &Facts) -> Result<Plan, PlanError> {
    let mut builder = Builder {
        study,
        settler: Settler::new(study, facts),
        graph: Graph::default(),
        teachers: Teachers::default(),
        evaluations: measure::MOST_EVALUATIONS,
    };
    let all = || (0..study.arms.len()).flat_map(|arm| study.seeds.iter().map(move |seed| (arm, *seed)));
    // Caches of logits serve all runs: how far they reach is known only when all runs are settled.
    for (arm, seed) in all() {
        let settled = builder.settler.run(arm, seed)?;
        builder.corpus(settled.world);
        builder.arms_lessons(arm, &settled, Pass::Reach)?;
    }
    let mut runs = Vec::with_capacity(study.arms.len() * study.seeds.len());
    for (arm, seed) in all() {
        runs.push(builder.run(arm, seed)?);
    }
    pace::tell(&mut builder.graph, &facts.seconds, facts.flops_per_second);
    let warnings = warn::warnings(study, facts, &builder.settler.worlds, &runs, &builder.graph);
    let totals = Totals::of(&builder.graph, &runs);
    let plan = Plan { study: study.clone(), runs, graph: builder.graph, totals, warnings };
    gate::check(&plan)?;
    Ok(plan)
}

/// What building a plan remembers.
pub(super) struct Builder<'a> {
    pub(super) study: &'a Study,
    pub(super) settler: Settler<'a>,
    pub(super) teachers: Teachers,
    pub(super) graph: Graph,
    /// How many more there may be.
    pub(super) evaluations: u64,
}

impl Builder<'_> {
    /// Lays a node, unless it is there.
    pub(super) fn lay(&mut self, key: &Key, cost: Cost, label: impl FnOnce() -> String, needs: Vec<Key>, work: Work) {
        if !self.graph.has(key) {
            self.graph.add(Node { key: key.clone(), label: label(), needs, work }, cost);
        }
    }

    fn corpus(&mut self, world: usize) {
        let world = &self.settler.worlds[world];
        let (key, data) = (world.key.clone(), Arc::clone(&world.data));
        let content = world.content().map(str::to_owned);
        let cost = Cost { tokens: world.tokens(), disk: world.tokens().map(|tokens| 2 * tokens), ..Cost::nothing() };
        let (label, trained) = (format!("corpus {}", data.name), world.tokenizer());
        if let Some(tokenizer) = &trained {
            let (label, work) =
                (format!("tokenizer of {}", data.name), Work::Tokenizer { data: Arc::clone(&data), content: content.clone() });
            self.lay(tokenizer, Cost::nothing(), || label, Vec::new(), work);
        }
        let needs = trained.into_iter().collect();
        self.lay(&key, cost, || label, needs, Work::Corpus { data, content });
    }

    fn run(&mut self, arm: usize, seed: u64) -> Result<PlannedRun, PlanError> {
        let study = self.study;
        let settled = self.settler.run(arm, seed)?;
        let lessons = self.arms_lessons(arm, &settled, Pass::Lay)?;
        let world = &self.settler.worlds[settled.world];
        let mut nodes: Vec<Key> = world.tokenizer().into_iter().chain([world.key.clone()]).collect();
        for key in lessons.iter().flat_map(Lesson::nodes) {
            if !nodes.contains(key) {
                nodes.push(key.clone());
            }
        }
        for segment in &settled.timeline.segments {
            self.settler.starts(&settled.model, segment)?;
        }
        let phases = self.phases(arm, seed, &settled, &lessons)?;
        nodes.extend(phases.iter().cloned());
        let probes: Vec<_> = measure::probes(study, &settled.timeline)
            .into_iter()
            .map(|due| self.probe(arm, seed, &settled, &phases, due))
            .collect();
        for (_, _, key) in &probes {
            if !nodes.contains(key) {
                nodes.push(key.clone());
            }
        }
        let total = settled.counts.as_ref().map(|counts| counts.iter().copied().sum::<crate::budget::tokens::Count>());
        let costs: Vec<&Cost> = nodes.iter().filter_map(|key| self.graph.cost(key)).collect();
        let flops = |of: fn(&Cost) -> Option<f64>| costs.iter().map(|cost| of(cost)).sum::<Option<f64>>();
        let last = settled.timeline.segments.last();
        let (params_total, params_without_head, params_stack) =
            last.map_or((0, 0, 0), |segment| self.settler.sizes(&settled.model, segment));
        Ok(PlannedRun {
            arm,
            name: study.arms[arm].name.clone(),
            seed,
            steps: settled.timeline.end,
            tokens: total.map(|count| count.tokens),
            unique_tokens: total.map(|count| count.unique_tokens),
            active_layer_tokens: total.map(|count| count.active_layer_tokens),
            trained_layer_tokens: total.map(|count| count.trained_layer_tokens),
            flops_student: flops(|cost| cost.flops_student),
            flops_student_with_head: flops(|cost| cost.flops_student_with_head),
            flops_teacher: flops(|cost| cost.flops_teacher),
            flops_alone: self.alone(arm, &settled, &lessons),
            params_total,
            params_without_head,
            params_stack,
            teachers: lessons.iter().map(|lesson| (lesson.name().to_owned(), lesson.node().cloned())).collect(),
            mismatch: settled.mismatch.clone(),
            timeline: settled.timeline.clone(),
            phases,
            nodes,
            probes,
        })
    }

    /// FLOPs of a run on its own, with its teachers beside it.
    fn alone(&mut self, arm: usize, settled: &Settled, lessons: &[Lesson]) -> Option<f64> {
        let recipe = &self.study.arms[arm].recipe;
        let mut total = 0.0;
        for (segment, read) in settled.timeline.segments.iter().zip(settled.counts.as_deref()?) {
            total +=
                self.settler.price(&settled.model, &recipe.training, &recipe.data, segment, Some(read)).flops_student_with_head?;
            for lesson in lessons {
                total += lesson.online(&mut self.settler, segment, Some(read))?;
            }
        }
        Some(total)
    }

    fn phases(&mut self, arm: usize, seed: u64, settled: &Rc<Settled>, lessons: &[Lesson]) -> Result<Vec<Key>, PlanError> {
        let study = self.study;
        let (name, recipe) = (&study.arms[arm].name, &study.arms[arm].recipe);
        let corpus = self.settler.worlds[settled.world].key.clone();
        let mut phases: Vec<Key> = Vec::new();
        let transitions = self.settler.transitions(&settled.model, &recipe.training.optimizer, &settled.timeline.segments);
        for (number, (segment, transition)) in settled.timeline.segments.iter().zip(transitions).enumerate() {
            let read = settled.counts.as_ref().and_then(|counts| counts.get(number));
            let parent = phases.last().cloned();
            let phase = Phase {
                seed,
                corpus: corpus.clone(),
                data: Arc::clone(&recipe.data),
                model: Arc::clone(&settled.model),
                training: Arc::clone(&recipe.training),
                parent: parent.clone(),
                segment: segment.clone(),
                transition,
                teachers: lessons.iter().filter_map(|lesson| lesson.used(segment)).collect(),
                measures: measure::measures(&study.measures, segment, !lessons.is_empty(), &mut self.evaluations)?,
            };
            let shape = self.settler.shape(&settled.model, segment);
            let key = key::phase("phase", &phase, &shape);
            if !self.graph.has(&key) {
                let price = self.settler.price(&settled.model, &recipe.training, &recipe.data, segment, read);
                let price = self.taught(price, lessons, (&recipe.training, &recipe.data, segment), read);
                let taught = phase.teachers.iter().flat_map(TeacherUse::nodes).cloned();
                let needs = [corpus.clone()].into_iter().chain(taught).chain(parent).collect();
                let label = || format!("phase {number} of {name}, seed {seed}");
                self.lay(&key, price, label, needs, Work::Phase(Box::new(phase)));
            }
            phases.push(key);
        }
        Ok(phases)
    }

    fn probe(
        &mut self,
        arm: usize,
        seed: u64,
        settled: &Settled,
        phases: &[Key],
        due: measure::Due,
    ) -> (crate::study::ProbeKind, u64, Key) {
        let segment = &settled.timeline.segments[due.segment];
        let (data, phase) = (&self.study.arms[arm].recipe.data, &phases[due.segment]);
        let shape = self.settler.shape(&settled.model, segment);
        let key = key::probe(due.kind, due.batch, data, phase, &shape, &segment.block_ends);
        if !self.graph.has(&key) {
            let corpus = self.settler.worlds[settled.world].key.clone();
            let (sequences, tokens) = due.batch;
            let label = || format!("{} after step {} of {}, seed {seed}", due.kind.name(), due.step, self.study.arms[arm].name);
            let label = label();
            let probe = Probe {
                kind: due.kind,
                sequences,
                tokens,
                corpus: corpus.clone(),
                data: Arc::clone(data),
                phase: phase.clone(),
                model: Arc::clone(&settled.model),
                segment: segment.clone(),
            };
            self.lay(&key, Cost::nothing(), || label, vec![corpus, phase.clone()], Work::Probe(Box::new(probe)));
        }
        (due.kind, due.step, key)
    }
}
