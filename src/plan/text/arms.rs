//! The tables of arms.
//!
//! Owns how runs that differ in the seed alone become one row: a figure that differs among seeds is a range.

use super::figures::{flops as spent, grouped, known, short};
use super::page::Page;
use crate::plan::{Plan, PlannedRun};

/// The runs of each arm, in the order of the study.
pub(super) fn by_arm(plan: &Plan) -> impl Iterator<Item = &[PlannedRun]> {
    plan.runs.chunk_by(|a, b| a.arm == b.arm)
}

/// One figure of an arm: that of all its seeds, or from the least to the most.
pub(super) fn figure<R, T: PartialOrd + Copy>(all: &[R], of: impl Fn(&R) -> T, say: impl Fn(T) -> String) -> String {
    let values = || all.iter().map(&of);
    let least = values().reduce(|a, b| if b < a { b } else { a }).map(&say);
    let most = values().reduce(|a, b| if b > a { b } else { a }).map(&say);
    match (least, most) {
        (Some(least), Some(most)) if least != most => format!("{least}–{most}"),
        (least, _) => least.unwrap_or_default(),
    }
}

/// Steps, tokens, parameters.
pub(super) fn arms(page: &mut Page, plan: &Plan) {
    page.heading("arms");
    let row = |runs: &[PlannedRun]| {
        vec![
            runs[0].name.clone(),
            runs.len().to_string(),
            figure(runs, |run| run.steps, grouped),
            figure(runs, |run| run.tokens, known),
            figure(runs, |run| run.unique_tokens, known),
            figure(runs, |run| run.active_layer_tokens, known),
            figure(runs, |run| run.trained_layer_tokens, known),
            short(runs[0].params_total),
        ]
    };
    let rows: Vec<_> = by_arm(plan).map(row).collect();
    page.table(&["", "seeds", "steps", "tokens", "unique", "active-layer", "trained-layer", "parameters"], &rows);
    let mut sizes: Vec<(&str, [u64; 3])> = Vec::new();
    for run in &plan.runs {
        let size = [run.params_stack, run.params_without_head, run.params_total];
        if !sizes.iter().any(|(_, other)| *other == size) {
            sizes.push((&run.name, size));
        }
    }
    let one = sizes.len() == 1;
    for (name, [stack, without_head, total]) in sizes {
        let whose = if one { String::new() } else { format!(" of {name}") };
        let [stack, without_head, total] = [stack, without_head, total].map(short);
        let line =
            format!("parameters{whose} at the end: layers {stack}, with embedding and norms {without_head}, with head {total}");
        page.wrapped("  ", &line);
    }
}

/// What training costs.
pub(super) fn flops(page: &mut Page, plan: &Plan) {
    page.heading("FLOPs of one run");
    let row = |runs: &[PlannedRun]| {
        vec![
            runs[0].name.clone(),
            figure(runs, |run| run.flops_student, spent),
            figure(runs, |run| run.flops_student_with_head, spent),
            figure(runs, |run| run.flops_teacher, spent),
        ]
    };
    let rows: Vec<_> = by_arm(plan).map(row).collect();
    page.table(&["", "student", "with head", "teacher"], &rows);
}

/// How controls came about.
pub(super) fn controls(page: &mut Page, plan: &Plan) {
    let controls: Vec<_> = by_arm(plan).filter(|runs| plan.study.arms[runs[0].arm].control.is_some()).collect();
    if controls.is_empty() {
        return;
    }
    page.heading("controls");
    for runs in controls {
        let (run, Some(control)) = (&runs[0], &plan.study.arms[runs[0].arm].control) else { continue };
        page.wrapped(&format!("  {}: ", run.name), &control.text);
        if let Some(doc) = &control.doc {
            page.wrapped("    ", doc);
        }
        if let Some(mismatch) = &run.mismatch {
            let steps = figure(runs, |run| run.steps, grouped);
            let missed = figure(runs, |run| run.mismatch.as_ref().map_or(0.0, |mismatch| mismatch.relative), percent);
            let (on, to) = (mismatch.on.name(), &mismatch.to);
            page.wrapped("    ", &format!("{steps} steps, so that {on} are those of {to}; mismatch {missed}"));
        }
    }
}

/// `+0.031 %`, or `none`.
fn percent(relative: f64) -> String {
    match relative {
        0.0 => "none".to_owned(),
        relative => format!("{:+.3} %", 100.0 * relative),
    }
}
