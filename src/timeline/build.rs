//! From a schedule to its timeline.
//!
//! Owns the order in which moments are found: each is looked for in the state that the event before it left, since tokens depend on
//! the batch and `every … grow` on the depth. Deliberately knows no text. Invariant: moments rise strictly and lie inside the run.

use super::error::{Fault, TimelineError};
use super::moment::{StepTokens, share};
use super::rate::{Course, rate};
use super::sets::Sets;
use super::stack::Stack;
use super::{DataPosition, FirstValues, Frozen, LayerId, NewLayer, Rate, Segment, Timeline};
use crate::study::{Action, Loss, Model, Moment, Schedule, Start, Training};

/// More events than any experiment has; `every 1 step` for a year is a mistake.
const MOST_EVENTS: usize = 10_000;
/// Layers of all phases together: each phase lists its own.
const MOST_LAID: usize = 1_000_000;
/// Far beyond any run, far below where f64 and sums of u64 lose a step.
const MOST_STEPS: u64 = 1_000_000_000_000;
/// Rounds in which a percentage of an end that is told in tokens has to settle.
const ROUNDS: usize = 64;

/// Works a schedule out for a model and a training.
///
/// `end` replaces the schedule's own end (a matched control): absolute moments stay, percentages and the learning rate's spans follow,
/// `every` without a count goes on to it.
pub fn build(
    schedule: &Schedule,
    model: &Model,
    training: &Training,
    tokens: &dyn StepTokens,
    end: Option<u64>,
) -> Result<Timeline, TimelineError> {
    let end = end.map_or(schedule.end, Moment::Step);
    let mut guess = None;
    for _ in 0..ROUNDS {
        let mut walk = Walk::begin(schedule, model, training, tokens, end, guess)?;
        walk.events()?;
        let found = walk.close()?;
        if walk.guess.is_none_or(|guess| guess == found.end) {
            return Ok(found);
        }
        guess = Some(found.end);
    }
    Err(TimelineError { event: None, kind: Fault::PercentOfItself })
}

struct Walk<'a> {
    schedule: &'a Schedule,
    model: &'a Model,
    training: &'a Training,
    tokens: &'a dyn StepTokens,
    end: Moment,
    /// What percentages are taken of where the end is told in tokens, and so depends on the events before it.
    guess: Option<u64>,
    stack: Stack,
    sets: Sets,
    /// Tokens trained on before the last event.
    seen: u128,
    /// Layers of the drafts, one after another.
    laid: usize,
    drafts: Vec<Draft>,
}

/// A segment without its end and its rate.
struct Draft {
    start: u64,
    actions: Vec<Action>,
    stack: Vec<LayerId>,
    block_ends: Vec<usize>,
    new_layers: Vec<NewLayer>,
    frozen: Frozen,
    reset_optimizer: bool,
    restart: bool,
    peak: f64,
    ramp: Option<(u64, u64)>,
    loss: Loss,
    batch: u64,
    data: DataPosition,
}

impl<'a> Walk<'a> {
    fn begin(
        schedule: &'a Schedule,
        model: &'a Model,
        training: &'a Training,
        tokens: &'a dyn StepTokens,
        end: Moment,
        guess: Option<u64>,
    ) -> Result<Self, TimelineError> {
        let depth = match schedule.start {
            Start::All => model.layers,
            Start::Blocks(blocks) => blocks.saturating_mul(model.block),
            Start::Layers(layers) => layers,
        };
        let at_start = |kind| TimelineError { event: None, kind };
        if depth == 0 {
            return Err(at_start(Fault::StartEmpty));
        }
        if depth > model.layers {
            return Err(at_start(Fault::StartTooDeep { wanted: depth, layers: model.layers }));
        }
        let stack = Stack::new(depth, model.block, model.layers);
        let sets = Sets::of(model);
        let lr = training.optimizer.lr();
        let first = Draft {
            start: 0,
            actions: Vec::new(),
            stack: stack.layers.clone(),
            block_ends: stack.block_ends(model.block),
            new_layers: stack.layers.iter().map(|layer| NewLayer { layer: *layer, first: FirstValues::Init }).collect(),
            frozen: sets.frozen(&stack).map_err(at_start)?,
            reset_optimizer: false,
            restart: true,
            peak: lr,
            ramp: None,
            loss: training.loss.clone(),
            batch: training.batch.sequences,
            data: DataPosition::START,
        };
        let mut walk = Self { schedule, model, training, tokens, end, guess, stack, sets, seen: 0, laid: 0, drafts: vec![first] };
        // An end that makes no sense is its own fault, not that of the first event.
        let horizon = walk.horizon().map_err(at_start)?;
        let percentages = schedule.events.iter().any(|event| matches!(event.moment, Moment::Fraction(_)));
        if matches!(end, Moment::Token(_)) && percentages && guess.is_none() {
            walk.guess = horizon;
        }
        Ok(walk)
    }

