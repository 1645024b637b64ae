//! What there is to see of a run at a moment: plain data.
//!
//! Owns what is counted, what is left and how long that takes. Deliberately knows no terminal.

use crate::plan::node::Work;
use crate::plan::{Key, Node, Plan};
use crate::report::number::exact;
use crate::run::replay::{Attempt, End, Told};
use crate::run::{Standing, Store};
use crate::study::Metric;

/// A study at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    /// Its name.
    pub study: String,
    /// Nodes in all, and those that are done.
    pub nodes: usize,
    /// Nodes that are done.
    pub done: usize,
    /// The part of the work that is done: of FLOPs where they are known, of steps otherwise.
    pub share: f64,
    /// Seconds that the rest takes at the speed of what runs now.
    pub left: Option<f64>,
    /// Kinds of nodes, in the order of the plan.
    pub kinds: Vec<Kind>,
    /// What is worked on now.
    pub running: Vec<Running>,
    /// What failed, with reasons.
    pub failed: Vec<(String, String)>,
    /// Arms under their seeds, those that are under way first, each with the standing of its phases and probes.
    pub runs: Vec<(String, Vec<Mark>)>,
    /// Bytes of memory of the processes that run: now, at most.
    pub memory: Option<(u64, u64)>,
    /// What happened last.
    pub log: Vec<String>,
}

/// How far the nodes of a kind are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kind {
    /// The kind's word.
    pub word: &'static str,
    /// In all.
    pub nodes: usize,
    /// Done.
    pub done: usize,
}

/// A node that is worked on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Running {
    /// Which.
    pub key: String,
    /// For people.
    pub label: String,
    /// Units done, units in all.
    pub progress: (u64, u64),
    /// Training losses so far.
    pub losses: Vec<f64>,
    /// Real tokens in a second.
    pub rate: Option<f64>,
    /// Seconds that it takes still.
    pub left: Option<f64>,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// In the store.
    Done,
    /// Worked on.
    Running,
    /// Ended badly.
    Failed,
    /// Nothing of it is to be seen now.
    Open,
}

impl Picture {
    /// What plan, store and events show.
    pub fn of(plan: &Plan, store: &Store, told: &Told, takes: impl Iterator<Item = (u64, u64)>, log: &[String]) -> Self {
        let mut picture = Self { study: plan.study.name.clone(), log: log.to_vec(), ..Self::default() };
        let (mut all, mut finished, mut speed) = (0.0, 0.0, 0.0);
        let mut marks = std::collections::BTreeMap::new();
        for node in plan.nodes() {
            let mark = mark(store, told, &node.key);
            marks.insert(&node.key, mark);
            let (weight, attempt) = (weight(plan, node), told.attempt(&node.key));
            picture.count(node, mark == Mark::Done);
            all += weight;
            match (mark, attempt) {
                (Mark::Done, _) => finished += weight,
                (Mark::Running, attempt) => {
                    let running = Running::of(node, attempt);
                    let (done, total) = running.progress;
                    if let Some(attempt) = attempt.filter(|_| total > 0) {
                        finished += weight * done as f64 / total as f64;
                        speed += weight * (done - attempt.from.min(done)) as f64 / total as f64 / attempt.seconds.max(1e-9);
                    }
                    picture.running.push(running);
                }
                (Mark::Failed, _) => {
                    let reason = store.failure(&node.key).map(|failure| failure.reason).unwrap_or_default();
                    picture.failed.push((node.label.clone(), reason));
                }
                (Mark::Open, _) => {}
            }
        }
        picture.share = if all > 0.0 { finished / all } else { 1.0 };
        picture.left = (speed > 0.0).then(|| (all - finished) / speed);
        let mark_of = |key: &Key| marks.get(key).copied().unwrap_or(Mark::Open);
        picture.runs = plan
            .runs
            .iter()
            .map(|run| {
                let keys = run.phases.iter().chain(run.probes.iter().map(|(_, _, key)| key));
                (format!("{}, seed {}", plan.study.arms[run.arm].name, run.seed), keys.map(mark_of).collect())
            })
            .collect();
        picture.runs.sort_by_key(|(_, marks)| rank(marks));
        picture.memory = takes.reduce(|(now, most), (other_now, other_most)| (now + other_now, most + other_most));
        picture
    }
    fn count(&mut self, node: &Node, done: bool) {
        self.nodes += 1;
        self.done += usize::from(done);
        let word = node.work.kind();
        let at = self.kinds.iter().position(|kind| kind.word == word).unwrap_or_else(|| {
            self.kinds.push(Kind { word, ..Kind::default() });
            self.kinds.len() - 1
        });
        self.kinds[at].nodes += 1;
        self.kinds[at].done += usize::from(done);
    }
    /// All of it in a line.
    pub fn line(&self) -> String {
        let mut text = format!("{}: {} of {} nodes, {:.0} %", self.study, self.done, self.nodes, 100.0 * self.share);
        if !self.running.is_empty() {
            text.push_str(&format!(", {} running", self.running.len()));
        }
        if !self.failed.is_empty() {
            text.push_str(&format!(", {} failed", self.failed.len()));
        }
        if let Some(left) = self.left {
            text.push_str(&format!(", {} left", duration(left)));
        }
        text
    }
}

