//! What is measured and probed, and the tables asked for.
//!
//! Owns `measure`, `probe`, `report` and `seeds`. Knows no arm.

use super::Checker;
use super::arms::Field;
use super::defaults;
use super::names::twice;
use super::record::{Record, Scope, Statement};
use super::units::Unit;
use super::words::{Words, unknown_word};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::Ablation;
use crate::study::{Measure, Metric, ProbeKind, ProbeMoment};
use crate::syntax::ast::{Argument, Expr, ExprKind, ItemContent};

/// More runs of an arm than anybody waits for.
const MOST_SEEDS: u64 = 10_000;

/// A probe whose batch may still depend on the data.
#[derive(Debug, Clone)]
pub(super) struct Probed {
    pub(super) kind: ProbeKind,
    pub(super) moments: Vec<ProbeMoment>,
    /// Sequences and tokens, where given.
    pub(super) batch: Option<(u64, u64)>,
    pub(super) span: Span,
    /// The words that give the batch.
    pub(super) batch_span: Span,
}

impl<'a> Checker<'a> {
    /// The metric that a word means.
    pub(super) fn metric(&self, name: &str, span: Span) -> Option<Metric> {
        match Metric::ALL.into_iter().find(|metric| metric.name() == name) {
            Some(metric) => Some(metric),
            None => self.fail(unknown_word(name, span, "a metric", &Metric::ALL.map(Metric::name))),
        }
    }

    /// `measure validation_ce every 100 steps`, and where its metric is named.
    pub(super) fn measure(&self, record: &Record<'a>, statement: &Statement<'a>) -> Option<Vec<(Measure, Span)>> {
        let scope = Scope { env: &statement.env, record: None };
        let mut measures = vec![self.one_measure(record, self.said(statement, scope)?)];
        for item in &statement.more {
            measures.push(match &item.content {
                ItemContent::Phrase(content) if item.label.is_none() => {
                    self.one_measure(record, self.words(&content.parts, item.span, scope))
                }
                _ => self.left_over(statement, item),
            });
        }
        measures.into_iter().collect()
    }

    fn one_measure(&self, record: &Record<'a>, mut words: Words<'_, 'a>) -> Option<(Measure, Span)> {
        let Some(name) = words.peek_word() else { return words.missing("a metric") };
        words.next();
        let span = words.before();
        let metric = self.metric(name, span);
        let every = if words.is_end() {
            self.fill(record, "measure", format!("{name} every {} steps", defaults::MEASURE_EVERY));
            defaults::MEASURE_EVERY
        } else {
            words.expect("every")?;
            words.count_in(Some(Unit::Steps), 1, u64::MAX)?.value
        };
        words.finish()?;
        Some((Measure { metric: metric?, every }, span))
    }

