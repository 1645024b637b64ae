//! Text and JSON lines into documents.
//!
//! Owns where a document of a text begins and ends. Invariant: it depends on the text alone, not on the pieces that it is read in.

use std::borrow::Cow;
use std::path::Path;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};

use super::corpus::CorpusError;
use super::documents::{Assembler, DocumentsError, PART};
use super::files::{Letters, Plain};
use crate::study::Documents;

/// Bytes of the longest line of JSON: it is held whole (an assumption; the longest of common corpora have a few MiB).
const LONGEST_LINE: usize = 1 << 28;

/// Cuts the text of a file into documents.
pub(super) fn read(plain: Plain, rule: &Documents, into: &mut Assembler<'_, '_>) -> Result<(), CorpusError> {
    let path = plain.path().to_owned();
    let mut letters = Letters::of(plain);
    if *rule == Documents::File {
        while let Some(piece) = letters.next()? {
            into.text(piece)?;
        }
        return into.end();
    }
    let mut lines = Lines { path: &path, rule, kept: String::new(), cr: false, number: 1, begun: false };
    while let Some(piece) = letters.next()? {
        for piece in piece.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                None => {
                    lines.flush(into)?;
                    let rest = piece.strip_suffix('\r');
                    lines.cr = rest.is_some();
                    lines.more(rest.unwrap_or(piece), into)?;
                }
                Some(rest) => {
                    // The end of a line is "\n" or "\r\n".
                    lines.cr &= !rest.is_empty();
                    lines.flush(into)?;
                    lines.more(rest.strip_suffix('\r').unwrap_or(rest), into)?;
                    lines.end(into)?;
                }
            }
        }
    }
    lines.flush(into)?;
    lines.end(into)?;
    into.end()
}

/// Puts documents together from lines.
struct Lines<'a> {
    path: &'a Path,
    rule: &'a Documents,
    /// A field: the line so far. A paragraph: the blanks that the line begins with.
    kept: String,
    /// The piece before ended in a carriage return, which may belong to the end of the line.
    cr: bool,
    /// From 1.
    number: u64,
    /// A paragraph: the line has more than blanks.
    begun: bool,
}

impl Lines<'_> {
    /// A carriage return that was kept back belongs to the line.
    fn flush(&mut self, into: &mut Assembler<'_, '_>) -> Result<(), CorpusError> {
        if std::mem::take(&mut self.cr) { self.more("\r", into) } else { Ok(()) }
    }
    /// A part of a line.
    fn more(&mut self, piece: &str, into: &mut Assembler<'_, '_>) -> Result<(), CorpusError> {
        match self.rule {
            Documents::File | Documents::Line => into.text(piece),
            Documents::Paragraph if self.begun => into.text(piece),
            Documents::Paragraph => {
                self.kept.push_str(piece);
                // Whoever writes so many blanks means them.
                if self.kept.trim().is_empty() && self.kept.len() <= PART {
                    return Ok(());
                }
                self.begun = true;
                if !into.is_empty() {
                    into.text("\n")?;
                }
                into.text(&std::mem::take(&mut self.kept))
            }
            Documents::Field(_) if self.kept.len() + piece.len() > LONGEST_LINE => {
                Err(self.wrong(format!("is longer than {} MiB", LONGEST_LINE >> 20)))
            }
            Documents::Field(_) => {
                self.kept.push_str(piece);
                Ok(())
            }
        }
    }
    /// The end of a line.
    fn end(&mut self, into: &mut Assembler<'_, '_>) -> Result<(), CorpusError> {
        match self.rule {
            Documents::File => {}
            Documents::Line => into.end()?,
            Documents::Paragraph => {
                if !self.begun {
                    into.end()?;
                }
            }
            Documents::Field(field) if !self.kept.trim().is_empty() => {
                let mut read = serde_json::Deserializer::from_str(&self.kept);
                let found = Field(field).deserialize(&mut read).and_then(|found| read.end().map(|()| found));
                let text = found.map_err(|error| self.wrong(format!("is not a JSON object: {error}")))?;
                into.text(&text.ok_or_else(|| self.wrong(format!("has no text field `{field}`")))?)?;
                into.end()?;
            }
            Documents::Field(_) => {}
        }
        self.kept.clear();
        self.begun = false;
        self.number += 1;
        Ok(())
    }
    fn wrong(&self, reason: String) -> CorpusError {
        DocumentsError::Line { path: self.path.into(), line: self.number, reason }.into()
    }
}

/// The text of a field of a JSON object; nothing else of it is kept.
struct Field<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = Option<Cow<'de, str>>;
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<Cow<'de, str>>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == self.0 {
                found = map.next_value::<Text<'de>>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A text, or something else.
struct Text<'de>(Option<Cow<'de, str>>);

impl<'de> serde::Deserialize<'de> for Text<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Any<'a> {
            #[serde(borrow)]
            Text(Cow<'a, str>),
            Other(IgnoredAny),
        }
        Any::deserialize(from).map(|any| match any {
            Any::Text(text) => Self(Some(text)),
            Any::Other(_) => Self(None),
        })
    }
}
