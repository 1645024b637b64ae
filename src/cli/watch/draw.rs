//! Lays a picture of a run out on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, LineGauge, Paragraph, Row, Table};

use super::picture::{Mark, Picture, Running, duration, sparkline};
use crate::plan::text::bytes;

/// Letters of a curve of losses.
const CURVE: usize = 24;
/// Lines of the log that are left to it, where there are many runs.
const LOG: u16 = 8;

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, picture: &Picture) {
    let running = picture.running.len().clamp(1, 12) as u16 + 1;
    let runs = u16::try_from(picture.runs.len()).unwrap_or(u16::MAX - 1) + 1;
    let failed = if picture.failed.is_empty() { 0 } else { picture.failed.len().min(5) as u16 + 1 };
    let parts = [Constraint::Length(2), Constraint::Length(running), Constraint::Length(failed), Constraint::Max(runs)];
    let rest = [Constraint::Min(LOG), Constraint::Length(1)];
    let [head, now, bad, arms, log, foot] = Layout::vertical(parts.into_iter().chain(rest)).areas(frame.area());
    self::head(frame, head, picture);
    self::running(frame, now, picture);
    self::failed(frame, bad, picture);
    self::runs(frame, arms, picture);
    let lines: Vec<Line<'_>> = picture
        .log
        .iter()
        .rev()
        .take(usize::from(log.height.saturating_sub(1)))
        .rev()
        .map(|line| Line::from(line.as_str()))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(titled("log")), log);
    let memory = picture.memory.map_or_else(
        || "nobody works on it now".to_owned(),
        |(now, most)| format!("memory {}, at most {}", bytes(Some(now)), bytes(Some(most))),
    );
    let foot_line = Line::from(vec![Span::from(format!(" {memory}")).dim(), Span::from("   q leaves").dim()]);
    frame.render_widget(foot_line, foot);
}

fn titled(name: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).border_style(Style::new().dim()).title(format!(" {name} "))
}

fn head(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let [bar, kinds] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let left = picture.left.map_or_else(String::new, |left| format!("  {} left", duration(left)));
    let text = format!(" {}  {} of {} nodes{left}", picture.study, picture.done, picture.nodes);
    let [name, gauge] = Layout::horizontal([Constraint::Length(text.chars().count() as u16 + 2), Constraint::Fill(1)]).areas(bar);
    frame.render_widget(Line::from(text).bold(), name);
    let style = Style::new().fg(Color::Cyan);
    frame.render_widget(
        LineGauge::default().ratio(picture.share.clamp(0.0, 1.0)).filled_style(style).filled_symbol("━").unfilled_symbol("─"),
        gauge,
    );
    let parts = picture.kinds.iter().map(|kind| format!("{} {}/{}", kind.word, kind.done, kind.nodes));
    frame.render_widget(Line::from(format!(" {}", parts.collect::<Vec<_>>().join("   "))).dim(), kinds);
}

fn running(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let row = |running: &Running| {
        let (done, total) = running.progress;
        let share = if total > 0 { format!("{:>3.0} %", 100.0 * done as f64 / total as f64) } else { String::new() };
        let loss = running.losses.last().map_or_else(String::new, |loss| format!("loss {loss:.3}"));
        let left = running.left.map_or_else(String::new, |left| format!("{} left", duration(left)));
        let curve = Cell::from(sparkline(&running.losses, CURVE)).style(Style::new().fg(Color::Green));
        let cells = [running.label.clone(), share, loss].map(Cell::from).into_iter().chain([curve]);
        Row::new(cells.chain([running.pace(), left].map(Cell::from)))
    };
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(10),
        Constraint::Length(CURVE as u16),
        Constraint::Length(18),
        Constraint::Length(18),
    ];
    let table = Table::new(picture.running.iter().map(row), widths).column_spacing(2);
    frame.render_widget(table.block(titled("running")), area);
}

fn failed(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let lines = picture.failed.iter().map(|(label, reason)| Line::from(format!("{label}: {reason}")).fg(Color::Red));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(titled("failed")), area);
}

fn runs(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let letter = |mark: &Mark| match mark {
        Mark::Done => Span::from("■").fg(Color::Green),
        Mark::Running => Span::from("▶").fg(Color::Cyan),
        Mark::Failed => Span::from("✗").fg(Color::Red),
        Mark::Open => Span::from("□").dim(),
    };
    let row = |(name, marks): &(String, Vec<Mark>)| {
        Row::new([Cell::from(name.clone()), Cell::from(Line::from(marks.iter().map(letter).collect::<Vec<_>>()))])
    };
    let table = Table::new(picture.runs.iter().map(row), [Constraint::Length(44), Constraint::Fill(1)]).column_spacing(2);
    frame.render_widget(table.block(titled("phases and probes of each run")), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::cli::watch::picture::Kind;

    fn drawn(picture: &Picture, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, picture)).expect("draws");
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content.chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn what_runs_is_seen_in_any_size() {
        let running = Running {
            key: "a".repeat(32),
            label: "phase 2 of [post, grow], seed 0".into(),
            progress: (43, 100),
            losses: vec![3.0, 2.0, 1.5, 1.25],
            rate: Some(12_345.4),
            left: Some(65.0),
        };
        let picture = Picture {
            study: "tiny".into(),
            nodes: 40,
            done: 21,
            share: 0.5,
            left: Some(125.0),
            kinds: vec![Kind { word: "corpus", nodes: 1, done: 1 }, Kind { word: "phase", nodes: 39, done: 20 }],
            running: vec![running],
            failed: vec![("phase 1 of [pre, joint], seed 0".into(), "diverged at step 3: loss".into())],
            runs: vec![("[post, grow], seed 0".into(), vec![Mark::Done, Mark::Running, Mark::Open, Mark::Failed])],
            memory: Some((1 << 20, 3 << 20)),
            log: vec!["done     corpus".into()],
        };
        let seen = drawn(&picture, 140, 20);
        for word in [
            "tiny  21 of 40 nodes  2 min 05 s left",
            "corpus 1/1   phase 20/39",
            " 43 %",
            "loss 1.250",
            "█▄▂▁",
            "12,345 tokens/s",
            "1 min 05 s left",
            "■▶□✗",
            "diverged at step 3",
            "done     corpus",
            "at most 3.0 MiB",
        ] {
            assert!(seen.contains(word), "{word}:\n{seen}");
        }
        for (width, height) in [(1, 1), (20, 5), (80, 24), (400, 100)] {
            drawn(&picture, width, height);
            drawn(&Picture::default(), width, height);
        }
    }
}
