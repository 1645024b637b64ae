//! Controls: arms beside the cells of the axes.
//!
//! Owns `control NAME: [arm] with { … } matched to [arm] on Q`. Knows no number: the planner solves the length.

use super::Checker;
use super::arms::{Chosen, Field, MOST_ARMS};
use super::axes::Replacement;
use super::fields::{Vocabulary, lets};
use super::names::{Kind, twice};
use super::record::{Record, Scope, Statement};
use super::words::{Words, unknown_word};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::Quantity;
use crate::syntax::ast::{Expr, ExprKind};

/// A `control`, read.
pub(super) struct Controlled<'a> {
    pub(super) name: &'a str,
    pub(super) doc: Option<&'a str>,
    pub(super) text: String,
    /// The cell that it is made from.
    pub(super) cell: usize,
    pub(super) replacements: Vec<Replacement<'a>>,
    pub(super) matched: Option<(Chosen, Quantity)>,
}

impl<'a> Checker<'a> {
    /// Reads every `control`; their names are known to what follows even where they are poisoned.
    pub(super) fn controls(
        &self,
        record: &Record<'a>,
        mut field: Option<&mut Field<'_, 'a>>,
        ids: &mut usize,
    ) -> Vec<Option<Controlled<'a>>> {
        let mut controls = Vec::new();
        for statement in record.repeated.iter().filter(|statement| statement.key == "control") {
            if controls.len() == MOST_ARMS {
                let message = format!("more than {MOST_ARMS} controls");
                self.say(Diagnostic::error("too-many-arms", message, statement.span).hint("vary a field instead"));
                break;
            }
            let label = self.label(statement);
            controls.push(label.and_then(|(name, _)| self.control(statement, name, field.as_deref(), ids)));
            let (Some((name, span)), Some(field)) = (label, field.as_deref_mut()) else { continue };
            let values = field.axes.iter().flat_map(|axis| &axis.values);
            if let Some((_, first)) = field.controls.iter().find(|(known, _)| *known == name) {
                self.say(twice(format!("the control `{name}`"), span, *first));
            } else if let Some(value) = values.into_iter().find(|value| value.label == name) {
                let message = format!("`{name}` is a value of an axis already");
                self.say(Diagnostic::error("given-twice", message, span).note_at(value.span, "this value"));
            }
            field.controls.push((name, span));
        }
        controls
    }

    fn control(
        &self,
        statement: &Statement<'a>,
        name: &'a str,
        field: Option<&Field<'_, 'a>>,
        ids: &mut usize,
    ) -> Option<Controlled<'a>> {
        self.nothing_more(statement)?;
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.words(statement.said, statement.head_span, scope);
        let Some(Expr { kind: ExprKind::List(base), span }) = words.next() else {
            return self.fail(Diagnostic::error(
                "missing-value",
                "a control begins with an arm in `[…]`",
                statement.value_span(),
            ));
        };
        let chosen = field.map(|field| field.choose(self, base, *span));
        let cell = match chosen.flatten() {
            Some(Chosen::Cells(cells)) if cells.len() == 1 => cells.first().copied(),
            Some(Chosen::Cells(cells)) => self.fail(one_arm(cells.len(), *span)),
            Some(Chosen::Control(_)) => {
                let said = Diagnostic::error("unexpected-words", "a control is made from a cell of the axes", *span);
                self.fail(said)
            }
            None => None,
        };
        // In either order.
        let (mut replaced, mut matched) = (None, None);
        loop {
            if replaced.is_none() && words.eat("with") {
                replaced = Some(self.differences(&mut words, ids)?);
            } else if matched.is_none() && words.eat("matched") {
                matched = Some(self.counterpart(&mut words, field)?);
            } else {
                break;
            }
        }
        words.finish()?;
        if replaced.is_none() && matched.is_none() {
            let said = Diagnostic::error("missing-value", "this control is the arm itself", *span);
            return self.fail(said.hint("add `matched to [arm] on QUANTITY` or `with { … }`"));
        }
        let (replacements, matched) =
            (replaced.unwrap_or(Some(Vec::new())), matched.map_or(Some(None), |matched| matched.map(Some)));
        let (cell, replacements, matched) = (cell?, replacements?, matched?);
        Some(Controlled { name, doc: statement.doc, text: self.text(statement.value_span()), cell, replacements, matched })
    }

    /// `{ width 16 }` behind `with`; the inner `None` is what could be read to its end and is wrong.
    fn differences(&self, words: &mut Words<'_, 'a>, ids: &mut usize) -> Option<Option<Vec<Replacement<'a>>>> {
        let scope = words.scope;
        let Some(Expr { kind: ExprKind::Block(block), .. }) = words.next() else {
            return words.missing("`{ … }` after `with`");
        };
        let env = self.environment(scope.env.unit(), lets(block), Some(scope), Kind::Study);
        let mut grouped = self.group(block, Vocabulary::Arm, &env, "an arm");
        self.once(&mut grouped, Kind::Model);
        let is_whole = !grouped.poisoned;
        Some(self.replacements(grouped.statements, ids).filter(|_| is_whole))
    }

    /// `to [arm] on QUANTITY` behind `matched`; the inner `None` as in [`Checker::differences`].
    fn counterpart(&self, words: &mut Words<'_, 'a>, field: Option<&Field<'_, 'a>>) -> Option<Option<(Chosen, Quantity)>> {
        words.expect("to")?;
        let (to, span) = match words.peek() {
            Some(Expr { kind: ExprKind::List(to), span }) => (to, span),
            Some(Expr { kind: ExprKind::Name(name), span }) => {
                let message = format!("expected an arm in `[…]`, found `{name}`");
                return self.fail(Diagnostic::error("unexpected-words", message, *span).hint(format!("write `[{name}]`")));
            }
            _ => return words.missing("an arm in `[…]`"),
        };
        words.next();
        let to = match field.and_then(|field| field.choose(self, to, *span)) {
            Some(Chosen::Cells(cells)) if cells.len() > 1 => self.fail(one_arm(cells.len(), *span)),
            other => other,
        };
        words.expect("on")?;
        let Some(quantity) = words.peek_word() else { return words.missing("a quantity") };
        words.next();
        let on = match Quantity::ALL.into_iter().find(|known| known.name() == quantity) {
            Some(on) => Some(on),
            None => self.fail(unknown_word(quantity, words.before(), "a quantity", &Quantity::ALL.map(Quantity::name))),
        };
        Some(to.zip(on))
    }
}

fn one_arm(count: usize, span: Span) -> Diagnostic {
    Diagnostic::error("ambiguous-arm", format!("one arm is wanted, these are {count}"), span).hint("give a value of every axis")
}
