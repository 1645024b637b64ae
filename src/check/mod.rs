//! Tree to study: names are resolved, units checked, defaults filled in, arms expanded.
//!
//! Owns the vocabulary of the language and all that is said about a file that breaks it. Deliberately knows no store, no tensor and
//! no clock. Invariants: this is the only maker of a [`Study`] from text; a study is handed on only if nothing in its file is wrong;
//! what is wrong is said once, at the words at fault, and what depends on it stays silent.

mod arguments;
mod arms;
mod asked;
mod axes;
mod claims;
mod controls;
mod data;
mod defaults;
mod equation;
pub mod explain;
mod expr;
mod fields;
mod load;
mod meaning;
mod measures;
mod model;
mod names;
mod origin;
mod parts;
mod placement;
mod recipe;
mod record;
mod reference;
mod schedule;
mod study;
mod taught;
mod teacher;
mod training;
mod units;
mod words;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};

use crate::diagnostic::{Diagnostic, Problems, Severity};
use crate::source::{FileId, Source, Sources, Span, World};
use crate::study::Study;
use crate::syntax::one_line;

pub use self::asked::arms;
pub use self::fields::{begins_statement, fields_of, takes};
use self::load::Unit;
use self::meaning::Traced;
pub use self::meaning::Use;
use self::names::{Kind, Names};
pub use self::origin::{Origin, Provenance};
pub use self::schedule::{ACTIONS, SETTABLE};
pub use self::training::LOSSES;

/// Names of the standard library with their texts.
pub const LIBRARY: [(&str, &str); 2] = [
    ("std.placements", include_str!("../../stdlib/placements.exp")),
    ("std.schedules", include_str!("../../stdlib/schedules.exp")),
];

/// What checking a file gives.
#[derive(Debug)]
pub struct Checked {
    /// Every text that was read, for drawing diagnostics.
    pub sources: Sources,
    /// All that is to be said, about all texts.
    pub problems: Problems,
    /// The studies of the file in its order; empty if anything is wrong.
    pub studies: Vec<Study>,
    /// Where the values of the studies come from, if that was asked for ([`traced`]).
    pub origins: Vec<Provenance>,
    /// Every place where a name stands for a declaration or a `let`, its own place included.
    pub names: Vec<Named>,
}

/// A name and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Where it stands.
    pub at: Span,
    /// Where it is declared.
    pub declared: Span,
}

/// Checks a file and what it uses.
pub fn check(world: &dyn World, root: Source) -> Checked {
    read(world, root, None)
}

/// As [`check`], and says where every value comes from.
pub fn traced(world: &dyn World, root: Source) -> Checked {
    read(world, root, Some(RefCell::default()))
}

fn read(world: &dyn World, root: Source, traced: Option<RefCell<Traced>>) -> Checked {
    let loaded = load::load(world, root);
    let (studies, origins, problems, names) = {
        let checker = Checker { traced, ..Checker::new(&loaded.sources, &loaded.units, loaded.said) };
        let (studies, origins) = checker.file();
        (studies, origins, checker.said.into_inner().list, checker.named.into_inner().into_iter().collect())
    };
    let studies = if problems.has_errors() { Vec::new() } else { studies };
    Checked { sources: loaded.sources, problems, studies, origins, names }
}

/// Names evaluated in one check; a chain of `let`s that doubles at each link would otherwise take for ever.
const FUEL: u32 = 2_000_000;
/// Names and declarations that stand for one another nest at most this deep.
const DEEPEST: usize = 64;

/// What every part of the check shares.
struct Checker<'a> {
    sources: &'a Sources,
    units: &'a [Unit],
    names: Vec<Names<'a>>,
    said: RefCell<Said>,
    named: RefCell<BTreeSet<Named>>,
    /// Where errors begin that are about what could not be read.
    unreadable: BTreeSet<(FileId, u32)>,
    /// Addresses of what is being evaluated, to find cycles.
    active: RefCell<Vec<usize>>,
    /// Addresses on a cycle that has been said.
    circular: RefCell<HashSet<usize>>,
    fuel: Cell<u32>,
    /// What provenance needs, if it was asked for.
    traced: Option<RefCell<Traced>>,
}

