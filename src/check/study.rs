//! `study` declarations: parts, axes, controls, and the arms that follow.
//!
//! Owns the order of these steps and the sharing of parts between arms. What each part means is read elsewhere.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;

use super::Checker;
use super::arms::{Chosen, Field};
use super::axes::{PARTS, Replacement, Varied};
use super::claims::Claimed;
use super::defaults;
use super::fields::{Vocabulary, lets};
use super::measures::Probed;
use super::names::{Kind, twice};
use super::origin::{Provenance, of_defaults};
use super::recipe::Made;
use super::record::{Given, Record, Scope, Statement};
use super::schedule::Scheduled;
use super::words::unknown_word;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::{
    Arm, Control, Data, Filled, Matched, Measure, Metric, Model, Probe, ProbeMoment, Quantity, Recipe, Study, Teacher, Training,
};
use crate::syntax::ast::{Expr, ExprKind};
use crate::timeline::Timeline;

/// A `control`, read.
struct Controlled<'a> {
    name: &'a str,
    doc: Option<&'a str>,
    text: String,
    /// The cell that it is made from.
    cell: usize,
    replacements: Vec<Replacement<'a>>,
    matched: Option<(Chosen, Quantity)>,
}

/// An arm's parts.
struct Parts {
    recipe: Recipe,
    /// What the schedule comes to, where it can be worked out without the data.
    timeline: Option<Timeline>,
    filled: Vec<Filled>,
}

/// Parts that have been read, by the replacements that made them.
#[derive(Default)]
struct Memo<'a> {
    data: HashMap<Vec<usize>, Option<Made<'a, Data>>>,
    models: HashMap<Vec<usize>, Option<Made<'a, Model>>>,
    trainings: HashMap<Vec<usize>, Option<Made<'a, Training>>>,
    schedules: HashMap<(Vec<usize>, usize), Option<Made<'a, Scheduled>>>,
    schedule_nouns: HashMap<(Vec<usize>, usize), Arc<crate::study::Schedule>>,
    teachers: HashMap<[Vec<usize>; 3], Option<Option<Made<'a, Teacher>>>>,
    timelines: HashMap<[Vec<usize>; 4], Option<Option<Timeline>>>,
}

impl<'a> Checker<'a> {
    /// Checks the root file: its declarations on their own, then its studies.
    pub(super) fn file(&self) -> (Vec<Study>, Vec<Provenance>) {
        let (mut studies, mut origins) = (Vec::new(), Vec::new());
        for unit in 0..self.units.len() {
            let declared: Vec<_> = self.names[unit].own(unit).collect();
            for declared in declared.iter().filter(|declared| declared.kind != Kind::Study) {
                if let Some(record) = self.alone(*declared) {
                    self.stands_alone(&record);
                }
            }
            for declared in declared.iter().filter(|declared| declared.kind == Kind::Study) {
                let made = self.alone(*declared).and_then(|record| self.study(unit, &record));
                // Studies of files that are used are checked, and not run.
                if let Some((study, from)) = made.filter(|_| unit + 1 == self.units.len()) {
                    studies.push(study);
                    origins.extend(from);
                }
            }
        }
        self.top_level_lets();
        (studies, origins)
    }

    fn stands_alone(&self, record: &Record<'a>) {
        match record.kind {
            Kind::Data => drop(self.data(record)),
            Kind::Model => drop(self.model(record)),
            Kind::Teacher => drop(self.teacher(record)),
            Kind::Training => drop(self.training(record)),
            Kind::Placement => drop(self.placement(record)),
            Kind::Schedule => {
                if let Some(scheduled) = self.schedule(record, 1) {
                    self.schedule_alone(&scheduled);
                }
            }
            Kind::Study => {}
        }
    }

