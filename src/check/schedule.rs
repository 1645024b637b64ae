//! `schedule` declarations: moments and actions, as words.
//!
//! Owns their vocabulary. Knows no step arithmetic: `timeline` works out what a schedule amounts to, and `recipe` places its errors.

use super::Checker;
use super::data::LONGEST_CONTEXT;
use super::names::Kind;
use super::record::{Record, Scope, Statement};
use super::units::Unit;
use super::words::{Words, unknown_word};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::schedule::{GrowFrom, Insert};
use crate::study::{Action, EventSpec, Layers, Loss, Moment, Schedule, Start};
use crate::syntax::ast::{Expr, ExprKind, Item, ItemContent, Phrase};

/// A schedule and the places of its parts in the text.
#[derive(Debug, Clone)]
pub(super) struct Scheduled {
    pub(super) schedule: Schedule,
    /// The words of each event's moment.
    pub(super) events: Vec<Span>,
    /// Losses that are set, their words, and the unit of these.
    pub(super) losses: Vec<(Loss, Span, usize)>,
    /// The words of each context that is set.
    pub(super) contexts: Vec<Span>,
    pub(super) start: Span,
    pub(super) end: Span,
}

/// What is at hand while events are read.
struct Reading<'c, 'a> {
    record: &'c Record<'a>,
    /// Layers of a block.
    block: usize,
    losses: &'c mut Vec<(Loss, Span, usize)>,
    contexts: &'c mut Vec<Span>,
}

/// What an event may do: the first words of actions.
pub const ACTIONS: &[&str] = &["grow", "freeze", "thaw", "reset", "restart", "rewarm", "rewind", "fresh", "set", "drop", "save"];
/// What `set` sets.
pub const SETTABLE: [&str; 4] = ["lr", "batch", "loss", "context"];
const TARGETS: &[&str] = &["prefix", "embedding", "head", "norms", "layers", "layer", "all"];

impl<'a> Checker<'a> {
    /// Reads a `schedule` declaration for models whose blocks have `block` layers.
    pub(super) fn schedule(&self, record: &Record<'a>, block: usize) -> Option<Scheduled> {
        let start = self.needed(record, "start", |_, words| start(words));
        let (mut losses, mut contexts) = (Vec::new(), Vec::new());
        let events: Vec<_> = record
            .repeated
            .iter()
            .map(|statement| self.event(&mut Reading { record, block, losses: &mut losses, contexts: &mut contexts }, statement))
            .collect();
        let end = self.needed(record, "end", |_, words| {
            let (word, _) = words.one_of("`at` or `after`", &["at", "after"])?;
            self.moment(word, words)
        });
        if record.field("end").is_none() && !record.poisoned && events.iter().all(Option::is_some) {
            let message = format!("`{}` has no end", record.owner);
            let said = Diagnostic::error("no-end", message, record.name_span);
            return self.fail(said.hint("add `end at step N` or `end after N steps`"));
        }
        self.complete(record, &[("start", "start")])?;
        let events = events.into_iter().collect::<Option<Vec<_>>>()?;
        let place = |key: &str| record.field(key).map_or(record.name_span, Statement::value_span);
        Some(Scheduled {
            schedule: Schedule {
                name: record.name.to_owned(),
                doc: record.doc.map(str::to_owned),
                start: start?,
                events: events.iter().map(|(event, _)| event.clone()).collect(),
                end: end?,
            },
            events: events.iter().map(|(_, span)| *span).collect(),
            losses,
            contexts,
            start: place("start"),
            end: place("end"),
        })
    }

