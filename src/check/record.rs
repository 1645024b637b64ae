//! Declarations as records of fields, before they mean anything.
//!
//! Owns the replacing of fields (`with`, axes, controls) and the environments in which expressions are read: parameters and `let`s of
//! a declaration, then its fields, then the `let`s of its file. Knows no field's meaning.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use indexmap::IndexMap;

use super::expr::Amount;
use super::fields::Vocabulary;
use super::names::Kind;
use crate::source::Span;
use crate::study::Filled;
use crate::syntax::ast::{Expr, Item, Let};

/// Where names of an expression are looked up, inside a declaration.
#[derive(Clone)]
pub(super) struct Env<'a>(pub(super) Rc<Bindings<'a>>);

/// What an environment binds.
pub(super) struct Bindings<'a> {
    /// The unit whose `let`s and declarations are in sight.
    pub(super) unit: usize,
    /// Parameters of the declaration.
    pub(super) parameters: IndexMap<&'a str, Bound<'a>>,
    /// `let`s of the declaration's body.
    pub(super) lets: IndexMap<&'a str, &'a Let>,
    /// Fields of a declaration outside, whose values an argument may use.
    pub(super) outer: Vec<(&'static str, Option<Amount>)>,
}

/// The value of a parameter.
pub(super) struct Bound<'a> {
    /// The words; `None` for a parameter without a default in a declaration that is looked at on its own.
    pub(super) said: Option<&'a [Expr]>,
    /// Where they were written; `None` for a default, read in the environment itself.
    pub(super) env: Option<Env<'a>>,
    /// Their place.
    pub(super) span: Span,
}

impl<'a> Env<'a> {
    /// That of a unit's top level.
    pub(super) fn of_unit(unit: usize) -> Self {
        Env(Rc::new(Bindings { unit, parameters: IndexMap::new(), lets: IndexMap::new(), outer: Vec::new() }))
    }
    pub(super) fn unit(&self) -> usize {
        self.0.unit
    }
}

/// An environment, and the record whose field is being read.
#[derive(Clone, Copy)]
pub(super) struct Scope<'c, 'a> {
    pub(super) env: &'c Env<'a>,
    pub(super) record: Option<&'c Record<'a>>,
}

/// A field's statement.
#[derive(Clone)]
pub(super) struct Statement<'a> {
    /// What it gives.
    pub(super) key: &'static str,
    /// The word that it begins with; dotted inside `with`.
    pub(super) head: &'a str,
    pub(super) head_span: Span,
    /// The `///` text before it.
    pub(super) doc: Option<&'a str>,
    /// What stands between the head and a colon, where there is one.
    pub(super) label: Option<&'a [Expr]>,
    /// What it says.
    pub(super) said: &'a [Expr],
    /// Items after commas that belong to it.
    pub(super) more: Vec<&'a Item>,
    /// The comma behind its first item.
    pub(super) comma: Option<Span>,
    /// All of it.
    pub(super) span: Span,
    /// Where its names are looked up.
    pub(super) env: Env<'a>,
    /// Arguments that an axis or `with` gives or replaces.
    pub(super) given: Vec<Given<'a>>,
    /// Which words begin statements in its body, and what the body belongs to.
    pub(super) body: Rc<(Vocabulary, String)>,
}

impl<'a> Statement<'a> {
    /// The words that give the value; the head if there are none.
    pub(super) fn value_span(&self) -> Span {
        match (self.said.first(), self.said.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.head_span,
        }
    }
}

/// An argument given from outside: `optimizer.lr`.
#[derive(Clone)]
pub(super) struct Given<'a> {
    pub(super) name: &'a str,
    /// Where its name is written.
    pub(super) name_span: Span,
    pub(super) said: &'a [Expr],
    pub(super) env: Env<'a>,
    /// Whether a call had room for it.
    pub(super) used: Rc<Cell<bool>>,
    /// The parameters of calls that had none.
    pub(super) known: Rc<RefCell<Vec<&'static str>>>,
}

/// The fields of one declaration.
#[derive(Clone)]
pub(super) struct Record<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) doc: Option<&'a str>,
    /// `model student`, for messages and lists of defaults.
    pub(super) owner: String,
    /// Its name where it is declared.
    pub(super) name_span: Span,
    /// The bodies that gave its fields.
    pub(super) bodies: Vec<Span>,
    /// Statements by what they give; those that repeat are in `repeated`.
    pub(super) fields: IndexMap<&'static str, Statement<'a>>,
    /// Statements that may stand more than once, in order.
    pub(super) repeated: Vec<Statement<'a>>,
    /// Something in it is wrong: nothing is said about what seems missing.
    pub(super) poisoned: bool,
    /// Fields that statements which could not be read were probably meant to give.
    pub(super) lost: Vec<&'static str>,
    /// Where the words that stand for it are written, if it is referred to.
    pub(super) blame: Span,
    /// Defaults filled in while it is read.
    pub(super) filled: RefCell<Vec<Filled>>,
    /// Records that its fields stand for, by these fields; gathered for provenance alone.
    pub(super) inner: RefCell<Vec<(&'static str, Record<'a>)>>,
}

impl<'a> Record<'a> {
    /// Keeps a record that a field stands for, where provenance was asked for.
    pub(super) fn keep(&self, checker: &super::Checker<'a>, field: &'static str, record: Record<'a>) {
        if checker.traced.is_some() {
            self.inner.borrow_mut().push((field, record));
        }
    }
    pub(super) fn field(&self, key: &str) -> Option<&Statement<'a>> {
        self.fields.get(key)
    }
    /// Whether the declaration's own body gives a field, and neither `with` nor an axis nor a control.
    pub(super) fn is_own(&self, key: &str) -> bool {
        let inside = |body: &Span, span: Span| body.file == span.file && body.start <= span.start && span.end <= body.end;
        self.field(key).is_none_or(|statement| self.bodies.first().is_some_and(|body| inside(body, statement.span)))
    }
}