    fn last(&self) -> &Draft {
        // There is one from the beginning.
        &self.drafts[self.drafts.len() - 1]
    }

    fn events(&mut self) -> Result<(), TimelineError> {
        for (event, spec) in self.schedule.events.iter().enumerate() {
            let grows = spec.actions.iter().any(|action| matches!(action, Action::Grow { .. }));
            let (times, until_whole) = match spec.moment {
                Moment::Every { times: Some(times), .. } => (times, false),
                Moment::Every { times: None, .. } => (u64::MAX, grows),
                Moment::Step(_) | Moment::Token(_) | Moment::Fraction(_) | Moment::After(_) => (1, false),
            };
            let mut done = 0;
            while done < times && !(until_whole && self.stack.layers.len() >= self.model.layers) {
                let depth = self.stack.layers.len();
                let happened = self.event(spec.moment, &spec.actions, times == u64::MAX && !grows);
                match happened.map_err(|kind| TimelineError { event: Some(event), kind })? {
                    Happened::NotBeforeTheEnd => break,
                    Happened::Yes => done += 1,
                }
                if until_whole && self.stack.layers.len() <= depth {
                    return Err(TimelineError { event: Some(event), kind: Fault::Endless });
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, moment: Moment, actions: &[Action], stops_at_end: bool) -> Result<Happened, Fault> {
        let horizon = self.horizon()?;
        if stops_at_end && horizon.is_none() {
            return Err(Fault::Endless);
        }
        let step = self.step_of(moment)?;
        let before = self.last().start;
        if step <= before {
            return Err(Fault::NotAfter { step, before });
        }
        if let Some(end) = horizon.filter(|end| step >= *end) {
            return if stops_at_end { Ok(Happened::NotBeforeTheEnd) } else { Err(Fault::NotBeforeEnd { step, end }) };
        }
        if step > MOST_STEPS {
            return Err(Fault::TooManySteps(MOST_STEPS));
        }
        if self.drafts.len() > MOST_EVENTS || self.laid > MOST_LAID {
            return Err(Fault::TooManyEvents(MOST_EVENTS));
        }
        self.happen(step, actions)?;
        Ok(Happened::Yes)
    }

    /// The end as far as it is known now: for an end told in tokens, if nothing more happened before it.
    fn horizon(&self) -> Result<Option<u64>, Fault> {
        match self.end {
            Moment::Step(end) => Ok(Some(end)),
            Moment::Token(_) => self.step_of(self.end).map(Some),
            Moment::After(_) => Ok(None),
            Moment::Fraction(_) => Err(Fault::PercentOfItself),
            Moment::Every { .. } => Err(Fault::EndRepeats),
        }
    }

    fn step_of(&self, moment: Moment) -> Result<u64, Fault> {
        let last = self.last();
        Ok(match moment {
            Moment::Step(step) => step,
            Moment::After(steps) | Moment::Every { steps, .. } => last.start.saturating_add(steps),
            Moment::Token(token) => {
                let missing = u128::from(token).checked_sub(self.seen).and_then(|missing| u64::try_from(missing).ok());
                let missing = missing.filter(|missing| *missing > 0);
                let missing = missing.ok_or(Fault::TokenNotAfter { token, before: last.start })?;
                let steps = self.tokens.steps_to(last.data, last.batch, missing).ok_or(Fault::TokensUnknown)?;
                last.start.saturating_add(steps)
            }
            Moment::Fraction(fraction) => match self.end {
                Moment::Step(end) => share(fraction, end),
                Moment::Token(_) => share(fraction, self.guess.unwrap_or(0)),
                Moment::After(_) | Moment::Fraction(_) | Moment::Every { .. } => return Err(Fault::PercentOfItself),
            },
        })
    }

    fn happen(&mut self, step: u64, actions: &[Action]) -> Result<(), Fault> {
        let last = self.last();
        let steps = step - last.start;
        let read = steps.saturating_mul(last.batch);
        let data = DataPosition { sequence: last.data.sequence.saturating_add(read), ..last.data };
        if self.counts_tokens() {
            self.seen += self.tokens.tokens(last.data, last.batch, steps).ok_or(Fault::TokensUnknown)?;
        }
        let last = self.last();
        let mut next = Draft {
            start: step,
            actions: actions.to_vec(),
            stack: Vec::new(),
            block_ends: Vec::new(),
            new_layers: Vec::new(),
            frozen: Frozen::default(),
            reset_optimizer: false,
            restart: false,
            peak: last.peak,
            ramp: last.ramp,
            loss: last.loss.clone(),
            batch: last.batch,
            data,
        };
        let before = last.stack.clone();
        for action in actions {
            self.act(action, &before, &mut next)?;
        }
        next.new_layers.retain(|new| self.stack.layers.contains(&new.layer));
        next.frozen = self.sets.frozen(&self.stack)?;
        let walled = &self.stack.layers[..next.frozen.prefix];
        if next.new_layers.iter().any(|new| walled.contains(&new.layer)) {
            return Err(Fault::GrowsBelowPrefix);
        }
        next.stack.clone_from(&self.stack.layers);
        next.block_ends = self.stack.block_ends(self.model.block);
        self.laid += next.stack.len();
        self.drafts.push(next);
        Ok(())
    }

    fn act(&mut self, action: &Action, before: &[LayerId], next: &mut Draft) -> Result<(), Fault> {
        match action {
            Action::Grow { layers, at, from } => next.new_layers.extend(self.stack.grow(*layers, *at, *from, before)?),
            Action::Drop { layers } => {
                let whole = self.stack.layers.clone();
                self.stack.drop(*layers, self.model.block)?;
                self.sets.dropped(&whole, &self.stack);
            }
            Action::Freeze(what) => self.sets.freeze(*what, &self.stack)?,
            Action::Thaw(what) => self.sets.thaw(*what, &self.stack)?,
            Action::ResetOptimizer => next.reset_optimizer = true,
            // What is left of a re-warm-up would bend the new warm-up.
            Action::RestartLr => (next.restart, next.ramp) = (true, None),
            Action::RewarmLr { steps } => next.ramp = Some((next.start, *steps)),
            Action::RewindData => next.data.sequence = 0,
            Action::FreshData => next.data = DataPosition { shard: next.data.shard + 1, sequence: 0, ..next.data },
            Action::SetLr(peak) => next.peak = *peak,
            Action::SetBatch(batch) => next.batch = *batch,
            Action::SetContext(context) => next.data = self.tokens.relaid(next.data, *context),
            Action::SetLoss(loss) => next.loss.clone_from(loss),
            Action::Save(_) => {}
        }
        Ok(())
    }

    fn counts_tokens(&self) -> bool {
        let told = |moment: &Moment| matches!(moment, Moment::Token(_));
        told(&self.end) || self.schedule.events.iter().any(|event| told(&event.moment))
    }

    fn close(&mut self) -> Result<Timeline, TimelineError> {
        let at_end = |kind| TimelineError { event: None, kind };
        let end = self.step_of_end().map_err(at_end)?;
        let before = self.last().start;
        if end <= before {
            return Err(at_end(Fault::EndNotAfter { end, before }));
        }
        if end > MOST_STEPS {
            return Err(at_end(Fault::TooManySteps(MOST_STEPS)));
        }
        let starts: Vec<u64> = self.drafts.iter().map(|draft| draft.start).chain([end]).collect();
        let restarts: Vec<u64> = self.drafts.iter().filter(|draft| draft.restart).map(|draft| draft.start).chain([end]).collect();
        let segments = std::mem::take(&mut self.drafts).into_iter().zip(&starts[1..]);
        let segments = segments.map(|(draft, end)| draft.close(*end, &restarts, self.training)).collect();
        Ok(Timeline { end, segments })
    }

    fn step_of_end(&self) -> Result<u64, Fault> {
        match self.horizon()? {
            Some(end) => Ok(end),
            None => self.step_of(self.end),
        }
    }
}

enum Happened {
    Yes,
    NotBeforeTheEnd,
}

impl Draft {
    fn close(self, end: u64, restarts: &[u64], training: &Training) -> Segment {
        let steps = self.start..end;
        let next = restarts.partition_point(|restart| *restart <= self.start);
        let course = Course { restart: restarts[next - 1], next: restarts[next], peak: self.peak, ramp: self.ramp };
        let rate: Rate = rate(&training.rate, course, &steps);
        Segment {
            steps,
            actions: self.actions,
            stack: self.stack,
            block_ends: self.block_ends,
            new_layers: self.new_layers,
            frozen: self.frozen,
            reset_optimizer: self.reset_optimizer,
            rate,
            loss: self.loss,
            batch: self.batch,
            data: self.data,
        }
    }
}
