//! What the words of a value come to, and what the names in them stand for.
//!
//! Owns the second reading of values that are right, for provenance. Deliberately finds no fault. Invariant: only names that the first reading
//! took for a number or a declaration are looked up again.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Scope;
use super::units::Unit;
use super::words::shown;
use super::{Checker, FUEL, Kind};
use crate::source::Span;
use crate::syntax::ast::{Argument, Expr, ExprKind, Operator};
use crate::syntax::one_line;

/// What the first reading notes for the second.
#[derive(Debug, Default)]
pub(super) struct Traced {
    /// Names that were read as numbers.
    pub(super) numbers: BTreeSet<Span>,
    /// The parameters of arguments without a key.
    pub(super) keyless: BTreeMap<Span, String>,
}

/// A name in the words of a value, and what it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The name.
    pub name: String,
    /// What it is: a `let`, an `argument`, a parameter's `default`, a `field`, or the kind of a declaration.
    pub kind: &'static str,
    /// The words that it stands for; none for a declaration.
    pub value: Option<String>,
    /// Where these are, or the declaration's name is.
    pub at: Span,
    /// The word of the `use` that brought it here.
    pub taken: Option<Span>,
}

/// Names that stand for one another nest at most this deep in an answer.
const DEEPEST: usize = 16;

impl<'a> Checker<'a> {
    /// Notes that a name was read as a number.
    pub(super) fn note_number(&self, span: Span) {
        if let Some(traced) = &self.traced {
            traced.borrow_mut().numbers.insert(span);
        }
    }

    /// Notes which parameter an argument without a key is for.
    pub(super) fn note_keyless(&self, argument: Span, parameter: &str) {
        if let Some(traced) = &self.traced {
            traced.borrow_mut().keyless.insert(argument, parameter.to_owned());
        }
    }

    /// The parameter that an argument of a call is for.
    pub(super) fn parameter_of(&self, argument: &Argument) -> Option<String> {
        match &argument.key {
            Some(key) => Some(key.text.clone()),
            None => self.traced.as_ref()?.borrow().keyless.get(&argument.value.span).cloned(),
        }
    }

    fn is_read_as_number(&self, name: Span) -> bool {
        self.traced.as_ref().is_some_and(|traced| traced.borrow().numbers.contains(&name))
    }

    /// The words under `span` with every sum, product and name of a number worked out; `None` where there is none.
    pub(super) fn meant(&self, span: Span, parts: &[&'a [Expr]], scope: Scope<'_, 'a>) -> Option<String> {
        let mut found = Vec::new();
        for parts in parts {
            self.numbers_in(parts, scope, &mut found);
        }
        found.retain(|(at, _)| at.file == span.file && span.start <= at.start && at.end <= span.end);
        if found.is_empty() {
            return None;
        }
        let (text, mut meant, mut at) = (self.sources.text(span), String::new(), 0);
        for (place, value) in found {
            let (start, end) = ((place.start - span.start) as usize, (place.end - span.start) as usize);
            meant.push_str(text.get(at..start)?);
            meant.push_str(&value);
            at = end;
        }
        meant.push_str(text.get(at..)?);
        Some(one_line(&meant))
    }

    fn numbers_in(&self, parts: &'a [Expr], scope: Scope<'_, 'a>, found: &mut Vec<(Span, String)>) {
        for (index, part) in parts.iter().enumerate() {
            if self.is_number(part) {
                if !is_literal(part) {
                    let has_unit = matches!(parts.get(index + 1).map(|next| &next.kind), Some(ExprKind::Name(word)) if Unit::read(word).is_some());
                    self.fuel.set(FUEL);
                    found.extend(self.amount(part, scope).map(|amount| {
                        let number = match amount {
                            amount if amount.percent => format!("{}%", shown(100.0 * amount.value)),
                            amount => amount.whole.map_or_else(|| shown(amount.value), |whole| whole.to_string()),
                        };
                        let unit = amount.unit.filter(|_| !has_unit).map_or_else(String::new, |unit| format!(" {}", unit.name()));
                        (part.span, number + &unit)
                    }));
                }
                continue;
            }
            each_inside(part, &mut |inner| self.numbers_in(inner, scope, found));
        }
    }

    /// Whether an expression was read as a number.
    fn is_number(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Number(_) => true,
            ExprKind::Name(_) => self.is_read_as_number(expr.span),
            ExprKind::Group(inner) | ExprKind::Negate(inner) => self.is_number(inner),
            ExprKind::Binary { operator, left, right, .. } => {
                use Operator::{Minus, Over, Plus, Power, Times};
                matches!(operator, Plus | Minus | Times | Over | Power) && self.is_number(left) && self.is_number(right)
            }
            ExprKind::Call { callee, arguments } => {
                let plain = |argument: &Argument| matches!(argument.value.parts.as_slice(), [one] if self.is_number(one));
                matches!(callee.text.as_str(), "sqrt" | "min" | "max") && arguments.iter().all(plain)
            }
            _ => false,
        }
    }

