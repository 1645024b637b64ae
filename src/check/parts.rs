//! The parts of an arm under replacements: data, model, training, schedule, teacher.
//!
//! Owns their sharing: arms that replace the same fields of a part have the same part. What each part means is read elsewhere.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Checker;
use super::axes::{PARTS, Replacement, Target, Varied};
use super::names::Kind;
use super::recipe::Made;
use super::record::{Given, Record, Scope};
use super::schedule::Scheduled;
use super::taught::losses;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::{Data, Filled, Model, Recipe, Schedule, Teacher, TeacherSource, Tokenizer, Training};
use crate::timeline::Timeline;

/// An arm's parts.
pub(super) struct Parts<'a> {
    pub(super) recipe: Recipe,
    /// What the schedule comes to, where it can be worked out without the data.
    pub(super) timeline: Option<Timeline>,
    pub(super) filled: Vec<Filled>,
    /// What they were read from, where provenance was asked for.
    pub(super) records: Vec<Record<'a>>,
}

/// Data, model and training; and the schedule, where it sets a loss or a context.
type Taught = ([Vec<usize>; 3], Option<Vec<usize>>);

/// Parts that have been read, by the replacements that made them.
#[derive(Default)]
pub(super) struct Memo<'a> {
    data: HashMap<Vec<usize>, Option<Made<'a, Data>>>,
    models: HashMap<Vec<usize>, Option<Made<'a, Model>>>,
    trainings: HashMap<Vec<usize>, Option<Made<'a, Training>>>,
    /// Data with the tokenizer of a teacher, by its file.
    tokenized: HashMap<(Vec<usize>, String), Arc<Data>>,
    schedules: HashMap<(Vec<usize>, usize), Option<Made<'a, Scheduled>>>,
    schedule_nouns: HashMap<(Vec<usize>, usize), Arc<Schedule>>,
    teachers: HashMap<Taught, Option<Vec<Made<'a, Teacher>>>>,
    timelines: HashMap<[Vec<usize>; 4], Option<Option<Timeline>>>,
}

