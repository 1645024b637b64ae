//! What concerns the plan as a whole: teachers, sums, warnings, defaults.

use indexmap::IndexMap;

use super::figures::{bytes, flops, grouped, known, many, short, time};
use super::page::Page;
use crate::plan::node::Work;
use crate::plan::{Plan, Why};
use crate::study::Cache;

/// Teachers and their caches.
pub(super) fn teachers(page: &mut Page, plan: &Plan) {
    let mut lines = Vec::new();
    for (node, cost) in plan.graph.all() {
        match &node.work {
            Work::Teacher(phase) => {
                let (steps, layers) = (many(cost.steps, "step"), many(phase.segment.depth() as u64, "layer"));
                let (params, spent) = (short(cost.params_total), flops(cost.flops_teacher));
                let line =
                    format!("{}: {steps} on `{}`, {layers}, {params} parameters, {spent} FLOPs", node.label, phase.data.name);
                lines.push(line);
            }
            Work::Checkpoint(checkpoint) => {
                let whence = if checkpoint.content.is_some() { "" } else { ", not at hand, as declared" };
                let (layers, width) = (many(checkpoint.model.layers as u64, "layer"), checkpoint.model.width);
                let (params, spent) = (short(cost.params_total), flops(cost.flops_teacher));
                let line = format!(
                    "{}: the checkpoint \"{}\"{whence}, {layers} of width {width}, {params} parameters, {spent} FLOPs on the holdout of `{}`",
                    node.label, checkpoint.folder, checkpoint.data.name
                );
                lines.push(line);
            }
            Work::TeacherLogits(logits) => {
                let kept = match logits.cache {
                    Cache::Top(top) => format!("the {top} most likely tokens, the rest as one outcome,"),
                    Cache::All | Cache::None => "all tokens".to_owned(),
                };
                let (shards, spent) = (many(logits.shards, "shard"), flops(cost.flops_teacher));
                let (size, memory, temperature) = (bytes(cost.disk), bytes(cost.memory), logits.temperature);
                let how = if logits.folder.is_some() { ", layer by layer" } else { "" };
                let line = format!(
                    "{}: {kept} at temperature {temperature}, {shards} and the holdout, {size}, {spent} FLOPs{how} in {memory} of memory",
                    node.label
                );
                lines.push(line);
            }
            Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Phase(_) | Work::Probe(_) => {}
        }
    }
    if !lines.is_empty() {
        page.heading("teachers");
        for line in lines {
            page.wrapped("  ", &line);
        }
    }
}

/// Sums, with and without sharing.
pub(super) fn totals(page: &mut Page, plan: &Plan, whys: &[Why]) {
    let totals = &plan.totals;
    let done = || plan.graph.all().zip(whys).filter(|(_, why)| why.is_done()).map(|(node, _)| node);
    page.heading("totals");
    let (nodes, runs, arms) = (many(totals.nodes, "node"), many(totals.runs, "run"), many(plan.study.arms.len() as u64, "arm"));
    let steps: u64 = done().map(|(_, cost)| cost.steps).sum();
    page.line(&format!(
        "  work    {nodes} for {runs} of {arms}; done already: {}, {}",
        grouped(done().count() as u64),
        many(steps, "step")
    ));
    let saved = |with: Option<f64>, without: Option<f64>, by: &str| match (with, without) {
        (Some(with), Some(without)) if without > with => format!(", {:.0} % saved by {by}", 100.0 * (1.0 - with / without)),
        _ => String::new(),
    };
    let has_cache = plan.graph.all().any(|(node, _)| matches!(node.work, Work::TeacherLogits(_)));
    let float = |count: Option<u64>| count.map(|count| count as f64);
    let rows = [
        ("steps ", grouped(totals.steps_planned), grouped(totals.steps_if_unshared), {
            saved(Some(totals.steps_planned as f64), Some(totals.steps_if_unshared as f64), "sharing")
        }),
        ("tokens", known(totals.tokens_planned), known(totals.tokens_if_unshared), {
            saved(float(totals.tokens_planned), float(totals.tokens_if_unshared), "sharing")
        }),
        ("FLOPs ", flops(totals.flops_planned), flops(totals.flops_if_unshared), {
            saved(totals.flops_planned, totals.flops_if_unshared, if has_cache { "sharing and the cache" } else { "sharing" })
        }),
    ];
    for (name, with, without, saved) in rows {
        page.line(&format!("  {name}  {with} (every run on its own: {without}{saved})"));
    }
    page.line(&format!("  memory  about {} for the largest node", bytes(totals.memory)));
    page.line(&format!("  disk    about {}", bytes(totals.disk)));
    let seconds = totals.seconds.map_or_else(
        || "unknown until something of it has run here, or `xrun bench FILE` has measured it".to_owned(),
        |seconds| format!("about {}, one node at a time", time(seconds)),
    );
    page.line(&format!("  time    {seconds}"));
}

/// What a person should know.
pub(super) fn warnings(page: &mut Page, plan: &Plan) {
    if !plan.warnings.is_empty() {
        page.heading("warnings");
        for warning in &plan.warnings {
            page.wrapped("  - ", warning);
        }
    }
}

/// What was filled in, by declaration; `xrun check --defaults` has the reasons.
pub(super) fn defaults(page: &mut Page, plan: &Plan) {
    let mut owners: IndexMap<&str, Vec<String>> = IndexMap::new();
    for filled in &plan.study.defaults {
        owners.entry(&filled.owner).or_default().push(format!("{} {}", filled.field, filled.value));
    }
    if !owners.is_empty() {
        page.heading("by default");
        for (owner, values) in owners {
            page.wrapped(&format!("  {owner}: "), &values.join(", "));
        }
    }
}