    fn event(&self, reading: &mut Reading<'_, 'a>, statement: &Statement<'a>) -> Option<(EventSpec, Span)> {
        let scope = Scope { env: &statement.env, record: None };
        let Some(label) = statement.label else {
            let message = "a colon is missing between the moment and what happens then".to_string();
            let said = Diagnostic::error("missing-colon", message, statement.head_span);
            return self.fail(said.hint(format!("write `{} MOMENT: action, action`", statement.head)));
        };
        let mut words = self.words(label, statement.head_span, scope);
        let moment = self.moment(statement.head, &mut words);
        let span = match (label.first(), label.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => statement.head_span,
        };
        let moment = moment.and_then(|moment| words.finish().map(|()| moment));
        let mut actions = Vec::new();
        let mut fine = self.action(reading, statement.said, statement.head_span, scope, &mut actions);
        for item in &statement.more {
            // What else is frozen, behind words that were wrong.
            let goes_on = |content: &Phrase| matches!(content.parts.first(), Some(Expr { kind: ExprKind::Name(word), .. }) if TARGETS.contains(&word.as_str()));
            if fine.is_none() && matches!(&item.content, ItemContent::Phrase(content) if goes_on(content)) {
                continue;
            }
            if self.item(reading, statement, item, &mut actions).is_none() {
                fine = None;
            }
        }
        fine?;
        Some((EventSpec { moment: moment?, actions }, span))
    }

    fn item(
        &self,
        reading: &mut Reading<'_, 'a>,
        statement: &Statement<'a>,
        item: &'a Item,
        actions: &mut Vec<Action>,
    ) -> Option<()> {
        let scope = Scope { env: &statement.env, record: None };
        match &item.content {
            ItemContent::Phrase(content) if item.label.is_none() => {
                self.action(reading, &content.parts, item.span, scope, actions)
            }
            _ => self.left_over(statement, item),
        }
    }

    /// `at step N`, `at token N`, `at P%`, `after N steps`, `every N steps K times`; `word` has been read.
    fn moment(&self, word: &str, words: &mut Words<'_, 'a>) -> Option<Moment> {
        match word {
            "at" => {
                if words.eat("step") {
                    return Some(Moment::Step(words.count(Some(Unit::Steps))?.value));
                }
                if words.eat("token") {
                    return Some(Moment::Token(words.count_in(Some(Unit::Tokens), 1, u64::MAX)?.value));
                }
                if let (Some(word), Some(part)) = (words.peek_word(), words.peek())
                    && words.rest().len() > 1
                {
                    return self.fail(unknown_word(word, part.span, "`step`, `token` or a percentage", &["step", "token"]));
                }
                let amount = words.amount()?;
                if !amount.value.percent {
                    let said = Diagnostic::error("wrong-unit", "expected `step N`, `token N` or a percentage", amount.span);
                    return self.fail(said.hint(format!("write `step {}`", self.text(amount.span))));
                }
                if amount.value.value > 0.0 && amount.value.value < 1.0 {
                    return Some(Moment::Fraction(amount.value.value));
                }
                self.fail(Diagnostic::error("out-of-range", "a percentage between 0% and 100% is wanted", amount.span))
            }
            "after" => Some(Moment::After(words.count_in(Some(Unit::Steps), 1, u64::MAX)?.value)),
            _ => {
                let steps = words.count_in(Some(Unit::Steps), 1, u64::MAX)?.value;
                let mut times = None;
                if !words.is_end() {
                    times = Some(words.count_in(None, 1, u64::MAX)?.value);
                    words.expect("times")?;
                }
                Some(Moment::Every { steps, times })
            }
        }
    }

