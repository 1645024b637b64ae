//! Arithmetic on numbers and quantities, and what names stand for in it.
//!
//! Owns the order of look-up: parameters and `let`s of the declaration, its fields, the `let`s of the file. Whole numbers stay exact
//! under `+ - * / ^`. Knows units only as something that is kept, and lost by division.

use super::Checker;
use super::names::Kind;
use super::record::{Env, Record, Scope};
use super::units::Unit;
use super::words::{shown, wrong_unit};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Argument, Expr, ExprKind, Operator};

/// A number with what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amount {
    pub(super) value: f64,
    /// Its exact value, where it is a whole number.
    pub(super) whole: Option<u64>,
    /// Written with `%`.
    pub(super) percent: bool,
    pub(super) unit: Option<Unit>,
}

impl Amount {
    pub(super) fn of(value: f64) -> Self {
        // Below 2^53 every whole double is exact.
        let whole = ((0.0..9e15).contains(&value) && value == libm::floor(value)).then_some(value as u64);
        Self { value, whole, percent: false, unit: None }
    }
    pub(super) fn of_whole(whole: u64) -> Self {
        Self { value: whole as f64, whole: Some(whole), percent: false, unit: None }
    }
}

/// Names of fields that are numbers.
fn numeric(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Data => &["context"],
        Kind::Model => &["layers", "block", "width", "heads", "kv", "dim", "vocabulary"],
        Kind::Training => &["batch", "clip"],
        Kind::Teacher | Kind::Placement | Kind::Schedule | Kind::Study => &[],
    }
}

/// What a name stands for, as words and where to read them.
enum Found<'a> {
    Words(&'a [Expr], Env<'a>, Span),
    /// A parameter without a value.
    Open,
}

impl<'a> Checker<'a> {
    /// The value of an expression.
    pub(super) fn amount(&self, expr: &'a Expr, scope: Scope<'_, 'a>) -> Option<Amount> {
        match &expr.kind {
            ExprKind::Number(number) => {
                Some(Amount { value: number.value, whole: number.whole, percent: number.percent, unit: None })
            }
            ExprKind::Name(name) => self.amount_of(name, expr.span, scope),
            ExprKind::Group(inner) => self.amount(inner, scope),
            ExprKind::Tuple(arguments) => match arguments.as_slice() {
                [Argument { key: None, value }] => {
                    let mut words = self.words(&value.parts, expr.span, scope);
                    let amount = words.amount()?;
                    words.finish().map(|()| amount.value)
                }
                _ => self.number_wanted(expr, "a pair"),
            },
            ExprKind::Negate(inner) => {
                let inner = self.amount(inner, scope)?;
                let whole = (inner.whole == Some(0)).then_some(0);
                Some(Amount { value: -inner.value, whole, ..inner })
            }
            ExprKind::Binary { operator, operator_span, left, right } => {
                let (left, right) = (self.amount(left, scope), self.amount(right, scope));
                self.combine(*operator, *operator_span, left?, right?, expr.span)
            }
            ExprKind::Call { callee, arguments } => {
                let wanted = match callee.text.as_str() {
                    "sqrt" => 1,
                    "min" | "max" => 2,
                    name => {
                        let said = Diagnostic::error("unknown-function", format!("no function is called `{name}`"), callee.span);
                        return self
                            .fail(said.did_you_mean(name, ["sqrt", "min", "max"]).hint("known are `sqrt`, `min` and `max`"));
                    }
                };
                let values = self.operands(arguments, wanted, expr.span)?;
                let values: Vec<Option<Amount>> = values.iter().map(|value| self.amount(value, scope)).collect();
                let values = values.into_iter().collect::<Option<Vec<_>>>()?;
                match (callee.text.as_str(), values.as_slice()) {
                    ("min", [a, b]) => Some(if b.value < a.value { *b } else { *a }),
                    ("max", [a, b]) => Some(if b.value > a.value { *b } else { *a }),
                    (_, [a, ..]) => self.finite(libm::sqrt(a.value), expr.span),
                    _ => None,
                }
            }
            ExprKind::Bad => None,
            ExprKind::Text(_) => self.number_wanted(expr, "text"),
            ExprKind::List(_) => self.number_wanted(expr, "a list"),
            ExprKind::Block(_) => self.number_wanted(expr, "a block"),
            ExprKind::Range { .. } => self.number_wanted(expr, "a range"),
            ExprKind::Index { .. } => self.number_wanted(expr, "an index"),
        }
    }

