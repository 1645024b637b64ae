//! Claims: inequalities between metrics of arms.
//!
//! Owns their grammar and what they may refer to. Knows no statistics.

use super::Checker;
use super::arms::{Chosen, Field};
use super::names::twice;
use super::record::{Record, Scope, Statement};
use super::units::Unit;
use super::words::{Words, unknown_word};
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::study::{ArmSet, Claim, Linear, Metric, Relation, Term};
use crate::syntax::ast::{Argument, Expr, ExprKind, Operator};

/// A claim before arms have numbers, with the places that later checks need.
pub(super) struct Claimed<'a> {
    pub(super) name: &'a str,
    pub(super) doc: Option<&'a str>,
    pub(super) text: String,
    pub(super) relation: Relation,
    pub(super) left: Side,
    pub(super) right: Side,
    /// `at step N`.
    pub(super) at_step: Option<(u64, Span)>,
    /// The number behind `after grow`.
    pub(super) grow_span: Option<Span>,
}

/// One side of a claim.
#[derive(Default)]
pub(super) struct Side {
    pub(super) terms: Vec<(f64, Metric, Chosen, String)>,
    constant: f64,
    /// Where it reads `kl`, which takes a teacher.
    kl: Option<Span>,
}

impl Side {
    /// Whether the difference between this side and another depends on what is measured.
    fn differs_from(&self, other: &Side) -> bool {
        let signed = |sign: f64| {
            move |(factor, metric, chosen, _): &'_ (f64, Metric, Chosen, String)| (sign * factor, *metric, chosen.clone())
        };
        let all: Vec<(f64, Metric, Chosen)> =
            self.terms.iter().map(signed(1.0)).chain(other.terms.iter().map(signed(-1.0))).collect();
        all.iter().any(|(_, metric, chosen)| {
            let same = all.iter().filter(|(_, other, arms)| other == metric && arms == chosen);
            same.map(|(factor, ..)| factor).sum::<f64>() != 0.0
        })
    }
}

impl Claimed<'_> {
    /// With the numbers of arms.
    pub(super) fn noun(&self, numbers: &dyn Fn(&Chosen) -> Vec<usize>) -> Claim {
        let side = |side: &Side| Linear {
            terms: side
                .terms
                .iter()
                .map(|(factor, metric, chosen, text)| {
                    (*factor, Term { metric: *metric, arms: ArmSet { text: text.clone(), arms: numbers(chosen) } })
                })
                .collect(),
            constant: side.constant,
        };
        Claim {
            name: self.name.to_owned(),
            doc: self.doc.map(str::to_owned),
            text: self.text.clone(),
            at_step: self.at_step.map(|(step, _)| step),
            relation: self.relation,
            left: side(&self.left),
            right: side(&self.right),
        }
    }
    /// Everything that it refers to.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Chosen> {
        self.left.terms.iter().chain(&self.right.terms).map(|(_, _, chosen, _)| chosen)
    }
    /// Where it reads `kl`.
    pub(super) fn kl(&self) -> Option<Span> {
        self.left.kl.or(self.right.kl)
    }
    /// The metrics that it reads.
    pub(super) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.left.terms.iter().chain(&self.right.terms).map(|(_, metric, ..)| *metric)
    }
}

