//! Whether the machine has room for what is about to run: disk, memory, time, by the plan's estimates.
//!
//! Owns when a run is refused and when it is warned of. Invariant: what is not known, of the plan or of the machine, stops nobody.

use super::Fault;
use super::watch::picture::duration;
use crate::plan::cost::Cost;
use crate::plan::text::bytes;
use crate::plan::{Node, Plan};
use crate::run::{Device, Store, machine};

/// What is needed, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Room {
    /// Bytes that will be written.
    disk: Option<u64>,
    /// Bytes that can be.
    free: Option<u64>,
    /// Bytes of memory of the largest nodes, as many as run at a time; of the largest alone.
    memory: Option<(u64, u64)>,
    /// Bytes of memory that are left.
    available: Option<u64>,
}

/// Refuses what cannot end well; otherwise what the user should know before it begins. `nodes`: those that are about to be done.
pub fn check(plan: &Plan, nodes: &[&Node], store: &Store, jobs: usize, device: Device) -> Result<Vec<String>, Fault> {
    let costs: Vec<_> = nodes.iter().filter_map(|node| plan.cost(&node.key)).collect();
    let mut sizes: Vec<u64> = costs.iter().filter_map(|cost| cost.memory).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    // A node keeps a checkpoint of where it is beside the one that stays.
    let largest = costs.iter().filter_map(|cost| cost.disk).max().unwrap_or(0);
    let stays: Option<u64> = costs.iter().map(|cost| cost.disk).sum();
    let own = device == Device::Cpu;
    let room = Room {
        disk: stays.map(|stays| stays + largest * jobs.min(nodes.len()) as u64),
        free: machine::space(store.root()),
        memory: sizes.first().filter(|_| own).map(|first| (sizes.iter().take(jobs).sum(), *first)),
        available: machine::memory(),
    };
    let mut said = room.judged(jobs, &store.root().display().to_string()).map_err(Fault::Machine)?;
    said.extend(time(&costs, jobs));
    Ok(said)
}

impl Room {
    /// The reason why not, or warnings.
    fn judged(self, jobs: usize, place: &str) -> Result<Vec<String>, String> {
        let mut said = Vec::new();
        if let Some((disk, free)) = self.disk.zip(self.free).filter(|(disk, free)| disk > free) {
            return Err(format!(
                "what is missing takes about {} of disk, and `{place}` has {} left: nothing was begun. Make room (`xrun gc` says what no plan reaches), or \
                 choose another folder with --store",
                bytes(Some(disk)),
                bytes(Some(free))
            ));
        }
        if let Some(((all, one), available)) = self.memory.zip(self.available).filter(|((all, _), available)| all > available) {
            let (need, left) = (bytes(Some(all)), bytes(Some(available)));
            said.push(if one > available {
                format!("warning: the largest node takes about {} of memory, and {left} are left", bytes(Some(one)))
            } else {
                let fit = (jobs as u64 * available / all.max(1)).max(1);
                format!(
                    "warning: {jobs} nodes at a time take about {need} of memory, and {left} are left: `--jobs {fit}` would fit"
                )
            });
        }
        Ok(said)
    }
}

/// How long it takes about, where the plan knows.
fn time(costs: &[&Cost], jobs: usize) -> Option<String> {
    let seconds = costs.iter().filter(|cost| cost.steps > 0).map(|cost| cost.seconds).sum::<Option<f64>>()? / jobs as f64;
    (seconds >= 1.0).then(|| {
        let at_once = if jobs > 1 { format!(", {jobs} nodes at a time") } else { String::new() };
        format!("about {}{at_once}", duration(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::Room;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_does_not_fit_is_said() {
        let room = Room { disk: Some(3 * GIB), free: Some(GIB), memory: Some((4 * GIB, GIB)), available: Some(2 * GIB) };
        let refused = room.judged(4, "store").expect_err("no room");
        assert!(refused.contains("3.0 GiB") && refused.contains("`store` has 1.0 GiB left"), "{refused}");
        let room = Room { free: Some(4 * GIB), ..room };
        let said = room.judged(4, "store").expect("room");
        assert!(said.len() == 1 && said[0].contains("`--jobs 2` would fit"), "{said:?}");
        let said = Room { available: Some(GIB / 2), ..room }.judged(4, "store").expect("room");
        assert!(said.len() == 1 && said[0].contains("the largest node takes about 1.0 GiB"), "{said:?}");
        assert_eq!(Room { available: Some(4 * GIB), ..room }.judged(4, "store"), Ok(Vec::new()));
        assert_eq!(Room::default().judged(4, "store"), Ok(Vec::new()));
    }
}
