//! Names by kind: what each file declares and takes from others.
//!
//! Owns resolution and the words for what is not found. Knows no fields. Invariant: a name that is missing because something else
//! went wrong is `broken`, and nothing more is said about it.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::{Checker, LIBRARY, load};
use crate::diagnostic::{Diagnostic, guess, near, nearest};
use crate::source::Span;
use crate::syntax::ast::{Declaration, Entry, Let, Use, Word};

/// Kinds of declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Data,
    Model,
    Teacher,
    Training,
    Placement,
    Schedule,
    Study,
}

impl Kind {
    pub(super) const ALL: [Kind; 7] =
        [Kind::Data, Kind::Model, Kind::Teacher, Kind::Training, Kind::Placement, Kind::Schedule, Kind::Study];

    /// The word of the language.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Model => "model",
            Kind::Teacher => "teacher",
            Kind::Training => "training",
            Kind::Placement => "placement",
            Kind::Schedule => "schedule",
            Kind::Study => "study",
        }
    }
    pub(super) fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A declaration and the unit that it stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared<'a> {
    pub(super) unit: usize,
    pub(super) kind: Kind,
    pub(super) declaration: &'a Declaration,
}

/// The names that one file can use.
#[derive(Default)]
pub(super) struct Names<'a> {
    declared: IndexMap<(Kind, &'a str), (Declared<'a>, Span)>,
    lets: IndexMap<&'a str, (usize, &'a Let, Span)>,
    broken: BTreeSet<&'a str>,
}

/// Gathers the names of a unit; those of the units that it uses are at hand.
pub(super) fn collect<'a>(checker: &Checker<'a>, unit: usize) -> Names<'a> {
    let mut names = Names::default();
    let this = &checker.units[unit];
    let mut uses = this.uses.iter();
    for entry in &this.tree.entries {
        match entry {
            Entry::Use(entry) => {
                let used = uses.next().copied().flatten();
                names.take(checker, entry, used);
            }
            Entry::Let(binding) => names.bind(checker, &binding.name.text, (unit, binding, binding.name.span)),
            Entry::Declaration(declaration) => names.declare(checker, unit, declaration),
        }
    }
    names
}

impl<'a> Names<'a> {
    fn declare(&mut self, checker: &Checker<'a>, unit: usize, declaration: &'a Declaration) {
        let Word { text, span } = &declaration.keyword;
        let name = &declaration.name;
        let Some(kind) = Kind::read(text) else {
            self.broken.insert(&name.text);
            let known = Kind::ALL.map(Kind::word);
            let said = Diagnostic::error("unknown-keyword", format!("`{text}` declares nothing"), *span);
            let said = said.did_you_mean(text, known.into_iter().chain(["use", "let"]));
            return checker.say(said.hint(format!("a declaration begins with {}", listed(known, "or"))));
        };
        self.insert(checker, &name.text, (Declared { unit, kind, declaration }, name.span));
    }

    fn insert(&mut self, checker: &Checker<'a>, name: &'a str, entry: (Declared<'a>, Span)) {
        let kind = entry.0.kind;
        checker.note_name(entry.1, entry.0.declaration.name.span);
        match self.declared.get(&(kind, name)) {
            Some((_, first)) => checker.say(twice(format!("the {} `{name}`", kind.word()), entry.1, *first)),
            None => drop(self.declared.insert((kind, name), entry)),
        }
    }

    fn bind(&mut self, checker: &Checker<'a>, name: &'a str, entry: (usize, &'a Let, Span)) {
        checker.note_name(entry.2, entry.1.name.span);
        match self.lets.get(name) {
            Some((_, _, first)) => checker.say(twice(format!("`{name}`"), entry.2, *first)),
            None => drop(self.lets.insert(name, entry)),
        }
    }

    fn take(&mut self, checker: &Checker<'a>, entry: &'a Use, used: Option<usize>) {
        let Some(used) = used else {
            self.broken.extend(entry.names.iter().map(|word| word.text.as_str()));
            return;
        };
        let theirs = &checker.names[used];
        for word in &entry.names {
            let name = word.text.as_str();
            let mut found = false;
            for kind in Kind::ALL {
                if let Some((declared, _)) = theirs.declared.get(&(kind, name)) {
                    found = true;
                    self.insert(checker, name, (*declared, word.span));
                }
            }
            if let Some((unit, binding, _)) = theirs.lets.get(name) {
                found = true;
                self.bind(checker, name, (*unit, binding, word.span));
            }
            if !found {
                self.broken.insert(name);
                if !theirs.broken.contains(name) {
                    let (from, _) = load::origin(&entry.from);
                    let known = theirs.declared.keys().map(|(_, name)| *name).chain(theirs.lets.keys().copied());
                    let message = format!("no `{name}` in {}", quoted(from));
                    // What was probably meant is not missing either.
                    self.broken.extend(near(name, known.clone()));
                    checker.say(Diagnostic::error("unknown-name", message, word.span).did_you_mean(name, known));
                }
            }
        }
    }

    /// All declarations of this file itself.
    pub(super) fn own(&self, unit: usize) -> impl Iterator<Item = Declared<'a>> {
        self.declared.values().map(|(declared, _)| *declared).filter(move |declared| declared.unit == unit)
    }

    /// All declarations of a kind that can be named here.
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = Declared<'a>> {
        self.declared.values().map(|(declared, _)| *declared).filter(move |declared| declared.kind == kind)
    }

