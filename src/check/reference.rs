//! From words that stand for a declaration to its record: `grow(phase: 5 steps)`, `student with { width 256 }`.
//!
//! Owns the binding of parameters and the replacing of fields. Knows no field's meaning.

use std::cell::RefCell;
use std::rc::Rc;

use indexmap::IndexMap;

use super::Checker;
use super::arguments::{keyless, unknown_argument};
use super::equation::RESERVED;
use super::fields::{Vocabulary, lets};
use super::names::{Declared, Kind, twice};
use super::record::{Bindings, Bound, Env, Given, Record, Scope, Statement};
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Argument, DeclarationBody, Expr, ExprKind, Let, Word};

/// A call's arguments and where they stand.
struct Call<'c, 'a> {
    arguments: &'a [Argument],
    given: &'c [Given<'a>],
    scope: Option<Scope<'c, 'a>>,
    span: Span,
    /// Looked at on its own: parameters without a default stay open.
    alone: bool,
}

impl<'a> Checker<'a> {
    /// Reads a reference to a declaration.
    pub(super) fn reference(&self, kind: Kind, words: &mut Words<'_, 'a>) -> Option<Record<'a>> {
        let what = format!("the name of a {}", kind.word());
        let Some(part) = words.peek() else { return words.missing(&what) };
        let (name, span, arguments) = match &part.kind {
            ExprKind::Name(name) => (name.as_str(), part.span, &[][..]),
            ExprKind::Call { callee, arguments } => (callee.text.as_str(), callee.span, arguments.as_slice()),
            ExprKind::Bad => return None,
            _ => return words.missing(&what),
        };
        words.next();
        let declared = self.declared(words.scope.env.unit(), kind, name, span);
        let call = Call { arguments, given: words.given, scope: Some(words.scope), span: part.span, alone: false };
        let mut record = declared.and_then(|declared| self.record(declared, call));
        while words.eat("with") {
            record = self.replaced(record, words);
        }
        let mut record = record?;
        record.blame = words.since(part.span);
        Some(record)
    }

    /// Replaces the fields that the block behind `with` gives.
    fn replaced(&self, record: Option<Record<'a>>, words: &mut Words<'_, 'a>) -> Option<Record<'a>> {
        let Some(Expr { kind: ExprKind::Block(block), .. }) = words.next() else {
            return words.missing("`{ … }` after `with`");
        };
        let mut record = record?;
        let scope = words.scope;
        let env = self.environment(scope.env.unit(), lets(block), Some(scope), record.kind);
        let mut grouped = self.group(block, Vocabulary::With(record.kind), &env, &format!("`{}`", record.owner));
        self.once(&mut grouped, record.kind);
        record.poisoned |= grouped.poisoned;
        record.lost.append(&mut grouped.lost);
        record.bodies.push(block.span);
        // A whole field before its arguments, in whatever order they are written.
        grouped.statements.sort_by_key(|statement| statement.head.contains('.'));
        for statement in grouped.statements {
            self.replace(&mut record, statement);
        }
        Some(record)
    }

    /// Puts a statement in the place of the one that gave the same field, or adds one that repeats.
    pub(super) fn replace(&self, record: &mut Record<'a>, statement: Statement<'a>) {
        let Some((_, argument)) = statement.head.split_once('.') else {
            if super::fields::fields(record.kind).iter().any(|field| field.key == statement.key && field.repeats) {
                record.repeated.push(statement);
            } else {
                record.fields.insert(statement.key, statement);
            }
            return;
        };
        let given = Given {
            name: argument,
            name_span: statement.head_span,
            said: statement.said,
            env: statement.env.clone(),
            used: Rc::default(),
            known: Rc::default(),
        };
        self.give(record, statement.key, given);
    }

    /// Gives an argument of a field.
    pub(super) fn give(&self, record: &mut Record<'a>, key: &'static str, given: Given<'a>) {
        match record.fields.get_mut(key) {
            Some(statement) => statement.given.push(given),
            None if record.lost.contains(&key) => {}
            None => {
                record.poisoned = true;
                let message = format!("{} has no `{key}` whose `{}` could be given", record.owner, given.name);
                self.say(Diagnostic::error("unknown-field", message, given.name_span));
            }
        }
    }

    /// After a record has been read: arguments that no call had room for.
    pub(super) fn all_used(&self, record: &Record<'a>) -> Option<()> {
        let unused = record.fields.values().flat_map(|statement| statement.given.iter().map(move |given| (statement, given)));
        let mut fine = Some(());
        // What could not be read may have had room for them.
        let unused = unused.filter(|(statement, given)| !given.used.get() && !self.is_at_fault(statement.value_span()));
        for (statement, given) in unused {
            let message = format!("`{}` takes no `{}`", self.text(statement.value_span()), given.name);
            let said = Diagnostic::error("unknown-field", message, given.name_span);
            fine = self.fail(said.did_you_mean(given.name, given.known.borrow().iter().copied()));
        }
        fine
    }

    /// A declaration looked at on its own, its parameters at their defaults.
    pub(super) fn alone(&self, declared: Declared<'a>) -> Option<Record<'a>> {
        let span = declared.declaration.name.span;
        self.record(declared, Call { arguments: &[], given: &[], scope: None, span, alone: true })
    }

    /// A declaration named without arguments.
    pub(super) fn plain(&self, declared: Declared<'a>, blame: Span) -> Option<Record<'a>> {
        let record = self.record(declared, Call { arguments: &[], given: &[], scope: None, span: blame, alone: false });
        record.map(|record| Record { blame, ..record })
    }

    fn record(&self, declared: Declared<'a>, call: Call<'_, 'a>) -> Option<Record<'a>> {
        let Declared { unit, kind, declaration } = declared;
        let span = call.span;
        self.guarded(std::ptr::from_ref(declaration) as usize, span, || {
            let parameters = self.bind(&declaration.name, &declaration.parameters, kind, &call)?;
            let owner = format!("{} {}", kind.word(), declaration.name.text);
            let bindings = |lets: IndexMap<&'a str, _>| Env(Rc::new(Bindings { unit, parameters, lets, outer: Vec::new() }));
            let mut record = match &declaration.body {
                DeclarationBody::Block(block) => {
                    let env = bindings(self.local(lets(block), kind));
                    let mut grouped = self.group(block, Vocabulary::Of(kind), &env, &format!("`{owner}`"));
                    self.once(&mut grouped, kind);
                    let mut record = Record {
                        kind,
                        name: "",
                        doc: None,
                        owner: String::new(),
                        name_span: span,
                        bodies: vec![declaration.span],
                        fields: IndexMap::new(),
                        repeated: Vec::new(),
                        poisoned: grouped.poisoned,
                        lost: grouped.lost,
                        blame: span,
                        filled: RefCell::default(),
                        inner: RefCell::default(),
                    };
                    for statement in grouped.statements {
                        self.replace(&mut record, statement);
                    }
                    record
                }
                DeclarationBody::Derived(phrase) => {
                    let env = bindings(IndexMap::new());
                    let mut words = self.words(&phrase.parts, declaration.name.span, Scope { env: &env, record: None });
                    let record = self.reference(kind, &mut words)?;
                    words.finish()?;
                    record
                }
            };
            record.name = &declaration.name.text;
            record.doc = declaration.doc.as_deref().or(record.doc);
            record.owner = owner;
            record.name_span = declaration.name.span;
            record.blame = span;
            Some(record)
        })
    }

    fn local(&self, lets: impl Iterator<Item = &'a Let>, kind: Kind) -> IndexMap<&'a str, &'a Let> {
        let mut local: IndexMap<&'a str, &'a Let> = IndexMap::new();
        for binding in lets {
            let name = &binding.name;
            self.unreserved(&name.text, name.span, kind);
            match local.get(name.text.as_str()) {
                Some(first) => self.say(twice(format!("`{}`", name.text), name.span, first.name.span)),
                None => drop(local.insert(&name.text, binding)),
            }
        }
        local
    }

    /// An environment for a block inside another scope: the names of that scope stay in sight.
    pub(super) fn environment(
        &self,
        unit: usize,
        lets: impl Iterator<Item = &'a Let>,
        around: Option<Scope<'_, 'a>>,
        kind: Kind,
    ) -> Env<'a> {
        let local = self.local(lets, kind);
        let Some(around) = around else {
            return Env(Rc::new(Bindings { unit, parameters: IndexMap::new(), lets: local, outer: Vec::new() }));
        };
        if local.is_empty() {
            return around.env.clone();
        }
        // Names of the scope around become parameters that are read where they were written.
        let outer = &around.env.0;
        let reread = |span, said| Bound { said, env: Some(around.env.clone()), span };
        let lets = outer.lets.iter().map(|(name, binding)| (*name, reread(binding.span, Some(binding.value.parts.as_slice()))));
        let parameters = outer.parameters.iter().map(|(name, bound)| {
            let env = bound.env.clone().or_else(|| Some(around.env.clone()));
            (*name, Bound { said: bound.said, env, span: bound.span })
        });
        let parameters = parameters.chain(lets).collect();
        Env(Rc::new(Bindings { unit, parameters, lets: local, outer: outer.outer.clone() }))
    }

    fn unreserved(&self, name: &str, span: Span, kind: Kind) {
        if kind == Kind::Placement && RESERVED.contains(&name) {
            let message = format!("`{name}` has a meaning of its own in equations");
            self.say(Diagnostic::error("reserved-name", message, span).hint("choose another name"));
        }
    }

    /// Binds parameters to arguments.
    fn bind(
        &self,
        callee: &Word,
        parameters: &'a [Argument],
        kind: Kind,
        call: &Call<'_, 'a>,
    ) -> Option<IndexMap<&'a str, Bound<'a>>> {
        let mut fine = Some(());
        let mut bound: IndexMap<&'a str, Bound<'a>> = IndexMap::new();
        for parameter in parameters {
            let Some((name, span, default)) = self.parameter_name(parameter) else {
                fine = None;
                continue;
            };
            self.unreserved(name, span, kind);
            let value = Bound { said: default, env: None, span: parameter.value.span };
            if bound.insert(name, value).is_some() {
                fine = self.fail(Diagnostic::error("given-twice", format!("two parameters are called `{name}`"), span));
            }
        }
        let env = call.scope.map(|scope| self.outer(scope, call));
        let mut seen: Vec<(&str, Span)> = Vec::new();
        for (index, argument) in call.arguments.iter().enumerate() {
            let (name, span) = match &argument.key {
                Some(key) if bound.contains_key(key.text.as_str()) => (key.text.as_str(), key.span),
                Some(key) => {
                    fine = self.fail(unknown_argument(key, &callee.text, bound.keys().copied()));
                    continue;
                }
                None => match bound.get_index(index) {
                    Some((name, _)) if index == 0 => {
                        self.note_keyless(argument.value.span, name);
                        (*name, argument.value.span)
                    }
                    Some((name, _)) => {
                        fine = self.fail(keyless(argument, Some(name)));
                        continue;
                    }
                    None => {
                        let plural = if bound.len() == 1 { "" } else { "s" };
                        let message = format!("`{}` takes {} argument{plural}", callee.text, bound.len());
                        fine = self.fail(Diagnostic::error("wrong-arguments", message, argument.value.span));
                        continue;
                    }
                },
            };
            if let Some((_, first)) = seen.iter().find(|(other, _)| *other == name) {
                fine = self.fail(twice(format!("`{name}`"), span, *first));
                continue;
            }
            seen.push((name, span));
            if let Some(value) = bound.get_mut(name) {
                *value = Bound { said: Some(&argument.value.parts), env: env.clone(), span: argument.value.span };
            }
        }
        for given in call.given {
            if let Some(value) = bound.get_mut(given.name) {
                given.used.set(true);
                *value = Bound { said: Some(given.said), env: Some(given.env.clone()), span: given.name_span };
            }
        }
        let open = bound.iter().find(|(_, value)| value.said.is_none()).map(|(name, _)| *name);
        if let Some(name) = open.filter(|_| !call.alone && fine.is_some()) {
            let message = format!("`{}` needs a value for `{name}`", callee.text);
            fine = self.fail(Diagnostic::error("missing-argument", message, call.span));
        }
        fine.map(|()| bound)
    }

    /// The environment in which arguments are read: that of the caller, with the numbers of the record around.
    fn outer(&self, scope: Scope<'_, 'a>, call: &Call<'_, 'a>) -> Env<'a> {
        match scope.record {
            Some(record) if !call.arguments.is_empty() => {
                let numbers = self.numbers(record);
                let bindings = &scope.env.0;
                let again = |bound: &Bound<'a>| Bound {
                    said: bound.said,
                    env: Some(bound.env.clone().unwrap_or_else(|| scope.env.clone())),
                    span: bound.span,
                };
                let parameters = bindings.parameters.iter().map(|(name, bound)| (*name, again(bound))).collect();
                Env(Rc::new(Bindings { unit: bindings.unit, parameters, lets: bindings.lets.clone(), outer: numbers }))
            }
            _ => scope.env.clone(),
        }
    }

    /// A parameter's name and default: `alpha: 2 * L`, or `alpha` alone, which every use has to give.
    fn parameter_name(&self, parameter: &'a Argument) -> Option<(&'a str, Span, Option<&'a [Expr]>)> {
        match (&parameter.key, parameter.value.parts.as_slice()) {
            (Some(key), said) => Some((&key.text, key.span, Some(said))),
            (None, [Expr { kind: ExprKind::Name(name), span }]) => Some((name, *span, None)),
            _ => {
                let said = Diagnostic::error("unexpected-words", "a parameter is a name and its default", parameter.value.span);
                self.fail(said.hint("write `name: value`"))
            }
        }
    }
}