impl<'a> Checker<'a> {
    /// The parts that the study itself names, without replacements: so that their faults are said in any case.
    pub(super) fn bases(&self, record: &Record<'a>, axes: &[Varied<'a>], memo: &mut Memo<'a>) {
        let replaced = |part: Kind| axes.iter().flat_map(|axis| &axis.targets).any(|target| target.part == part);
        for part in PARTS.into_iter().filter(|part| record.field(part.word()).is_some()) {
            match part {
                _ if replaced(part) => drop(self.part(record, part, &[])),
                Kind::Data => drop(self.made_data(record, &[], memo)),
                Kind::Model => drop(self.made_model(record, &[], memo)),
                Kind::Training => drop(self.made_training(record, &[], memo)),
                _ => drop(self.part(record, part, &[])),
            }
        }
    }

    /// Whether fields have the arguments that axes vary: said before any reference to an arm, which may name such an axis by its right name.
    pub(super) fn arguments_exist(&self, record: &Record<'a>, axes: &[Varied<'a>]) {
        let varied: Vec<&Target<'a>> =
            axes.iter().flat_map(|axis| &axis.targets).filter(|target| target.argument.is_some()).collect();
        for part in PARTS.into_iter().filter(|part| varied.iter().any(|target| target.part == *part)) {
            let firsts = axes.iter().filter_map(|axis| axis.values.first()).flat_map(|value| &value.replacements);
            let firsts: Vec<_> = firsts.filter(|replacement| replacement.target.part == part).collect();
            // These values need not fit together in any arm: of what is said only the names count.
            let tried = self.tried(|| match part {
                Kind::Data => drop(self.made_data(record, &firsts, &mut Memo::default())),
                Kind::Model => drop(self.made_model(record, &firsts, &mut Memo::default())),
                Kind::Training => drop(self.made_training(record, &firsts, &mut Memo::default())),
                _ => drop(self.part(record, part, &firsts)),
            });
            let about = |said: &Diagnostic| varied.iter().any(|target| target.span == said.span);
            tried.into_iter().filter(about).for_each(|said| self.say(said));
        }
    }

    /// The record of a part under replacements. What the axes give comes before what a control gives, and a whole before its arguments: in
    /// whatever order they are written, none is lost.
    fn part(&self, record: &Record<'a>, kind: Kind, replacements: &[&Replacement<'a>]) -> Option<Record<'a>> {
        let mut replacements = replacements.to_vec();
        replacements.sort_by_key(|replacement| (replacement.by_control, replacement.target.argument.is_some()));
        let is_whole =
            |replacement: &&Replacement<'a>| replacement.target.field.is_none() && replacement.target.argument.is_none();
        let whole = replacements.iter().rposition(is_whole);
        let statement = match whole {
            Some(whole) => &replacements[whole].statement,
            None => record.field(kind.word())?,
        };
        let given = |replacement: &Replacement<'a>, name: &'a str| Given {
            name,
            name_span: replacement.target.span,
            said: replacement.statement.said,
            env: replacement.statement.env.clone(),
            used: Rc::default(),
            known: Rc::default(),
        };
        // Parameters of the schedule.
        let parameters = replacements.iter().skip(whole.unwrap_or(0)).filter(|replacement| replacement.target.field.is_none());
        let parameters: Vec<Given<'a>> =
            parameters.filter_map(|replacement| Some(given(replacement, replacement.target.argument?))).collect();
        let mut words = self.said(statement, Scope { env: &statement.env, record: None })?;
        words.given = &parameters;
        let mut part = self.reference(kind, &mut words)?;
        words.finish()?;
        self.nothing_more(statement)?;
        if let Some(unused) = parameters.iter().find(|given| !given.used.get()) {
            let message = format!("`{}` has no parameter `{}`", part.owner, unused.name);
            return self.fail(Diagnostic::error("unknown-argument", message, unused.name_span));
        }
        for replacement in replacements {
            match (replacement.target.field, replacement.target.argument) {
                (Some(field), Some(argument)) => self.give(&mut part, field.key, given(replacement, argument)),
                (Some(_), None) => self.replace(&mut part, replacement.statement.clone()),
                (None, _) => {}
            }
        }
        Some(part)
    }

    fn made_data(&self, record: &Record<'a>, on: &[&Replacement<'a>], memo: &mut Memo<'a>) -> Option<Made<'a, Data>> {
        let make = || {
            let record = self.part(record, Kind::Data, on)?;
            Some(Made { value: Arc::new(self.data(&record)?), record })
        };
        memo.data.entry(key(on)).or_insert_with(make).clone()
    }

    fn made_model(&self, record: &Record<'a>, on: &[&Replacement<'a>], memo: &mut Memo<'a>) -> Option<Made<'a, Model>> {
        let make = || {
            let record = self.part(record, Kind::Model, on)?;
            Some(Made { value: Arc::new(self.model(&record)?), record })
        };
        memo.models.entry(key(on)).or_insert_with(make).clone()
    }

    fn made_training(&self, record: &Record<'a>, on: &[&Replacement<'a>], memo: &mut Memo<'a>) -> Option<Made<'a, Training>> {
        let make = || {
            let record = self.part(record, Kind::Training, on)?;
            Some(Made { value: Arc::new(self.training(&record)?), record })
        };
        memo.trainings.entry(key(on)).or_insert_with(make).clone()
    }

    /// An arm's parts under replacements, and whether they fit.
    pub(super) fn parts(
        &self,
        unit: usize,
        record: &Record<'a>,
        replacements: &[&Replacement<'a>],
        asks_kl: Option<Span>,
        memo: &mut Memo<'a>,
    ) -> Option<Parts<'a>> {
        let of = |part: Kind| -> Vec<&Replacement<'a>> {
            replacements.iter().copied().filter(|replacement| replacement.target.part == part).collect()
        };
        let (on_data, on_model, on_training, on_schedule) =
            (of(Kind::Data), of(Kind::Model), of(Kind::Training), of(Kind::Schedule));
        let data = self.made_data(record, &on_data, memo);
        let model = self.made_model(record, &on_model, memo);
        let training = self.made_training(record, &on_training, memo);
        // Without its model, a schedule is read for blocks of one layer, for its own faults.
        let block = model.as_ref().map_or(1, |model| model.value.block);
        let schedule = memo.schedules.entry((key(&on_schedule), block)).or_insert_with(|| {
            let record = self.part(record, Kind::Schedule, &on_schedule)?;
            Some(Made { value: Arc::new(self.schedule(&record, block)?), record })
        });
        let schedule = schedule.clone();
        let (data, model, training, schedule) = (data?, model?, training?, schedule?);
        let keys = [key(&on_data), key(&on_model), key(&on_training)];
        let sets = !schedule.value.losses.is_empty() || !schedule.value.contexts.is_empty();
        let sets = sets.then(|| key(&on_schedule));
        let teachers = memo.teachers.entry((keys.clone(), sets)).or_insert_with(|| {
            let losses = losses(&training, &schedule);
            let teachers = self.teachers_for(unit, &data, &model, &losses, asks_kl)?;
            self.fits(&data, &model, (&losses, &schedule.value.contexts), &teachers)?;
            Some(teachers)
        });
        let teachers = teachers.clone();
        let [on_data, on_model, on_training] = keys;
        let timeline = memo.timelines.entry([on_data, on_model, on_training, key(&on_schedule)]).or_insert_with(|| {
            let before = self.said.borrow().count;
            let blame = schedule.record.blame;
            let timeline = self.timeline(&schedule.value, blame, &model.value, &training.value, &data.value);
            let has_failed = timeline.is_none() && self.said.borrow().count > before;
            (!has_failed).then_some(timeline)
        });
        let timeline = timeline.clone()?;
        let teachers = teachers?;
        let data_noun = match (&data.value.tokenizer, teachers.first().map(|teacher| &teacher.value.source)) {
            (Tokenizer::Teacher, Some(TeacherSource::Checkpoint { folder, .. })) => {
                let path = format!("{}/tokenizer.json", folder.trim_end_matches('/'));
                let with_file = || Arc::new(Data { tokenizer: Tokenizer::File(path.clone()), ..(*data.value).clone() });
                Arc::clone(memo.tokenized.entry((key(&of(Kind::Data)), path.clone())).or_insert_with(with_file))
            }
            _ => Arc::clone(&data.value),
        };
        let noun = memo.schedule_nouns.entry((key(&on_schedule), block));
        let noun = Arc::clone(noun.or_insert_with(|| Arc::new(schedule.value.schedule.clone())));
        let mut records = vec![data.record, model.record, training.record, schedule.record];
        let (teachers, theirs): (Vec<_>, Vec<_>) = teachers.into_iter().map(|teacher| (teacher.value, teacher.record)).unzip();
        records.extend(theirs);
        let filled = records.iter().flat_map(|record| record.filled.borrow().clone()).collect();
        let recipe = Recipe { data: data_noun, model: model.value, training: training.value, schedule: noun, teachers };
        let records = if self.traced.is_some() { records } else { Vec::new() };
        Some(Parts { recipe, timeline, filled, records })
    }
}

/// What a part is remembered by.
fn key(replacements: &[&Replacement<'_>]) -> Vec<usize> {
    replacements.iter().map(|replacement| replacement.id).collect()
}