    /// `probe boundary_rms at every grow and at end on 2 sequences of 128 tokens`.
    pub(super) fn probe(&self, statement: &Statement<'a>) -> Option<Probed> {
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.said(statement, scope)?;
        let Some(name) = words.peek_word() else { return words.missing("a probe") };
        words.next();
        let span = words.before();
        let kind = match ProbeKind::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Some(kind),
            None => self.fail(unknown_word(name, span, "a probe", &ProbeKind::ALL.map(ProbeKind::name))),
        };
        let mut moments = Vec::new();
        loop {
            words.expect("at")?;
            let (word, _) = words.one_of("`every grow`, `end` or `step N`", &["every", "end", "step"])?;
            let moment = match word {
                "every" => words.expect("grow").map(|()| ProbeMoment::EveryGrow)?,
                "end" => ProbeMoment::End,
                _ => ProbeMoment::Step(words.count_in(Some(Unit::Steps), 1, u64::MAX)?.value),
            };
            if moments.contains(&moment) {
                return self.fail(Diagnostic::error("given-twice", "this moment is given twice", words.before()));
            }
            moments.push(moment);
            if !words.eat("and") {
                break;
            }
        }
        let mut batch = None;
        let mut batch_span = span;
        if words.eat("on") {
            let sequences = words.count_in(Some(Unit::Sequences), 1, 1 << 20)?;
            words.expect("of")?;
            let tokens = words.count_in(Some(Unit::Tokens), 2, 1 << 24)?;
            batch = Some((sequences.value, tokens.value));
            batch_span = tokens.span;
        }
        words.finish()?;
        self.nothing_more(statement)?;
        Some(Probed { kind: kind?, moments, batch, span, batch_span })
    }

    /// `seeds 5`, `seeds [1, 7]`.
    pub(super) fn seeds(&self, record: &Record<'a>) -> Option<Vec<u64>> {
        let seeds = self.optional(record, "seeds", |_, words| {
            let Some(Expr { kind: ExprKind::List(arguments), span }) = words.peek() else {
                return Some((0..words.count_in(None, 1, MOST_SEEDS)?.value).collect());
            };
            words.next();
            if arguments.is_empty() {
                return self.fail(Diagnostic::error("missing-value", "a list without a seed", *span));
            }
            let mut seeds: Vec<(u64, Span)> = Vec::new();
            for argument in arguments {
                if let Some(key) = &argument.key {
                    return self.fail(Diagnostic::error("unexpected-words", "a seed has no key", key.span));
                }
                let mut words = self.words(&argument.value.parts, argument.value.span, words.scope);
                let seed = words.count(None)?;
                words.finish()?;
                if let Some((_, first)) = seeds.iter().find(|(known, _)| *known == seed.value) {
                    return self.fail(twice(format!("seed {}", seed.value), seed.span, *first));
                }
                seeds.push((seed.value, seed.span));
            }
            Some(seeds.into_iter().map(|(seed, _)| seed).collect())
        })?;
        Some(self.or_default(record, "seeds", seeds, &defaults::SEEDS.to_string(), (0..defaults::SEEDS).collect()))
    }

    /// `report ablation(rows: placement, columns: schedule)`; without a field of arms only its shape is looked at.
    pub(super) fn report(&self, statement: &Statement<'a>, field: Option<&Field<'_, 'a>>) -> Option<Ablation> {
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.said(statement, scope)?;
        let (_, part) = words.one_of("a report", &["ablation"])?;
        words.finish()?;
        self.nothing_more(statement)?;
        let taken = self.arguments(part, &["rows", "columns"], &[]);
        let rows = taken.need("rows", &words, |words| self.axis_names(words, field));
        let columns = taken.read("columns", &words, |words| self.axis_names(words, field));
        let (rows, columns) = (rows?, columns?.unwrap_or_default());
        if let Some(twice) = columns.iter().find(|name| rows.contains(name)) {
            return self.fail(Diagnostic::error("given-twice", format!("`{twice}` is both a row and a column"), part.span));
        }
        (!taken.poisoned).then_some(Ablation { rows, columns })
    }

    fn axis_names(&self, words: &mut Words<'_, 'a>, field: Option<&Field<'_, 'a>>) -> Option<Vec<String>> {
        let Some(part) = words.next() else { return words.missing("the name of an axis") };
        let named = |expr: &Expr| -> Option<String> {
            match (&expr.kind, field) {
                (ExprKind::Name(name), Some(field)) => match field.axes.iter().find(|axis| axis.is_called(name)) {
                    Some(axis) => Some(axis.name.clone()),
                    None => field.unknown_axis(self, name, expr.span),
                },
                (ExprKind::Name(_) | ExprKind::Bad, _) => None,
                _ => self.fail(Diagnostic::error("wrong-type", "expected the name of an axis", expr.span)),
            }
        };
        match &part.kind {
            ExprKind::List(arguments) | ExprKind::Tuple(arguments) => {
                let all: Vec<_> = arguments
                    .iter()
                    .map(|argument| match argument {
                        Argument { key: None, value } if value.parts.len() == 1 => named(&value.parts[0]),
                        Argument { value, .. } => {
                            self.fail(Diagnostic::error("wrong-type", "expected the name of an axis", value.span))
                        }
                    })
                    .collect();
                all.into_iter().collect()
            }
            ExprKind::Group(inner) => named(inner).map(|name| vec![name]),
            _ => named(part).map(|name| vec![name]),
        }
    }
}
