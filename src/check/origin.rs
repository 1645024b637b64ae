//! Where the values of a study come from, so that `plan --explain training.lr` has an answer.
//!
//! Owns provenance alone; no value is made here. Invariant: what is told of an arm is what its record says, after every `with`, axis and
//! control.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::Checker;
use super::axes::{Replacement, Varied};
use super::fields::fields;
use super::meaning::{Use, each_inside};
use super::names::Kind;
use super::record::{Env, Given, Record, Scope, Statement};
use crate::source::Span;
use crate::study::Filled;
use crate::syntax::ast::{Expr, ExprKind, ItemContent};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// In these words, which stand where the text says: ``in `model student` ``, ``by the axis `lr` ``.
    Written(Span, String),
    /// Nowhere: a default, with its reason.
    Default(String),
}

/// The origin of one value of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// Name of the study.
    pub study: String,
    /// `training.lr`, `training.optimizer.lr`, `model.width`, `seeds`, `teacher.model.width`.
    pub path: String,
    /// The same with what fields give instead of their names: `files` and `generate` both give `data.text`.
    pub key: String,
    /// For which arms: `placement = post`, or names of arms; `None`: for all.
    pub arms: Option<String>,
    /// The value as written.
    pub value: String,
    /// The value with sums, products and names worked out, where there are any.
    pub meant: Option<String>,
    /// Where.
    pub origin: Origin,
    /// What the names in its words stand for.
    pub uses: Vec<Use>,
}

/// An arm as it was read.
pub(super) struct Read<'c, 'a> {
    pub(super) name: &'c str,
    /// Its values by axis.
    pub(super) values: &'c IndexMap<String, String>,
    pub(super) records: Vec<Record<'a>>,
    pub(super) replacements: Vec<&'c Replacement<'a>>,
}

/// Gathers the values of one arm after another.
struct Gathering<'c, 'a> {
    checker: &'c Checker<'a>,
    study: &'c Record<'a>,
    axes: &'c [Varied<'a>],
    /// By what tells values apart: the value and the arms that have it.
    found: IndexMap<String, (Provenance, Vec<usize>)>,
    arm: usize,
    /// Places in `found` of what was noted since this was emptied.
    noted: Vec<usize>,
}

