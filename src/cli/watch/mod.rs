//! `xrun watch`: a run as it goes on, from its plan, its store and its stream of events.
//!
//! Owns when it looks and what it listens to: a view that is drawn anew twice a second in a terminal, a log elsewhere. Deliberately writes nothing, and
//! takes part in no run: any number may watch, on any host that sees the store. Invariant: what is drawn is a [`picture::Picture`], which knows no terminal.

mod draw;
pub mod picture;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::{self, KeyCode, KeyModifiers};

use super::{Fault, Manner, Outcome, Which, load, output, replay, run};
use crate::plan::{Key, Plan};
use crate::run::Store;
use crate::run::event::Event;
use crate::run::replay::{Tail, Told, streams};
use picture::Picture;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Lines of the log that are kept.
const LOG: usize = 200;

/// Watch a study while it runs; `q` leaves, and nothing is stopped by it
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
}

pub fn watch(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = load::plan(&arguments.which, manner)?;
    let mut watcher = Watcher::new(&plan, load::store(&arguments.which));
    if std::io::stdout().is_terminal() { in_a_terminal(&mut watcher) } else { as_a_log(&mut watcher) }
}

fn in_a_terminal(watcher: &mut Watcher<'_>) -> Result<Outcome, Fault> {
    let cannot = |error: std::io::Error| Fault::Machine(format!("cannot draw: {error}"));
    let mut terminal = ratatui::try_init().map_err(cannot)?;
    let mut go_on = || -> std::io::Result<()> {
        loop {
            watcher.look();
            let picture = watcher.picture();
            terminal.draw(|frame| draw::draw(frame, &picture))?;
            if event::poll(LOOK_EVERY)?
                && let event::Event::Key(key) = event::read()?
            {
                let ends = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if ends || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(());
                }
            }
        }
    };
    let ended = go_on();
    ratatui::restore();
    ended.map_err(cannot)?;
    Ok(Outcome::Done)
}

/// What happened and happens, line by line, until all is done or nobody works on it any more.
fn as_a_log(watcher: &mut Watcher<'_>) -> Result<Outcome, Fault> {
    let stop = run::heed_signals()?;
    let (mut told, mut complete) = (0, 0);
    loop {
        watcher.look();
        for line in watcher.log.iter().skip(told) {
            output::say(&format!("{line}\n"))?;
        }
        told = watcher.log.len();
        let picture = watcher.picture();
        // A node is there before its last event is: whoever finds all of them looks once more.
        complete = if picture.done == picture.nodes { complete + 1 } else { 0 };
        let is_over = picture.running.is_empty() && (watcher.over || complete > 1);
        if is_over || stop.load(Ordering::Relaxed) {
            output::say(&format!("{}\n", picture.line()))?;
            return Ok(if is_over { Outcome::Done } else { Outcome::Interrupted });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What has been seen so far.
struct Watcher<'a> {
    plan: &'a Plan,
    store: Store,
    tails: BTreeMap<PathBuf, (usize, Tail)>,
    told: Told,
    /// Memory of processes by their streams: now, at most; until they end.
    takes: BTreeMap<usize, (u64, u64)>,
    log: Vec<String>,
    /// The last thing heard of is the end of a run.
    over: bool,
}

impl<'a> Watcher<'a> {
    fn new(plan: &'a Plan, store: Store) -> Self {
        let (tails, takes) = (BTreeMap::new(), BTreeMap::new());
        Self { plan, store, tails, told: Told::default(), takes, log: Vec::new(), over: false }
    }
    /// Reads what has come since.
    fn look(&mut self) {
        for path in streams(&self.store.events()) {
            let number = self.tails.len();
            self.tails.entry(path.clone()).or_insert_with(|| (number, Tail::new(path)));
        }
        let Self { plan, tails, told, takes, log, over, .. } = self;
        let wanted = |_: &str, key: Option<&Key>| key.is_none_or(|key| plan.node(key).is_some());
        for (number, tail) in tails.values_mut() {
            tail.skim(&wanted, |line| {
                match line.event {
                    Event::RunTakes { memory, most } => _ = takes.insert(*number, (memory, most)),
                    Event::RunStarted { .. } => *over = false,
                    Event::RunFinished { .. } => {
                        takes.remove(number);
                        *over = true;
                    }
                    _ => {}
                }
                log.extend(replay::told(&line, false));
                told.hear(*number, line);
            });
        }
    }
    fn picture(&self) -> Picture {
        let last = self.log.len().saturating_sub(LOG);
        Picture::of(self.plan, &self.store, &self.told, self.takes.values().copied(), &self.log[last..])
    }
}
