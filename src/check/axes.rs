//! Axes: which fields vary, over which values, and what the values are called.
//!
//! Owns paths such as `training.optimizer.lr` and labels of values. Knows no arm.

use super::Checker;
use super::fields::{Field, fields};
use super::names::{Kind, listed, twice};
use super::record::{Record, Scope, Statement};
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::{Axis, AxisValue};
use crate::syntax::ast::{Argument, Expr, ExprKind, ItemContent, Phrase};

/// Parts of an arm.
pub(super) const PARTS: [Kind; 4] = [Kind::Data, Kind::Model, Kind::Training, Kind::Schedule];

/// A field of an arm: its part, the field of the part (none: the whole part), the argument of the field.
#[derive(Debug, Clone)]
pub(super) struct Target<'a> {
    pub(super) part: Kind,
    pub(super) field: Option<Field>,
    pub(super) argument: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

/// A value put in the place of a field.
#[derive(Clone)]
pub(super) struct Replacement<'a> {
    /// Unique in the study.
    pub(super) id: usize,
    /// Given by a control, over what the axes give.
    pub(super) by_control: bool,
    pub(super) target: Target<'a>,
    pub(super) statement: Statement<'a>,
}

/// An axis as written.
pub(super) struct Varied<'a> {
    pub(super) name: String,
    pub(super) targets: Vec<Target<'a>>,
    pub(super) values: Vec<Value<'a>>,
}

/// A value of an axis.
pub(super) struct Value<'a> {
    pub(super) label: String,
    pub(super) text: String,
    /// Spelled alike however it is written.
    pub(super) plain: String,
    /// The first word or number, spelled alike.
    pub(super) first: String,
    pub(super) span: Span,
    pub(super) replacements: Vec<Replacement<'a>>,
}

impl Varied<'_> {
    pub(super) fn noun(&self) -> Axis {
        Axis {
            name: self.name.clone(),
            fields: self.targets.iter().map(|target| target.text.to_owned()).collect(),
            values: self.values.iter().map(|value| AxisValue { label: value.label.clone(), text: value.text.clone() }).collect(),
        }
    }
    /// Whether a key or a name in a report means this axis.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.targets.iter().any(|target| target.text == name || last(target.text) == name)
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

impl<'a> Checker<'a> {
    /// Reads every `vary` of a study; poisoned ones are left out, and `None` is among the answers.
    pub(super) fn axes(&self, record: &Record<'a>, ids: &mut usize) -> Vec<Option<Varied<'a>>> {
        let varies = record.repeated.iter().filter(|statement| statement.key == "vary");
        let mut axes: Vec<Option<Varied<'a>>> = varies.map(|statement| self.axis(record, statement, ids)).collect();
        self.distinct(&mut axes);
        axes
    }

    /// Whether the declarations that values name exist: said here, since an arm may be at fault before it gets to them.
    pub(super) fn values_exist(&self, axes: &[Varied<'a>]) {
        for replacement in axes.iter().flat_map(|axis| &axis.values).flat_map(|value| &value.replacements) {
            let Target { part, field, argument: None, .. } = replacement.target else { continue };
            let kind = match field {
                None => part,
                Some(field) if field.key == Kind::Placement.word() => Kind::Placement,
                Some(_) => continue,
            };
            let scope = Scope { env: &replacement.statement.env, record: None };
            self.reference(kind, &mut self.words(replacement.statement.said, replacement.statement.span, scope));
        }
    }

    fn axis(&self, record: &Record<'a>, statement: &Statement<'a>, ids: &mut usize) -> Option<Varied<'a>> {
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.said(statement, scope)?;
        let paths = self.paths(&mut words);
        words.expect("over")?;
        let first = words.rest();
        if first.is_empty() {
            return words.missing("a value");
        }
        let mut phrases = vec![(first, words.before())];
        for item in &statement.more {
            match &item.content {
                ItemContent::Phrase(content) if item.label.is_none() && !self.looks_like_a_field(content, record) => {
                    phrases.push((&content.parts, item.span));
                }
                _ => return self.left_over(statement, item),
            }
        }
        let targets = paths?;
        let mut fine = Some(());
        let mut values: Vec<Value<'a>> = Vec::new();
        for (said, _) in phrases {
            match self.value(&targets, said, statement, ids) {
                Some(value) => match values.iter().find(|known| known.plain == value.plain) {
                    Some(known) => fine = self.fail(twice(format!("the value `{}`", value.text), value.span, known.span)),
                    None => values.push(value),
                },
                None => fine = None,
            }
        }
        fine?;
        label(&mut values);
        let name = targets.iter().map(|target| last(target.text)).collect::<Vec<_>>().join(", ");
        Some(Varied { name, targets, values })
    }

    fn paths(&self, words: &mut Words<'_, 'a>) -> Option<Vec<Target<'a>>> {
        let Some(part) = words.peek() else { return words.missing("the field that varies") };
        words.next();
        match &part.kind {
            ExprKind::Name(name) => self.target(name, part.span).map(|target| vec![target]),
            ExprKind::Group(inner) => match &inner.kind {
                ExprKind::Name(name) => self.target(name, inner.span).map(|target| vec![target]),
                _ => self.fail(Diagnostic::error("wrong-type", "expected the name of a field", inner.span)),
            },
            ExprKind::Tuple(arguments) => {
                let targets: Vec<_> = arguments
                    .iter()
                    .map(|argument| match argument.value.parts.as_slice() {
                        [Expr { kind: ExprKind::Name(name), span }] if argument.key.is_none() => self.target(name, *span),
                        _ => self.fail(Diagnostic::error("wrong-type", "expected the name of a field", argument.value.span)),
                    })
                    .collect();
                targets.into_iter().collect()
            }
            ExprKind::Bad => None,
            _ => self.fail(Diagnostic::error("wrong-type", "expected the name of a field", part.span)),
        }
    }

