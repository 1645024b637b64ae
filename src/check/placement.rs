//! `placement` declarations: which equation stands where.
//!
//! Owns the fields and their branches. Knows no algebra: `equation` reads that.

use super::Checker;
use super::equation::{Place, Reader};
use super::names::{Kind, twice};
use super::record::{Record, Scope, Statement};
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::study::Placement;
use crate::study::equation::{Branches, Condition, Equation, Scalar};
use crate::study::placement::{Body, InitFactor, Weight};
use crate::syntax::ast::{Argument, Expr, ExprKind, ItemContent, Operator};

const WEIGHTS: [(&str, Weight); 7] = [
    ("q", Weight::Q),
    ("k", Weight::K),
    ("v", Weight::V),
    ("o", Weight::O),
    ("gate", Weight::Gate),
    ("up", Weight::Up),
    ("down", Weight::Down),
];

impl<'a> Checker<'a> {
    /// Reads a `placement` declaration.
    pub(super) fn placement(&self, record: &Record<'a>) -> Option<Placement> {
        let entry = self.single(record, "entry", Place::Entry);
        let body = record.field("body").map(|statement| match statement.head {
            "layer" => Some(Body::Layer(self.branches(statement, Place::Layer)?)),
            _ => {
                let attention = self.branches(statement, Place::Attention);
                let ffn = self.branches(statement, Place::Ffn);
                Some(Body::Sublayers { attention: attention?, ffn: ffn? })
            }
        });
        let boundary = self.single(record, "boundary", Place::Boundary);
        let exit = self.single(record, "exit", Place::Exit);
        let init = record.field("init").map_or(Some(Vec::new()), |statement| self.factors(statement));
        self.complete(record, &[("body", "sublayer` or `layer")])?;
        Some(Placement {
            name: record.name.to_owned(),
            doc: record.doc.map(str::to_owned),
            entry: entry?,
            body: body??,
            boundary: boundary?,
            exit: exit?,
            init: init?,
        })
    }

    /// A placement of the standard library, which need not be in sight.
    pub(super) fn standard_placement(&self, name: &str) -> Option<(Placement, Record<'a>)> {
        let unit = self.units.iter().position(|unit| self.sources.get(unit.file).name == "std.placements");
        let declared = unit.and_then(|unit| self.names[unit].of(Kind::Placement).find(|d| d.declaration.name.text == name));
        match declared {
            Some(declared) => {
                let record = self.plain(declared, declared.declaration.name.span)?;
                Some((self.placement(&record)?, record))
            }
            // The library is loaded with every check.
            None => None,
        }
    }

    fn single(&self, record: &Record<'a>, key: &str, place: Place) -> Option<Option<Equation>> {
        let Some(statement) = record.field(key) else { return Some(None) };
        let branches = self.branches(statement, place)?;
        if branches.cases.is_empty() {
            return Some(Some(branches.otherwise));
        }
        let message = format!("`when` is for `sublayer` and `layer`, `{key}` stands once");
        self.fail(Diagnostic::error("unexpected-words", message, statement.value_span()))
    }

    /// `A when c, B when d, otherwise C`.
    fn branches(&self, statement: &Statement<'a>, place: Place) -> Option<Branches> {
        let scope = Scope { env: &statement.env, record: None };
        if statement.label.is_some() {
            let message = format!("`{}` takes no colon", statement.head);
            return self.fail(Diagnostic::error("unexpected-colon", message, statement.head_span));
        }
        let mut parts: Vec<&'a Expr> = statement.said.iter().collect();
        for item in &statement.more {
            match (&item.content, parts.is_empty()) {
                (ItemContent::Phrase(content), _) if item.label.is_none() => {
                    // What follows a finished equation is a misspelt field.
                    let goes_on =
                        matches!(parts.iter().rev().nth(1), Some(Expr { kind: ExprKind::Name(word), .. }) if word == "when");
                    let misspelt = match parts.as_slice() {
                        [.., Expr { kind: ExprKind::Name(word), span }, _] if nearest(word, ["when"]).is_some() => {
                            Some((word, *span))
                        }
                        _ => None,
                    };
                    if let Some((word, span)) = misspelt {
                        return self.fail(super::words::unknown_word(word, span, "`when`", &["when"]));
                    }
                    if !goes_on {
                        return self.left_over(statement, item);
                    }
                    parts.extend(&content.parts);
                }
                _ => return self.left_over(statement, item),
            }
        }
        let mut parts = parts.into_iter().peekable();
        let mut cases = Vec::new();
        let mut fine = Some(());
        let is_word =
            |part: Option<&&'a Expr>, word: &str| matches!(part, Some(Expr { kind: ExprKind::Name(name), .. }) if name == word);
        loop {
            let otherwise = parts.next_if(|part| is_word(Some(part), "otherwise"));
            if let (false, None, Some(Expr { kind: ExprKind::Name(name), span })) = (cases.is_empty(), otherwise, parts.peek())
                && nearest(name, ["otherwise"]).is_some()
            {
                return self.fail(super::words::unknown_word(name, *span, "`otherwise` or an equation", &["otherwise"]));
            }
            let Some(part) = parts.next() else {
                let at = otherwise.map_or_else(|| statement.comma.unwrap_or(statement.head_span), |word| word.span);
                let said = if cases.is_empty() {
                    Diagnostic::error("missing-value", format!("an equation is missing after `{}`", statement.head), at)
                } else {
                    Diagnostic::error("missing-otherwise", "what holds otherwise is missing", statement.value_span())
                        .hint("add `, otherwise …`")
                };
                return self.fail(said);
            };
            let equation = self.equation(part, scope, place);
            if otherwise.is_none() && parts.next_if(|part| is_word(Some(part), "when")).is_some() {
                let Some(condition) = parts.next() else {
                    return self.fail(Diagnostic::error("missing-value", "a condition is missing after `when`", part.span));
                };
                match (equation, self.condition(condition, scope, place)) {
                    (Some(equation), Some(condition)) => cases.push((condition, equation)),
                    _ => fine = None,
                }
                if parts.peek().is_none() && fine.is_none() {
                    return None;
                }
                continue;
            }
            if let Some(extra) = parts.next() {
                if !matches!(extra.kind, ExprKind::Bad) {
                    let message = format!("`{}` has no meaning here", self.text(extra.span));
                    self.say(Diagnostic::error("unexpected-words", message, extra.span));
                }
                return None;
            }
            fine?;
            return Some(Branches { cases, otherwise: equation? });
        }
    }

