//! Arguments of calls that the language itself knows: `adamw(lr: 1e-3, …)`.
//!
//! Owns keys, the first argument's right to go without one, and arguments given by an axis or `with`.

use super::Checker;
use super::names::{listed, twice};
use super::record::{Env, Given, Scope};
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Argument, Expr, ExprKind, Word};

/// Arguments by parameter.
pub(super) struct Taken<'a> {
    values: Vec<(&'static str, Value<'a>)>,
    /// Something was wrong with them.
    pub(super) poisoned: bool,
    span: Span,
}

struct Value<'a> {
    said: &'a [Expr],
    span: Span,
    /// Where it is read, if elsewhere than the call.
    env: Option<Env<'a>>,
}

impl<'a> Checker<'a> {
    /// Sorts the arguments of `part`, a call or a bare word, by parameter.
    pub(super) fn arguments(&self, part: &'a Expr, parameters: &[&'static str], given: &[Given<'a>]) -> Taken<'a> {
        let (callee, arguments) = match &part.kind {
            ExprKind::Call { callee, arguments } => (callee.text.as_str(), arguments.as_slice()),
            _ => ("", &[][..]),
        };
        let mut taken = Taken { values: Vec::new(), poisoned: false, span: part.span };
        for given in given {
            if let Some(parameter) = parameters.iter().find(|parameter| **parameter == given.name) {
                given.used.set(true);
                taken.values.retain(|(name, _)| name != parameter);
                let value = Value { said: given.said, span: given.name_span, env: Some(given.env.clone()) };
                taken.values.push((parameter, value));
            } else {
                given.known.borrow_mut().extend(parameters);
            }
        }
        let overridden: Vec<&str> = taken.values.iter().map(|(name, _)| *name).collect();
        let mut firsts: Vec<(&str, Span)> = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            let Some((name, span)) = self.parameter(argument, index, parameters, callee) else {
                taken.poisoned = true;
                continue;
            };
            if let Some((_, first)) = firsts.iter().find(|(other, _)| *other == name) {
                self.say(twice(format!("`{name}`"), span, *first));
                taken.poisoned = true;
                continue;
            }
            firsts.push((name, span));
            if !overridden.contains(&name) {
                taken.values.push((name, Value { said: &argument.value.parts, span: argument.value.span, env: None }));
            }
        }
        taken
    }

    fn parameter(
        &self,
        argument: &'a Argument,
        index: usize,
        parameters: &[&'static str],
        callee: &str,
    ) -> Option<(&'static str, Span)> {
        match &argument.key {
            Some(key) => match parameters.iter().find(|parameter| **parameter == key.text) {
                Some(parameter) => Some((parameter, key.span)),
                None => self.fail(unknown_argument(key, callee, parameters.iter().copied())),
            },
            None => match parameters.first() {
                Some(parameter) if index == 0 => {
                    self.note_keyless(argument.value.span, parameter);
                    Some((parameter, argument.value.span))
                }
                _ => self.fail(keyless(argument, parameters.get(index).copied())),
            },
        }
    }
}

impl<'a> Taken<'a> {
    /// The words of an argument, if it is given.
    pub(super) fn get<'c>(&'c self, name: &str, words: &Words<'c, 'a>) -> Option<Words<'c, 'a>> {
        let (_, value) = self.values.iter().find(|(parameter, _)| *parameter == name)?;
        let scope = match &value.env {
            Some(env) => Scope { env, ..words.scope },
            None => words.scope,
        };
        Some(words.checker.words(value.said, value.span, scope))
    }

    /// Reads an argument to its end; `Some(None)` if it is not given, `None` if it is wrong.
    pub(super) fn read<'c, T>(
        &'c self,
        name: &str,
        words: &Words<'c, 'a>,
        read: impl FnOnce(&mut Words<'c, 'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        let Some(mut inner) = self.get(name, words) else { return Some(None) };
        let value = read(&mut inner)?;
        inner.finish().map(|()| Some(value))
    }

    /// Reads an argument that has to be given.
    pub(super) fn need<'c, T>(
        &'c self,
        name: &str,
        words: &Words<'c, 'a>,
        read: impl FnOnce(&mut Words<'c, 'a>) -> Option<T>,
    ) -> Option<T> {
        match self.read(name, words, read)? {
            Some(value) => Some(value),
            None if self.poisoned => None,
            None => words.checker.fail(Diagnostic::error("missing-argument", format!("`{name}` is missing here"), self.span)),
        }
    }
}

/// A key that no parameter has.
pub(super) fn unknown_argument<'s>(key: &Word, callee: &str, known: impl Iterator<Item = &'s str> + Clone) -> Diagnostic {
    let message = format!("`{callee}` has no parameter `{}`", key.text);
    let said = Diagnostic::error("unknown-argument", message, key.span);
    said.did_you_mean_or(&key.text, known.clone(), || {
        let known = listed(known, "and");
        Some(if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {known}") })
    })
}

/// An argument behind the first that has no key.
pub(super) fn keyless(argument: &Argument, probably: Option<&str>) -> Diagnostic {
    let said = Diagnostic::error("missing-key", "only the first argument may go without its key", argument.value.span);
    match probably {
        Some(name) => said.hint(format!("write `{name}: …`")),
        None => said,
    }
}
