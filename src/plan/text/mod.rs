//! A plan for people: `xrun plan`.
//!
//! Owns what is said and in which order. Deliberately uses no colour. Invariant: a plan of equal arms reads the same on any machine.

mod arms;
mod events;
mod figures;
mod page;
mod schedules;
mod whole;

use super::Plan;
use super::node::Key;
pub(super) use figures::action;
pub use figures::bytes;
use page::Page;

/// The plan as text of 100 columns; `cached` says which nodes are done already.
pub fn text(plan: &Plan, cached: &dyn Fn(&Key) -> bool) -> String {
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
    whole::totals(&mut page, plan, cached);
    whole::warnings(&mut page, plan);
    whole::defaults(&mut page, plan);
    page.text()
}