    fn condition(&self, expr: &'a Expr, scope: Scope<'_, 'a>, place: Place) -> Option<Condition> {
        use crate::study::equation::Comparison;
        if let ExprKind::Group(inner) = &expr.kind {
            return self.condition(inner, scope, place);
        }
        let ExprKind::Binary { operator, left, right, .. } = &expr.kind else {
            return self.comparison_wanted(expr);
        };
        let comparison = match operator {
            Operator::Less => Comparison::Less,
            Operator::LessEqual => Comparison::LessEqual,
            Operator::Greater => Comparison::Greater,
            Operator::GreaterEqual => Comparison::GreaterEqual,
            Operator::Equal => Comparison::Equal,
            Operator::NotEqual => Comparison::NotEqual,
            _ => return self.comparison_wanted(expr),
        };
        let mut reader = Reader::new(self, place, expr.span);
        let (left, right) = (reader.scalar(left, scope), reader.scalar(right, scope));
        Some(Condition { comparison, left: left?, right: right? })
    }

    fn comparison_wanted<T>(&self, expr: &Expr) -> Option<T> {
        if matches!(expr.kind, ExprKind::Bad) {
            return None;
        }
        let said = Diagnostic::error("wrong-type", "a comparison is wanted after `when`", expr.span);
        self.fail(said.hint("for example `l == 1`"))
    }

    /// `init (v, o, up, down) * beta`.
    fn factors(&self, statement: &Statement<'a>) -> Option<Vec<InitFactor>> {
        let scope = Scope { env: &statement.env, record: None };
        let mut phrases = vec![(statement.said, statement.head_span)];
        for item in &statement.more {
            match &item.content {
                ItemContent::Phrase(content) if item.label.is_none() => phrases.push((&content.parts, item.span)),
                _ => return self.left_over(statement, item),
            }
        }
        let mut named: Vec<(Weight, Span)> = Vec::new();
        let factors = phrases.into_iter().map(|(said, span)| {
            let mut words = self.words(said, span, scope);
            let Some(part) = words.next() else { return words.missing("`(weights) * factor`") };
            let factor = self.factor(part, scope, &mut named)?;
            words.finish().map(|()| factor)
        });
        let factors: Vec<_> = factors.collect();
        factors.into_iter().collect()
    }

    fn factor(&self, expr: &'a Expr, scope: Scope<'_, 'a>, named: &mut Vec<(Weight, Span)>) -> Option<InitFactor> {
        let ExprKind::Binary { operator: operator @ (Operator::Times | Operator::Over), left, right, .. } = &expr.kind else {
            let said = Diagnostic::error("wrong-type", "expected `(weights) * factor`", expr.span);
            return if matches!(expr.kind, ExprKind::Bad) { None } else { self.fail(said) };
        };
        let number = Reader::new(self, Place::Init, expr.span).scalar(right, scope);
        let combine = |a: Scalar, b: Scalar| match operator {
            Operator::Times => super::equation::multiply(a, b),
            _ => super::equation::divide(a, b),
        };
        if let ExprKind::Binary { .. } = left.kind {
            let inner = self.factor(left, scope, named)?;
            return Some(InitFactor { factor: combine(inner.factor, number?), ..inner });
        }
        let weights = self.weights(left, named);
        Some(InitFactor { weights: weights?, factor: combine(Scalar::Number(1.0), number?) })
    }

    fn weights(&self, expr: &'a Expr, named: &mut Vec<(Weight, Span)>) -> Option<Vec<Weight>> {
        let mut one = |expr: &'a Expr| match &expr.kind {
            ExprKind::Name(name) => match WEIGHTS.iter().find(|(known, _)| known == name) {
                Some((_, weight)) => match named.iter().find(|(known, _)| known == weight) {
                    Some((_, first)) => self.fail(twice(format!("`{name}`"), expr.span, *first)),
                    None => {
                        named.push((*weight, expr.span));
                        Some(*weight)
                    }
                },
                None => self.fail(super::words::unknown_word(name, expr.span, "a weight", &WEIGHTS.map(|(known, _)| known))),
            },
            ExprKind::Bad => None,
            _ => self.fail(Diagnostic::error("wrong-type", "expected the names of weights", expr.span)),
        };
        match &expr.kind {
            ExprKind::Tuple(arguments) => {
                let all: Vec<_> = arguments
                    .iter()
                    .map(|argument| match argument {
                        Argument { key: None, value } if value.parts.len() == 1 => one(&value.parts[0]),
                        Argument { value, .. } => self.not_a_weight(value.span),
                    })
                    .collect();
                all.into_iter().collect()
            }
            ExprKind::Group(inner) => one(inner).map(|weight| vec![weight]),
            _ => one(expr).map(|weight| vec![weight]),
        }
    }

    fn not_a_weight<T>(&self, span: Span) -> Option<T> {
        self.fail(Diagnostic::error("wrong-type", "expected the names of weights", span))
    }
}
