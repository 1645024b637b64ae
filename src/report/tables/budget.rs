//! What each arm costs, from the plan.

use crate::report::model::{Cell, Format, Table};
use crate::report::reading::Reading;
use crate::report::story::RunStory;

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let mut table = Table::new("Budgets", &["arm", "layers"]);
    table.column("parameters", Format::Short);
    table.column("steps", Format::Exact);
    for label in ["tokens", "unique tokens", "active-layer tokens", "trained-layer tokens"] {
        table.column(label, Format::Short);
    }
    let flops = reading.story.runs.iter().any(|run| run.planned.flops_student_with_head.is_some());
    if flops {
        table.column("student FLOPs, with head", Format::Scientific);
    }
    let mut alike = true;
    for (index, arm) in reading.study().arms.iter().enumerate() {
        let mut runs = reading.runs_of(index);
        let Some(run) = runs.next() else { continue };
        alike &= runs.all(|other| other.planned == run.planned);
        let planned = &run.planned;
        let counts = [
            Some(planned.params_total),
            Some(planned.steps),
            planned.tokens,
            planned.unique_tokens,
            planned.active_layer_tokens,
            planned.trained_layer_tokens,
        ];
        let mut cells: Vec<Cell> = counts.into_iter().map(Cell::count).collect();
        if flops {
            cells.push(planned.flops_student_with_head.map_or_else(Cell::default, Cell::real));
        }
        table.row(vec![arm.name.clone(), depths(run)], cells);
    }
    let which = if alike { "each seed" } else { "the first seed; other seeds differ" };
    table.finish(format!("Exact counts of one run as planned, for {which}. Layers: the depth of each phase."))
}

/// `3→6→9`.
fn depths(run: &RunStory) -> String {
    let mut depths: Vec<String> = run.segments.iter().map(|segment| segment.depth().to_string()).collect();
    depths.dedup();
    depths.join("→")
}