    fn study(&self, unit: usize, record: &Record<'a>) -> Option<(Study, Vec<Provenance>)> {
        let mut ids = 0;
        let axes = self.axes(record, &mut ids);
        let are_whole = axes.iter().all(Option::is_some);
        let axes: Vec<Varied<'a>> = axes.into_iter().flatten().collect();
        // With an axis missing, nothing can be said about references to arms, but the parts that are left can still be read.
        let mut field = Field::new(self, record, &axes);
        let excepted = field.as_mut().filter(|_| are_whole).map(|field| field.take_away(self, record));
        let controls = self.controls(record, field.as_mut().filter(|_| are_whole), &mut ids);
        let refer = field.as_ref().filter(|_| are_whole);
        let seeds = self.seeds(record);
        let measures = self.measures(record);
        let of = |key: &'static str| record.repeated.iter().filter(move |statement| statement.key == key);
        let probes: Vec<_> = of("probe").map(|statement| self.probe(record, statement)).collect();
        let claims = self.claims(record, refer);
        let reports: Vec<_> = of("report").map(|statement| self.report(record, statement, refer)).collect();
        let mut memo = Memo::default();
        let base = self.bases(record, &axes, &mut memo);
        let complete = self.all_parts(record, &axes);

        // Arms that should have been taken away may be at fault for that reason.
        let field = field.filter(|_| excepted != Some(None))?;
        let asks_kl = measures.iter().flatten().find(|(measure, _)| measure.metric == Metric::Kl).map(|(_, span)| *span);
        let cells: Vec<usize> = field.left().collect();
        let mut made: Vec<Option<Parts>> = Vec::new();
        for cell in &cells {
            let replacements = self.of_cell(&field, *cell);
            made.push(self.parts(unit, record, &replacements, asks_kl, &mut memo));
        }
        for control in controls.iter().flatten() {
            let mut replacements = self.of_cell(&field, control.cell);
            replacements.extend(&control.replacements);
            made.push(self.parts(unit, record, &replacements, asks_kl, &mut memo));
        }
        complete?;
        let controls: Option<Vec<Controlled<'a>>> = controls.into_iter().collect();
        let made: Option<Vec<Parts>> = made.into_iter().collect();
        let claims: Option<Vec<Claimed<'a>>> = claims.into_iter().collect();
        let probes: Option<Vec<Probed>> = probes.into_iter().collect();
        let (made, controls, claims, probes) = (made?, controls?, claims?, probes?);
        let numbers = |chosen: &Chosen| match chosen {
            Chosen::Cells(chosen) => chosen.iter().filter_map(|cell| cells.binary_search(cell).ok()).collect(),
            Chosen::Control(control) => vec![cells.len() + control],
        };
        let is_matched =
            |arm: usize| arm.checked_sub(cells.len()).and_then(|at| controls.get(at)).is_some_and(|c| c.matched.is_some());
        self.claims_fit(&claims, &made, &numbers, &is_matched);
        let probes = self.probes_fit(record, probes, &made);
        let measures = self.measured(record, measures?, &claims);
        let reports = reports.into_iter().collect::<Option<Vec<_>>>()?;
        let seeds = seeds?;

        let values = |cell: usize| -> IndexMap<String, String> {
            let values = field.cells[cell].0.iter().zip(field.axes);
            values.map(|(value, axis)| (axis.name.clone(), axis.values[*value].label.clone())).collect()
        };
        let mut arms: Vec<Arm> = Vec::new();
        let names = cells.iter().map(|cell| (field.name(*cell), *cell, None));
        let named = controls.iter().map(|control| {
            let matched = control.matched.as_ref().and_then(|(to, on)| Some(Matched { to: *numbers(to).first()?, on: *on }));
            let noun = Control { text: control.text.clone(), doc: control.doc.map(str::to_owned), matched };
            (control.name.to_owned(), control.cell, Some(noun))
        });
        let mut filled: Vec<Filled> = Vec::new();
        let mut note = |list: &[Filled]| {
            for one in list {
                if !filled.contains(one) {
                    filled.push(one.clone());
                }
            }
        };
        note(&record.filled.borrow());
        for ((name, cell, control), parts) in names.chain(named).zip(made) {
            note(&parts.filled);
            arms.push(Arm { name, values: values(cell), control, recipe: parts.recipe });
        }
        let mut origins: Vec<Provenance> = base.iter().flat_map(|record| self.origins_of(record_name(record), record)).collect();
        for origin in &mut origins {
            record.name.clone_into(&mut origin.study);
        }
        origins.extend(self.origins_of_axes(record.name, &axes));
        let replaced = controls.iter().flat_map(|control| control.replacements.iter().map(|one| (control.name, one)));
        origins.extend(replaced.map(|(name, one)| self.origin_of(record.name, name, one)));
        origins.extend(of_defaults(record.name, &filled));
        let study = Study {
            name: record.name.to_owned(),
            doc: record.doc.map(str::to_owned),
            axes: axes.iter().map(Varied::noun).collect(),
            claims: claims.iter().map(|claim| claim.noun(&numbers)).collect(),
            arms,
            seeds,
            measures,
            probes,
            reports,
            defaults: filled,
        };
        Some((study, origins))
    }