impl<'a> Checker<'a> {
    /// Reads every claim of a study; without a field of arms only their shape is looked at.
    pub(super) fn claims(&self, record: &Record<'a>, field: Option<&Field<'_, 'a>>) -> Vec<Option<Claimed<'a>>> {
        let mut names: Vec<(&'a str, Span)> = Vec::new();
        let claims = record.repeated.iter().filter(|statement| statement.key == "claim");
        claims.map(|statement| self.claim(statement, field, &mut names)).collect()
    }

    fn claim(
        &self,
        statement: &Statement<'a>,
        field: Option<&Field<'_, 'a>>,
        names: &mut Vec<(&'a str, Span)>,
    ) -> Option<Claimed<'a>> {
        let (name, span) = self.label(statement)?;
        let is_new = match names.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => self.fail(twice(format!("the claim `{name}`"), span, *first)),
            None => {
                names.push((name, span));
                Some(())
            }
        };
        self.nothing_more(statement)?;
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.words(statement.said, span, scope);
        let Some(part) = words.next() else { return words.missing("what is claimed") };
        let compared = match &part.kind {
            ExprKind::Bad => return None,
            ExprKind::Binary { operator, operator_span, left, right } => match operator {
                Operator::Less | Operator::Greater | Operator::About => Some((*operator, *operator_span, &**left, &**right)),
                Operator::LessEqual | Operator::GreaterEqual | Operator::Equal | Operator::NotEqual => {
                    let said = Diagnostic::error("unexpected-operator", "a claim compares with `<`, `>` or `~`", *operator_span);
                    return self.fail(said.hint("`~ … within d` says that two are equivalent"));
                }
                _ => None,
            },
            _ => None,
        };
        let (left, right, operator, mut grow_span, mut grow) = match compared {
            Some((operator, _, left, right)) => {
                (self.side(left, field, scope), self.side(right, field, scope), Some(operator), None, 0)
            }
            None => {
                if let (Some(word), Some(at)) = (words.peek_word(), words.peek())
                    && nearest(word, ["overtakes"]).is_some()
                {
                    return self.fail(unknown_word(word, at.span, "`overtakes`", &["overtakes"]));
                }
                if !words.eat("overtakes") {
                    return words.missing("`<`, `>`, `~` or `overtakes`");
                }
                let Some(other) = words.next() else { return words.missing("what is overtaken") };
                (self.side(part, field, scope), self.side(other, field, scope), None, None, 0)
            }
        };
        if operator.is_none() {
            words.expect("after")?;
            words.expect("grow")?;
            let count = words.count_in(None, 1, 10_000)?;
            (grow_span, grow) = (Some(count.span), count.value as u32);
        }
        let mut within = None;
        // `within -0.1` reads as a difference.
        if let Some(Expr { kind: ExprKind::Binary { operator: Operator::Minus, left, right, .. }, .. }) = words.peek()
            && matches!(&left.kind, ExprKind::Name(name) if name == "within")
        {
            return self.fail(Diagnostic::error("out-of-range", "a positive number is wanted", right.span));
        }
        if words.eat("within") {
            let at = words.before();
            if operator != Some(Operator::About) {
                let said = Diagnostic::error("within-without-about", "`within` goes with `~` only", at);
                return self.fail(said.hint("write `left ~ right within d`, or take it away"));
            }
            within = Some(words.real_that("a positive number", |within| within > 0.0)?.value);
        }
        let at_step = self.claim_moment(&mut words)?;
        words.finish()?;
        let relation = match (operator, within) {
            (Some(Operator::About), Some(within)) => Relation::Equivalent { within },
            (Some(Operator::About), None) => {
                let at = compared.map_or(span, |(_, at, ..)| at);
                let said = Diagnostic::error("missing-margin", "`~` needs a margin", at);
                return self.fail(said.hint("add `within d`, set before the runs are seen"));
            }
            (Some(Operator::Less), _) => Relation::Less,
            (Some(_), _) => Relation::Greater,
            (None, _) => Relation::Overtakes { after_grow: grow },
        };
        let (left, right) = (left?, right?);
        is_new?;
        if !left.differs_from(&right) {
            let message = if left.terms.len() + right.terms.len() > 0 {
                "both sides are the same, whatever is measured"
            } else {
                "no metric is compared"
            };
            let said = Diagnostic::error("claims-nothing", message, statement.value_span());
            return self.fail(said.hint("compare two arms, `validation_ce[a] < validation_ce[b]`"));
        }
        let text = match (statement.said.first(), statement.said.last()) {
            (Some(first), Some(last)) => self.text(first.span.to(last.span)),
            _ => String::new(),
        };
        Some(Claimed { name, doc: statement.doc, text, relation, left, right, at_step, grow_span })
    }

    /// `at step N`, `at end`.
    fn claim_moment(&self, words: &mut Words<'_, 'a>) -> Option<Option<(u64, Span)>> {
        if !words.eat("at") || words.eat("end") {
            return Some(None);
        }
        words.expect("step")?;
        let first = words.before();
        let step = words.count_in(Some(Unit::Steps), 1, u64::MAX)?;
        Some(Some((step.value, words.since(first))))
    }

    /// The name of `control NAME: …` or `claim NAME: …`.
    pub(super) fn label(&self, statement: &Statement<'a>) -> Option<(&'a str, Span)> {
        match statement.label {
            Some([Expr { kind: ExprKind::Name(name), span }]) if !name.contains('.') => Some((name, *span)),
            Some([]) => {
                let message = format!("a name is missing after `{}`", statement.head);
                self.fail(Diagnostic::error("missing-value", message, statement.head_span))
            }
            Some(parts) => {
                let at = parts.last().map_or(statement.head_span, |last| parts[0].span.to(last.span));
                self.fail(Diagnostic::error("unexpected-words", format!("expected one name after `{}`", statement.head), at))
            }
            None => {
                let said = Diagnostic::error(
                    "missing-colon",
                    format!("`{}` takes a name and a colon", statement.head),
                    statement.head_span,
                );
                self.fail(said.hint(format!("write `{} NAME: …`", statement.head)))
            }
        }
    }

    fn side(&self, expr: &'a Expr, field: Option<&Field<'_, 'a>>, scope: Scope<'_, 'a>) -> Option<Side> {
        let mut side = Side::default();
        self.linear(expr, 1.0, field, scope, &mut side)?;
        Some(side)
    }

    fn linear(
        &self,
        expr: &'a Expr,
        factor: f64,
        field: Option<&Field<'_, 'a>>,
        scope: Scope<'_, 'a>,
        side: &mut Side,
    ) -> Option<()> {
        match &expr.kind {
            ExprKind::Group(inner) => self.linear(inner, factor, field, scope, side),
            ExprKind::Negate(inner) => self.linear(inner, -factor, field, scope, side),
            ExprKind::Binary { operator: operator @ (Operator::Plus | Operator::Minus), left, right, .. } => {
                let left = self.linear(left, factor, field, scope, side);
                let sign = if *operator == Operator::Plus { factor } else { -factor };
                let right = self.linear(right, sign, field, scope, side);
                left.and(right)
            }
            ExprKind::Binary { operator: Operator::Times, left, right, .. } if reads(left) != reads(right) => {
                let (number, term) = if reads(left) { (right, left) } else { (left, right) };
                let number = self.amount(number, scope);
                self.linear(term, factor * number?.value, field, scope, side)
            }
            ExprKind::Binary { operator: Operator::Over, left, right, .. } if !reads(right) && reads(left) => {
                let number = self.amount(right, scope)?.value;
                self.finite(1.0 / number, expr.span)?;
                self.linear(left, factor / number, field, scope, side)
            }
            ExprKind::Binary { operator_span, .. } if reads(expr) => {
                let said =
                    Diagnostic::error("unexpected-operator", "a claim takes sums and differences of metrics", *operator_span);
                self.fail(said)
            }
            ExprKind::Index { base, arguments } => {
                self.metric_of(base.text.as_str(), base.span, arguments, expr.span, field, factor, side)
            }
            ExprKind::Name(name) if Metric::ALL.iter().any(|metric| metric.name() == name) => {
                self.metric_of(name, expr.span, &[], expr.span, field, factor, side)
            }
            ExprKind::Name(name) if !self.is_bound(name, scope) => self.metric(name, expr.span).map(|_| ()),
            _ => {
                side.constant += factor * self.amount(expr, scope)?.value;
                Some(())
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the place and the words of one term")]
    fn metric_of(
        &self,
        name: &str,
        at: Span,
        arguments: &'a [Argument],
        span: Span,
        field: Option<&Field<'_, 'a>>,
        factor: f64,
        side: &mut Side,
    ) -> Option<()> {
        let metric = self.metric(name, at);
        let chosen = match field {
            Some(field) => Some(field.choose(self, arguments, span)?),
            None => None,
        };
        let text = arguments.first().zip(arguments.last()).map_or(String::new(), |(first, last)| {
            let start = first.key.as_ref().map_or(first.value.span, |key| key.span);
            self.text(start.to(last.value.span))
        });
        side.kl = side.kl.or((metric == Some(Metric::Kl)).then_some(at));
        side.terms.push((factor, metric?, chosen?, text));
        Some(())
    }
}

/// Whether an expression reads a metric.
fn reads(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Index { .. } => true,
        ExprKind::Name(name) => Metric::ALL.iter().any(|metric| metric.name() == name),
        ExprKind::Group(inner) | ExprKind::Negate(inner) => reads(inner),
        ExprKind::Binary { left, right, .. } => reads(left) || reads(right),
        _ => false,
    }
}