impl<'a> Checker<'a> {
    /// Where the values of all arms of a study come from.
    pub(super) fn origins(
        &self,
        study: &Record<'a>,
        axes: &[Varied<'a>],
        arms: &[Read<'_, 'a>],
        filled: &[Filled],
    ) -> Vec<Provenance> {
        let mut gathering = Gathering { checker: self, study, axes, found: IndexMap::new(), arm: 0, noted: Vec::new() };
        // Arms whose part has the same replacements read the same record.
        let mut known: HashMap<(Kind, &str, Vec<usize>), Vec<usize>> = HashMap::new();
        for (arm, read) in arms.iter().enumerate() {
            gathering.arm = arm;
            let whole = |kind: Kind| {
                let mut all = read.replacements.iter();
                all.rfind(|one| one.target.part == kind && one.target.field.is_none() && one.target.argument.is_none())
            };
            gathering.record("", study, &|key| Kind::read(key).is_some_and(|kind| whole(kind).is_some()));
            for kind in super::axes::PARTS {
                if let Some(replacement) = whole(kind) {
                    gathering.statement("", kind.word(), study, &replacement.statement);
                }
            }
            for record in &read.records {
                let on = read.replacements.iter().filter(|one| one.target.part == record.kind).map(|one| one.id).collect();
                let of = (record.kind, record.name, on);
                if let Some(places) = known.get(&of) {
                    places.iter().for_each(|place| gathering.again(*place));
                    continue;
                }
                gathering.noted.clear();
                gathering.record(record.kind.word(), record, &|_| false);
                known.insert(of, gathering.noted.clone());
            }
        }
        for arm in 0..arms.len() {
            gathering.arm = arm;
            filled.iter().filter(|one| one.owner == study.owner).for_each(|one| gathering.default("", one));
        }
        let names: Vec<&Read<'_, 'a>> = arms.iter().collect();
        let found = gathering.found.into_values();
        found.map(|(one, of)| Provenance { arms: described(&of, &names), ..one }).collect()
    }

    /// Words that say where a span stands.
    fn stands(&self, span: Span, record: &Record<'a>, study: &Record<'a>, axes: &[Varied<'a>]) -> String {
        let inside = |body: &Span| body.file == span.file && body.start <= span.start && span.end <= body.end;
        let of_study = study.repeated.iter().find(|statement| inside(&statement.span));
        if let Some(axis) = axes.iter().find(|axis| axis.values.iter().any(|value| inside(&value.span))) {
            return format!("by the axis `{}`", axis.name);
        }
        // The words behind the name of a control.
        if let Some(statement) = of_study.filter(|statement| statement.key == "control")
            && let Some(name) = statement.label.and_then(<[Expr]>::first)
            && name.span.end <= span.start
        {
            return format!("by the control `{}`", self.text(name.span));
        }
        let mut all = (0..self.units.len()).flat_map(|unit| self.names[unit].own(unit));
        let around = all.find(|declared| inside(&declared.declaration.span));
        let owner = around.map_or_else(
            || record.owner.clone(),
            |declared| format!("{} {}", declared.kind.word(), declared.declaration.name.text),
        );
        let with = if record.bodies.iter().skip(1).any(inside) { "by `with` " } else { "" };
        format!("{with}in `{owner}`")
    }
}

impl<'a> Gathering<'_, 'a> {
    /// All that a record says; `passed` are fields that something else gives.
    fn record(&mut self, prefix: &str, record: &Record<'a>, passed: &dyn Fn(&str) -> bool) {
        for statement in record.fields.values().filter(|statement| !passed(statement.key)).chain(&record.repeated) {
            self.statement(prefix, name_of(record.kind, statement), record, statement);
        }
        self.parameters(prefix, record);
        for (field, inner) in record.inner.borrow().iter() {
            match (record.kind, *field) {
                (Kind::Model, "placement") if prefix == "model" => self.record("placement", inner, &|_| false),
                _ => self.record(&joined(prefix, field), inner, &|_| false),
            }
        }
        // A study's own defaults hold for all of its arms, and are told once these have been read.
        if record.kind != Kind::Study {
            for filled in record.filled.borrow().iter() {
                self.default(prefix, filled);
            }
        }
    }

    fn statement(&mut self, prefix: &str, name: &str, record: &Record<'a>, statement: &Statement<'a>) {
        let path = joined(prefix, name);
        let key = joined(prefix, if statement.key.is_empty() { name } else { statement.key });
        let scope = Scope { env: &statement.env, record: Some(record) };
        let mut phrases: Vec<&'a [Expr]> = statement.label.into_iter().collect();
        phrases.push(statement.said);
        for item in &statement.more {
            phrases.extend(item.label.as_ref().map(|label| label.parts.as_slice()));
            if let ItemContent::Phrase(content) = &item.content {
                phrases.push(&content.parts);
            }
        }
        let mut span = statement.value_span();
        if statement.label.is_some() || !statement.more.is_empty() {
            let first = phrases.iter().flat_map(|phrase| phrase.iter()).map(|part| part.span.start).min();
            span = Span { start: first.unwrap_or(span.start), end: statement.span.end, ..span };
        }
        self.add(record, (path.clone(), key.clone()), span, &phrases, scope);
        if record.kind == Kind::Study {
            // Arguments of a part are told with the part, for whose parameters they stand.
            return;
        }
        // An argument given from outside stands in the place of the one written.
        let given = |name: &str| statement.given.iter().any(|given| given.name == name);
        let mut arguments = Vec::new();
        for phrase in &phrases {
            self.arguments(phrase, &mut arguments);
        }
        for (name, said) in arguments.into_iter().filter(|(name, _)| !given(name)) {
            self.argument(record, (&path, &key), &name, said, scope);
        }
        for Given { name, said, env, .. } in &statement.given {
            self.argument(record, (&path, &key), name, said, Scope { env, record: Some(record) });
        }
    }

    fn argument(&mut self, record: &Record<'a>, (path, key): (&str, &str), name: &str, said: &'a [Expr], scope: Scope<'_, 'a>) {
        let (Some(first), Some(last)) = (said.first(), said.last()) else { return };
        self.add(record, (joined(path, name), joined(key, name)), first.span.to(last.span), &[said], scope);
    }

    /// Arguments of the calls in some words.
    fn arguments(&self, parts: &'a [Expr], found: &mut Vec<(String, &'a [Expr])>) {
        for part in parts {
            if let ExprKind::Call { arguments, .. } = &part.kind {
                let named = arguments
                    .iter()
                    .filter_map(|argument| Some((self.checker.parameter_of(argument)?, argument.value.parts.as_slice())));
                found.extend(named);
            }
            each_inside(part, &mut |inner| self.arguments(inner, found));
        }
    }

