//! A page of monospaced text: headings, columns, wrapped lines.
//!
//! Owns widths. Invariant: text is cut at spaces, never inside a word; controls and line breaks in names become spaces.

use super::figures::WIDTH;

/// Lines so far.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// A blank line and a heading.
    pub(super) fn heading(&mut self, text: &str) {
        self.line("");
        self.line(text);
    }
    /// One line.
    pub(super) fn line(&mut self, text: &str) {
        self.0.push_str(plain(text).trim_end());
        self.0.push('\n');
    }
    /// Words after `head`; the lines that follow the first begin below them.
    pub(super) fn wrapped(&mut self, head: &str, text: &str) {
        let indent = head.chars().count();
        let (mut line, mut empty) = (plain(head), true);
        for word in plain(text).split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                (line, empty) = (" ".repeat(indent), true);
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }
    /// Columns under a heading each, two spaces in; the first to the left, the others to the right.
    pub(super) fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        self.columns("  ", heads, rows);
    }
    /// The same behind an indent.
    pub(super) fn columns(&mut self, indent: &str, heads: &[&str], rows: &[Vec<String>]) {
        let cells: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                let below = cells.iter().filter_map(|row| row.get(column).map(|cell| cell.chars().count())).max();
                below.unwrap_or(0).max(heads[column].chars().count())
            })
            .collect();
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        for row in std::iter::once(heads).chain(cells) {
            let mut line = String::from(indent);
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line += &if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            }
            self.line(&line);
        }
    }
    /// All of it.
    pub(super) fn text(self) -> String {
        self.0
    }
}

/// A name from a stranger's file does not move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
