//! What a word under the cursor means.
//!
//! Owns no meaning: fields are told by the language reference, names by their declarations, metrics by the catalogue.

use super::document::Document;
use crate::check::{LOSSES, takes};
use crate::source::Span;
use crate::study::Metric;

/// The language reference, for its tables of fields.
const REFERENCE: &str = include_str!("../../grammar/reference.md");

/// Where the reference has its tables of metrics, probes and quantities.
const MEASURED: &str = "What can be measured";

/// What is shown at a byte of a text, as Markdown.
pub fn hover(document: &Document, offset: usize) -> Option<String> {
    if let Some(named) = document.named(offset) {
        return Some(declaration(document, named.declared));
    }
    let word = document.word(offset);
    let keyword = document.body(offset)?;
    // Losses are told with the training, and stand in schedules too.
    let is_loss = keyword == "schedule" && LOSSES.contains(&word);
    let told = field_row(keyword, word).or_else(|| is_loss.then(|| field_row("training", word)).flatten());
    told.or_else(|| Metric::ALL.into_iter().find(|metric| metric.name() == word).map(of_metric)).or_else(|| {
        let is_measured = ["study", "teacher"].contains(&keyword);
        is_measured.then(|| row(MEASURED, word)).flatten()
    })
}

fn of_metric(metric: Metric) -> String {
    match metric.unit() {
        "" => format!("metric: {}", metric.definition()),
        unit => format!("metric, {unit}: {}", metric.definition()),
    }
}

/// A declaration by its head, with the text before it.
fn declaration(document: &Document, name: Span) -> String {
    let source = document.checked.sources.get(name.file);
    let text = &*source.text;
    let start = text[..name.start as usize].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    let docs: Vec<&str> = text[..start].lines().rev().map_while(|line| line.trim().strip_prefix("///")).map(str::trim).collect();
    let docs = docs.into_iter().rev().collect::<Vec<_>>().join("\n");
    let place = if name.file == document.file { String::new() } else { format!("\n\n{}", source.name) };
    format!("```exp\n{line}\n```\n\n{docs}{place}").trim_end().to_owned()
}

/// What the reference says of a word in a declaration: `says`, and for a field what it takes and its default.
pub fn field_row(keyword: &str, word: &str) -> Option<String> {
    let told = row(keyword, word)?;
    let Some(takes) = takes(keyword, word) else { return Some(told) };
    Some(format!("{told}\n\ntakes: {takes}"))
}

/// The row of a section's tables that tells a word: one whose first cell has it at the beginning of a code.
fn row(section: &str, word: &str) -> Option<String> {
    let section = REFERENCE.split("\n## ").find(|text| text.lines().next() == Some(section))?;
    let row = section.lines().filter_map(|line| line.strip_prefix("| ")).find(|row| {
        let first = row.split(" | ").next().unwrap_or("");
        let mut codes = first.split('`').skip(1).step_by(2);
        codes.any(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next() == Some(word))
    })?;
    let mut cells = row.trim_end_matches('|').split(" | ").map(str::trim);
    let (shape, says) = (cells.next()?, cells.next()?);
    let default = cells.next().filter(|default| !default.is_empty());
    let default = default.map_or_else(String::new, |default| format!("\n\ndefault: {default}"));
    Some(format!("{shape}: {says}{default}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{ACTIONS, fields_of};
    use crate::study::{ProbeKind, Quantity};

    #[test]
    fn every_field_has_its_row_in_the_reference() {
        for keyword in ["data", "model", "teacher", "training", "placement", "schedule", "study"] {
            for field in fields_of(keyword) {
                let told = field_row(keyword, field).unwrap_or_else(|| panic!("{keyword}: {field}"));
                assert!(told.contains("\n\ntakes: "), "{told}");
            }
        }
        LOSSES.iter().for_each(|loss| assert!(field_row("training", loss).is_some(), "{loss}"));
        let measured = ProbeKind::ALL.map(ProbeKind::name).into_iter().chain(Quantity::ALL.map(Quantity::name));
        measured.for_each(|word| assert!(row(MEASURED, word).is_some(), "{word}"));
        ACTIONS.iter().for_each(|action| assert!(field_row("schedule", action).is_some(), "{action}"));
        for word in ["x", "x0", "norm", "gain", "learned", "stop", "l", "L_active", "step"] {
            assert!(field_row("placement", word).is_some(), "{word}");
        }
    }
}
