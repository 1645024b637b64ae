//! What is said about a user's file: code, place, words, hints. Data first; drawn, listed as JSON or asserted by tests.
//!
//! Owns the voice: `error[code]: lower-case fragment`, code words in backticks, expected before found, one primary label on
//! the words at fault, hints in the imperative. Knows nothing of what raises it.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};

use crate::source::{FileId, Sources, Span};

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

/// Longer words are slips of nothing: comparing two words takes time and space of their lengths' product.
const LONGEST_SLIP: usize = 64;
/// So many names are compared with a word: a text that a program wrote may hold a hundred thousand.
const MOST_COMPARED: usize = 1_000;

/// The names that are nearest to a word, equally near: at most a third of the word's letters away (and at least one may be).
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if word.len() > LONGEST_SLIP {
        return Vec::new();
    }
    let lower = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|name| name.len() <= 2 * LONGEST_SLIP)
        // Capitals are no other letters.
        .map(|name| {
            (strsim::damerau_levenshtein(word, name).min(strsim::damerau_levenshtein(&lower, &name.to_lowercase())), name)
        })
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
/// So many diagnostics are kept; that there are more is said once.
const MOST_KEPT: usize = 1_000;

/// All that is to be said about some files, up to a thousand faults and a last word on the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(Vec<Diagnostic>);

impl IntoIterator for Problems {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        match self.0.len() {
            kept if kept < MOST_KEPT => self.0.push(diagnostic),
            MOST_KEPT => {
                let message = format!("more than {MOST_KEPT} faults: those found after this one are not listed");
                self.0.push(Diagnostic::error("too-many-faults", message, diagnostic.span));
            }
            _ => {}
        }
    }
    /// Whether nothing more is kept.
    pub fn is_full(&self) -> bool {
        self.0.len() > MOST_KEPT
    }
    /// In the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
    /// Adds several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
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
    /// How many are kept.
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
            let least = if self.is_full() { "more than " } else { "" };
            text.push_str(&format!("… and {least}{} more\n", all.len() - MOST_DRAWN));
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
    let mut group = Group::with_title(level.primary_title(shortened(&said.message)).id(said.code));
    let labels = said.labels.iter().map(|label| (label.span, AnnotationKind::Context, label.message.as_str()));
    let mut drawn = Drawn::at(said.span, AnnotationKind::Primary, &said.label, sources);
    for (span, kind, message) in labels {
        if !drawn.takes(span, kind, message, sources) {
            group = drawn.into_group(group, sources);
            drawn = Drawn::at(span, kind, message, sources);
        }
    }
    group = drawn.into_group(group, sources);
    for hint in &said.hints {
        group = group.element(Level::HELP.with_name(Some("hint")).message(shortened(hint)));
    }
    group
}

/// Places of one file that are drawn together.
struct Drawn<'a> {
    file: FileId,
    /// Lines, from 1, the last included.
    lines: (usize, usize),
    places: Vec<(Span, AnnotationKind, &'a str)>,
}

/// Places that are so many lines apart are drawn apart: a drawing takes time of all lines between them.
const FAR: usize = 400;
/// Bytes of the longest line that is drawn; of longer ones the place is told.
const WIDEST: usize = 4_000;

impl<'a> Drawn<'a> {
    fn at(span: Span, kind: AnnotationKind, message: &'a str, sources: &Sources) -> Self {
        Self { file: span.file, lines: lines(span, sources), places: vec![(span, kind, message)] }
    }

    /// Takes a place that is near.
    fn takes(&mut self, span: Span, kind: AnnotationKind, message: &'a str, sources: &Sources) -> bool {
        let (first, last) = lines(span, sources);
        let both = (first.min(self.lines.0), last.max(self.lines.1));
        let is_near = span.file == self.file && both.1 - both.0 <= FAR;
        if is_near {
            self.lines = both;
            self.places.push((span, kind, message));
        }
        is_near
    }

    fn into_group(self, group: Group<'a>, sources: &'a Sources) -> Group<'a> {
        let source = sources.get(self.file);
        let window = source.lines(self.lines.0, self.lines.1.min(self.lines.0 + FAR));
        let text = source.text.get(window.clone()).unwrap_or("");
        if text.lines().any(|line| line.len() > WIDEST) {
            return self.places.into_iter().fold(group, |group, (span, ..)| {
                let place = source.place(span.start);
                group.element(Origin::path(source.name.as_str()).line(place.line).char_column(place.column))
            });
        }
        let snippet = Snippet::source(text).path(source.name.as_str()).line_start(self.lines.0);
        group.element(self.places.into_iter().fold(snippet, |snippet, (span, kind, message)| {
            let inside = |byte: u32| (byte as usize).clamp(window.start, window.end) - window.start;
            snippet.annotation(kind.span(inside(span.start)..inside(span.end)).label(shortened(message)))
        }))
    }
}

/// The lines of a span, from 1.
fn lines(span: Span, sources: &Sources) -> (usize, usize) {
    let source = sources.get(span.file);
    (source.line(span.start), source.line(span.end))
}

/// Letters of the longest message, and of the longest words at fault that are quoted for a program.
const LONGEST_SAID: usize = 600;

/// A message with its middle left out if it is too long: it may quote a word of a million letters.
fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST_SAID {
        return Cow::Borrowed(message);
    }
    let half = LONGEST_SAID / 2;
    let start = message.char_indices().nth(half).map_or(message.len(), |(at, _)| at);
    let end = message.char_indices().nth_back(half).map_or(0, |(at, _)| at);
    if end <= start {
        return Cow::Borrowed(message);
    }
    Cow::Owned(format!("{} … {}", &message[..start], &message[end..]))
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
    value["hints"] = said.hints.iter().map(|hint| shortened(hint)).collect();
    value
}

fn placed(span: Span, message: &str, sources: &Sources) -> Value {
    let source = sources.get(span.file);
    let (start, end) = (source.place(span.start), source.place(span.end));
    json!({
        "line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column,
        "text": shortened(sources.text(span)), "message": shortened(message),
    })
}