    /// The field that a path means.
    pub(super) fn target(&self, path: &'a str, span: Span) -> Option<Target<'a>> {
        let mut segments = path.split('.');
        let first = segments.next().unwrap_or(path);
        let target = |part, field, argument| Target { part, field, argument, text: path, span };
        let (part, field_name) = match PARTS.into_iter().find(|part| part.word() == first) {
            Some(part) => (part, segments.next()),
            None => {
                let Some(part) = PARTS.into_iter().find(|part| *part != Kind::Schedule && find(*part, first).is_some()) else {
                    return self.unknown_path(first, span);
                };
                (part, Some(first))
            }
        };
        let Some(field_name) = field_name else { return Some(target(part, None, None)) };
        let argument = segments.next();
        if segments.next().is_some() {
            return self.fail(Diagnostic::error("unknown-field", format!("`{path}` leads too deep"), span));
        }
        if part == Kind::Schedule {
            // Parameters of whatever schedule the arm has.
            return match argument {
                None => Some(target(part, None, Some(field_name))),
                Some(_) => self.fail(Diagnostic::error("unknown-field", format!("`{path}` leads too deep"), span)),
            };
        }
        match find(part, field_name) {
            Some(field) => Some(target(part, Some(field), argument)),
            None => {
                let message = format!("unknown field `{field_name}` in a {}", part.word());
                let known = fields(part).iter().map(|field| field.name);
                self.fail(Diagnostic::error("unknown-field", message, span).did_you_mean(field_name, known))
            }
        }
    }

    fn unknown_path<T>(&self, name: &str, span: Span) -> Option<T> {
        let known: Vec<&str> = PARTS
            .iter()
            .map(|part| part.word())
            .chain(PARTS.iter().filter(|part| **part != Kind::Schedule).flat_map(|part| fields(*part)).map(|field| field.name))
            .collect();
        let said = Diagnostic::error("unknown-field", format!("no field of an arm is called `{name}`"), span);
        let parts = || format!("fields are those of {}", listed(PARTS.map(Kind::word), "and"));
        self.fail(said.did_you_mean_or(name, known, || Some(parts())))
    }

    fn value(&self, targets: &[Target<'a>], said: &'a [Expr], statement: &Statement<'a>, ids: &mut usize) -> Option<Value<'a>> {
        let (Some(first), Some(last)) = (said.first(), said.last()) else { return None };
        if said.iter().any(|part| matches!(part.kind, ExprKind::Bad)) {
            return None;
        }
        let span = first.span.to(last.span);
        let each: Vec<&'a [Expr]> = match targets {
            [_] => vec![said],
            _ => self.tuple(targets, said, span)?,
        };
        let replacements = targets.iter().zip(each).map(|(target, said)| {
            *ids += 1;
            let head = target.field.map_or(target.part.word(), |field| field.name);
            let statement = Statement {
                key: target.field.map_or("", |field| field.key),
                head,
                head_span: said.first().map_or(span, |part| part.span),
                doc: None,
                label: None,
                said,
                more: Vec::new(),
                comma: None,
                span,
                env: statement.env.clone(),
                given: Vec::new(),
                body: statement.body.clone(),
            };
            Replacement { id: *ids, by_control: false, target: target.clone(), statement }
        });
        let replacements = replacements.collect();
        let (plain, first) = (self.plain_text(said), self.plain_text(&said[..1]));
        // `joint(steps: 10)` is called by its first word.
        let first = first.split('(').next().filter(|word| !word.is_empty()).map_or(first.clone(), str::to_owned);
        Some(Value { label: String::new(), text: self.text(span), plain, first, span, replacements })
    }

    fn tuple(&self, targets: &[Target<'a>], said: &'a [Expr], span: Span) -> Option<Vec<&'a [Expr]>> {
        let [Expr { kind: ExprKind::Tuple(arguments), .. }] = said else {
            let message = format!("expected {} values in parentheses, one for each field that varies", targets.len());
            return self.fail(Diagnostic::error("unequal-lengths", message, span));
        };
        if arguments.len() != targets.len() || arguments.iter().any(|argument| argument.key.is_some()) {
            let message = format!("expected {} values, one for each field that varies, found {}", targets.len(), arguments.len());
            let fields = targets.iter().map(|target| target.span).reduce(Span::to).unwrap_or(span);
            return self.fail(Diagnostic::error("unequal-lengths", message, span).note_at(fields, "the fields"));
        }
        Some(arguments.iter().map(|argument| argument.value.parts.as_slice()).collect())
    }

    /// Words with their numbers spelled alike: `1e-3` is `.001`.
    pub(super) fn plain_text(&self, said: &[Expr]) -> String {
        said.iter().map(|part| self.plain_part(part)).collect::<Vec<_>>().join(" ")
    }

    fn plain_part(&self, part: &Expr) -> String {
        let list = |arguments: &[Argument]| {
            let one = |argument: &Argument| match &argument.key {
                Some(key) => format!("{}: {}", key.text, self.plain_text(&argument.value.parts)),
                None => self.plain_text(&argument.value.parts),
            };
            arguments.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        match &part.kind {
            ExprKind::Number(number) => {
                let percent = if number.percent { "%" } else { "" };
                number.whole.map_or_else(|| format!("{:e}{percent}", number.value), |whole| format!("{whole}{percent}"))
            }
            ExprKind::Call { callee, arguments } => format!("{}({})", callee.text, list(arguments)),
            ExprKind::Tuple(arguments) => format!("({})", list(arguments)),
            ExprKind::List(arguments) => format!("[{}]", list(arguments)),
            ExprKind::Group(inner) => self.plain_part(inner),
            _ => self.text(part.span),
        }
    }

    /// No two axes over one field; names that tell axes apart.
    fn distinct(&self, axes: &mut [Option<Varied<'a>>]) {
        let mut seen: Vec<(String, Span)> = Vec::new();
        for axis in axes.iter_mut() {
            let targets = axis.iter().flat_map(|axis| &axis.targets);
            let mut is_new = true;
            for target in targets {
                let key = format!("{:?} {:?} {:?}", target.part, target.field.map(|field| field.key), target.argument);
                match seen.iter().find(|(known, _)| *known == key) {
                    Some((_, first)) => {
                        is_new = false;
                        self.say(twice(format!("the axis over `{}`", target.text), target.span, *first));
                    }
                    None => seen.push((key, target.span)),
                }
            }
            if !is_new {
                *axis = None;
            }
        }
        let names: Vec<String> = axes.iter().flatten().map(|axis| axis.name.clone()).collect();
        for axis in axes.iter_mut().flatten() {
            if names.iter().filter(|name| **name == axis.name).count() > 1 {
                axis.name = axis.targets.iter().map(|target| target.text).collect::<Vec<_>>().join(", ");
            }
        }
    }

    /// Replacements of `control … with { … }`.
    pub(super) fn replacements(&self, statements: Vec<Statement<'a>>, ids: &mut usize) -> Option<Vec<Replacement<'a>>> {
        let all: Vec<_> = statements
            .into_iter()
            .map(|statement| {
                let target = self.target(statement.head, statement.head_span)?;
                *ids += 1;
                // From here on its path is known, and its head is the field alone.
                let (head, key) = target.field.map_or((target.part.word(), ""), |field| (field.name, field.key));
                Some(Replacement { id: *ids, by_control: true, target, statement: Statement { head, key, ..statement } })
            })
            .collect();
        all.into_iter().collect()
    }

    /// The words of an argument in `[…]`, spelled alike.
    pub(super) fn chosen(&self, phrase: &Phrase) -> String {
        self.plain_text(&phrase.parts)
    }
}

fn find(part: Kind, name: &str) -> Option<Field> {
    fields(part).iter().copied().find(|field| field.name == name)
}

/// The shortest words that tell each value from the others.
fn label(values: &mut [Value<'_>]) {
    let firsts: Vec<String> = values.iter().map(|value| value.first.clone()).collect();
    for value in values {
        let is_word = value.first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_unique = firsts.iter().filter(|first| **first == value.first).count() == 1;
        value.label = if is_word && is_unique { value.first.clone() } else { value.text.clone() };
    }
}
