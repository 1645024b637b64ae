//! What a word under the cursor means.
//!
//! Owns no meaning: fields are told by the language reference, names by their declarations, metrics by the catalogue.

use super::document::Document;
use crate::check::{LOSSES, fields_of};
use crate::source::Span;
use crate::study::{Metric, ProbeKind};

/// The language reference, for its tables of fields.
const REFERENCE: &str = include_str!("../../grammar/reference.md");

/// What is shown at a byte of a text, as Markdown.
pub fn hover(document: &Document, offset: usize) -> Option<String> {
    if let Some(named) = document.named(offset) {
        return Some(declaration(document, named.declared));
    }
    let word = document.word(offset);
    let body = document.body(offset);
    let field = body.filter(|keyword| fields_of(keyword).contains(&word));
    let loss = body.filter(|keyword| ["training", "schedule"].contains(keyword) && LOSSES.contains(&word)).map(|_| "training");
    if let Some(row) = field.or(loss).and_then(|keyword| field_row(keyword, word)) {
        return Some(row);
    }
    let metric = Metric::ALL.into_iter().find(|metric| metric.name() == word);
    let metric = metric.map(|metric| match metric.unit() {
        "" => format!("metric: {}", metric.definition()),
        unit => format!("metric, {unit}: {}", metric.definition()),
    });
    metric.or_else(|| ProbeKind::ALL.into_iter().find(|probe| probe.name() == word).map(|_| format!("probe `{word}`")))
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

/// What the reference says of a field: `says`, and the default where there is one.
pub fn field_row(keyword: &str, field: &str) -> Option<String> {
    let section = REFERENCE.split("\n## ").find(|section| section.lines().next() == Some(keyword))?;
    let row = section.lines().filter_map(|line| line.strip_prefix("| `")).find(|row| {
        let first = row.split(" | ").next().unwrap_or("");
        let codes = std::iter::once(first).chain(first.split('`').skip(2).step_by(2));
        codes.into_iter().any(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next() == Some(field))
    })?;
    let mut cells = row.trim_end_matches('|').split(" | ").map(str::trim);
    let (shape, says) = (cells.next()?, cells.next()?);
    let default = cells.next().filter(|default| !default.is_empty());
    let default = default.map_or_else(String::new, |default| format!("\n\ndefault: {default}"));
    Some(format!("`{shape}: {says}{default}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_row_in_the_reference() {
        for keyword in ["data", "model", "teacher", "training", "placement", "schedule", "study"] {
            for field in fields_of(keyword) {
                // `layout packed` is a longer way to say `packed`.
                assert!(field == "layout" || field_row(keyword, field).is_some(), "{keyword}: {field}");
            }
        }
        LOSSES.iter().for_each(|loss| assert!(field_row("training", loss).is_some(), "{loss}"));
    }
}