    /// Says which parts the study lacks.
    fn all_parts(&self, record: &Record<'a>, axes: &[Varied<'a>]) -> Option<()> {
        let whole = |part: Kind| {
            axes.iter()
                .flat_map(|axis| &axis.targets)
                .any(|target| target.part == part && target.field.is_none() && target.argument.is_none())
        };
        let needed: Vec<(&str, &str)> =
            PARTS.into_iter().filter(|part| !whole(*part)).map(|part| (part.word(), part.word())).collect();
        self.complete(record, &needed)
    }

    /// The parts that the study itself names, without replacements: for provenance, and so that their faults are said in any case.
    fn bases(&self, record: &Record<'a>, axes: &[Varied<'a>], memo: &mut Memo<'a>) -> Vec<Record<'a>> {
        let replaced = |part: Kind| axes.iter().flat_map(|axis| &axis.targets).any(|target| target.part == part);
        let mut bases = Vec::new();
        for part in PARTS {
            if record.field(part.word()).is_none() {
                continue;
            }
            let base = match part {
                _ if replaced(part) => self.part(record, part, &[]),
                Kind::Data => self.made_data(record, &[], memo).map(|made| made.record),
                Kind::Model => self.made_model(record, &[], memo).map(|made| made.record),
                Kind::Training => self.made_training(record, &[], memo).map(|made| made.record),
                _ => self.part(record, part, &[]),
            };
            bases.extend(base);
        }
        bases
    }

    fn of_cell<'c>(&self, field: &Field<'c, 'a>, cell: usize) -> Vec<&'c Replacement<'a>> {
        let values = field.cells[cell].0.iter().zip(field.axes);
        values.flat_map(|(value, axis)| &axis.values[*value].replacements).collect()
    }

    /// The record of a part under replacements.
    fn part(&self, record: &Record<'a>, kind: Kind, replacements: &[&Replacement<'a>]) -> Option<Record<'a>> {
        let whole = |replacement: &&&Replacement<'a>| replacement.target.field.is_none() && replacement.target.argument.is_none();
        let statement = match replacements.iter().rfind(whole) {
            Some(replacement) => &replacement.statement,
            None => record.field(kind.word())?,
        };
        let given = |replacement: &Replacement<'a>, name: &'a str| Given {
            name,
            name_span: replacement.target.span,
            said: replacement.statement.said,
            env: replacement.statement.env.clone(),
            used: Rc::new(Cell::new(false)),
        };
        // Parameters of the schedule.
        let parameters = replacements.iter().filter(|replacement| replacement.target.field.is_none());
        let parameters: Vec<Given<'a>> =
            parameters.filter_map(|replacement| Some(given(replacement, replacement.target.argument?))).collect();
        let mut words = self.said(statement, Scope { env: &statement.env, record: None })?;
        words.given = &parameters;
        let mut part = self.reference(kind, &mut words)?;
        words.finish()?;
        self.nothing_more(statement, Vocabulary::Of(Kind::Study), &format!("`{}`", record.owner))?;
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
    fn parts(
        &self,
        unit: usize,
        record: &Record<'a>,
        replacements: &[&Replacement<'a>],
        asks_kl: Option<Span>,
        memo: &mut Memo<'a>,
    ) -> Option<Parts> {
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
        let teacher = memo.teachers.entry(keys.clone()).or_insert_with(|| {
            let teacher = self.teacher_for(unit, &data, &model, &training, asks_kl)?;
            self.fits(&data, &model, teacher.as_ref())?;
            Some(teacher)
        });
        let teacher = teacher.clone();
        let [on_data, on_model, on_training] = keys;
        let timeline = memo.timelines.entry([on_data, on_model, on_training, key(&on_schedule)]).or_insert_with(|| {
            let before = self.said.borrow().list.len();
            let blame = schedule.record.blame;
            let timeline = self.timeline(&schedule.value, blame, &model.value, &training.value, &data.value);
            let has_failed = timeline.is_none() && self.said.borrow().list.len() > before;
            (!has_failed).then_some(timeline)
        });
        let timeline = timeline.clone()?;
        let teacher = teacher?;
        let noun = memo.schedule_nouns.entry((key(&on_schedule), block));
        let noun = Arc::clone(noun.or_insert_with(|| Arc::new(schedule.value.schedule.clone())));
        let mut records = vec![data.record, model.record, training.record, schedule.record];
        let teacher_noun = teacher.map(|teacher| {
            records.push(teacher.record);
            teacher.value
        });
        let filled = records.iter().flat_map(|record| record.filled.borrow().clone()).collect();
        let recipe =
            Recipe { data: data.value, model: model.value, training: training.value, schedule: noun, teacher: teacher_noun };
        Some(Parts { recipe, timeline, filled })
    }

    /// Reads every `control`; their names are known to what follows even where they are poisoned.
    fn controls(
        &self,
        record: &Record<'a>,
        mut field: Option<&mut Field<'_, 'a>>,
        ids: &mut usize,
    ) -> Vec<Option<Controlled<'a>>> {
        let mut controls = Vec::new();
        for statement in record.repeated.iter().filter(|statement| statement.key == "control") {
            let label = self.label(statement);
            controls.push(label.and_then(|(name, _)| self.control(record, statement, name, field.as_deref(), ids)));
            let (Some((name, span)), Some(field)) = (label, field.as_deref_mut()) else { continue };
            let values = field.axes.iter().flat_map(|axis| &axis.values);
            if let Some((_, first)) = field.controls.iter().find(|(known, _)| *known == name) {
                self.say(twice(format!("the control `{name}`"), span, *first));
            } else if let Some(value) = values.into_iter().find(|value| value.label == name) {
                let message = format!("`{name}` is a value of an axis already");
                self.say(Diagnostic::error("given-twice", message, span).note_at(value.span, "this value"));
            }
            field.controls.push((name, span));
        }
        controls
    }

    fn control(
        &self,
        record: &Record<'a>,
        statement: &Statement<'a>,
        name: &'a str,
        field: Option<&Field<'_, 'a>>,
        ids: &mut usize,
    ) -> Option<Controlled<'a>> {
        self.nothing_more(statement, Vocabulary::Of(Kind::Study), &format!("`{}`", record.owner))?;
        let scope = Scope { env: &statement.env, record: None };
        let mut words = self.words(statement.said, statement.head_span, scope);
        let Some(Expr { kind: ExprKind::List(base), span }) = words.next() else {
            return self.fail(Diagnostic::error(
                "missing-value",
                "a control begins with an arm in `[…]`",
                statement.value_span(),
            ));
        };
        let chosen = field.map(|field| field.choose(self, base, *span));
        let mut fine = Some(());
        let cell = match chosen.flatten() {
            Some(Chosen::Cells(cells)) if cells.len() == 1 => cells.first().copied(),
            Some(Chosen::Cells(cells)) => self.fail(one_arm(cells.len(), *span)),
            Some(Chosen::Control(_)) => {
                let said = Diagnostic::error("unexpected-words", "a control is made from a cell of the axes", *span);
                self.fail(said)
            }
            None => None,
        };
        let mut replacements = Vec::new();
        let has_with = words.eat("with");
        if has_with {
            let Some(Expr { kind: ExprKind::Block(block), .. }) = words.next() else {
                return words.missing("`{ … }` after `with`");
            };
            let env = self.environment(scope.env.unit(), lets(block), Some(scope), Kind::Study);
            let mut grouped = self.group(block, Vocabulary::Arm, &env, "an arm");
            self.once(&mut grouped, Kind::Model);
            if grouped.poisoned {
                fine = None;
            }
            match self.replacements(grouped.statements, ids) {
                Some(read) => replacements = read,
                None => fine = None,
            }
        }
        let mut matched = None;
        let has_match = words.eat("matched");
        if has_match {
            words.expect("to")?;
            let Some(Expr { kind: ExprKind::List(to), span }) = words.next() else {
                return words.missing("an arm in `[…]`");
            };
            let to = field.and_then(|field| field.choose(self, to, *span));
            let to = match to {
                Some(Chosen::Cells(cells)) if cells.len() > 1 => self.fail(one_arm(cells.len(), *span)),
                other => other,
            };
            words.expect("on")?;
            let Some(quantity) = words.peek_word() else { return words.missing("a quantity") };
            words.next();
            let on = match Quantity::ALL.into_iter().find(|known| known.name() == quantity) {
                Some(on) => Some(on),
                None => self.fail(unknown_word(quantity, words.before(), "a quantity", &Quantity::ALL.map(Quantity::name))),
            };
            match (to, on) {
                (Some(to), Some(on)) => matched = Some((to, on)),
                _ => fine = None,
            }
        }
        words.finish()?;
        if !has_with && !has_match {
            let said = Diagnostic::error("missing-value", "this control is the arm itself", *span);
            return self.fail(said.hint("add `matched to [arm] on QUANTITY` or `with { … }`"));
        }
        fine?;
        Some(Controlled { name, doc: statement.doc, text: self.text(statement.value_span()), cell: cell?, replacements, matched })
    }

    fn measures(&self, record: &Record<'a>) -> Option<Vec<(Measure, Span)>> {
        let measures: Vec<_> =
            record.repeated.iter().filter(|s| s.key == "measure").map(|statement| self.measure(record, statement)).collect();
        let all: Vec<(Measure, Span)> = measures.iter().flatten().flatten().copied().collect();
        for (index, (measure, span)) in all.iter().enumerate() {
            if let Some((_, first)) = all[..index].iter().find(|(known, _)| known.metric == measure.metric) {
                return self.fail(twice(format!("`{}`", measure.metric.name()), *span, *first));
            }
        }
        measures.iter().all(Option::is_some).then_some(all)
    }

    /// The measures, with those that claims need.
    fn measured(&self, record: &Record<'a>, measures: Vec<(Measure, Span)>, claims: &[Claimed<'a>]) -> Vec<Measure> {
        let mut measures: Vec<Measure> = measures.into_iter().map(|(measure, _)| measure).collect();
        let every = measures.first().map_or(defaults::MEASURE_EVERY, |measure| measure.every);
        let mut wanted: Vec<Metric> = claims.iter().flat_map(Claimed::metrics).collect();
        if measures.is_empty() && wanted.is_empty() {
            wanted.push(Metric::ValidationCe);
        }
        for metric in wanted {
            if !measures.iter().any(|measure| measure.metric == metric) {
                self.fill(record, "measure", format!("{} every {every} steps", metric.name()));
                measures.push(Measure { metric, every });
            }
        }
        measures
    }

    /// Moments of claims lie inside the runs that they read.
    fn claims_fit(
        &self,
        claims: &[Claimed<'a>],
        made: &[Parts],
        numbers: &dyn Fn(&Chosen) -> Vec<usize>,
        is_matched: &dyn Fn(usize) -> bool,
    ) {
        for claim in claims {
            let arms = || claim.chosen().flat_map(numbers).filter(|arm| !is_matched(*arm));
            let timelines = || arms().filter_map(|arm| made[arm].timeline.as_ref());
            if let Some((step, span)) = claim.at_step
                && let Some(end) = timelines().map(|timeline| timeline.end).min().filter(|end| step > *end)
            {
                let message = format!("step {step} is after the end of an arm, step {end}");
                self.say(Diagnostic::error("after-the-end", message, span));
            }
            let grows = timelines().map(|timeline| timeline.grows().count()).max();
            if let (crate::study::Relation::Overtakes { after_grow }, Some(span), Some(grows)) =
                (claim.relation, claim.grow_span, grows)
                && after_grow as usize > grows
            {
                let message = format!("these arms grow {grows} times, not {after_grow}");
                self.say(Diagnostic::error("no-such-grow", message, span));
            }
        }
    }

    /// Probes with their batches.
    fn probes_fit(&self, record: &Record<'a>, probes: Vec<Probed>, made: &[Parts]) -> Vec<Probe> {
        let context = made.iter().map(|parts| parts.recipe.data.context as u64).min().unwrap_or(0);
        let end = made.iter().filter_map(|parts| parts.timeline.as_ref()).map(|timeline| timeline.end).max();
        let mut fitted: Vec<Probe> = Vec::new();
        for probe in probes {
            let (sequences, tokens) = probe.batch.unwrap_or_else(|| {
                let value = format!("{} sequences of {context} tokens", defaults::PROBE_SEQUENCES);
                self.fill(record, "probe.on", value);
                (defaults::PROBE_SEQUENCES, context)
            });
            if tokens > context {
                let message = format!("{tokens} tokens are more than the context of {context}");
                self.say(Diagnostic::error("out-of-range", message, probe.batch_span));
            }
            for moment in &probe.moments {
                if let (ProbeMoment::Step(step), Some(end)) = (moment, end)
                    && *step > end
                {
                    let message = format!("step {step} is after the end of every arm, step {end}");
                    self.say(Diagnostic::error("after-the-end", message, probe.span));
                }
            }
            let probe = Probe { kind: probe.kind, moments: probe.moments, sequences, tokens };
            if !fitted.contains(&probe) {
                fitted.push(probe);
            }
        }
        fitted
    }

    /// `let`s that nothing uses are read too.
    fn top_level_lets(&self) {
        for (unit, names) in self.names.iter().enumerate() {
            let env = super::record::Env::of_unit(unit);
            for name in names.bindings() {
                if let Some((of, binding)) = names.binding(name).filter(|(of, _)| *of == unit)
                    && !matches!(binding.value.parts.as_slice(), [Expr { kind: ExprKind::Text(_), .. }])
                {
                    debug_assert_eq!(of, unit);
                    let mut words = self.words(&binding.value.parts, binding.name.span, Scope { env: &env, record: None });
                    let address = binding.value.parts.as_ptr() as usize;
                    self.guarded(address, binding.value.span, || words.amount().and_then(|_| words.finish()));
                }
            }
        }
    }
}

fn record_name<'r>(record: &'r Record<'_>) -> &'r str {
    record.name
}

fn key(replacements: &[&Replacement<'_>]) -> Vec<usize> {
    replacements.iter().map(|replacement| replacement.id).collect()
}

fn one_arm(count: usize, span: Span) -> Diagnostic {
    Diagnostic::error("ambiguous-arm", format!("one arm is wanted, these are {count}"), span).hint("give a value of every axis")
}