    /// The parameters of the declaration whose body a record was read from.
    fn parameters(&mut self, prefix: &str, record: &Record<'a>) {
        let Some(body) = record.bodies.first() else { return };
        let own = |statement: &&Statement<'a>| {
            body.file == statement.span.file && body.start <= statement.span.start && statement.span.end <= body.end
        };
        let envs: Vec<Env<'a>> = record.fields.values().chain(&record.repeated).filter(own).map(|one| one.env.clone()).collect();
        let Some(env) = envs.first() else { return };
        for (name, bound) in &env.0.parameters {
            let Some(said) = bound.said else { continue };
            let scope = Scope { env: bound.env.as_ref().unwrap_or(env), record: None };
            self.argument(record, (prefix, prefix), name, said, scope);
        }
    }

    fn add(
        &mut self,
        record: &Record<'a>,
        (path, key): (String, String),
        span: Span,
        phrases: &[&'a [Expr]],
        scope: Scope<'_, 'a>,
    ) {
        let checker = self.checker;
        let mut uses = Vec::new();
        for phrase in phrases {
            checker.uses(phrase, scope, 0, &mut uses);
        }
        let origin = Origin::Written(span, checker.stands(span, record, self.study, self.axes));
        let (value, meant) = (checker.text(span), checker.meant(span, phrases, scope));
        self.note(Provenance { study: self.study.name.to_owned(), path, key, arms: None, value, meant, origin, uses });
    }

    fn default(&mut self, prefix: &str, filled: &Filled) {
        // `model student of teacher big`: a part of a teacher lists its defaults with the teacher's.
        let part = match filled.owner.split_once(" of teacher ") {
            Some((owner, _)) if owner.starts_with(Kind::Model.word()) => joined(prefix, "model"),
            Some(_) => joined(prefix, "train"),
            None => prefix.to_owned(),
        };
        let (path, origin) = (joined(&part, &filled.field), Origin::Default(filled.reason.clone()));
        let (study, value) = (self.study.name.to_owned(), filled.value.clone());
        self.note(Provenance { study, key: path.clone(), path, arms: None, value, meant: None, origin, uses: Vec::new() });
    }

    fn note(&mut self, one: Provenance) {
        let place = match &one.origin {
            Origin::Written(span, _) => format!("{}:{}", span.file.0, span.start),
            Origin::Default(_) => String::new(),
        };
        // Equal words may come to other numbers in another arm.
        let apart = format!("{}|{place}|{}|{:?}|{:?}", one.path, one.value, one.meant, one.uses);
        let place = self.found.get_index_of(&apart).unwrap_or_else(|| self.found.insert_full(apart, (one, Vec::new())).0);
        self.noted.push(place);
        self.again(place);
    }

    /// The arm at hand has a value that is known.
    fn again(&mut self, place: usize) {
        let arm = self.arm;
        if let Some((_, (_, arms))) = self.found.get_index_mut(place)
            && arms.last() != Some(&arm)
        {
            arms.push(arm);
        }
    }
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// The field that a statement gives, by its name.
fn name_of<'s>(kind: Kind, statement: &'s Statement<'_>) -> &'s str {
    let head = statement.head.split('.').next().unwrap_or(statement.head);
    let is_value = statement.said.is_empty() && statement.label.is_none();
    if !is_value && fields(kind).iter().any(|field| field.name == head) { head } else { statement.key }
}

/// Names of arms that are listed one by one.
const LISTED: usize = 8;

/// Which arms these are: all (`None`), those with one value of an axis, or their names.
fn described(of: &[usize], arms: &[&Read<'_, '_>]) -> Option<String> {
    if of.len() == arms.len() {
        return None;
    }
    let first = arms.get(*of.first()?)?;
    let has = |axis: &str, value: &str| -> Vec<usize> {
        (0..arms.len()).filter(|arm| arms[*arm].values.get(axis).is_some_and(|own| own == value)).collect()
    };
    if let Some((axis, value)) = first.values.iter().find(|(axis, value)| has(axis, value) == of) {
        return Some(format!("{axis} = {value}"));
    }
    let others: Vec<usize> = (0..arms.len()).filter(|arm| of.binary_search(arm).is_err()).collect();
    let (but, listed) = if others.len() < of.len() { ("all but ", others.as_slice()) } else { ("", of) };
    let names: Vec<&str> = listed.iter().take(LISTED).map(|arm| arms[*arm].name).collect();
    let more = if listed.len() > LISTED { format!(" and {} more", listed.len() - LISTED) } else { String::new() };
    Some(format!("{but}{}{more}", names.join(", ")))
}