    fn number_wanted<T>(&self, expr: &Expr, given: &str) -> Option<T> {
        let said = Diagnostic::error("wrong-type", format!("expected a number, found {given}"), expr.span);
        self.fail(if given == "text" { said.hint("take the quotation marks away") } else { said })
    }

    /// The operands of a function that takes `wanted` of them, without keys.
    pub(super) fn operands(&self, arguments: &'a [Argument], wanted: usize, span: Span) -> Option<Vec<&'a Expr>> {
        let plain = |argument: &'a Argument| match (&argument.key, argument.value.parts.as_slice()) {
            (None, [one]) => Some(one),
            _ => None,
        };
        let operands: Option<Vec<_>> = arguments.iter().map(plain).collect();
        match operands {
            Some(operands) if operands.len() == wanted => Some(operands),
            _ => {
                let message = format!("{wanted} value{} wanted in the parentheses", if wanted == 1 { " is" } else { "s are" });
                self.fail(Diagnostic::error("wrong-arguments", message, span))
            }
        }
    }

    /// A value that has to be a finite number.
    pub(super) fn finite(&self, value: f64, span: Span) -> Option<Amount> {
        if value.is_finite() {
            return Some(Amount::of(value));
        }
        self.fail(Diagnostic::error("not-finite", format!("this is {}", shown(value)), span))
    }

    fn combine(&self, operator: Operator, at: Span, left: Amount, right: Amount, span: Span) -> Option<Amount> {
        let unit = left.unit.or(right.unit);
        if let (Operator::Plus | Operator::Minus, Some(a), Some(b)) = (operator, left.unit, right.unit)
            && a != b
        {
            return self.fail(wrong_unit(a.name(), b.name(), span));
        }
        let whole = left.whole.zip(right.whole);
        let (value, whole) = match operator {
            Operator::Plus => (left.value + right.value, whole.and_then(|(a, b)| a.checked_add(b))),
            Operator::Minus => (left.value - right.value, whole.and_then(|(a, b)| a.checked_sub(b))),
            Operator::Times => (left.value * right.value, whole.and_then(|(a, b)| a.checked_mul(b))),
            Operator::Over => (left.value / right.value, whole.and_then(|(a, b)| (b > 0 && a % b == 0).then(|| a / b))),
            Operator::Power => {
                let power = |(a, b): (u64, u64)| a.checked_pow(u32::try_from(b).ok()?);
                (libm::pow(left.value, right.value), whole.and_then(power))
            }
            _ => {
                let said = Diagnostic::error("unexpected-operator", "a comparison stands where a number is wanted", at);
                return self.fail(said);
            }
        };
        let unit = match operator {
            Operator::Over if left.unit == right.unit => None,
            _ => unit,
        };
        let value = self.finite(value, span)?;
        Some(Amount { whole: whole.or(value.whole), percent: left.percent && right.percent, unit, ..value })
    }

    /// The value of a name.
    fn amount_of(&self, name: &str, span: Span, scope: Scope<'_, 'a>) -> Option<Amount> {
        self.note_binding(name, span, scope);
        self.note_number(span);
        match self.find(name, scope) {
            Some(Found::Open) => None,
            Some(Found::Words(said, env, written)) => self.guarded(said.as_ptr() as usize, span, || {
                // A `let` of the same body sees the same fields.
                let record = scope.record.filter(|_| env.is(scope.env));
                let scope = Scope { env: &env, record };
                let mut words = self.words(said, written, scope);
                let amount = words.amount()?;
                words.finish().map(|()| amount.value)
            }),
            None => match self.field_amount(name, scope) {
                Some(found) => found,
                None => self.unknown_value(name, span, scope),
            },
        }
    }

    /// Notes which `let` a name stands for, if it is one.
    fn note_binding(&self, name: &str, span: Span, scope: Scope<'_, 'a>) {
        let bindings = &scope.env.0;
        let inside = bindings.lets.get(name).map(|binding| binding.name.span);
        let hidden = bindings.parameters.contains_key(name) || self.is_field(name, scope);
        let outside = || self.names[bindings.unit].binding(name).filter(|_| !hidden).map(|(_, binding)| binding.name.span);
        if let Some(declared) = inside.or_else(outside) {
            self.note_name(span, declared);
        }
    }

