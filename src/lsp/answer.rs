//! Answers about a text as a whole, and about a name in it.

use std::collections::HashMap;

use lsp_types::{
    CodeLens, Command, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DocumentSymbol, Location, NumberOrString,
    Range, SymbolKind, TextEdit, Uri, WorkspaceEdit,
};

use super::document::{Document, range};
use crate::check::begins_statement;
use crate::data;
use crate::diagnostic::Severity;
use crate::plan;
use crate::report::number;
use crate::source::{FileId, Source, Span};
use crate::syntax::ast::{Declaration, Entry};
use crate::syntax::{parse, print};

/// All that is to be said about a text; what concerns another file is said by that file's own check.
pub fn diagnostics(document: &Document, uri: &Uri) -> Vec<Diagnostic> {
    let said = document.checked.problems.sorted();
    let own = said.into_iter().filter(|said| said.span.file == document.file);
    let one = |said: &crate::diagnostic::Diagnostic| {
        let mut message = said.message.clone();
        for hint in &said.hints {
            message.push_str(&format!("\nhint: {hint}"));
        }
        let related =
            said.labels.iter().filter(|label| label.span.file == document.file).map(|label| DiagnosticRelatedInformation {
                location: Location { uri: uri.clone(), range: document.range(label.span) },
                message: label.message.clone(),
            });
        Diagnostic {
            range: document.range(said.span),
            severity: Some(match said.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(said.code.to_owned())),
            source: Some("xrun".to_owned()),
            message,
            related_information: Some(related.collect()),
            ..Diagnostic::default()
        }
    };
    own.map(one).collect()
}

/// Where the name at a byte is declared. A name of the standard library has no place that an editor could open.
pub fn definition(document: &Document, uri: &Uri, offset: usize) -> Option<Location> {
    let declared = document.named(offset)?.declared;
    if declared.file == document.file {
        return Some(Location { uri: uri.clone(), range: document.range(declared) });
    }
    let source = document.checked.sources.get(declared.file);
    let uri = format!("file://{}", source.name).parse().ok().filter(|_| source.name.starts_with('/'))?;
    Some(Location { uri, range: range(&source.text, declared) })
}

/// Every place of the text where the name at a byte stands.
pub fn references(document: &Document, offset: usize) -> Vec<Range> {
    let Some(wanted) = document.named(offset) else { return Vec::new() };
    let same = document.checked.names.iter().filter(|named| named.declared == wanted.declared && named.at.file == document.file);
    same.map(|named| document.range(named.at)).collect()
}

/// The name at a byte, if it may be renamed: it is declared in this text.
pub fn renamable(document: &Document, offset: usize) -> Option<Range> {
    let named = document.named(offset).filter(|named| named.declared.file == document.file)?;
    Some(document.range(named.at))
}

/// Gives the name at a byte another name, everywhere in the text; says why if that cannot be.
pub fn rename(document: &Document, uri: &Uri, offset: usize, name: &str) -> Result<WorkspaceEdit, String> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(format!("`{name}` is no name: a letter or `_`, then letters, digits and `_`"));
    }
    if renamable(document, offset).is_none() {
        return Err("only what this file declares can be renamed".to_owned());
    }
    let edit = |range| TextEdit { range, new_text: name.to_owned() };
    let edits = references(document, offset).into_iter().map(edit).collect();
    // The protocol's address has an inner cache and is its own hash all the same.
    #[expect(clippy::mutable_key_type, reason = "the type of the protocol")]
    let changes = HashMap::from([(uri.clone(), edits)]);
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// The text laid out, as one edit; nothing where it cannot be read or is as it should be.
pub fn format(document: &Document) -> Vec<TextEdit> {
    let Ok(printed) = print(&Source::new("", document.text.as_str()), &begins_statement) else { return Vec::new() };
    if printed == document.text {
        return Vec::new();
    }
    let whole = Span::new(FileId::default(), 0..document.text.len());
    vec![TextEdit { range: range(&document.text, whole), new_text: printed }]
}

/// The declarations of the text.
pub fn symbols(document: &Document) -> Vec<DocumentSymbol> {
    declarations(document).into_iter().map(|declaration| symbol(document, &declaration)).collect()
}

fn declarations(document: &Document) -> Vec<Declaration> {
    let (tree, _) = parse(document.file, &document.text);
    let declaration = |entry| match entry {
        Entry::Declaration(declaration) => Some(declaration),
        Entry::Use(_) | Entry::Let(_) => None,
    };
    tree.entries.into_iter().filter_map(declaration).collect()
}

fn symbol(document: &Document, declaration: &Declaration) -> DocumentSymbol {
    let kind = match declaration.keyword.text.as_str() {
        "study" => SymbolKind::MODULE,
        "placement" => SymbolKind::FUNCTION,
        "schedule" => SymbolKind::EVENT,
        _ => SymbolKind::STRUCT,
    };
    #[expect(deprecated, reason = "the protocol's type has the field, and no way round it")]
    DocumentSymbol {
        name: declaration.name.text.clone(),
        detail: Some(declaration.keyword.text.clone()),
        kind,
        tags: None,
        deprecated: None,
        range: document.range(declaration.span),
        selection_range: document.range(declaration.name.span),
        children: None,
    }
}

/// Bytes of text that are read while someone types: bytes are counted at a gigabyte a second or more (measured), tokens of other kinds at
/// about a fiftieth of that.
const AT_ONCE: u64 = 4 << 20;

/// Above each study, what its plan comes to.
pub fn lenses(document: &Document) -> Vec<CodeLens> {
    let folder = document.path.parent().unwrap_or(std::path::Path::new("."));
    let reach = data::Reach { most_bytes: Some(AT_ONCE), ..data::Reach::whole() };
    let lens = |declaration: &Declaration| {
        let study = document.checked.studies.iter().find(|study| study.name == declaration.name.text)?;
        let title = match plan::build(study, &data::gather(study, folder, &reach)) {
            Ok(plan) => {
                let totals = &plan.totals;
                format!(
                    "{} runs, {} nodes, {} steps ({} without sharing)",
                    number::exact(totals.runs),
                    number::exact(totals.nodes),
                    number::exact(totals.steps_planned),
                    number::exact(totals.steps_if_unshared)
                )
            }
            Err(error) => format!("cannot be planned: {error}"),
        };
        let command = Command { title, command: String::new(), arguments: None };
        Some(CodeLens { range: document.range(declaration.name.span), command: Some(command), data: None })
    };
    let all = declarations(document);
    all.iter().filter(|declaration| declaration.keyword.text == "study").filter_map(lens).collect()
}