    /// A `let` by its name, with its unit.
    pub(super) fn binding(&self, name: &str) -> Option<(usize, &'a Let)> {
        self.lets.get(name).map(|(unit, binding, _)| (*unit, *binding))
    }

    /// The names of `let`s.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &'a str> {
        self.lets.keys().copied()
    }
}

impl<'a> Checker<'a> {
    /// The declaration of a kind that `name` stands for in a unit.
    pub(super) fn declared(&self, unit: usize, kind: Kind, name: &str, span: Span) -> Option<Declared<'a>> {
        let names = &self.names[unit];
        if let Some((declared, _)) = names.declared.get(&(kind, name)) {
            // A name may be looked up for words that only imply it.
            if self.sources.text(span) == name {
                self.note_name(span, declared.declaration.name.span);
            }
            return Some(*declared);
        }
        if self.is_broken(unit, name) {
            return None;
        }
        let said = Diagnostic::error("unknown-name", format!("no {} is called `{name}`", kind.word()), span);
        let of_kind = |wanted: &(Kind, &'a str)| (wanted.0 == kind).then_some(wanted.1);
        let guess = guess(name, names.declared.keys().filter_map(of_kind));
        let said = match guess {
            Some(guess) => said.hint(guess),
            None => match Kind::ALL.into_iter().find(|other| names.declared.contains_key(&(*other, name))) {
                Some(other) => said.hint(format!("`{name}` is a {}", other.word())),
                None => match library_of(kind, name) {
                    Some(library) => said.hint(format!("take it from the standard library: `use {library} ({name})`")),
                    None => said,
                },
            },
        };
        self.fail(said)
    }

    /// Whether a name is missing because of something that has been said already.
    pub(super) fn is_broken(&self, unit: usize, name: &str) -> bool {
        if self.names.get(unit).is_some_and(|names| names.broken.contains(name)) {
            return true;
        }
        // A declaration or a `use` that could not be read is not in the tree, but its names stand in the text.
        let this = &self.units[unit];
        this.has_syntax_errors && stands_in(&self.sources.get(this.file).text, name)
    }
}

/// Whether a text has lines that declare, bind or use `name`, readable or not.
fn stands_in(text: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let lines = text.lines().scan(0, |start, line| {
        let at = *start;
        *start += line.len() + 1;
        Some((at, line.trim_start()))
    });
    lines.into_iter().any(|(at, line)| {
        let (keyword, rest) = line.split_at(line.find(|c| !is_letter(c)).unwrap_or(line.len()));
        if keyword == "use" || nearest(keyword, ["use"]).is_some() {
            let list = text.get(at..).and_then(|text| text.split(')').next()).unwrap_or("");
            return list.split(|c| !is_letter(c)).any(|word| word == name);
        }
        let rest = rest.trim_start().strip_prefix(name);
        let is_declared = rest.is_some_and(|rest| rest.trim_start().starts_with(['{', '(', '=']));
        is_declared && (keyword == "let" || Kind::read(keyword).is_some())
    })
}

fn library_of(kind: Kind, name: &str) -> Option<&'static str> {
    let heading = format!("{} {name}", kind.word());
    let declares =
        |text: &str| text.lines().any(|line| line.strip_prefix(&heading).is_some_and(|rest| rest.starts_with([' ', '('])));
    LIBRARY.into_iter().find(|(_, text)| declares(text)).map(|(library, _)| library)
}

/// Something is given a second time.
pub(super) fn twice(what: String, second: Span, first: Span) -> Diagnostic {
    Diagnostic::error("given-twice", format!("{what} is given twice"), second)
        .label("a second time")
        .note_at(first, "given here first")
        .hint("take one of them away")
}

/// `a`, `b` or `c`.
pub(super) fn listed<'s>(names: impl IntoIterator<Item = &'s str>, last: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

fn quoted(from: &str) -> String {
    if from.starts_with("std.") { format!("`{from}`") } else { format!("\"{from}\"") }
}
