//! A text that is open in an editor, and places in it.

use std::path::PathBuf;

use lsp_types::{Position, Range, Uri};

use crate::check::{Checked, check};
use crate::source::{FileId, Source, Span, World};

/// An open text, checked.
pub struct Document {
    /// The text as the editor has it.
    pub text: String,
    /// Where it is kept.
    pub path: PathBuf,
    /// What checking it gives.
    pub checked: Checked,
    /// Itself among the texts of `checked`.
    pub file: FileId,
}

impl Document {
    /// Checks a text.
    pub fn new(world: &dyn World, path: PathBuf, text: String) -> Self {
        let name = path.display().to_string();
        let checked = check(world, Source::new(name.clone(), text.as_str()));
        let file = checked.sources.files().find(|(_, source)| source.name == name).map_or(FileId(0), |(file, _)| file);
        Self { text, path, checked, file }
    }

    /// The byte that a position points at; the end of its line where it points past that.
    pub fn offset(&self, position: Position) -> usize {
        let mut start = 0;
        for _ in 0..position.line {
            match self.text[start..].find('\n') {
                Some(at) => start += at + 1,
                None => return self.text.len(),
            }
        }
        let mut units = 0;
        for (at, letter) in self.text[start..].char_indices() {
            // Columns of the protocol count units of UTF-16.
            if units >= position.character as usize || letter == '\n' {
                return start + at;
            }
            units += letter.len_utf16();
        }
        self.text.len()
    }

    /// The range of a span of this text.
    pub fn range(&self, span: Span) -> Range {
        range(&self.text, span)
    }

    /// What stands for something at a byte: the name's own place and where it is declared.
    pub fn named(&self, offset: usize) -> Option<crate::check::Named> {
        let here = |span: Span| span.file == self.file && span.start as usize <= offset && offset <= span.end as usize;
        self.checked.names.iter().copied().find(|named| here(named.at))
    }

    /// The word around a byte, dots not among its letters.
    pub fn word(&self, offset: usize) -> &str {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (before, after) = self.text.split_at(offset);
        let start = before.rfind(|c| !letter(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let end = after.find(|c| !letter(c)).unwrap_or(after.len());
        &self.text[start..offset + end]
    }

    /// The keyword of the declaration whose body a byte stands in, found by braces alone: the text may be in pieces.
    pub fn body(&self, offset: usize) -> Option<&str> {
        let mut open: Vec<usize> = Vec::new();
        let before = &self.text[..offset];
        let (mut quoted, mut comment) = (false, false);
        let mut last = ' ';
        for (at, letter) in before.char_indices() {
            match letter {
                '\n' => (quoted, comment) = (false, false),
                '"' if !comment && last != '\\' => quoted = !quoted,
                '/' if !quoted && last == '/' => comment = true,
                '{' if !quoted && !comment => open.push(at),
                '}' if !quoted && !comment => drop(open.pop()),
                _ => {}
            }
            last = letter;
        }
        let line = before[..*open.first()?].rsplit('\n').next()?;
        line.split_whitespace().next()
    }
}

/// The range of a span in its text.
pub fn range(text: &str, span: Span) -> Range {
    Range { start: position(text, span.start as usize), end: position(text, span.end as usize) }
}

fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Position { line: line as u32, character: before[start..].encode_utf16().count() as u32 }
}

/// The path of a `file:` address.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(rest.len());
    let mut letters = rest.bytes();
    while let Some(letter) = letters.next() {
        if letter == b'%' {
            let digits = [letters.next()?, letters.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(letter);
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}