    fn find(&self, name: &str, scope: Scope<'_, 'a>) -> Option<Found<'a>> {
        let bindings = &scope.env.0;
        if let Some(binding) = bindings.lets.get(name) {
            return Some(Found::Words(&binding.value.parts, scope.env.clone(), binding.value.span));
        }
        if let Some(bound) = bindings.parameters.get(name) {
            return Some(match bound.said {
                Some(said) => Found::Words(said, bound.env.clone().unwrap_or_else(|| scope.env.clone()), bound.span),
                None => Found::Open,
            });
        }
        // Fields of the declaration come before the `let`s of the file.
        if self.is_field(name, scope) {
            return None;
        }
        let (unit, binding) = self.names[bindings.unit].binding(name)?;
        Some(Found::Words(&binding.value.parts, Env::of_unit(unit), binding.value.span))
    }

    fn is_field(&self, name: &str, scope: Scope<'_, 'a>) -> bool {
        scope.record.is_some_and(|record| numeric(record.kind).contains(&name))
            || scope.env.0.outer.iter().any(|(field, _)| *field == name)
    }

    /// Whether a name has a value here.
    pub(super) fn is_bound(&self, name: &str, scope: Scope<'_, 'a>) -> bool {
        self.find(name, scope).is_some()
    }

    /// The value of another field; `None` if there is no such field, `Some(None)` if it is poisoned.
    fn field_amount(&self, name: &str, scope: Scope<'_, 'a>) -> Option<Option<Amount>> {
        if let Some(record) = scope.record
            && numeric(record.kind).contains(&name)
        {
            return Some(self.number_field(record, name));
        }
        scope.env.0.outer.iter().find(|(field, _)| *field == name).map(|(_, amount)| *amount)
    }

    /// A field as a plain number, for the expressions of its neighbours.
    fn number_field(&self, record: &Record<'a>, name: &str) -> Option<Amount> {
        let Some(statement) = record.field(name) else {
            return match name {
                "block" => Some(Amount::of_whole(super::defaults::BLOCK)),
                "kv" => self.number_field(record, "heads"),
                "dim" => {
                    let (width, heads) = (self.number_field(record, "width")?, self.number_field(record, "heads")?);
                    Some(Amount::of(width.value / heads.value))
                }
                // Its absence is said where the record is read.
                _ => None,
            };
        };
        self.guarded(statement.said.as_ptr() as usize, statement.head_span, || {
            let scope = Scope { env: &statement.env, record: Some(record) };
            let amount = self.said(statement, scope)?.amount()?;
            Some(Amount { unit: None, ..amount.value })
        })
    }

    /// The numeric fields of a record, for arguments that use them; `None` where one is wrong or missing, which has been said.
    pub(super) fn numbers(&self, record: &Record<'a>) -> Vec<(&'static str, Option<Amount>)> {
        numeric(record.kind).iter().map(|name| (*name, self.number_field(record, name))).collect()
    }

    fn unknown_value<T>(&self, name: &str, span: Span, scope: Scope<'_, 'a>) -> Option<T> {
        let bindings = &scope.env.0;
        if self.is_broken(bindings.unit, name) {
            return None;
        }
        let fields = scope.record.map_or(&[][..], |record| numeric(record.kind));
        let known = bindings.lets.keys().chain(bindings.parameters.keys()).copied();
        let known = known.chain(fields.iter().copied()).chain(self.names[bindings.unit].bindings());
        let said = Diagnostic::error("unknown-name", format!("no value is called `{name}`"), span);
        self.fail(said.did_you_mean(name, known))
    }

    /// Where the argument is written that a parameter stands for.
    pub(super) fn given_at(&self, name: &str, scope: Scope<'_, 'a>) -> Option<Span> {
        let bound = scope.env.0.parameters.get(name)?;
        let env = bound.env.as_ref()?;
        let passed_on = match bound.said {
            Some([Expr { kind: ExprKind::Name(name), .. }]) => self.given_at(name, Scope { env, record: None }),
            _ => None,
        };
        passed_on.or(Some(bound.span))
    }

    /// The text that a name stands for.
    pub(super) fn text_of(&self, name: &str, scope: Scope<'_, 'a>) -> Option<String> {
        match self.find(name, scope)? {
            Found::Words([Expr { kind: ExprKind::Text(text), .. }], ..) => Some(text.clone()),
            _ => None,
        }
    }

    /// The words that a parameter or a `let` stands for, and where to read them.
    pub(super) fn meaning(&self, name: &str, scope: Scope<'_, 'a>) -> Option<Option<(&'a [Expr], Env<'a>)>> {
        match self.find(name, scope)? {
            Found::Words(said, env, _) => Some(Some((said, env))),
            Found::Open => Some(None),
        }
    }
}

impl Env<'_> {
    /// Whether both are the same environment.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::rc::Rc::ptr_eq(&self.0, &other.0)
    }
}
