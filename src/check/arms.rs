//! Arms: cells of the axes, what `except` takes away, and what `[post, grow]` means.
//!
//! Owns references to arms. Knows no metric.

use super::Checker;
use super::axes::Varied;
use super::record::{Record, Scope, Statement};
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{Argument, Expr, ExprKind, ItemContent};

/// More arms than any study has.
pub(super) const MOST_ARMS: usize = 10_000;

/// The cells of a study and the names of its controls, by which arms are found.
pub(super) struct Field<'c, 'a> {
    pub(super) axes: &'c [Varied<'a>],
    /// Value indices of each cell, with whether it is excepted (and where).
    pub(super) cells: Vec<(Vec<usize>, Option<Span>)>,
    /// Names of the controls so far, poisoned ones too.
    pub(super) controls: Vec<(&'a str, Span)>,
}

/// What a reference means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chosen {
    /// Cells, by index; at least one.
    Cells(Vec<usize>),
    /// A control, by index.
    Control(usize),
}

impl<'c, 'a> Field<'c, 'a> {
    /// All cells of the axes; more than 10,000 are refused.
    pub(super) fn new(checker: &Checker<'a>, record: &Record<'a>, axes: &'c [Varied<'a>]) -> Option<Self> {
        let count = axes.iter().map(|axis| axis.values.len()).try_fold(1usize, usize::checked_mul);
        let Some(count) = count.filter(|count| *count <= MOST_ARMS) else {
            let message = match count {
                Some(count) => format!("{count} arms: more than {MOST_ARMS}"),
                None => format!("more than {MOST_ARMS} arms"),
            };
            return checker.fail(Diagnostic::error("too-many-arms", message, record.name_span).hint("vary less at a time"));
        };
        let cell = |mut index: usize| {
            let mut values: Vec<usize> = Vec::new();
            for axis in axes.iter().rev() {
                values.push(index % axis.values.len());
                index /= axis.values.len();
            }
            values.reverse();
            (values, None)
        };
        Some(Self { axes, cells: (0..count).map(cell).collect(), controls: Vec::new() })
    }

    /// Takes the cells of every `except` away.
    pub(super) fn take_away(&mut self, checker: &Checker<'a>, record: &Record<'a>) -> Option<()> {
        let excepts = || record.repeated.iter().filter(|statement| statement.key == "except");
        let all: Vec<Option<()>> = excepts().map(|statement| self.except(checker, statement)).collect();
        if self.cells.iter().all(|(_, excepted)| excepted.is_some()) {
            let at = excepts().next_back().map_or(record.name_span, |statement| statement.span);
            return checker.fail(Diagnostic::error("no-arms", "no arm is left", at));
        }
        all.into_iter().collect()
    }

    fn except(&mut self, checker: &Checker<'a>, statement: &Statement<'a>) -> Option<()> {
        let scope = Scope { env: &statement.env, record: None };
        let mut words = checker.said(statement, scope)?;
        let mut lists = vec![words.next()];
        words.finish()?;
        for item in &statement.more {
            lists.push(match &item.content {
                ItemContent::Phrase(content) if content.parts.len() == 1 && item.label.is_none() => content.parts.first(),
                _ => return checker.fail(Diagnostic::error("unexpected-words", "expected `[values]`", item.span)),
            });
        }
        for list in lists {
            let Some(Expr { kind: ExprKind::List(arguments), span }) = list else {
                let at = list.map_or(statement.head_span, |list| list.span);
                return checker.fail(Diagnostic::error("missing-value", "expected the values of the arms in `[…]`", at));
            };
            match self.choose(checker, arguments, *span)? {
                Chosen::Cells(cells) => {
                    for cell in cells {
                        self.cells[cell].1 = Some(*span);
                    }
                }
                Chosen::Control(_) => {
                    return checker.fail(Diagnostic::error("unexpected-words", "a control is no cell of the axes", *span));
                }
            }
        }
        Some(())
    }

    /// Cells that are not excepted.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        self.cells.iter().enumerate().filter(|(_, (_, excepted))| excepted.is_none()).map(|(index, _)| index)
    }

    /// What `[…]` means.
    pub(super) fn choose(&self, checker: &Checker<'a>, arguments: &'a [Argument], span: Span) -> Option<Chosen> {
        if let [Argument { key: None, value }] = arguments {
            let chosen = checker.chosen(value);
            if let Some(control) = self.controls.iter().position(|(name, _)| *name == chosen) {
                return Some(Chosen::Control(control));
            }
        }
        let mut wanted: Vec<Option<(usize, Span)>> = vec![None; self.axes.len()];
        let mut fine = Some(());
        for argument in arguments {
            let Some((axis, value)) = self.find(checker, argument) else {
                fine = None;
                continue;
            };
            let slot = &mut wanted[axis];
            if let Some((_, first)) = slot {
                let message = format!("a second value of `{}`", self.axes[axis].name);
                fine = checker.fail(Diagnostic::error("given-twice", message, argument.value.span).note_at(*first, "the first"));
            }
            *slot = Some((value, argument.value.span));
        }
        fine?;
        let matches = |cell: &(Vec<usize>, Option<Span>)| {
            cell.0.iter().zip(&wanted).all(|(value, wanted)| wanted.is_none_or(|(wanted, _)| wanted == *value))
        };
        let all: Vec<usize> = (0..self.cells.len()).filter(|index| matches(&self.cells[*index])).collect();
        let left: Vec<usize> = all.iter().copied().filter(|index| self.cells[*index].1.is_none()).collect();
        if left.is_empty() {
            let excepted = all.first().and_then(|index| self.cells[*index].1);
            let said = Diagnostic::error("no-such-arm", "no arm has these values", span);
            return checker.fail(match excepted {
                Some(at) => said.note_at(at, "they are excepted here"),
                None => said,
            });
        }
        Some(Chosen::Cells(left))
    }

    /// The axis and the value that an argument means.
    fn find(&self, checker: &Checker<'a>, argument: &'a Argument) -> Option<(usize, usize)> {
        let span = argument.value.span;
        let plain = checker.chosen(&argument.value);
        if argument.value.parts.iter().any(|part| matches!(part.kind, ExprKind::Bad)) {
            return None;
        }
        let mut axes: Vec<usize> = (0..self.axes.len()).collect();
        if let Some(key) = &argument.key {
            axes.retain(|axis| self.axes[*axis].is_called(&key.text));
            if axes.is_empty() {
                return self.unknown_axis(checker, &key.text, key.span);
            }
        }
        let values = |of: &dyn Fn(&super::axes::Value<'a>) -> bool| -> Vec<(usize, usize)> {
            let values = axes.iter().flat_map(|axis| (0..self.axes[*axis].values.len()).map(move |value| (*axis, value)));
            values.filter(|(axis, value)| of(&self.axes[*axis].values[*value])).collect()
        };
        // The whole value, else its first word.
        let mut found = values(&|value| value.plain == plain || value.label == plain);
        if found.is_empty() {
            found = values(&|value| value.first == plain);
        }
        // A value of a zipped axis by one of its fields: `width: 128`.
        if found.is_empty()
            && let Some(key) = &argument.key
        {
            found = values(&|value| {
                value.replacements.iter().any(|replacement| {
                    let name = replacement.target.text;
                    (name == key.text || name.rsplit('.').next() == Some(key.text.as_str()))
                        && checker.plain_text(replacement.statement.said) == plain
                })
            });
        }
        match found.as_slice() {
            [one] => Some(*one),
            [] if self.is_spelt_otherwise(checker, &plain) => None,
            [] => checker.fail(self.unknown_value(checker, &plain, span)),
            [(first, value), ..] => {
                let is_one_axis = found.iter().all(|(axis, _)| axis == first);
                let said = Diagnostic::error("ambiguous-arm", format!("`{plain}` stands for {} values", found.len()), span);
                checker.fail(said.hint(if is_one_axis {
                    format!("write the whole value, `{}`", self.axes[*first].values[*value].text)
                } else {
                    format!("name the axis, `{}: {plain}`", self.axes[*first].name)
                }))
            }
        }
    }

    /// Whether a value that has been said to be wrong was meant: then the word here is the right one.
    fn is_spelt_otherwise(&self, checker: &Checker<'a>, plain: &str) -> bool {
        let wrong = self.axes.iter().flat_map(|axis| &axis.values).filter(|value| checker.is_at_fault(value.span));
        nearest(plain, wrong.map(|value| value.first.as_str())).is_some()
    }

    fn unknown_value(&self, checker: &Checker<'a>, plain: &str, span: Span) -> Diagnostic {
        let said = Diagnostic::error("no-such-value", format!("no axis has the value `{plain}`"), span);
        let labels = self.axes.iter().flat_map(|axis| &axis.values).map(|value| value.label.as_str());
        let known: Vec<&str> = labels.chain(self.controls.iter().map(|(name, _)| *name)).collect();
        said.did_you_mean_or(plain, known.iter().copied(), || {
            let is_told = !known.is_empty() && !checker.text(span).is_empty();
            is_told.then(|| format!("the values are {}", super::names::listed(known.iter().copied().take(20), "and")))
        })
    }

    /// A name that no axis has; where an axis that has been said to be wrong was meant, the name here is the right one.
    pub(super) fn unknown_axis<T>(&self, checker: &Checker<'a>, name: &str, span: Span) -> Option<T> {
        let wrong = |axis: &&Varied<'a>| axis.targets.iter().any(|target| checker.is_at_fault(target.span));
        if nearest(name, self.axes.iter().filter(wrong).map(|axis| axis.name.as_str())).is_some() {
            return None;
        }
        let said = Diagnostic::error("no-such-axis", format!("no axis is called `{name}`"), span);
        let known: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        checker.fail(said.did_you_mean_or(name, known.iter().copied(), || {
            Some(match known.as_slice() {
                [] => "this study varies nothing".to_owned(),
                known => format!("the axes are {}", super::names::listed(known.iter().copied(), "and")),
            })
        }))
    }

    /// `[post, grow]`.
    pub(super) fn name(&self, cell: usize) -> String {
        let labels = self.cells[cell].0.iter().zip(self.axes).map(|(value, axis)| axis.values[*value].label.as_str());
        format!("[{}]", labels.collect::<Vec<_>>().join(", "))
    }
}
