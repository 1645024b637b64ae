//! Reading a phrase word by word.
//!
//! Owns what is said when words are missing, left over or of the wrong unit. Knows no field.

use super::Checker;
use super::expr::Amount;
use super::fields::fields;
use super::names::listed;
use super::record::{Given, Scope, Statement};
use super::units::Unit;
use crate::diagnostic::{Diagnostic, guess, nearest};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind};

/// A value and the words that give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// Larger counts than these are slips of the hand.
const LARGEST_COUNT: u64 = 1 << 53;

/// Words that join the parts of a statement: what is left over may be one of them, misspelt.
const CONNECTIVES: &[&str] = &[
    "with",
    "in",
    "then",
    "to",
    "frozen",
    "over",
    "on",
    "of",
    "at",
    "every",
    "after",
    "within",
    "matched",
    "and",
    "times",
    "copying",
    "interleaved",
    "when",
    "otherwise",
];

/// A place in a phrase.
#[derive(Clone)]
pub(super) struct Words<'c, 'a> {
    pub(super) checker: &'c Checker<'a>,
    pub(super) scope: Scope<'c, 'a>,
    parts: &'a [Expr],
    at: usize,
    /// What stands before the phrase.
    head: Span,
    /// The comma behind it.
    comma: Option<Span>,
    pub(super) given: &'c [Given<'a>],
}

impl<'a> Checker<'a> {
    /// The words of a phrase that follows `head`.
    pub(super) fn words<'c>(&'c self, parts: &'a [Expr], head: Span, scope: Scope<'c, 'a>) -> Words<'c, 'a> {
        Words { checker: self, scope, parts, at: 0, head, comma: None, given: &[] }
    }

    /// The words of a statement that has no colon.
    pub(super) fn said<'c>(&'c self, statement: &'c Statement<'a>, scope: Scope<'c, 'a>) -> Option<Words<'c, 'a>> {
        if statement.label.is_some() {
            let message = format!("`{}` takes no colon", statement.head);
            let at = statement.label.and_then(<[Expr]>::last).map_or(statement.head_span, |word| word.span);
            return self.fail(Diagnostic::error("unexpected-colon", message, at).hint("take the colon away"));
        }
        let words = self.words(statement.said, statement.head_span, scope);
        Some(Words { comma: statement.comma, given: &statement.given, ..words })
    }
}