    fn action(
        &self,
        reading: &mut Reading<'_, 'a>,
        said: &'a [Expr],
        head: Span,
        scope: Scope<'_, 'a>,
        actions: &mut Vec<Action>,
    ) -> Option<()> {
        let mut words = self.words(said, head, scope);
        // `freeze embedding, head`: what else is frozen.
        let again = match actions.last() {
            Some(Action::Freeze(_)) => Some(Action::Freeze as fn(Layers) -> Action),
            Some(Action::Thaw(_)) => Some(Action::Thaw as fn(Layers) -> Action),
            _ => None,
        };
        if let (Some(again), Some(word)) = (again, words.peek_word())
            && TARGETS.contains(&word)
        {
            self.targets(&mut words, again, actions)?;
            return words.finish();
        }
        if let (Some(word), Some(part)) = (words.peek_word(), words.peek())
            && !ACTIONS.contains(&word)
        {
            // It may also be the next moment, misspelt.
            let moments = super::fields::fields(Kind::Schedule).iter().map(|field| field.name);
            let targets = again.map_or(&[][..], |_| TARGETS);
            let known: Vec<&str> = ACTIONS.iter().chain(targets).copied().chain(moments).collect();
            return self.fail(unknown_word(word, part.span, "an action", &known));
        }
        let (verb, _) = words.one_of("an action", ACTIONS)?;
        match verb {
            "grow" => actions.push(self.grow(&mut words, reading.block)?),
            "freeze" => self.targets(&mut words, Action::Freeze, actions)?,
            "thaw" => self.targets(&mut words, Action::Thaw, actions)?,
            "reset" => actions.push(words.expect("optimizer").map(|()| Action::ResetOptimizer)?),
            "restart" => actions.push(words.expect("lr").map(|()| Action::RestartLr)?),
            "rewarm" => {
                words.expect("lr")?;
                words.expect("over")?;
                actions.push(Action::RewarmLr { steps: words.count_in(Some(Unit::Steps), 1, u64::MAX)?.value });
            }
            "rewind" => actions.push(words.expect("data").map(|()| Action::RewindData)?),
            "fresh" => actions.push(words.expect("data").map(|()| Action::FreshData)?),
            "set" => actions.push(self.set(reading, &mut words)?),
            "drop" => actions.push(Action::Drop { layers: self.layers(&mut words, reading.block)? }),
            _ => actions.push(Action::Save(words.text("a name in quotation marks")?.value)),
        }
        words.finish()
    }

    /// `block`, `2 blocks`, `1 layer`: as layers.
    fn layers(&self, words: &mut Words<'_, 'a>, block: usize) -> Option<usize> {
        let of = |unit: Unit| if unit == Unit::Blocks { block } else { 1 };
        if let Some(word @ ("block" | "layer")) = words.peek_word() {
            words.next();
            return Some(if word == "block" { block } else { 1 });
        }
        words.eat_or_number("block")?;
        words.eat_or_number("layer")?;
        let amount = words.amount()?;
        let unit = match amount.value.unit {
            Some(unit @ (Unit::Blocks | Unit::Layers)) => unit,
            Some(other) => return self.fail(super::words::wrong_unit("blocks or layers", other.name(), amount.span)),
            None => {
                let said = Diagnostic::error("missing-unit", "blocks or layers?", amount.span);
                return self.fail(said.hint(format!("write `{} blocks`", self.text(amount.span))));
            }
        };
        let count = words.whole(amount, Some(unit))?;
        match usize::try_from(count.value).ok().and_then(|count| count.checked_mul(of(unit))) {
            Some(layers) if 0 < layers && layers <= 10_000 => Some(layers),
            Some(0) => self.fail(Diagnostic::error("out-of-range", "at least one is wanted", count.span)),
            _ => self.fail(Diagnostic::error("out-of-range", "more layers than any model has", count.span)),
        }
    }

