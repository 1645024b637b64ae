//! What may stand at the cursor: fields at the start of a statement, names and words after it.

use lsp_types::{CompletionItem, CompletionItemKind};

use super::document::Document;
use super::hover::field_row;
use crate::check::{ACTIONS, LIBRARY, LOSSES, SETTABLE, fields_of, takes};
use crate::study::{Metric, ProbeKind, Quantity};

const KEYWORDS: [&str; 9] = ["data", "model", "teacher", "training", "placement", "schedule", "study", "use", "let"];

/// Everything that may stand at a byte.
pub fn completions(document: &Document, offset: usize) -> Vec<CompletionItem> {
    let before = &document.text[..offset];
    let line = before.rsplit('\n').next().unwrap_or("");
    let Some(keyword) = document.body(offset) else { return outside(line) };
    let item = last_item(line);
    let mut words = item.split_whitespace();
    let head = words.next().unwrap_or("");
    // Still in the first word of a statement.
    if words.next().is_none() && !item.ends_with(char::is_whitespace) || item.trim().is_empty() {
        return fields_of(keyword).into_iter().map(|field| described(keyword, field)).collect();
    }
    let plain = |words: &[&str], kind| words.iter().map(|word| item_of(word, kind)).collect::<Vec<_>>();
    let losses = || [plain(LOSSES, CompletionItemKind::FUNCTION), names(document, "teacher")].concat();
    let action: Vec<&str> = item.rsplit(':').next().unwrap_or(item).split_whitespace().collect();
    match action.as_slice() {
        ["set", "loss", ..] if keyword == "schedule" => return losses(),
        ["set", ..] if keyword == "schedule" => return plain(&SETTABLE, CompletionItemKind::KEYWORD),
        _ => {}
    }
    match head {
        "measure" | "claim" => plain(&Metric::ALL.map(Metric::name), CompletionItemKind::CONSTANT),
        "probe" => plain(&ProbeKind::ALL.map(ProbeKind::name), CompletionItemKind::CONSTANT),
        "control" if item.contains(" on ") => plain(&Quantity::ALL.map(Quantity::name), CompletionItemKind::CONSTANT),
        "vary" if item.contains(" over ") => {
            let field = item.split_whitespace().nth(1).unwrap_or("");
            [names(document, field), values(&["model", "training", "data"], field)].concat()
        }
        "vary" => {
            let fields = ["model", "training", "data"].into_iter().flat_map(fields_of);
            ["schedule", "data", "model", "training"]
                .into_iter()
                .chain(fields)
                .map(|word| item_of(word, CompletionItemKind::FIELD))
                .collect()
        }
        "train" => names(document, "training"),
        "loss" => losses(),
        "data" | "model" | "training" | "schedule" | "placement" => names(document, head),
        "at" | "after" | "every" if item.contains(':') => plain(ACTIONS, CompletionItemKind::KEYWORD),
        _ => values(&[keyword], head),
    }
}

/// What stands behind the last comma or brace of a line that is inside no other bracket.
fn last_item(line: &str) -> &str {
    let (mut depth, mut start) = (0usize, 0);
    for (at, letter) in line.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' | '{' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &line[start..]
}

/// Words that the value of a field may have: those that what it takes is told with.
fn values(keywords: &[&str], field: &str) -> Vec<CompletionItem> {
    let told = keywords.iter().find_map(|keyword| takes(keyword, field)).unwrap_or("");
    let words = told.split('`').skip(1).step_by(2).map(|code| code.split(['(', ' ']).next().unwrap_or(code));
    words.map(|word| item_of(word, CompletionItemKind::KEYWORD)).collect()
}

/// Between declarations.
fn outside(line: &str) -> Vec<CompletionItem> {
    let library = line.strip_prefix("use ").map(str::trim_start);
    match library.and_then(|rest| rest.split_once('(')) {
        Some((from, _)) => {
            let text = LIBRARY.iter().find(|(name, _)| *name == from.trim()).map_or("", |(_, text)| text);
            let declared = text.lines().filter_map(|line| {
                let (keyword, rest) = line.split_once(' ')?;
                let name = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
                (["placement", "schedule"].contains(&keyword) && !name.is_empty())
                    .then(|| item_of(name, CompletionItemKind::CLASS))
            });
            declared.collect()
        }
        None if library.is_some() => LIBRARY.iter().map(|(name, _)| item_of(name, CompletionItemKind::MODULE)).collect(),
        None => KEYWORDS.iter().map(|word| item_of(word, CompletionItemKind::KEYWORD)).collect(),
    }
}

fn item_of(word: &str, kind: CompletionItemKind) -> CompletionItem {
    CompletionItem { label: word.to_owned(), kind: Some(kind), ..CompletionItem::default() }
}

fn described(keyword: &str, field: &str) -> CompletionItem {
    let documentation = field_row(keyword, field).map(|text| {
        lsp_types::Documentation::MarkupContent(lsp_types::MarkupContent { kind: lsp_types::MarkupKind::Markdown, value: text })
    });
    CompletionItem { documentation, ..item_of(field, CompletionItemKind::FIELD) }
}

/// Names in sight of the text that declarations of a kind have.
fn names(document: &Document, keyword: &str) -> Vec<CompletionItem> {
    let mut found: Vec<&str> = Vec::new();
    for named in document.checked.names.iter().filter(|named| named.at.file == document.file) {
        let text = &*document.checked.sources.get(named.declared.file).text;
        let start = text[..named.declared.start as usize].rfind('\n').map_or(0, |at| at + 1);
        let is_kind = text[start..named.declared.start as usize].trim() == keyword;
        let name = document.checked.sources.text(named.declared);
        if is_kind && !found.contains(&name) {
            found.push(name);
        }
    }
    found.into_iter().map(|name| item_of(name, CompletionItemKind::CLASS)).collect()
}