impl<'c, 'a> Words<'c, 'a> {
    pub(super) fn peek(&self) -> Option<&'a Expr> {
        self.parts.get(self.at)
    }
    pub(super) fn next(&mut self) -> Option<&'a Expr> {
        let part = self.peek();
        self.at += usize::from(part.is_some());
        part
    }
    /// The next part if it is a bare word.
    pub(super) fn peek_word(&self) -> Option<&'a str> {
        self.peek().and_then(|part| match &part.kind {
            ExprKind::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }
    /// Takes a word if it is the next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let is_next = self.peek_word() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }
    pub(super) fn is_end(&self) -> bool {
        self.at >= self.parts.len()
    }
    /// The last part read, or what stands before the phrase.
    pub(super) fn before(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.parts.get(at)).map_or(self.head, |part| part.span)
    }
    /// The parts that have not been read.
    pub(super) fn rest(&self) -> &'a [Expr] {
        self.parts.get(self.at..).unwrap_or(&[])
    }
    /// From a part read before to the last part read.
    pub(super) fn since(&self, first: Span) -> Span {
        first.to(self.before())
    }

    /// Something has to stand here and does not.
    pub(super) fn missing<T>(&self, what: &str) -> Option<T> {
        let said = match self.peek() {
            Some(part) if matches!(part.kind, ExprKind::Bad) => return None,
            Some(part) => {
                let found = self.checker.text(part.span);
                Diagnostic::error("unexpected-words", format!("expected {what}, found `{found}`"), part.span)
            }
            None => {
                let place = self.comma.unwrap_or_else(|| self.before());
                let before = self.checker.text(self.before());
                Diagnostic::error("missing-value", format!("{what} is missing after `{before}`"), place)
            }
        };
        self.checker.fail(said)
    }

    /// A word that has to stand here.
    pub(super) fn expect(&mut self, word: &str) -> Option<()> {
        if self.eat(word) {
            return Some(());
        }
        if let (Some(found), Some(part)) = (self.peek_word(), self.peek()) {
            let said = Diagnostic::error("unexpected-words", format!("expected `{word}`, found `{found}`"), part.span);
            return self.checker.fail(said.did_you_mean(found, [word]));
        }
        self.missing(&format!("`{word}`"))
    }

    /// One of several words, or calls by that name; the part is taken.
    pub(super) fn one_of(&mut self, what: &str, known: &[&'static str]) -> Option<(&'static str, &'a Expr)> {
        let Some(part) = self.peek() else { return self.missing(what) };
        let (name, span) = match &part.kind {
            ExprKind::Name(name) => (name.as_str(), part.span),
            ExprKind::Call { callee, .. } => (callee.text.as_str(), callee.span),
            ExprKind::Bad => return None,
            _ => {
                let message = format!("expected {what}, found `{}`", self.checker.text(part.span));
                let said = Diagnostic::error("unexpected-words", message, part.span);
                return self.checker.fail(said.hint(format!("known are {}", listed(known.iter().copied(), "and"))));
            }
        };
        match known.iter().find(|known| **known == name) {
            Some(known) => {
                self.at += 1;
                Some((known, part))
            }
            None => self.checker.fail(unknown_word(name, span, what, known)),
        }
    }

    /// Nothing may be left.
    pub(super) fn finish(&self) -> Option<()> {
        let (Some(first), Some(last)) = (self.peek(), self.parts.last()) else { return Some(()) };
        if self.rest().iter().any(|part| matches!(part.kind, ExprKind::Bad)) {
            return None;
        }
        let field = match (&first.kind, self.scope.record) {
            (ExprKind::Name(name), Some(record)) => {
                fields(record.kind).iter().find(|field| field.name == name).map(|field| field.name)
            }
            _ => None,
        };
        let near = match &first.kind {
            ExprKind::Name(name) => guess(name, CONNECTIVES.iter().copied()).map(|guess| (name, guess)),
            _ => None,
        };
        self.checker.fail(match (field, near) {
            (Some(name), _) => {
                let message = format!("a comma or a new line is missing before `{name}`");
                Diagnostic::error("missing-separator", message, first.span)
            }
            (None, Some((name, guess))) => {
                Diagnostic::error("unexpected-words", format!("`{name}` has no meaning here"), first.span).hint(guess)
            }
            (None, None) => {
                let span = first.span.to(last.span);
                let said =
                    Diagnostic::error("unexpected-words", format!("`{}` has no meaning here", self.checker.text(span)), span);
                let mut word = first;
                while let ExprKind::Binary { left, .. } = &word.kind {
                    word = left;
                }
                let is_unit = matches!(&word.kind, ExprKind::Name(name) if Unit::read(name).is_some());
                if is_unit && !std::ptr::eq(word, first) {
                    said.hint("a unit stands once, at the end: `5 + 3 steps`")
                } else {
                    said
                }
            }
        })
    }

    /// Takes a word where a number could stand too; a near miss of the word is one.
    pub(super) fn eat_or_number(&mut self, word: &'static str) -> Option<bool> {
        if let (Some(found), Some(part)) = (self.peek_word(), self.peek())
            && !self.checker.is_bound(found, self.scope)
            && nearest(found, [word]).is_some()
        {
            return self.checker.fail(unknown_word(found, part.span, &format!("a number or `{word}`"), &[word]));
        }
        Some(self.eat(word))
    }

    /// A number with or without a unit.
    pub(super) fn amount(&mut self) -> Option<Spanned<Amount>> {
        let Some(part) = self.peek() else { return self.missing("a number") };
        if let ExprKind::Name(name) = &part.kind
            && Unit::read(name).is_some()
            && !self.checker.is_bound(name, self.scope)
        {
            let message = format!("a number is missing before `{name}`");
            return self.checker.fail(Diagnostic::error("missing-number", message, part.span));
        }
        self.at += 1;
        let mut amount = self.checker.amount(part, self.scope)?;
        // What is wrong with an argument is wrong where it is given.
        if let (ExprKind::Name(name), None) = (&part.kind, self.peek_word().and_then(Unit::read))
            && let Some(given) = self.checker.given_at(name, self.scope)
        {
            return Some(Spanned { value: amount, span: given });
        }
        let mut span = part.span;
        if let Some(unit) = self.peek_word().and_then(Unit::read).filter(|_| !self.begins_a_field()) {
            self.at += 1;
            span = self.since(span);
            if let Some(other) = amount.unit.filter(|other| *other != unit) {
                return self.checker.fail(wrong_unit(unit.name(), other.name(), span));
            }
            amount.unit = Some(unit);
        } else if let (Some(word), Some(next)) = (self.peek_word(), self.peek())
            && !CONNECTIVES.contains(&word)
            && let Some(guess) = guess(word, Unit::WORDS)
            && Unit::read(word).is_none()
        {
            let said = Diagnostic::error("unknown-unit", format!("unknown unit `{word}`"), next.span);
            return self.checker.fail(said.hint(guess));
        }
        Some(Spanned { value: amount, span })
    }

    /// Whether the next word is a field of the record with a value behind it: a comma was forgotten before it.
    fn begins_a_field(&self) -> bool {
        let is_field =
            |name: &str| self.scope.record.is_some_and(|record| fields(record.kind).iter().any(|field| field.name == name));
        self.peek_word().is_some_and(is_field) && self.at + 1 < self.parts.len()
    }

    /// A whole number of `unit`; a bare number will do.
    pub(super) fn count(&mut self, unit: Option<Unit>) -> Option<Spanned<u64>> {
        let amount = self.amount()?;
        self.whole(amount, unit)
    }

    /// An amount as a whole number of `unit`.
    pub(super) fn whole(&self, amount: Spanned<Amount>, unit: Option<Unit>) -> Option<Spanned<u64>> {
        let Spanned { value, span } = amount;
        let wanted = unit.map_or("a plain number", Unit::name);
        if let Some(other) = value.unit.filter(|other| Some(*other) != unit) {
            return self.checker.fail(wrong_unit(wanted, other.name(), span));
        }
        if value.percent {
            return self.checker.fail(wrong_unit(wanted, "a percentage", span));
        }
        match value.whole {
            Some(whole) if whole <= LARGEST_COUNT => Some(Spanned { value: whole, span }),
            Some(_) => self.checker.fail(Diagnostic::error("out-of-range", "this is larger than 2^53", span)),
            None => {
                let of = unit.map_or(String::new(), |unit| format!(" of {}", unit.name()));
                let message = format!("a whole number{of} is wanted, {} given", shown(value.value));
                self.checker.fail(Diagnostic::error("not-whole", message, span))
            }
        }
    }

    /// A whole number of `unit` within bounds.
    pub(super) fn count_in(&mut self, unit: Option<Unit>, least: u64, most: u64) -> Option<Spanned<u64>> {
        let count = self.count(unit)?;
        self.within(count, least, most)
    }

    fn within<T: PartialOrd + std::fmt::Display>(&self, got: Spanned<T>, least: T, most: T) -> Option<Spanned<T>> {
        if got.value >= least && got.value <= most {
            return Some(got);
        }
        let message = if got.value < least { format!("at least {least} is wanted") } else { format!("at most {most} is wanted") };
        self.checker.fail(Diagnostic::error("out-of-range", message, got.span))
    }

    /// A number without a unit.
    pub(super) fn real(&mut self) -> Option<Spanned<f64>> {
        let Spanned { value, span } = self.amount()?;
        match value.unit {
            Some(unit) => self.checker.fail(wrong_unit("a plain number", unit.name(), span)),
            None => Some(Spanned { value: value.value, span }),
        }
    }

    /// A number without a unit that satisfies a condition, told in words.
    pub(super) fn real_that(&mut self, wanted: &str, holds: impl Fn(f64) -> bool) -> Option<Spanned<f64>> {
        let real = self.real()?;
        if holds(real.value) {
            return Some(real);
        }
        let message = format!("{wanted} is wanted, {} given", shown(real.value));
        self.checker.fail(Diagnostic::error("out-of-range", message, real.span))
    }

    /// A text.
    pub(super) fn text(&mut self, what: &str) -> Option<Spanned<String>> {
        let Some(part) = self.peek() else { return self.missing(what) };
        match &part.kind {
            ExprKind::Text(text) => {
                self.at += 1;
                Some(Spanned { value: text.clone(), span: part.span })
            }
            ExprKind::Name(name) => match self.checker.text_of(name, self.scope) {
                Some(text) => {
                    self.at += 1;
                    Some(Spanned { value: text, span: part.span })
                }
                None => self.missing(what),
            },
            _ => self.missing(what),
        }
    }
}

/// A word that is none of those known here.
pub(super) fn unknown_word(name: &str, span: Span, what: &str, known: &[&str]) -> Diagnostic {
    let said = Diagnostic::error("unknown-name", format!("expected {what}, found `{name}`"), span);
    said.did_you_mean_or(name, known.iter().copied(), || Some(format!("known are {}", listed(known.iter().copied(), "and"))))
}

/// A unit that does not belong here.
pub(super) fn wrong_unit(wanted: &str, given: &str, span: Span) -> Diagnostic {
    Diagnostic::error("wrong-unit", format!("expected {wanted}, found {given}"), span).label(format!("{given} given"))
}

/// A number as a person would write it.
pub(super) fn shown(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e15) { format!("{value:e}") } else { format!("{value}") }
}