impl Running {
    fn of(node: &Node, attempt: Option<&Attempt>) -> Self {
        let Some(attempt) = attempt else {
            return Self { key: node.key.0.clone(), label: node.label.clone(), ..Self::default() };
        };
        let (done, total) = attempt.progress;
        let loss = |line: &crate::run::record::MetricLine| line.values.get(Metric::TrainLoss.name()).map(|loss| loss.0);
        let here = done.saturating_sub(attempt.from);
        let left = (here > 0).then(|| attempt.seconds * (total - done.min(total)) as f64 / here as f64);
        Self {
            key: node.key.0.clone(),
            label: node.label.clone(),
            progress: attempt.progress,
            losses: attempt.lines.iter().filter_map(loss).collect(),
            rate: (attempt.tokens > 0 && attempt.seconds > 0.0).then(|| attempt.tokens as f64 / attempt.seconds),
            left,
        }
    }
    /// `43 %, loss 1.234, 1,234 tokens/s, 12 s left`, as far as it is known.
    pub fn words(&self) -> String {
        let (done, total) = self.progress;
        let share = (total > 0).then(|| format!("{:.0} %", 100.0 * done as f64 / total as f64));
        let loss = self.losses.last().map(|loss| format!("loss {loss:.3}"));
        let pace = Some(self.pace()).filter(|pace| !pace.is_empty());
        let left = self.left.map(|left| format!("{} left", duration(left)));
        [share, loss, pace, left].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
    /// `1,234 tokens/s`, or nothing.
    pub fn pace(&self) -> String {
        self.rate.map_or_else(String::new, |rate| format!("{} tokens/s", exact(rate.round() as u64)))
    }
}

fn mark(store: &Store, told: &Told, key: &Key) -> Mark {
    if store.has(key) {
        return Mark::Done;
    }
    // What nobody ever told of is not looked up: a plan may have a hundred thousand nodes.
    match told.attempt(key).map(|attempt| &attempt.end) {
        None | Some(Some(End::Interrupted)) => Mark::Open,
        Some(Some(End::Failed(_))) => Mark::Failed,
        Some(None | Some(End::Finished)) => match store.standing(key) {
            Standing::Running(_) => Mark::Running,
            Standing::Done => Mark::Done,
            Standing::Failed(_) => Mark::Failed,
            Standing::Begun | Standing::Missing => Mark::Open,
        },
    }
}

/// A node's part of the work.
fn weight(plan: &Plan, node: &Node) -> f64 {
    let flops = plan.cost(&node.key).and_then(|cost| cost.flops());
    match &node.work {
        _ if plan.totals.flops_planned.is_some() => flops.unwrap_or(0.0),
        Work::Teacher(phase) | Work::Phase(phase) => phase.segment.length() as f64,
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Probe(_) => 0.0,
    }
}

/// What is under way comes first, then what failed, what is open, what is done.
fn rank(marks: &[Mark]) -> u8 {
    if marks.contains(&Mark::Running) {
        0
    } else if marks.contains(&Mark::Failed) {
        1
    } else if marks.iter().all(|mark| *mark == Mark::Done) {
        3
    } else {
        2
    }
}

/// `1 h 02 min`, `3 min 20 s`, `7 s`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

/// The course of a curve in so many letters: means of stretches, from the lowest to the highest; what is not finite is left out.
pub fn sparkline(values: &[f64], width: usize) -> String {
    const LETTERS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let width = width.min(finite.len());
    let means: Vec<f64> = (0..width)
        .map(|at| {
            let stretch = &finite[at * finite.len() / width..(at + 1) * finite.len() / width];
            stretch.iter().sum::<f64>() / stretch.len() as f64
        })
        .collect();
    let (low, high) =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    let top = (LETTERS.len() - 1) as f64;
    let letter = |mean: &f64| LETTERS[if high > low { ((mean - low) / (high - low) * top).round() as usize } else { 0 }];
    means.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::{duration, sparkline};

    #[test]
    fn curves_and_durations_are_short() {
        assert_eq!(sparkline(&[8.0, f64::NAN, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 8), "█▇▆▅▄▃▂▁");
        assert_eq!(sparkline(&[1.0, 3.0, 5.0, 5.0], 2), "▁█");
        assert_eq!((sparkline(&[], 8), sparkline(&[2.0], 8)), (String::new(), "▁".to_owned()));
        assert_eq!([7.4, 200.0, 3_725.0, -1.0].map(duration), ["7 s", "3 min 20 s", "1 h 02 min", "0 s"]);
    }
}
