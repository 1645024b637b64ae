//! A plan as it is written to a file.
//!
//! Owns the form. Invariant: what is read back has passed the gate; a file from elsewhere is hostile until then.

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::error::PlanError;
use super::graph::Graph;
use super::node::Node;
use super::run::PlannedRun;
use super::totals::Totals;
use super::{Plan, gate, proof};
use crate::study::Study;

/// Version of the form.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Plan")]
pub(super) struct Stored {
    version: u32,
    study: Study,
    runs: Vec<PlannedRun>,
    nodes: Vec<(Node, Cost)>,
    totals: Totals,
    warnings: Vec<String>,
}

impl From<Plan> for Stored {
    fn from(plan: Plan) -> Self {
        let nodes = plan.graph.all().cloned().collect();
        let Plan { study, runs, totals, warnings, .. } = plan;
        Self { version: VERSION, study, runs, nodes, totals, warnings }
    }
}

impl TryFrom<Stored> for Plan {
    type Error = PlanError;
    fn try_from(stored: Stored) -> Result<Self, PlanError> {
        let Stored { version, study, runs, nodes, totals, warnings } = stored;
        if version != VERSION {
            return Err(PlanError::Damaged(format!("its version is {version}, this xrun reads {VERSION}")));
        }
        let mut graph = Graph::default();
        for (node, cost) in nodes {
            let key = node.key.clone();
            if !graph.add(node, cost) {
                return Err(PlanError::Damaged(format!("the node {key} is there twice")));
            }
        }
        let plan = Self { study, runs, graph, totals, warnings };
        gate::check(&plan)?;
        proof::check(&plan)?;
        Ok(plan)
    }
}
