//! What a run shows while it goes on: bars in a terminal, a line for each finished node elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;
use crate::plan::Why;
use crate::plan::node::{Key, Node, Work};
use crate::report::number;
use crate::run::Listener;
use crate::run::lock::Holder;
use crate::run::worker::{Progress, Spent};

/// Draws a run on standard error.
pub struct Terminal {
    bars: MultiProgress,
    study: ProgressBar,
    board: Mutex<Board>,
    nodes: usize,
    /// Lines instead of bars: standard error is no terminal.
    plain: bool,
    quiet: bool,
}

struct Board {
    running: BTreeMap<Key, Running>,
    done: usize,
    /// Where the time of all steps went, and how many there were.
    spent: Spent,
    steps: u64,
}

struct Running {
    bar: ProgressBar,
    began: Instant,
    tokens: u64,
    /// How far it was when it was last heard of.
    at: u64,
}

/// A node's part of the study's bar.
fn steps(node: &Node) -> u64 {
    match &node.work {
        Work::Teacher(phase) | Work::Phase(phase) => phase.segment.length(),
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Probe(_) => 0,
    }
}

impl Terminal {
    /// For a run of these nodes, some of which are done already.
    pub fn new(all: &[Node], done: impl Fn(&Key) -> bool, quiet: bool) -> Self {
        let plain = quiet || !std::io::stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
        let bars = MultiProgress::with_draw_target(target);
        let found: Vec<&Node> = all.iter().filter(|node| done(&node.key)).collect();
        let study = bars.add(ProgressBar::new(all.iter().map(steps).sum()));
        study.set_style(style("study    {bar:24.cyan/dim} {percent:>3} %  {msg}  {elapsed} elapsed, {eta} left"));
        study.set_position(found.iter().copied().map(steps).sum());
        study.reset_eta();
        study.enable_steady_tick(Duration::from_secs(1));
        let board = Board { running: BTreeMap::new(), done: found.len(), spent: Spent::default(), steps: 0 };
        let terminal = Self { bars, study, board: Mutex::new(board), nodes: all.len(), plain, quiet };
        terminal.count(found.len());
        terminal
    }
    /// Takes the bars away.
    pub fn close(&self) {
        self.study.finish_and_clear();
    }
    /// Where the time of training went.
    pub fn profile(&self) -> String {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, data) = (board.spent.steps.as_secs_f64(), board.spent.data.as_secs_f64());
        if board.steps == 0 {
            return "profile  no step was trained".to_owned();
        }
        format!(
            "profile  {all:.1} s in {}, {:.2} ms each; {:.2} % of it waiting for data",
            number::plural(board.steps, "step"),
            1e3 * all / board.steps as f64,
            100.0 * data / all
        )
    }
    fn count(&self, done: usize) {
        self.study.set_message(format!("{done} of {} nodes", self.nodes));
    }
    fn say(&self, line: &str) {
        if self.plain {
            output::note(line);
        } else {
            // An error here is a closed terminal; the run goes on.
            let _ = self.bars.println(line);
        }
    }
    fn end(&self, node: &Node, done: usize) -> Option<Running> {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.done += done;
        self.count(board.done);
        let running = board.running.remove(&node.key)?;
        running.bar.finish_and_clear();
        self.bars.remove(&running.bar);
        Some(running)
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one falls back to the library's own.
    ProgressStyle::with_template(template).map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("━╸─"))
}

impl Listener for Terminal {
    fn started(&self, node: &Node, why: &Why) {
        let bar = self.bars.insert_before(&self.study, ProgressBar::new(0));
        bar.set_style(style("{prefix:.dim} {bar:24.green/dim} {percent:>3} %  {wide_msg}"));
        bar.set_prefix(format!("{:<8}", node.work.kind().split('_').next_back().unwrap_or_default()));
        bar.set_message(node.label.clone());
        if *why != Why::New && !self.quiet {
            self.say(&format!("again    {}: {why}", node.label));
        }
        let running = Running { bar, began: Instant::now(), tokens: 0, at: 0 };
        self.board.lock().unwrap_or_else(PoisonError::into_inner).running.insert(node.key.clone(), running);
    }
    fn progress(&self, node: &Node, progress: &Progress) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = board.running.get_mut(&node.key) else { return };
        let steps = if steps(node) > 0 { progress.done.saturating_sub(running.at) } else { 0 };
        if steps > 0 {
            self.study.inc(steps);
            running.at = progress.done;
        }
        running.tokens += progress.tokens;
        running.bar.set_length(progress.total);
        running.bar.set_position(progress.done);
        let loss = progress.loss.map_or_else(String::new, |loss| format!("  loss {loss:.3}"));
        let rate = rate(running.tokens, running.began.elapsed());
        running.bar.set_message(format!("{}{loss}  {rate}", node.label));
        if !progress.spent.steps.is_zero() {
            board.steps += 1;
            board.spent.steps += progress.spent.steps;
            board.spent.data += progress.spent.data;
        }
    }
    fn finished(&self, node: &Node, seconds: f64) {
        let rate = self.end(node, 1).map_or_else(String::new, |running| rate(running.tokens, running.began.elapsed()));
        if !self.quiet {
            self.say(format!("done     {:<52} {seconds:>6.1} s  {rate}", node.label).trim_end());
        }
    }
    fn elsewhere(&self, node: &Node, holder: Option<&Holder>) {
        self.end(node, 0);
        if !self.quiet {
            let whose = holder.map_or_else(|| "another process".to_owned(), Holder::to_string);
            self.say(&format!("waits    {}: {whose} works on it", node.label));
        }
    }
    fn failed(&self, node: &Node, reason: &str) {
        self.end(node, 0);
        self.say(&format!("FAILED   {}: {reason}", node.label));
    }
}

/// `12,345 tokens/s`, or nothing where no token was counted.
fn rate(tokens: u64, elapsed: Duration) -> String {
    if tokens == 0 {
        return String::new();
    }
    let per_second = (tokens as f64 / elapsed.as_secs_f64().max(1e-9)).round() as u64;
    format!("{} tokens/s", number::exact(per_second))
}
