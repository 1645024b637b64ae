//! What happens when, and which phases serve several arms.
//!
//! Owns how runs with one course of events become one entry.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::arms::by_arm;
use super::events;
use super::figures::{action, grouped, many};
use super::page::Page;
use crate::budget::transition::Transition;
use crate::plan::node::Work;
use crate::plan::{Key, Plan, PlannedRun, Saved, json};
use crate::study::Moment;
use crate::timeline::moment::share;
use crate::timeline::{DataPosition, Segment};

/// Every course of events, with the arms that take it.
pub(super) fn schedules(page: &mut Page, plan: &Plan) {
    let mut courses: Vec<(Course, &str, Vec<&PlannedRun>)> = Vec::new();
    for run in by_arm(plan).filter_map(<[_]>::first) {
        let (course, name) = (course(plan, run), plan.study.arms[run.arm].recipe.schedule.name.as_str());
        match courses.iter_mut().find(|(other, of, _)| (other, *of) == (&course, name)) {
            Some((_, _, runs)) => runs.push(run),
            None => courses.push((course, name, vec![run])),
        }
    }
    page.heading("schedules");
    for (course, name, runs) in courses {
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        page.wrapped(&format!("  {name}: "), &names.join(", "));
        for (number, phase) in course.iter().enumerate() {
            page.wrapped("    ", phase.first().map_or("", String::as_str));
            let alike: Vec<_> = runs.iter().filter_map(|run| event(plan, run, number)).collect();
            events::table(page, &alike);
        }
        if let Some(run) = runs.first() {
            let events = &plan.study.arms[run.arm].recipe.schedule.events;
            events
                .iter()
                .filter_map(|event| rounded(event.moment, run.timeline.end))
                .for_each(|said| page.wrapped("    ", &said));
        }
    }
}

/// A share of a run that is no whole step, and the step that it is rounded to.
fn rounded(moment: Moment, end: u64) -> Option<String> {
    let Moment::Fraction(fraction) = moment else { return None };
    let exact = fraction * end as f64;
    let step = share(fraction, end);
    let short = |value: f64| format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let is_whole = short(exact) == step.to_string();
    (!is_whole).then(|| {
        format!("{} % of {} is {}, rounded to {}", short(100.0 * fraction), many(end, "step"), short(exact), grouped(step))
    })
}

/// For each phase its line and, if it begins with an event, the words of the event's table.
type Course = Vec<Vec<String>>;

fn course(plan: &Plan, run: &PlannedRun) -> Course {
    let mut phases = Vec::new();
    for (number, segment) in run.timeline.segments.iter().enumerate() {
        let events = segment.actions.iter().map(action).collect::<Vec<_>>().join(", ");
        let (start, end) = (grouped(segment.steps.start), grouped(segment.steps.end));
        let events = if events.is_empty() { events } else { format!("; at {start}: {events}") };
        let mut words = vec![format!("phase {number}, {start} to {end}: {}{events}", depth(segment))];
        words.extend(event(plan, run, number).into_iter().flat_map(|(table, position)| events::words(table, position)));
        phases.push(words);
    }
    phases
}

/// The event at the start of a phase, if there is one, and where it goes on to read.
fn event<'a>(plan: &'a Plan, run: &PlannedRun, number: usize) -> Option<(&'a Transition, DataPosition)> {
    match &plan.node(run.phases.get(number)?)?.work {
        Work::Phase(phase) if !run.timeline.segments.get(number)?.actions.is_empty() => {
            Some((&phase.transition, phase.segment.data))
        }
        _ => None,
    }
}

fn depth(segment: &Segment) -> String {
    let (active, learning) = (segment.depth(), segment.trained_layers());
    let rest = if active == learning { String::new() } else { format!(", {} frozen", grouped((active - learning) as u64)) };
    format!("{}{rest}", many(active as u64, "layer"))
}

/// Checkpoints that schedules name, each node once.
pub(super) fn saved(page: &mut Page, plan: &Plan) {
    let mut rows: IndexMap<Saved<'_>, Vec<String>> = IndexMap::new();
    for run in &plan.runs {
        for saved in run.saved() {
            rows.entry(saved).or_default().push(format!("{} seed {}", run.name, run.seed));
        }
    }
    if !rows.is_empty() {
        page.heading("saved");
        for (Saved { name, step, phase }, runs) in rows {
            let at = format!("{name:?} at step {} in the node {phase}:", grouped(step));
            page.wrapped("  ", &format!("{at} {}", runs.join(", ")));
        }
    }
}

/// Phases that serve several arms.
pub(super) fn shared(page: &mut Page, plan: &Plan) {
    let users = json::users(plan);
    // By the arms that share: which phases, told by the first of them. Seeds share alike, so that the first speaks for all.
    let mut groups: Vec<(&[&str], Vec<usize>)> = Vec::new();
    let mut at: BTreeMap<&[&str], usize> = BTreeMap::new();
    let mut told: BTreeMap<&Key, ()> = BTreeMap::new();
    for run in by_arm(plan).filter_map(<[_]>::first) {
        for (number, key) in run.phases.iter().enumerate() {
            let names = users.get(key).map_or(&[][..], Vec::as_slice);
            if names.len() < 2 || told.insert(key, ()).is_some() {
                continue;
            }
            let group = *at.entry(names).or_insert_with(|| {
                groups.push((names, Vec::new()));
                groups.len() - 1
            });
            groups[group].1.push(number);
        }
    }
    if groups.is_empty() {
        return;
    }
    page.heading("sharing");
    for (names, numbers) in groups {
        let word = if numbers.len() == 1 { "phase" } else { "phases" };
        let numbers = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        page.wrapped(&format!("  {word} {numbers} shared by "), &names.join(", "));
    }
}
