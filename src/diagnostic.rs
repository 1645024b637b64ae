//! What is said about a user's file: code, place, words, hints. Data first; drawn, listed as JSON or asserted by tests.
//!
//! Owns the voice: `error[code]: lower-case fragment`, code words in backticks, expected before found, one primary label on
//! the words at fault, hints in the imperative. Knows nothing of what raises it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

use crate::source::{Sources, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted.
    Warning,
}

/// A second place that explains the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there.
    pub message: String,
}

/// One thing said about a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// A stable name in kebab-case: `wrong-unit`.
    pub code: &'static str,
    /// Lower-case fragment.
    pub message: String,
    /// The words at fault.
    pub span: Span,
    /// Shown under the words at fault; empty where the message says it all.
    pub label: String,
    /// Other places.
    pub labels: Vec<Label>,
    /// What to do, in the imperative.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error on the words at fault.
    pub fn error(code: &'static str, message: impl Into<String>, span: Span) -> Self {
        let message = message.into();
        Self { severity: Severity::Error, code, message, span, label: String::new(), labels: Vec::new(), hints: Vec::new() }
    }
    /// A warning on the words meant.
    pub fn warning(code: &'static str, message: impl Into<String>, span: Span) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, span) }
    }
    /// What to show under the words at fault.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Another place that explains this one.
    pub fn note_at(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }
    /// What to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// `did you mean …`, where one of the `known` names is near.
    pub fn did_you_mean<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match guess(word, known) {
            Some(guess) => self.hint(guess),
            None => self,
        }
    }
    /// `did you mean …`, or what to do where no name is near.
    pub fn did_you_mean_or<'a>(
        self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> Option<String>,
    ) -> Self {
        match guess(word, known).or_else(otherwise) {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

/// So many names are suggested where several are equally near.
const MOST_SUGGESTED: usize = 4;

/// `did you mean …?`, where one of the `known` names is near, or several equally.
pub fn guess<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = near(word, known).into_iter().take(MOST_SUGGESTED).map(|name| format!("`{name}`")).collect();
    let (last, most) = near.split_last()?;
    Some(if most.is_empty() { format!("did you mean {last}?") } else { format!("did you mean {} or {last}?", most.join(", ")) })
}

/// The name that was probably meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near(word, known).first().copied()
}

/// The names that are nearest to a word, equally near: at most a third of the word's letters away (and at least one may be).
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        // Words without a letter in common are not near, however short they are.
        .filter(|(distance, name)| {
            *distance <= allowed && *distance < word.chars().count().max(name.chars().count()) && *name != word
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    let least = near.first().map(|(distance, _)| *distance);
    near.into_iter().take_while(|(distance, _)| Some(*distance) == least).map(|(_, name)| name).collect()
}

/// So many diagnostics are drawn; the rest is counted.
const MOST_DRAWN: usize = 100;

/// All that is to be said about some files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(Vec<Diagnostic>);

impl Problems {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }
    /// Adds several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(diagnostics);
    }
    /// By place, each once.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.0.iter().collect();
        all.sort_by_key(|said| (said.span, said.severity, said.code));
        all.dedup_by(|a, b| a == b);
        all
    }
    /// Whether any refuses the file.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|said| said.severity == Severity::Error)
    }
    /// How many have been said.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Drawn for a terminal, one after the other.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let all = self.sorted();
        let mut text = String::new();
        for said in all.iter().take(MOST_DRAWN) {
            text.push_str(&renderer.render(&[group(said, sources)]));
            text.push_str("\n\n");
        }
        if all.len() > MOST_DRAWN {
            text.push_str(&format!("… and {} more\n", all.len() - MOST_DRAWN));
        }
        text
    }
    /// The documented JSON: lines and columns from 1, columns in characters, ends exclusive.
    pub fn to_json(&self, sources: &Sources) -> Value {
        self.sorted().into_iter().map(|said| as_json(said, sources)).collect()
    }
}

fn group<'a>(said: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match said.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(said.message.as_str()).id(said.code));
    let mut files: Vec<_> = std::iter::once(said.span.file).chain(said.labels.iter().map(|label| label.span.file)).collect();
    files.dedup();
    for file in files {
        let source = sources.get(file);
        let mut snippet = Snippet::source(&*source.text).path(source.name.as_str());
        if file == said.span.file {
            snippet = snippet.annotation(AnnotationKind::Primary.span(said.span.range()).label(said.label.as_str()));
        }
        for label in said.labels.iter().filter(|label| label.span.file == file) {
            snippet = snippet.annotation(AnnotationKind::Context.span(label.span.range()).label(label.message.as_str()));
        }
        group = group.element(snippet);
    }
    for hint in &said.hints {
        group = group.element(Level::HELP.with_name(Some("hint")).message(hint.as_str()));
    }
    group
}

fn as_json(said: &Diagnostic, sources: &Sources) -> Value {
    let mut value = placed(said.span, &said.message, sources);
    value["file"] = json!(sources.get(said.span.file).name);
    value["severity"] = json!(match said.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    });
    value["code"] = json!(said.code);
    value["labels"] = said.labels.iter().map(|label| placed(label.span, &label.message, sources)).collect();
    value["hints"] = json!(said.hints);
    value
}

fn placed(span: Span, message: &str, sources: &Sources) -> Value {
    let source = sources.get(span.file);
    let (start, end) = (source.place(span.start), source.place(span.end));
    json!({
        "line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column,
        "text": sources.text(span), "message": message,
    })
}
