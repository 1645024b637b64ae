//! What happens when, and which phases serve several arms.
//!
//! Owns how runs with one course of events become one entry.

use std::collections::BTreeMap;

use super::arms::by_arm;
use super::figures::{action, grouped, many};
use super::page::Page;
use crate::plan::{Key, Plan, json};
use crate::timeline::{Segment, Timeline};

/// Every course of events, with the arms that take it.
pub(super) fn schedules(page: &mut Page, plan: &Plan) {
    let mut courses: Vec<(Vec<String>, &str, Vec<&str>)> = Vec::new();
    for run in by_arm(plan).filter_map(<[_]>::first) {
        let (course, name) = (course(&run.timeline), plan.study.arms[run.arm].recipe.schedule.name.as_str());
        match courses.iter_mut().find(|(other, of, _)| (other, *of) == (&course, name)) {
            Some((_, _, names)) => names.push(&run.name),
            None => courses.push((course, name, vec![&run.name])),
        }
    }
    page.heading("schedules");
    for (course, name, arms) in courses {
        page.wrapped(&format!("  {name}: "), &arms.join(", "));
        for line in course {
            page.wrapped("    ", &line);
        }
    }
}

fn course(timeline: &Timeline) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, segment) in timeline.segments.iter().enumerate() {
        let events = segment.actions.iter().map(action).collect::<Vec<_>>().join(", ");
        let (start, end) = (grouped(segment.steps.start), grouped(segment.steps.end));
        let events = if events.is_empty() { events } else { format!("; at {start}: {events}") };
        lines.push(format!("phase {number}, {start} to {end}: {}{events}", depth(segment)));
    }
    lines
}

fn depth(segment: &Segment) -> String {
    let (active, learning) = (segment.depth(), segment.trained_layers());
    let rest = if active == learning { String::new() } else { format!(", {} frozen", grouped((active - learning) as u64)) };
    format!("{}{rest}", many(active as u64, "layer"))
}

/// Phases that serve several arms.
pub(super) fn shared(page: &mut Page, plan: &Plan) {
    let users = json::users(plan);
    // By the arms that share: which phases, told by the first of them. Seeds share alike, so that the first speaks for all.
    let mut groups: Vec<(&[&str], Vec<usize>)> = Vec::new();
    let mut told: BTreeMap<&Key, ()> = BTreeMap::new();
    for run in by_arm(plan).filter_map(<[_]>::first) {
        for (number, key) in run.phases.iter().enumerate() {
            let names = users.get(key).map_or(&[][..], Vec::as_slice);
            if names.len() < 2 || told.insert(key, ()).is_some() {
                continue;
            }
            match groups.iter_mut().find(|(other, _)| *other == names) {
                Some((_, numbers)) => numbers.push(number),
                None => groups.push((names, vec![number])),
            }
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
