//! What is said about a user's file: code, place, words, hints. Data first; drawn, listed as JSON or asserted by tests.
//!
//! Owns the voice: `error[code]: lower-case fragment`, code words in backticks, expected before found, one primary label on
//! the words at fault, hints in the imperative. Knows nothing of what raises it.

use crate::source::Span;

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