/// Diagnostics, one for each place and code: a declaration that serves many arms is at fault once.
#[derive(Default)]
struct Said {
    list: Problems,
    /// How often something was said, listed or not.
    count: usize,
    seen: HashSet<(Span, &'static str)>,
    /// Where errors begin.
    errors: BTreeSet<(FileId, u32)>,
}

impl Said {
    fn push(&mut self, diagnostic: Diagnostic) {
        self.count += 1;
        if diagnostic.severity == Severity::Error {
            self.errors.insert((diagnostic.span.file, diagnostic.span.start));
        }
        self.list.push(diagnostic);
    }
}

/// Whether one of the places that are at fault lies inside `span`.
fn is_among(errors: &BTreeSet<(FileId, u32)>, span: Span) -> bool {
    errors.range((span.file, span.start)..(span.file, span.end.max(span.start + 1))).next().is_some()
}

impl<'a> Checker<'a> {
    fn new(sources: &'a Sources, units: &'a [Unit], unread: Problems) -> Self {
        let mut said = Said::default();
        unread.into_iter().for_each(|unread| said.push(unread));
        let (unreadable, said) = (said.errors.clone(), RefCell::new(said));
        let (active, circular, fuel) = (RefCell::default(), RefCell::default(), Cell::new(FUEL));
        let named = RefCell::default();
        let mut checker =
            Self { sources, units, names: Vec::new(), said, named, unreadable, active, circular, fuel, traced: None };
        // Units stand behind those that they use.
        for unit in 0..units.len() {
            let names = names::collect(&checker, unit);
            checker.names.push(names);
        }
        checker
    }

    /// What the file says of itself before its first declaration.
    fn about(&self) -> Option<&'a str> {
        self.units.last().and_then(|root| root.tree.doc.as_deref())
    }

    /// Notes what a name stands for.
    fn note_name(&self, at: Span, declared: Span) {
        self.named.borrow_mut().insert(Named { at, declared });
    }

    /// Adds a diagnostic.
    fn say(&self, diagnostic: Diagnostic) {
        let mut said = self.said.borrow_mut();
        if said.seen.insert((diagnostic.span, diagnostic.code)) {
            said.push(diagnostic);
        }
    }

    /// Adds a diagnostic; the value it is about is poisoned.
    fn fail<T>(&self, diagnostic: Diagnostic) -> Option<T> {
        self.say(diagnostic);
        None
    }

    /// What would be said by `attempt`, which leaves no trace.
    fn tried(&self, attempt: impl FnOnce()) -> Problems {
        let before = (self.said.take(), self.circular.borrow().clone(), self.fuel.get());
        attempt();
        self.circular.replace(before.1);
        self.fuel.set(before.2);
        self.said.replace(before.0).list
    }

    /// Whether an error has been said about words inside `span`.
    fn is_at_fault(&self, span: Span) -> bool {
        is_among(&self.said.borrow().errors, span)
    }

    /// Whether something inside `span` could not be read.
    fn is_unreadable(&self, span: Span) -> bool {
        is_among(&self.unreadable, span)
    }

    /// Whether so much is wrong that looking further serves nobody.
    fn has_enough(&self) -> bool {
        self.said.borrow().list.is_full()
    }

    /// Runs `evaluate`, which may come back here for the same `address`: that is a cycle.
    fn guarded<T>(&self, address: usize, span: Span, evaluate: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.circular.borrow().contains(&address) {
            return None;
        }
        let first = self.active.borrow().iter().position(|active| *active == address);
        if let Some(first) = first {
            self.circular.borrow_mut().extend(&self.active.borrow()[first..]);
            return self.fail(Diagnostic::error("cycle", "this is defined by itself", span));
        }
        let fuel = self.fuel.get();
        if fuel == 0 || self.active.borrow().len() >= DEEPEST {
            return self.fail(
                Diagnostic::error("too-deep", "names stand for one another too deeply", span).hint("write the value itself"),
            );
        }
        self.fuel.set(fuel - 1);
        self.active.borrow_mut().push(address);
        let value = evaluate();
        self.active.borrow_mut().pop();
        value
    }

    /// The words under a span on one line, spelled alike however they are laid out.
    fn text(&self, span: Span) -> String {
        one_line(self.sources.text(span))
    }
}