    /// What the names in some words stand for, and the names in those, each once.
    pub(super) fn uses(&self, parts: &'a [Expr], scope: Scope<'_, 'a>, depth: usize, uses: &mut Vec<Use>) {
        for (index, part) in parts.iter().enumerate() {
            match &part.kind {
                ExprKind::Name(word) if index > 0 && Unit::read(word).is_some() => {}
                ExprKind::Name(name) => self.use_of(name, part.span, scope, depth, uses),
                ExprKind::Call { callee, .. } => self.use_of(&callee.text, callee.span, scope, depth, uses),
                _ => {}
            }
            each_inside(part, &mut |inner| self.uses(inner, scope, depth, uses));
        }
    }

    fn use_of(&self, name: &str, span: Span, scope: Scope<'_, 'a>, depth: usize, uses: &mut Vec<Use>) {
        let mut add = |found: Use| {
            let is_new = !uses.contains(&found);
            if is_new {
                uses.push(found);
            }
            is_new
        };
        let bindings = &scope.env.0;
        let is_local = bindings.lets.contains_key(name) || bindings.parameters.contains_key(name);
        let is_number = self.is_read_as_number(span);
        if let Some(Some((said, env))) = self.meaning(name, scope)
            && (is_local || is_number || self.text_of(name, scope).is_some())
        {
            let (Some(first), Some(last)) = (said.first(), said.last()) else { return };
            let at = first.span.to(last.span);
            let declared = self.names[bindings.unit].binding(name).map(|(_, binding)| binding.name.span);
            let taken = declared.filter(|_| !is_local).and_then(|declared| self.taken(span, declared));
            let bound = bindings.parameters.get(name).filter(|_| !bindings.lets.contains_key(name));
            let kind = bound.map_or("let", |bound| if bound.env.is_some() { "argument" } else { "default" });
            if add(Use { name: name.to_owned(), kind, value: Some(self.text(at)), at, taken }) && depth < DEEPEST {
                let record = scope.record.filter(|_| env.is(scope.env));
                self.uses(said, Scope { env: &env, record }, depth + 1, uses);
            }
        } else if is_number {
            let Some(statement) = scope.record.and_then(|record| record.field(name)) else { return };
            let at = statement.value_span();
            if add(Use { name: name.to_owned(), kind: "field", value: Some(self.text(at)), at, taken: None }) && depth < DEEPEST {
                self.uses(statement.said, Scope { env: &statement.env, ..scope }, depth + 1, uses);
            }
        } else if let Some((declared, kind)) = self.declaration_at(span) {
            add(Use { name: name.to_owned(), kind: kind.word(), value: None, at: declared, taken: self.taken(span, declared) });
        }
    }

    /// The name of the declaration that the name at `span` was found to stand for.
    fn declaration_at(&self, span: Span) -> Option<(Span, Kind)> {
        let named = self.named.borrow();
        let declared = named.iter().find(|named| named.at == span && named.declared != span)?.declared;
        let mut all = (0..self.units.len()).flat_map(|unit| self.names[unit].own(unit));
        let kind = all.find(|other| other.declaration.name.span == declared)?.kind;
        Some((declared, kind))
    }

    /// The word of the `use` that took what is `declared` into the file of `span`, if it stands elsewhere.
    fn taken(&self, span: Span, declared: Span) -> Option<Span> {
        if declared.file == span.file {
            return None;
        }
        let unit = self.units.iter().find(|unit| unit.file == span.file)?;
        let words = unit.tree.entries.iter().filter_map(|entry| match entry {
            crate::syntax::ast::Entry::Use(entry) => Some(&entry.names),
            _ => None,
        });
        let named = self.named.borrow();
        let is_it = |word: Span| named.iter().any(|named| named.at == word && named.declared == declared);
        words.flatten().map(|word| word.span).find(|word| is_it(*word))
    }
}

fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Number(_) => true,
        ExprKind::Negate(inner) => is_literal(inner),
        _ => false,
    }
}

/// Visits the phrases inside an expression.
pub(super) fn each_inside<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a [Expr])) {
    match &expr.kind {
        ExprKind::Call { arguments, .. }
        | ExprKind::Index { arguments, .. }
        | ExprKind::List(arguments)
        | ExprKind::Tuple(arguments) => arguments.iter().for_each(|argument| visit(&argument.value.parts)),
        ExprKind::Group(inner) | ExprKind::Negate(inner) => visit(std::slice::from_ref(inner)),
        ExprKind::Binary { left, right, .. } => {
            visit(std::slice::from_ref(left));
            visit(std::slice::from_ref(right));
        }
        ExprKind::Number(_)
        | ExprKind::Range { .. }
        | ExprKind::Text(_)
        | ExprKind::Name(_)
        | ExprKind::Block(_)
        | ExprKind::Bad => {}
    }
}
