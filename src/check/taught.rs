//! Who teaches whom: the teachers that losses name, and what their caches keep.
//!
//! Knows no field. Invariant: among the teachers of a student no two have the same name.

use std::sync::Arc;

use super::Checker;
use super::names::Kind;
use super::recipe::Made;
use super::record::Statement;
use super::schedule::Scheduled;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::{Cache, Data, Embedding, Loss, LossTerm, Model, Teacher, Tokenizer, Training};

/// A loss of a student, and where it is said.
pub(super) struct Learned<'c> {
    pub(super) loss: &'c Loss,
    pub(super) span: Span,
    /// The unit whose teachers it names.
    pub(super) unit: usize,
}

/// The losses of an arm: its training's, then those that its schedule sets.
pub(super) fn losses<'c>(training: &'c Made<'_, Training>, schedule: &'c Made<'_, Scheduled>) -> Vec<Learned<'c>> {
    let field = training.record.field("loss");
    let own = field.map(|field| Learned { loss: &training.value.loss, span: field.value_span(), unit: field.env.unit() });
    let set = schedule.value.losses.iter().map(|(loss, span, unit)| Learned { loss, span: *span, unit: *unit });
    own.into_iter().chain(set).collect()
}

/// Whether a model takes tensors of a teacher.
pub(super) fn borrows(model: &Model) -> bool {
    [model.embedding, model.head].iter().any(|part| matches!(part, Embedding::Teacher { .. }))
}

impl<'a> Checker<'a> {
    /// The teachers of an arm: those of its losses, else the one that can be named where something asks for one.
    pub(super) fn teachers_for(
        &self,
        unit: usize,
        data: &Made<'a, Data>,
        model: &Made<'a, Model>,
        losses: &[Learned<'_>],
        measured: Option<Span>,
    ) -> Option<Vec<Made<'a, Teacher>>> {
        let named = self.named_teachers(losses)?;
        let is_taken = |part: Embedding| matches!(part, Embedding::Teacher { .. });
        let wanted_by = [
            (is_taken(model.value.embedding), model.record.field("embedding")),
            (is_taken(model.value.head), model.record.field("head")),
            (data.value.tokenizer == Tokenizer::Teacher, data.record.field("tokenizer")),
        ];
        let wanted_by =
            wanted_by.into_iter().find(|(is_wanted, _)| *is_wanted).map(|(_, statement)| statement.map(Statement::value_span));
        let wanted_by = wanted_by.map(|span| span.unwrap_or(model.record.name_span)).or(measured);
        let Some(span) = wanted_by.filter(|_| named.is_empty()) else { return Some(named) };
        let all: Vec<_> = self.names[unit].of(Kind::Teacher).collect();
        let [one] = all.as_slice() else {
            let message = "this needs a teacher, and the loss names none";
            let said = Diagnostic::error("missing-teacher", message, span);
            return self.fail(said.hint("add `kl(TEACHER)` to the loss, or declare exactly one teacher"));
        };
        let record = self.plain(*one, span)?;
        let teacher = self.teacher(&record)?;
        Some(vec![Made { value: Arc::new(teacher), record }])
    }

    /// The teachers that losses name, in the order in which they do.
    pub(super) fn named_teachers(&self, losses: &[Learned<'_>]) -> Option<Vec<Made<'a, Teacher>>> {
        let mut all: Vec<Made<'a, Teacher>> = Vec::new();
        for learned in losses {
            for name in learned.loss.teachers() {
                let declared = self.declared(learned.unit, Kind::Teacher, name, learned.span)?;
                let place = declared.declaration.name.span;
                match all.iter().find(|known| known.record.name == name) {
                    Some(known) if known.record.name_span == place => continue,
                    Some(known) => {
                        let said = Diagnostic::error("given-twice", format!("two teachers are called `{name}`"), learned.span);
                        return self.fail(said.note_at(known.record.name_span, "one").note_at(place, "the other"));
                    }
                    None => {}
                }
                let record = self.plain(declared, learned.span)?;
                let teacher = self.teacher(&record)?;
                all.push(Made { value: Arc::new(teacher), record });
            }
        }
        Some(all)
    }

    /// Whether what losses ask of a teacher is in its cache, if it has one; `contexts`: what the schedule sets.
    pub(super) fn kept(&self, losses: &[Learned<'_>], contexts: &[Span], teacher: &Made<'a, Teacher>) -> Option<()> {
        let Teacher { name, cache, .. } = &*teacher.value;
        let mut fine = Some(());
        if *cache == Cache::None {
            return fine;
        }
        let refuse = |code, message, at| {
            let said = Diagnostic::error(code, message, at).hint("write `cache none` in the teacher");
            self.fail(said.note_at(teacher.record.name_span, "the teacher"))
        };
        let is_heard = losses.iter().any(|learned| learned.loss.teachers().contains(&name.as_str()));
        if let Some(context) = contexts.first().filter(|_| is_heard) {
            let message = format!("the cache of `{name}` keeps its word on sequences of the data's own context");
            fine = refuse("context-not-kept", message, *context);
        }
        for Learned { loss, span, .. } in losses {
            if loss.terms.iter().any(|(_, term)| matches!(term, LossTerm::Mse { teacher } if teacher == name)) {
                let message = format!("`mse` compares logits, and the cache of `{name}` keeps probabilities");
                fine = refuse("logits-not-kept", message, *span);
            }
        }
        fine
    }
}
