//! A plan for people: `xrun plan`.
//!
//! Owns what is said and in which order. Deliberately uses no colour. Invariant: a plan of equal arms reads the same on any machine.

mod arms;
mod events;
mod figures;
mod page;
mod schedules;
mod whole;
mod work;

use super::node::Node;
use super::{Plan, Why};
pub(super) use figures::action;
pub use figures::bytes;
use page::Page;

/// The plan as text of 100 columns; `why` says of each node whether it runs. All nodes are told one by one only if `all`.
pub fn text(plan: &Plan, why: &dyn Fn(&Node) -> Why, all: bool) -> String {
    let whys: Vec<Why> = plan.nodes().into_iter().map(why).collect();
    let mut page = Page::default();
    page.line(&format!("study {}", plan.study.name));
    if let Some(doc) = &plan.study.doc {
        page.wrapped("  ", doc);
    }
    arms::arms(&mut page, plan);
    arms::flops(&mut page, plan);
    arms::controls(&mut page, plan);
    schedules::schedules(&mut page, plan);
    schedules::shared(&mut page, plan);
    whole::teachers(&mut page, plan);
    schedules::saved(&mut page, plan);
    whole::totals(&mut page, plan, &whys);
    work::work(&mut page, plan, &whys, all);
    whole::warnings(&mut page, plan);
    whole::defaults(&mut page, plan);
    page.text()
}
