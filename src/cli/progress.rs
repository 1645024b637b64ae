//! What a run shows while it goes on: bars in a terminal, a line for each finished node elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::plan::node::{Key, Node};
use crate::run::Listener;
use crate::run::worker::Progress;

/// Draws a run on standard error.
pub struct Terminal {
    bars: MultiProgress,
    nodes: ProgressBar,
    running: Mutex<BTreeMap<Key, Running>>,
    /// Lines instead of bars: standard error is no terminal.
    plain: bool,
    quiet: bool,
}

struct Running {
    bar: ProgressBar,
    began: Instant,
    tokens: u64,
}

impl Terminal {
    /// For a run of so many nodes, `found` of which are in the store.
    pub fn new(total: usize, found: usize, quiet: bool) -> Self {
        let plain = quiet || !std::io::stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
        let bars = MultiProgress::with_draw_target(target);
        let nodes = bars.add(ProgressBar::new(total as u64));
        nodes.set_style(style("{prefix:>8} [{bar:32.cyan/dim}] {pos}/{len} nodes  {elapsed} elapsed, {eta} left"));
        nodes.set_prefix("study");
        nodes.set_position(found as u64);
        nodes.reset_eta();
        nodes.enable_steady_tick(Duration::from_secs(1));
        Self { bars, nodes, running: Mutex::new(BTreeMap::new()), plain, quiet }
    }
    /// Takes the bars away.
    pub fn close(&self) {
        self.nodes.finish_and_clear();
    }
    fn say(&self, line: &str) {
        if self.quiet {
        } else if self.plain {
            eprintln!("{line}");
        } else {
            // An error here is a closed terminal; the run goes on.
            let _ = self.bars.println(line);
        }
    }
    fn end(&self, node: &Node) -> Option<Running> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&node.key);
        if let Some(running) = &running {
            running.bar.finish_and_clear();
            self.bars.remove(&running.bar);
        }
        running
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one falls back to the library's own.
    ProgressStyle::with_template(template).map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("━╸─"))
}

impl Listener for Terminal {
    fn started(&self, node: &Node, why: &str) {
        let bar = self.bars.insert_before(&self.nodes, ProgressBar::new(0));
        bar.set_style(style("         [{bar:32.green/dim}] {pos}/{len} {prefix}  {msg}"));
        bar.set_prefix(node.label.clone());
        if why != "missing" {
            self.say(&format!("again    {}: {why}", node.label));
        }
        let running = Running { bar, began: Instant::now(), tokens: 0 };
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(node.key.clone(), running);
    }
    fn progress(&self, node: &Node, progress: &Progress) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = all.get_mut(&node.key) else { return };
        running.tokens += progress.tokens;
        running.bar.set_length(progress.total);
        running.bar.set_position(progress.done);
        let rate = rate(running.tokens, running.began.elapsed());
        running.bar.set_message(match progress.loss {
            Some(loss) => format!("loss {loss:.3}  {rate}"),
            None => rate,
        });
    }
    fn finished(&self, node: &Node, seconds: f64) {
        let rate = self.end(node).map_or_else(String::new, |running| rate(running.tokens, running.began.elapsed()));
        self.nodes.inc(1);
        self.say(&format!("done     {:<52} {seconds:>6.1} s  {rate}", node.label));
    }
    fn failed(&self, node: &Node, reason: &str) {
        self.end(node);
        self.say(&format!("FAILED   {}: {reason}", node.label));
    }
}

/// `12,345 tokens/s`, or nothing where no token was counted.
fn rate(tokens: u64, elapsed: Duration) -> String {
    if tokens == 0 {
        return String::new();
    }
    let per_second = (tokens as f64 / elapsed.as_secs_f64().max(1e-9)).round() as u64;
    let mut digits = per_second.to_string();
    let mut at = digits.len();
    while at > 3 {
        at -= 3;
        digits.insert(at, ',');
    }
    format!("{digits} tokens/s")
}
