//! Findings for a terminal: claims, tables and threats in aligned columns.
//!
//! Owns the layout in columns of characters. Deliberately uses no colour and draws nothing. Invariant: a line of prose is at most
//! [`WIDTH`] characters, a table is cut at its parts, and no control character of a name reaches the terminal.

use super::layout::{BOLD, MARKED, folded};
use super::model::{Cell, Findings, Row, Table};

/// Characters of a line.
const WIDTH: usize = 100;

/// The whole report.
pub fn plain(findings: &Findings) -> String {
    let mut page = Page::default();
    page.line(&findings.study);
    page.prose("  ", findings.doc.as_deref().unwrap_or_default());
    let progress = findings.progress;
    let counted = [(progress.diverged, "diverged"), (progress.partial, "under way"), (progress.missing, "not begun")];
    let rest: String = counted.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}")).collect();
    page.line(&format!("  {} of {} runs finished{rest}", progress.finished, progress.planned));
    claims(&mut page, findings);
    for table in findings.tables.values() {
        page.heading(&table.title);
        tabulate(&mut page, table);
        match table.caption.strip_suffix(MARKED).and_then(|before| before.strip_suffix(BOLD)) {
            Some(before) => page.prose("  ", &format!("{before} *: {MARKED}")),
            None => page.prose("  ", &table.caption),
        }
    }
    if !findings.missing.is_empty() {
        page.heading("Not finished");
        let rows = findings.missing.iter().map(|run| vec![run.arm.clone(), format!("seed {}", run.seed), run.reason.clone()]);
        page.columns(&rows.collect::<Vec<_>>(), 3);
    }
    for (title, paragraphs) in [("Methods", &findings.methods), ("Threats to validity", &findings.threats)] {
        if !paragraphs.is_empty() {
            page.heading(title);
            paragraphs.iter().for_each(|paragraph| page.prose("  ", paragraph));
        }
    }
    page.text
}

fn claims(page: &mut Page, findings: &Findings) {
    if findings.claims.is_empty() {
        return;
    }
    page.heading("Claims");
    let rows: Vec<Vec<String>> = findings
        .claims
        .iter()
        .map(|claim| {
            let name = if claim.primary { format!("{} (primary)", claim.name) } else { claim.name.clone() };
            vec![
                name,
                claim.verdict.to_owned(),
                claim.estimate_text.clone(),
                claim.interval_text.clone(),
                claim.p_text.clone(),
                claim.n_text.clone(),
            ]
        })
        .collect();
    page.columns(&rows, 2);
    for claim in &findings.claims {
        page.line("");
        page.prose("  ", &format!("{}: {}", claim.name, claim.text));
        page.prose("    ", &claim.reason);
        if !claim.documents_text.is_empty() {
            page.prose("    ", &format!("By the documents held out: {}.", claim.documents_text));
        }
    }
}

fn tabulate(page: &mut Page, table: &Table) {
    let show = |cell: &Cell| {
        let mark = if cell.mark.is_some() { "*" } else { "" };
        match &cell.note {
            Some(note) => format!("{}{mark} ({note})", cell.text),
            None if cell.n.is_none() && !cell.n_text.is_empty() => format!("{} ({})", cell.text, cell.n_text),
            None => format!("{}{mark}", cell.text),
        }
    };
    for (number, part) in table.parts.iter().enumerate() {
        if number > 0 {
            page.line("");
        }
        let labels = table.columns[part.from..part.to].iter().map(|column| column.label.clone());
        let mut rows: Vec<Vec<String>> = vec![table.stub.iter().cloned().chain(labels).collect()];
        let row = |row: &Row| row.head.iter().cloned().chain(row.cells[part.from..part.to].iter().map(show)).collect();
        rows.extend(table.rows.iter().map(row));
        page.columns(&rows, table.stub.len());
    }
    if !table.n_text.is_empty() {
        let notes: String = table.notes.iter().map(|note| format!("; ({}) {}", note.mark, note.text)).collect();
        page.line(&format!("  {}{notes}", table.n_text));
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.push_str(clean.trim_end());
        self.text.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.line("");
        self.line(title);
    }

    fn prose(&mut self, indent: &str, text: &str) {
        for line in folded(&text.replace('\n', " "), WIDTH - indent.len()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    /// Rows of cells, the first `left` of them aligned to the left.
    fn columns(&mut self, rows: &[Vec<String>], left: usize) {
        let count = rows.iter().map(Vec::len).max().unwrap_or_default();
        let wide = |place: usize| {
            rows.iter().filter_map(|row| row.get(place)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..count).map(wide).collect();
        for row in rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(place, (cell, width))| {
                let room = " ".repeat(width - cell.chars().count());
                if place < left { format!("{cell}{room}") } else { format!("{room}{cell}") }
            });
            self.line(&format!("  {}", cells.collect::<Vec<_>>().join("  ")));
        }
    }
}