    fn grow(&self, words: &mut Words<'_, 'a>, block: usize) -> Option<Action> {
        let layers = self.layers(words, block)?;
        let (mut at, mut from) = (None, None);
        while let Some(word) = words.peek_word() {
            let span = words.peek().map_or(words.before(), |part| part.span);
            if !matches!(word, "at" | "after" | "in" | "interleaved" | "copying" | "as") {
                let known = ["at", "after", "in", "interleaved", "copying", "as"];
                return self.fail(unknown_word(word, span, "where and how new layers go", &known));
            }
            words.next();
            let is_place = matches!(word, "at" | "after" | "in" | "interleaved");
            if (is_place && at.is_some()) || (!is_place && from.is_some()) {
                return self.fail(Diagnostic::error("given-twice", "this has been said already", span));
            }
            match word {
                "at" => {
                    let (word, _) = words.one_of("`top` or `bottom`", &["top", "bottom"])?;
                    at = Some(if word == "top" { Insert::Top } else { Insert::Bottom });
                }
                "after" => {
                    words.expect("layer")?;
                    at = Some(Insert::After(words.count_in(None, 1, 10_000)?.value as usize));
                }
                "in" => {
                    words.expect("the")?;
                    words.expect("middle")?;
                    at = Some(Insert::Middle);
                }
                "interleaved" => at = Some(Insert::Interleaved),
                "as" => {
                    words.expect("identity")?;
                    from = Some(GrowFrom::Identity);
                }
                _ => {
                    let (word, _) = words.one_of("what to copy", &["last", "all", "layers", "layer"])?;
                    from = Some(match word {
                        "last" => GrowFrom::CopyLast,
                        "all" => GrowFrom::CopyAll,
                        _ => {
                            let (first, last) = self.range(words)?.value;
                            GrowFrom::CopyLayers { first, last }
                        }
                    });
                }
            }
        }
        Some(Action::Grow { layers, at: at.unwrap_or(Insert::Top), from: from.unwrap_or(GrowFrom::Init) })
    }

    fn targets(&self, words: &mut Words<'_, 'a>, action: fn(Layers) -> Action, actions: &mut Vec<Action>) -> Option<()> {
        loop {
            let (word, _) = words.one_of("what is frozen or thawed", TARGETS)?;
            actions.push(action(match word {
                "prefix" => Layers::Prefix,
                "embedding" => Layers::Embedding,
                "head" => Layers::Head,
                "norms" => Layers::Norms,
                "all" => Layers::All,
                _ => {
                    let (first, last) = self.range(words)?.value;
                    Layers::Range { first, last }
                }
            }));
            if !words.eat("and") {
                return Some(());
            }
        }
    }

    fn set(&self, reading: &mut Reading<'_, 'a>, words: &mut Words<'_, 'a>) -> Option<Action> {
        let (what, part) = words.one_of("what to set", &SETTABLE)?;
        match what {
            "lr" => Some(Action::SetLr(words.real_that("a positive number", |lr| lr > 0.0)?.value)),
            "batch" => Some(Action::SetBatch(words.count_in(Some(Unit::Sequences), 1, 1 << 32)?.value)),
            "loss" => {
                let loss = self.loss(reading.record, words)?;
                reading.losses.push((loss.clone(), words.since(part.span), words.scope.env.unit()));
                Some(Action::SetLoss(loss))
            }
            _ => {
                let tokens = words.count_in(Some(Unit::Tokens), 1, LONGEST_CONTEXT)?;
                reading.contexts.push(words.since(part.span));
                Some(Action::SetContext(tokens.value as usize))
            }
        }
    }
}

fn start(words: &mut Words<'_, '_>) -> Option<Start> {
    words.expect("with")?;
    if words.eat_or_number("all")? {
        words.one_of("`blocks` or `layers`", &["blocks", "layers", "block"])?;
        return Some(Start::All);
    }
    let amount = words.amount()?;
    let unit = match amount.value.unit {
        Some(unit @ (Unit::Blocks | Unit::Layers)) => unit,
        Some(other) => {
            return words.checker.fail(super::words::wrong_unit("blocks or layers", other.name(), amount.span));
        }
        None => {
            let said = Diagnostic::error("missing-unit", "blocks or layers?", amount.span);
            return words.checker.fail(said.hint(format!("write `{} blocks`", words.checker.text(amount.span))));
        }
    };
    let count = words.whole(amount, Some(unit))?;
    if count.value == 0 || count.value > 10_000 {
        let message = if count.value == 0 { "at least one is wanted" } else { "more layers than any model has" };
        return words.checker.fail(Diagnostic::error("out-of-range", message, count.span));
    }
    Some(if unit == Unit::Blocks { Start::Blocks(count.value as usize) } else { Start::Layers(count.value as usize) })
}
