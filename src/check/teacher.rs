//! `teacher` declarations.
//!
//! Owns their fields. A teacher may learn from others, and take tensors of the first of them; in a circle none can.

use std::sync::Arc;

use super::Checker;
use super::defaults;
use super::names::Kind;
use super::record::Record;
use super::taught::{Learned, borrows};
use super::units::Unit;
use super::words::Words;
use crate::diagnostic::Diagnostic;
use crate::study::{Cache, Teacher, TeacherSource};

impl<'a> Checker<'a> {
    /// Reads a `teacher` declaration, and those of the teachers that it learns from.
    pub(super) fn teacher(&self, record: &Record<'a>) -> Option<Teacher> {
        // The name stands once in memory: who comes back to it learns from itself.
        self.guarded(record.name.as_ptr() as usize, record.blame, || self.teacher_of(record))
    }

    fn teacher_of(&self, record: &Record<'a>) -> Option<Teacher> {
        let checkpoint = self.optional(record, "checkpoint", |_, words| words.text("a folder in quotation marks"));
        let model = self.optional(record, "model", |_, words| self.reference(Kind::Model, words));
        let train = self.optional(record, "train", |_, words| {
            let steps = words.count_in(Some(Unit::Steps), 1, u64::MAX)?;
            words.expect("with")?;
            Some((steps.value, self.reference(Kind::Training, words)?))
        });
        let cache = self.optional(record, "cache", |_, words| cache(words));
        if let (Some(checkpoint), Some(train)) = (record.field("checkpoint"), record.field("train")) {
            let message = "a teacher has a checkpoint or is trained: `train` and `checkpoint` exclude each other";
            let said = Diagnostic::error("excluding-fields", message, train.head_span);
            return self.fail(said.note_at(checkpoint.head_span, "`checkpoint` is given here"));
        }
        let needed: &[(&str, &str)] = match record.field("checkpoint") {
            Some(_) => &[],
            None if record.field("model").is_none() && record.field("train").is_none() => &[("model", "checkpoint` or `model")],
            None => &[("model", "model"), ("train", "train` or `checkpoint")],
        };
        let model = model.map(|model| model.map(|model| self.owned(record, ("model", model), |model| self.model(model))));
        let training = train.map(|train| {
            train.map(|(steps, training)| {
                // Where its loss is said, and in which unit.
                let said = training.field("loss").map(|field| (field.value_span(), field.env.unit()));
                (steps, said, self.owned(record, ("train", training), |training| self.training(training)))
            })
        });
        let source = match (checkpoint?, model?, training?) {
            (Some(folder), None, _) => Some(TeacherSource::Checkpoint { folder: folder.value, shape: None }),
            (Some(folder), Some(shape), _) => {
                Some(TeacherSource::Checkpoint { folder: folder.value, shape: Some(Arc::new(shape?)) })
            }
            (None, Some(model), Some((steps, said, training))) => {
                let (model, training) = (model?, training?);
                let losses: Vec<_> = said.into_iter().map(|(span, unit)| Learned { loss: &training.loss, span, unit }).collect();
                let made = self.named_teachers(&losses)?;
                if borrows(&model) && made.is_empty() {
                    let at = record.field("model").map_or(record.name_span, |statement| statement.value_span());
                    let message = "this takes tensors of a teacher, and the loss that it is trained with names none";
                    return self.fail(Diagnostic::error("missing-teacher", message, at).hint("add `kl(TEACHER)` to that loss"));
                }
                let kept: Vec<_> = made.iter().map(|teacher| self.kept(&losses, &[], teacher)).collect();
                kept.into_iter().collect::<Option<()>>()?;
                let mut teachers = Vec::with_capacity(made.len());
                for teacher in made {
                    record.filled.borrow_mut().extend(teacher.record.filled.take());
                    teachers.push(teacher.value);
                }
                Some(TeacherSource::Trained { model: Arc::new(model), training: Arc::new(training), steps, teachers })
            }
            _ => None,
        };
        self.complete(record, needed)?;
        let cache = self.or_default(record, "cache", cache?, "none", defaults::CACHE);
        Some(Teacher { name: record.name.to_owned(), doc: record.doc.map(str::to_owned), source: source?, cache })
    }

    /// Reads a record that belongs to a teacher: its defaults are listed with the teacher's.
    fn owned<T>(
        &self,
        teacher: &Record<'a>,
        (field, record): (&'static str, Record<'a>),
        read: impl FnOnce(&Record<'a>) -> Option<T>,
    ) -> Option<T> {
        let record = Record { owner: format!("{} of {}", record.owner, teacher.owner), ..record };
        let value = read(&record);
        teacher.filled.borrow_mut().extend(record.filled.take());
        teacher.keep(self, field, record);
        value
    }
}

fn cache(words: &mut Words<'_, '_>) -> Option<Cache> {
    Some(match words.one_of("a kind of cache", &["none", "all", "top"])?.0 {
        "none" => Cache::None,
        "all" => Cache::All,
        _ => Cache::Top(words.count_in(None, 1, 1 << 24)?.value as usize),
    })
}
