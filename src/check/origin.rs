//! Where the values of a study come from, so that `plan --explain training.lr` has an answer.
//!
//! Owns provenance alone; no value is made here.

use super::Checker;
use super::axes::{Replacement, Varied};
use super::names::Kind;
use super::record::Record;
use crate::source::Span;
use crate::study::Filled;
use crate::syntax::ast::ExprKind;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// In these words.
    Written(Span),
    /// Nowhere: a default, with its reason.
    Default(String),
}

/// The origin of one value of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// Name of the study.
    pub study: String,
    /// `training.lr`, `training.optimizer.lr`, `model.width`.
    pub path: String,
    /// For which arms: `placement = post`, or the name of a control; `None`: for all that nothing else speaks of.
    pub arms: Option<String>,
    /// The value as written.
    pub value: String,
    /// Where.
    pub origin: Origin,
}

impl<'a> Checker<'a> {
    /// The origins of what a record says.
    pub(super) fn origins_of(&self, study: &str, record: &Record<'a>) -> Vec<Provenance> {
        let part = record.kind.word();
        let mut origins = Vec::new();
        let mut add = |path: String, span: Span| {
            let origin = Origin::Written(span);
            origins.push(Provenance { study: study.to_owned(), path, arms: None, value: self.text(span), origin });
        };
        for statement in record.fields.values() {
            let field = format!("{part}.{}", statement.head);
            add(field.clone(), statement.value_span());
            for part in statement.said {
                if let ExprKind::Call { arguments, .. } = &part.kind {
                    for argument in arguments {
                        if let Some(key) = &argument.key {
                            add(format!("{field}.{}", key.text), argument.value.span);
                        }
                    }
                }
            }
            for given in &statement.given {
                add(format!("{field}.{}", given.name), given.name_span);
            }
        }
        origins
    }

    /// The origins of the values of axes.
    pub(super) fn origins_of_axes(&self, study: &str, axes: &[Varied<'a>]) -> Vec<Provenance> {
        let values = axes.iter().flat_map(|axis| axis.values.iter().map(move |value| (axis, value)));
        let origins = values.flat_map(|(axis, value)| {
            let arms = format!("{} = {}", axis.name, value.label);
            value.replacements.iter().map(move |replacement| self.origin_of(study, &arms, replacement))
        });
        origins.collect()
    }

    /// The origin of a replaced value.
    pub(super) fn origin_of(&self, study: &str, arms: &str, replacement: &Replacement<'a>) -> Provenance {
        let target = &replacement.target;
        let segments = [Some(target.part.word()), target.field.map(|field| field.name), target.argument];
        let path = segments.into_iter().flatten().collect::<Vec<_>>().join(".");
        let span = replacement.statement.value_span();
        let origin = Origin::Written(span);
        Provenance { study: study.to_owned(), path, arms: Some(arms.to_owned()), value: self.text(span), origin }
    }
}

/// The origins of defaults.
pub(super) fn of_defaults(study: &str, defaults: &[Filled]) -> Vec<Provenance> {
    let one = |filled: &Filled| {
        let kind = filled.owner.split(' ').next().unwrap_or("");
        let path = if kind == Kind::Study.word() { filled.field.clone() } else { format!("{kind}.{}", filled.field) };
        let origin = Origin::Default(filled.reason.clone());
        Provenance { study: study.to_owned(), path, arms: None, value: filled.value.clone(), origin }
    };
    defaults.iter().map(one).collect()
}
