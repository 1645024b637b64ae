//! `teacher` declarations.
//!
//! Owns their fields. A teacher that is itself taught, or takes tensors of another, cannot be trained yet and is refused.

use std::sync::Arc;

use super::Checker;
use super::defaults;
use super::names::Kind;
use super::record::Record;
use super::units::Unit;
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::study::{Cache, Embedding, Teacher, TeacherSource};

impl<'a> Checker<'a> {
    /// Reads a `teacher` declaration.
    pub(super) fn teacher(&self, record: &Record<'a>) -> Option<Teacher> {
        let checkpoint = self.optional(record, "checkpoint", |_, words| words.text("a folder in quotation marks"));
        let model = self.optional(record, "model", |_, words| self.reference(Kind::Model, words));
        let train = self.optional(record, "train", |_, words| {
            let steps = words.count_in(Some(Unit::Steps), 1, u64::MAX)?;
            words.expect("with")?;
            Some((steps.value, self.reference(Kind::Training, words)?))
        });
        let cache = self.optional(record, "cache", |_, words| cache(words));
        if let (Some(checkpoint), Some(other)) = (record.field("checkpoint"), record.field("model").or(record.field("train"))) {
            let message =
                format!("a teacher has a checkpoint or is trained: `{}` and `checkpoint` exclude each other", other.head);
            let said = Diagnostic::error("excluding-fields", message, other.head_span);
            return self.fail(said.note_at(checkpoint.head_span, "`checkpoint` is given here"));
        }
        let needed: &[(&str, &str)] = match record.field("checkpoint") {
            Some(_) => &[],
            None if record.field("model").is_none() && record.field("train").is_none() => &[("model", "checkpoint` or `model")],
            None => &[("model", "model"), ("train", "train")],
        };
        let model = model.map(|model| model.map(|model| self.owned(record, model, |model| self.model(model))));
        let training = train.map(|train| {
            train.map(|(steps, training)| (steps, self.owned(record, training, |training| self.training(training))))
        });
        let source = match (checkpoint?, model?, training?) {
            (Some(folder), ..) => Some(TeacherSource::Checkpoint(folder.value)),
            (None, Some(model), Some((steps, training))) => {
                let (model, training) = (model?, training?);
                self.untaught(
                    record,
                    "model",
                    [model.embedding, model.head].iter().any(|part| matches!(part, Embedding::Teacher { .. })),
                )?;
                self.untaught(record, "train", training.loss.is_taught())?;
                Some(TeacherSource::Trained { model: Arc::new(model), training: Arc::new(training), steps })
            }
            _ => None,
        };
        self.complete(record, needed)?;
        let cache = self.or_default(record, "cache", cache?, "none", defaults::CACHE);
        Some(Teacher { name: record.name.to_owned(), doc: record.doc.map(str::to_owned), source: source?, cache })
    }

    /// Reads a record that belongs to a teacher: its defaults are listed with the teacher's.
    fn owned<T>(&self, teacher: &Record<'a>, record: Record<'a>, read: impl FnOnce(&Record<'a>) -> Option<T>) -> Option<T> {
        let record = Record { owner: format!("{} of {}", record.owner, teacher.owner), ..record };
        let value = read(&record);
        teacher.filled.borrow_mut().extend(record.filled.take());
        value
    }

    fn untaught(&self, record: &Record<'a>, key: &str, is_taught: bool) -> Option<()> {
        if !is_taught {
            return Some(());
        }
        let at = record.field(key).map_or(record.name_span, |statement| statement.value_span());
        self.fail(Diagnostic::error("not-yet-supported", "a teacher that learns from a teacher cannot be trained yet", at))
    }
}

fn cache(words: &mut Words<'_, '_>) -> Option<Cache> {
    Some(match words.one_of("a kind of cache", &["none", "all", "top"])?.0 {
        "none" => Cache::None,
        "all" => Cache::All,
        _ => Cache::Top(words.count_in(None, 1, 1 << 24)?.value as usize),
    })
}
