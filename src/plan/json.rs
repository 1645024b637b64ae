//! A plan for programs: `xrun plan --format json`.
//!
//! Owns the schema `xrun.plan/1`. Invariant: counts are integers at any size; what cannot be known yet is `null`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::cost::Cost;
use super::node::{Key, Node, Work};
use super::run::{Mismatch, PlannedRun};
use super::text::action;
use super::{Plan, Why, gate};
use crate::budget::learning::Learns;
use crate::budget::transition::Row;
use crate::study::Filled;
use crate::timeline::DataPosition;

/// Name and version of the schema.
pub const SCHEMA: &str = "xrun.plan/1";

/// The plan as JSON; `why` says of each node whether it runs. Arms and nodes become values one at a time, while they are written: all of
/// them at once are several times the size of their text.
pub fn json<'a>(plan: &'a Plan, why: &dyn Fn(&Node) -> Why) -> impl Serialize + use<'a> {
    let users = users(plan);
    let whys: Vec<Why> = plan.graph.all().map(|(node, _)| why(node)).collect();
    let of_done = || plan.graph.all().zip(&whys).filter(|(_, why)| why.is_done()).map(|((_, cost), _)| cost);
    let totals = &plan.totals;
    let totals = json!({
        "runs": totals.runs,
        "nodes": totals.nodes,
        "nodes_cached": of_done().count(),
        "steps_planned": totals.steps_planned,
        "steps_if_unshared": totals.steps_if_unshared,
        "steps_cached": of_done().map(|cost| cost.steps).sum::<u64>(),
        "tokens_planned": totals.tokens_planned,
        "tokens_if_unshared": totals.tokens_if_unshared,
        "flops_planned": totals.flops_planned,
        "flops_if_unshared": totals.flops_if_unshared,
        "memory": totals.memory,
        "disk": totals.disk,
        "seconds": totals.seconds,
    });
    let nodes: Vec<_> = plan.graph.all().zip(whys).collect();
    let node = move |number: usize| {
        let ((node, cost), why) = nodes.get(number)?;
        Some(of_node(node, cost, users.get(&node.key).map_or(&[], Vec::as_slice), why))
    };
    Written {
        arms: Each(move |number: usize| plan.runs.get(number).map(|run| of_run(plan, run))),
        defaults: &plan.study.defaults,
        doc: plan.study.doc.as_deref(),
        nodes: Each(node),
        schema: SCHEMA,
        study: &plan.study.name,
        totals,
        warnings: &plan.warnings,
    }
}

/// The document, its fields sorted as those of all values are.
#[derive(Serialize)]
struct Written<'a, A, N> {
    arms: A,
    defaults: &'a [Filled],
    doc: Option<&'a str>,
    nodes: N,
    schema: &'static str,
    study: &'a str,
    totals: Value,
    warnings: &'a [String],
}

/// A list whose items are made when they are asked for, until there is none.
struct Each<F: Fn(usize) -> Option<Value>>(F);

impl<F: Fn(usize) -> Option<Value>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..).map_while(&self.0))
    }
}

/// Names of the arms that use each node, in the order of the study.
pub(super) fn users(plan: &Plan) -> BTreeMap<&Key, Vec<&str>> {
    let mut users: BTreeMap<&Key, Vec<&str>> = BTreeMap::new();
    for run in &plan.runs {
        for key in &run.nodes {
            let names = users.entry(key).or_default();
            // Runs come arm by arm, so that an arm's own name can only be the last.
            if names.last() != Some(&run.name.as_str()) {
                names.push(&run.name);
            }
        }
    }
    users
}

fn of_run(plan: &Plan, run: &PlannedRun) -> Value {
    let arm = &plan.study.arms[run.arm];
    let control = arm.control.as_ref().map(|control| {
        let matched = run.mismatch.as_ref().map(of_mismatch);
        json!({ "text": control.text, "doc": control.doc, "matched": matched })
    });
    json!({
        "name": run.name,
        "values": arm.values,
        "seed": run.seed,
        "control": control,
        "steps": run.steps,
        "tokens": run.tokens,
        "unique_tokens": run.unique_tokens,
        "active_layer_tokens": run.active_layer_tokens,
        "trained_layer_tokens": run.trained_layer_tokens,
        "flops_student": run.flops_student,
        "flops_student_with_head": run.flops_student_with_head,
        "flops_teacher": run.flops_teacher,
        "flops_alone": run.flops_alone,
        "params_total": run.params_total,
        "params_without_head": run.params_without_head,
        "params_stack": run.params_stack,
        "teacher": run.teachers.first().and_then(|(_, node)| node.as_ref()),
        "teachers": run.teachers.iter().map(|(name, node)| json!({ "name": name, "node": node })).collect::<Vec<_>>(),
        "phases": run.phases,
        "probes": run.probes.iter().map(|(kind, step, key)| json!({ "kind": kind.name(), "step": step, "key": key })).collect::<Vec<_>>(),
        "saved": run.saved().map(|saved| json!({ "name": saved.name, "step": saved.step, "key": saved.phase })).collect::<Vec<_>>(),
        "nodes": run.nodes,
    })
}

fn of_mismatch(mismatch: &Mismatch) -> Value {
    json!({
        "to": mismatch.to,
        "on": mismatch.on.name(),
        "end": mismatch.end,
        "wanted": mismatch.wanted,
        "reached": mismatch.reached,
        "mismatch": mismatch.relative,
    })
}

fn of_node(node: &Node, cost: &Cost, arms: &[&str], why: &Why) -> Value {
    let segment = gate::segment(node);
    json!({
        "key": node.key,
        "kind": node.work.kind(),
        "label": node.label,
        "needs": node.needs,
        "arms": arms,
        "cached": why.is_done(),
        "why": of_why(why),
        "first_step": segment.map(|segment| segment.steps.start),
        "last_step": segment.map(|segment| segment.steps.end),
        "active_layers": segment.map(|segment| segment.depth()),
        "transition": transition(node),
        "cost": cost,
    })
}

fn of_why(why: &Why) -> Value {
    let (from, inputs) = match why {
        Why::Changed { from, inputs } => (Some(from), inputs.as_slice()),
        _ => (None, &[][..]),
    };
    json!({ "is": why.word(), "text": why.to_string(), "from": from, "inputs": inputs })
}

/// What becomes of everything at a phase's first step.
fn transition(node: &Node) -> Option<Value> {
    let (Work::Phase(phase) | Work::Teacher(phase)) = &node.work else { return None };
    let (table, segment) = (&phase.transition, &phase.segment);
    let row = |row: &Row| {
        json!({
            "name": row.name(),
            "layers": row.layers,
            "of": row.of,
            "parameters": row.parameters,
            "value": row.fate.value,
            "copies": row.from,
            "moments": row.fate.moments,
            "updates": row.fate.updates,
            "learns": row.fate.learns,
            "lr": if row.fate.learns == Learns::Yes { table.lr } else { 0.0 },
        })
    };
    let DataPosition { shard, sequence, .. } = segment.data;
    Some(json!({
        "actions": segment.actions.iter().map(action).collect::<Vec<_>>(),
        "lr": table.lr,
        "data": { "reading": table.reading, "shard": shard, "sequence": sequence, "context": segment.context(&phase.data) },
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
    }))
}
