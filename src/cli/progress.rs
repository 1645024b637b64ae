//! What a run shows while it goes on: bars in a terminal, a line for each finished node elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;
use crate::plan::Why;
use crate::plan::node::{Key, Node, Work};
use crate::report::number;
use crate::run::Listener;
use crate::run::event::{Event, Line};
use crate::run::profile::{Part, overhead};
use crate::run::record::MetricLine;
use crate::study::Metric;

/// Draws a run on standard error.
pub struct Terminal {
    bars: MultiProgress,
    study: ProgressBar,
    board: Mutex<Board>,
    /// Steps of each node that trains.
    steps: BTreeMap<Key, u64>,
    nodes: usize,
    /// Lines instead of bars: standard error is no terminal.
    plain: bool,
    quiet: bool,
}

struct Board {
    running: BTreeMap<Key, Running>,
    done: usize,
    /// Where the time went, once it is over.
    spent: BTreeMap<String, f64>,
    /// Steps of training that were done.
    steps: u64,
}

struct Running {
    bar: ProgressBar,
    label: String,
    /// ` loss 1.234`, where it has one.
    loss: String,
    /// How far it was when it was last heard of; `None`: a part of the study's bar it is not.
    at: Option<u64>,
}

/// A node's part of the study's bar.
fn steps(node: &Node) -> u64 {
    match &node.work {
        Work::Teacher(phase) | Work::Phase(phase) => phase.segment.length(),
        Work::Corpus { .. } | Work::Tokenizer { .. } | Work::Checkpoint(_) | Work::TeacherLogits(_) | Work::Probe(_) => 0,
    }
}

impl Board {
    /// Seconds.
    fn spent(&self, part: Part) -> f64 {
        self.spent.get(part.word()).copied().unwrap_or(0.0)
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
        let board = Board { running: BTreeMap::new(), done: found.len(), spent: BTreeMap::new(), steps: 0 };
        let steps = all.iter().map(|node| (node.key.clone(), steps(node))).filter(|(_, steps)| *steps > 0).collect();
        let terminal = Self { bars, study, board: Mutex::new(board), steps, nodes: all.len(), plain, quiet };
        terminal.count(found.len());
        terminal
    }
    /// Takes the bars away.
    pub fn close(&self) {
        self.study.finish_and_clear();
    }
    /// Where the time went, as far as a loop of one's own would not need it: `overhead 3.1 % (checkpoints 0.2 s, store 0.1 s)`.
    pub fn overhead(&self) -> String {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = Part::ALL.into_iter().filter(|part| part.is_overhead());
        let parts = parts.map(|part| (part, board.spent(part)));
        // What rounds to nothing is not told.
        let parts: Vec<String> =
            parts.filter(|(_, time)| *time >= 0.05).map(|(part, time)| format!("{} {time:.1} s", part.word())).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        format!("overhead {:.1} %{parts}", 100.0 * overhead(&board.spent))
    }
    /// Where the time of training went.
    pub fn profile(&self) -> String {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let data = board.spent(Part::Data);
        let all = board.spent(Part::Training) + data;
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
    fn end(&self, key: &Key, done: usize) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.done += done;
        self.count(board.done);
        if let Some(running) = board.running.remove(key) {
            running.bar.finish_and_clear();
            self.bars.remove(&running.bar);
        }
    }
    fn started(&self, key: &Key, label: &str, kind: &str, why: &str) {
        let bar = self.bars.insert_before(&self.study, ProgressBar::new(0));
        bar.set_style(style("{prefix:.dim} {bar:24.green/dim} {percent:>3} %  {wide_msg}"));
        bar.set_prefix(format!("{:<8}", kind.split('_').next_back().unwrap_or_default()));
        bar.set_message(label.to_owned());
        if why != Why::New.to_string() && !self.quiet {
            self.say(&format!("again    {label}: {why}"));
        }
        let at = self.steps.contains_key(key).then_some(0);
        let running = Running { bar, label: label.to_owned(), loss: String::new(), at };
        self.board.lock().unwrap_or_else(PoisonError::into_inner).running.insert(key.clone(), running);
    }
    fn measured(&self, key: &Key, lines: &[MetricLine]) {
        let loss = lines.iter().rev().find_map(|line| line.values.get(Metric::TrainLoss.name()));
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((running, loss)) = board.running.get_mut(key).zip(loss) {
            running.loss = format!("  loss {:.3}", loss.0);
        }
    }
    fn further(&self, key: &Key, (done, total): (u64, u64), tokens: u64, seconds: f64) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = board.running.get_mut(key) else { return };
        let steps = running.at.as_mut().map_or(0, |at| done.saturating_sub(std::mem::replace(at, done)));
        self.study.inc(steps);
        running.bar.set_length(total);
        running.bar.set_position(done);
        running.bar.set_message(format!("{}{}  {}", running.label, running.loss, rate(tokens, seconds)));
        board.steps += steps;
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one falls back to the library's own.
    ProgressStyle::with_template(template).map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("━╸─"))
}

impl Listener for Terminal {
    fn hear(&self, line: &Line) {
        match &line.event {
            Event::NodeStarted { key, label, kind, why } => self.started(key, label, kind, why),
            Event::NodeMeasured { key, lines } => self.measured(key, lines),
            Event::NodeProgress { key, done, total, tokens, seconds } => self.further(key, (*done, *total), *tokens, *seconds),
            Event::NodeFinished { key, label, seconds, tokens } => {
                self.end(key, 1);
                if !self.quiet {
                    self.say(format!("done     {label:<52} {seconds:>6.1} s  {}", rate(*tokens, *seconds)).trim_end());
                }
            }
            Event::NodeElsewhere { key, label, holder } => {
                self.end(key, 0);
                if !self.quiet {
                    let whose = holder.as_deref().unwrap_or("another process");
                    self.say(&format!("waits    {label}: {whose} works on it"));
                }
            }
            Event::NodeFailed { key, label, reason, .. } => {
                self.end(key, 0);
                self.say(&format!("FAILED   {label}: {reason}"));
            }
            Event::NodeInterrupted { key } => self.end(key, 0),
            Event::RunFinished { spent, .. } => {
                self.study.finish_and_clear();
                let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
                board.spent = spent.clone();
            }
            Event::RunStarted { .. }
            | Event::NodeFound { .. }
            | Event::NodeEvaluated { .. }
            | Event::NodeProbed { .. }
            | Event::RunTakes { .. }
            | Event::Unknown => {}
        }
    }
    fn unkept(&self, reason: &str) {
        if !self.quiet {
            self.say(&format!("warning: {reason}"));
        }
    }
}

/// `12,345 tokens/s`, or nothing where no token was counted.
fn rate(tokens: u64, seconds: f64) -> String {
    if tokens == 0 {
        return String::new();
    }
    let per_second = (tokens as f64 / seconds.max(1e-9)).round() as u64;
    format!("{} tokens/s", number::exact(per_second))
}
