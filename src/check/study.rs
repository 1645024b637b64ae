//! `study` declarations: parts, axes, controls, and the arms that follow.
//!
//! Owns the order of these steps, and what has to fit between arms and what is asked of them. Each step is read elsewhere.

use indexmap::IndexMap;

use super::Checker;
use super::arms::{Chosen, Field};
use super::axes::{PARTS, Replacement, Varied};
use super::claims::Claimed;
use super::controls::Controlled;
use super::defaults;
use super::measures::Probed;
use super::names::{Kind, twice};
use super::origin::{Provenance, Read};
use super::parts::{Memo, Parts};
use super::record::{Record, Scope, Statement};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::{Arm, Control, Filled, Matched, Measure, Metric, Probe, ProbeMoment, Relation, Study};
use crate::syntax::ast::{Expr, ExprKind};

/// Runs of a study, each an arm under a seed: a plan holds some kilobytes of each.
const MOST_RUNS: usize = 20_000;
/// Phases and probes of all runs: a plan holds about three kilobytes of each.
const MOST_NODES: usize = 50_000;

impl<'a> Checker<'a> {
    /// Checks the root file: its declarations on their own, then its studies.
    pub(super) fn file(&self) -> (Vec<Study>, Vec<Provenance>) {
        let (mut studies, mut origins) = (Vec::new(), Vec::new());
        for unit in 0..self.units.len() {
            let declared: Vec<_> = self.names[unit].own(unit).collect();
            for declared in declared.iter().filter(|declared| declared.kind != Kind::Study).take_while(|_| !self.has_enough()) {
                if let Some(record) = self.alone(*declared) {
                    self.stands_alone(&record);
                }
            }
            for declared in declared.iter().filter(|declared| declared.kind == Kind::Study).take_while(|_| !self.has_enough()) {
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
        let are_whole = axes.iter().all(Option::is_some) && !["vary", "control"].iter().any(|word| record.lost.contains(word));
        let axes: Vec<Varied<'a>> = axes.into_iter().flatten().collect();
        self.values_exist(&axes);
        self.arguments_exist(record, &axes);
        // With an axis missing, nothing can be said about references to arms, but the parts that are left can still be read.
        let mut field = Field::new(self, record, &axes);
        let excepted = field.as_mut().filter(|_| are_whole).map(|field| field.take_away(self, record));
        let controls = self.controls(record, field.as_mut().filter(|_| are_whole), &mut ids);
        let refer = field.as_ref().filter(|_| are_whole);
        let seeds = self.seeds(record);
        let measures = self.measures(record);
        let of = |key: &'static str| record.repeated.iter().filter(move |statement| statement.key == key);
        let probes: Vec<_> = of("probe").map(|statement| self.probe(statement)).collect();
        let claims = self.claims(record, refer);
        let reports: Vec<_> = of("report").map(|statement| self.report(statement, refer)).collect();
        let mut memo = Memo::default();
        self.bases(record, &axes, &mut memo);
        let complete = self.all_parts(record, &axes);

        // Arms that should have been taken away may be at fault for that reason.
        let field = field.filter(|_| excepted != Some(None))?;
        let measures_kl = measures.iter().flatten().find(|(measure, _)| measure.metric == Metric::Kl).map(|(_, span)| *span);
        let asks_kl = measures_kl.or_else(|| claims.iter().flatten().find_map(Claimed::kl));
        let cells: Vec<usize> = field.left().collect();
        let mut made: Vec<Option<Parts<'a>>> = Vec::new();
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
        let made: Option<Vec<Parts<'a>>> = made.into_iter().collect();
        let (made, controls) = (made?, controls?);
        // One that is wrong in itself does not hide that another does not fit.
        let are_read = claims.iter().all(Option::is_some) && probes.iter().all(Option::is_some);
        let claims: Vec<Claimed<'a>> = claims.into_iter().flatten().collect();
        let probes: Vec<Probed> = probes.into_iter().flatten().collect();
        let numbers = |chosen: &Chosen| match chosen {
            Chosen::Cells(chosen) => chosen.iter().filter_map(|cell| cells.binary_search(cell).ok()).collect(),
            Chosen::Control(control) => vec![cells.len() + control],
        };
        let is_matched =
            |arm: usize| arm.checked_sub(cells.len()).and_then(|at| controls.get(at)).is_some_and(|c| c.matched.is_some());
        self.claims_fit(&claims, &made, &numbers, &is_matched);
        let probes = self.probes_fit(record, probes, &made);
        if !are_read {
            return None;
        }
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
        let phases = made.iter().map(|parts| parts.timeline.as_ref().map_or(1, |timeline| timeline.segments.len()));
        let nodes = phases.map(|phases| phases + probes.len()).sum::<usize>() * seeds.len();
        let mut records: Vec<Vec<Record<'a>>> = Vec::new();
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
            records.push(parts.records);
            arms.push(Arm { name, values: values(cell), control, recipe: parts.recipe });
        }
        if arms.len() * seeds.len() > MOST_RUNS {
            let message = format!("{} arms under {} seeds: more than {MOST_RUNS} runs", arms.len(), seeds.len());
            let at = record.field("seeds").map_or(record.name_span, Statement::value_span);
            return self.fail(Diagnostic::error("too-many-runs", message, at).hint("take fewer seeds, or vary less at a time"));
        }
        if nodes > MOST_NODES {
            let message = format!("{nodes} phases and probes under {} seeds: more than {MOST_NODES}", seeds.len());
            let at = record.field("seeds").map_or(record.name_span, Statement::value_span);
            return self.fail(Diagnostic::error("too-many-runs", message, at).hint("take fewer seeds, or vary less at a time"));
        }
        let mut origins = Vec::new();
        if self.traced.is_some() {
            let mut reads: Vec<Read<'_, 'a>> = Vec::new();
            let own = controls.iter().map(|control| (control.cell, control.replacements.as_slice()));
            let all = cells.iter().map(|cell| (*cell, &[][..])).chain(own);
            for (((cell, own), arm), records) in all.zip(&arms).zip(records) {
                let replacements = self.of_cell(&field, cell).into_iter().chain(own).collect();
                reads.push(Read { name: &arm.name, values: &arm.values, records, replacements });
            }
            origins = self.origins(record, &axes, &reads, &filled);
        }
        let study = Study {
            name: record.name.to_owned(),
            doc: record.doc.or(self.about()).map(str::to_owned),
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

    fn of_cell<'c>(&self, field: &Field<'c, 'a>, cell: usize) -> Vec<&'c Replacement<'a>> {
        let values = field.cells[cell].0.iter().zip(field.axes);
        values.flat_map(|(value, axis)| &axis.values[*value].replacements).collect()
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
        made: &[Parts<'a>],
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
            if let (Relation::Overtakes { after_grow }, Some(span), Some(grows)) = (claim.relation, claim.grow_span, grows)
                && after_grow as usize > grows
            {
                let message = format!("these arms grow {grows} times, not {after_grow}");
                self.say(Diagnostic::error("no-such-grow", message, span));
            }
        }
    }

    /// Probes with their batches.
    fn probes_fit(&self, record: &Record<'a>, probes: Vec<Probed>, made: &[Parts<'a>]) -> Vec<Probe> {
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
            for name in names.bindings().take_while(|_| !self.has_enough()) {
                if let Some((_, binding)) = names.binding(name).filter(|(of, _)| *of == unit)
                    && !matches!(binding.value.parts.as_slice(), [Expr { kind: ExprKind::Text(_), .. }])
                {
                    let mut words = self.words(&binding.value.parts, binding.name.span, Scope { env: &env, record: None });
                    let address = binding.value.parts.as_ptr() as usize;
                    self.guarded(address, binding.value.span, || words.amount().and_then(|_| words.finish()));
                }
            }
        }
    }
}
