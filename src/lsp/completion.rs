//! What may stand at the cursor: fields at the start of a statement, names and words after it.

use lsp_types::{CompletionItem, CompletionItemKind};

use super::document::Document;
use super::hover::field_row;
use crate::check::{LIBRARY, LOSSES, SETTABLE, fields_of};
use crate::study::{Metric, ProbeKind};

const KEYWORDS: [&str; 9] = ["data", "model", "teacher", "training", "placement", "schedule", "study", "use", "let"];

/// Everything that may stand at a byte.
pub fn completions(document: &Document, offset: usize) -> Vec<CompletionItem> {
    let before = &document.text[..offset];
    let line = before.rsplit('\n').next().unwrap_or("");
    let Some(keyword) = document.body(offset) else { return outside(line) };
    let item = line.rsplit([',', '{']).next().unwrap_or(line);
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
        "measure" => plain(&Metric::ALL.map(Metric::name), CompletionItemKind::CONSTANT),
        "probe" => plain(&ProbeKind::ALL.map(ProbeKind::name), CompletionItemKind::CONSTANT),
        "claim" => plain(&Metric::ALL.map(Metric::name), CompletionItemKind::CONSTANT),
        "vary" if item.contains(" over ") => names(document, item.split_whitespace().nth(1).unwrap_or("")),
        "vary" => plain(&["placement", "schedule", "data", "model", "training"], CompletionItemKind::FIELD),
        "train" => names(document, "training"),
        "loss" => losses(),
        "optimizer" => plain(&["adamw", "sgd", "lion", "muon"], CompletionItemKind::FUNCTION),
        "lr" => plain(&["warmup", "constant", "linear", "cosine", "wsd"], CompletionItemKind::KEYWORD),
        "data" | "model" | "training" | "schedule" | "placement" => names(document, head),
        "at" | "after" | "every" => {
            let actions = ["grow", "freeze", "thaw", "reset", "restart", "rewarm", "rewind", "fresh", "set", "drop", "save"];
            plain(&actions, CompletionItemKind::KEYWORD)
        }
        _ => Vec::new(),
    }
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
