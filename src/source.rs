//! Source texts and places in them.
//!
//! Owns: file identities, byte spans, the map from bytes to lines and columns. Knows nothing of what a text means.
//! Invariant: only [`World`] reads a text; everything after it works on [`Source`] values.

use std::ops::Range;
use std::sync::Arc;

/// One text in the [`Sources`] of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A half-open range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of `start..end` in `file`.
    pub fn new(file: FileId, range: Range<usize>) -> Self {
        // Texts above 4 GiB are refused when they are read.
        Self { file, start: range.start as u32, end: range.end as u32 }
    }
    /// The smallest span that holds both; both lie in one file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One text and where it came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// How the file is shown to its user: the path as given, or `std.placements`.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

impl Source {
    /// Indexes the lines of `text`.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1))
            .collect();
        Self { name: name.into(), text, line_starts }
    }
    /// The line of a byte, from 1.
    pub fn line(&self, byte: u32) -> usize {
        self.line_starts.partition_point(|start| *start <= byte)
    }
    /// The bytes of lines, from 1, the last included.
    pub fn lines(&self, first: usize, last: usize) -> Range<usize> {
        let start = |line: usize| self.line_starts.get(line - 1).map_or(self.text.len(), |start| *start as usize);
        start(first)..start(last + 1)
    }
    /// Line and column of a byte.
    pub fn place(&self, byte: u32) -> Place {
        let line = self.line(byte);
        let start = self.line_starts[line - 1] as usize;
        let end = (byte as usize).min(self.text.len());
        let column = self.text.get(start..end).map_or(1, |before| before.chars().count() + 1);
        Place { line, column }
    }
}

/// Every text that one compilation has read.
#[derive(Debug, Clone, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Adds a text.
    pub fn add(&mut self, source: Source) -> FileId {
        self.0.push(source);
        FileId(self.0.len() as u32 - 1)
    }
    /// A text by its identity; identities come from [`Sources::add`] alone.
    pub fn get(&self, file: FileId) -> &Source {
        &self.0[file.0 as usize]
    }
    /// All texts with their identities.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.0.iter().enumerate().map(|(at, source)| (FileId(at as u32), source))
    }
    /// The words under a span.
    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).text.get(span.range()).unwrap_or("")
    }
}

/// The only window of the language on the world outside: texts by name.
pub trait World {
    /// The text of `path`, written in a `use "…"` of the file called `from`; an error is a fragment such as `no such file`.
    fn read(&self, from: &str, path: &str) -> Result<Source, String>;
}
