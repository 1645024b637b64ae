//! Texts into documents, and documents into a training part and a holdout.
//!
//! Documents come one after the other, long ones in parts. Invariant: a document is cut by its own text alone; which documents there are,
//! and which are held out, does not depend on how files are read.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::corpus::CorpusError;
use super::files::{Kind, Meter, Plain, matching};
use super::pretokenised::{self, Spelling};
use super::{columns, tales, texts};
use crate::study::{Data, Holdout, Text};

/// Bytes of text, or tokens, in a part of a document: longer documents come in several. An assumption: a few of them are in memory at a
/// time, and a text of a hundred pages is one.
pub(super) const PART: usize = 1 << 18;
/// Bytes of a generated tale, about.
const TALE: u64 = 500;

/// Why the text of a `data` declaration cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// No file.
    #[error("no file matches `{0}`")]
    NoFile(String),
    /// The pattern is not one.
    #[error("`{pattern}` is not a file pattern: {reason}")]
    Pattern {
        /// As written.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not what its name or its beginning says.
    #[error("`{}` is damaged: {reason}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file whose kind does not fit the declaration.
    #[error("`{}` cannot be read so: {reason}", path.display())]
    Unfit {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file that stands for another.
    #[error("`{}` is a pointer of Git LFS in the place of the file: fetch it with `git lfs pull`", .0.display())]
    Pointer(PathBuf),
    /// A file is not text.
    #[error("`{}` is not UTF-8 text (byte {at})", path.display())]
    NotText {
        /// Which.
        path: PathBuf,
        /// The first byte at fault, unpacked.
        at: u64,
    },
    /// A line is not a JSON object with that field.
    #[error("line {line} of `{}` {reason}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// There is nothing to train on, or nothing to hold out.
    #[error("{0}")]
    TooSmall(String),
    /// There is more than will be read now.
    #[error("its text is larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
}

/// What a document holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// Text that is still to be tokenised.
    Text(&'a str),
    /// Tokens, the boundary left out.
    Tokens(&'a [u32]),
}

/// A document, or a part of a long one: never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// At most [`PART`] bytes or tokens.
    pub content: Content<'a>,
    /// Nothing of the document comes after.
    pub last: bool,
    /// How much of [`size`] was read so far.
    pub read: u64,
}

/// Hears the parts of documents; an error ends the reading.
pub(super) type See<'a> = dyn FnMut(Part<'_>) -> Result<(), CorpusError> + 'a;

/// Makes parts of documents whose text or tokens come in pieces. Empty documents are left out.
pub(super) struct Assembler<'a, 's> {
    text: String,
    tokens: Vec<u32>,
    meter: Meter,
    see: &'a mut See<'s>,
}

impl<'a, 's> Assembler<'a, 's> {
    fn new(meter: Meter, see: &'a mut See<'s>) -> Self {
        Self { text: String::new(), tokens: Vec::new(), meter, see }
    }
    /// Whether nothing of a document has come yet.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tokens.is_empty()
    }
    /// More text of the document.
    pub(super) fn text(&mut self, mut piece: &str) -> Result<(), CorpusError> {
        while self.text.len() + piece.len() > PART {
            // At least one character more than a part, so that a cut depends on the text alone, wherever pieces end.
            let room = above(piece, (PART + 1).saturating_sub(self.text.len()));
            self.text.push_str(&piece[..room]);
            piece = &piece[room..];
            let cut = cut(&self.text);
            (self.see)(Part { content: Content::Text(&self.text[..cut]), last: false, read: self.meter.get() })?;
            self.text.drain(..cut);
        }
        self.text.push_str(piece);
        Ok(())
    }
    /// More tokens of the document.
    pub(super) fn tokens(&mut self, mut piece: &[u32]) -> Result<(), CorpusError> {
        while self.tokens.len() + piece.len() > PART {
            let (now, later) = piece.split_at(PART - self.tokens.len());
            self.tokens.extend_from_slice(now);
            piece = later;
            (self.see)(Part { content: Content::Tokens(&self.tokens), last: false, read: self.meter.get() })?;
            self.tokens.clear();
        }
        self.tokens.extend_from_slice(piece);
        Ok(())
    }
    /// The document ends.
    pub(super) fn end(&mut self) -> Result<(), CorpusError> {
        let content = match (self.text.as_str(), self.tokens.as_slice()) {
            ("", []) => return Ok(()),
            ("", tokens) => Content::Tokens(tokens),
            (text, _) => Content::Text(text),
        };
        (self.see)(Part { content, last: true, read: self.meter.get() })?;
        self.text.clear();
        self.tokens.clear();
        Ok(())
    }
}

/// The first end of a character at or behind a place in a text.
fn above(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Where a text of more than [`PART`] bytes is cut: between the last end of a line and a letter, else before the last blank between words, so
/// that a tokenizer that joins no lines, or no words, sees no difference; else as late as a part allows.
fn cut(text: &str) -> usize {
    let end = (0..=PART).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (part, half) = (&text[..end], above(text, PART / 2));
    let (mut line, mut word, mut before) = (None, None, ' ');
    for (at, letter) in part[half..].char_indices() {
        if before == '\n' && letter.is_alphanumeric() {
            line = Some(half + at);
        }
        if letter == ' ' && before.is_alphanumeric() && part[half + at + 1..].starts_with(char::is_alphanumeric) {
            word = Some(half + at);
        }
        before = letter;
    }
    line.or(word).unwrap_or(part.len())
}

/// Shows the documents of a `data` declaration in the order of the corpus: files by name, then by place. Relative patterns are relative to
/// `folder`, that of the `.exp` file; `spelling` is that of the tokenizer, where there is one yet.
pub(super) fn each(data: &Data, folder: &Path, spelling: Option<Spelling>, see: &mut See<'_>) -> Result<(), CorpusError> {
    let meter: Meter = Rc::new(Cell::new(0));
    let mut into = Assembler::new(Rc::clone(&meter), see);
    match &data.text {
        Text::Tales { documents, seed } => {
            for at in 0..*documents {
                meter.set(TALE * (at + 1));
                into.text(&tales::document(*seed, at))?;
                into.end()?;
            }
        }
        Text::Files(patterns) => {
            for path in matching(patterns, folder)? {
                let plain = Plain::open(&path, &meter)?;
                match Kind::of(&path) {
                    Kind::Text => texts::read(plain, &data.documents, &mut into)?,
                    Kind::Parquet => columns::read(plain, &data.documents, &mut into)?,
                    kind @ (Kind::Bin | Kind::Npy) => pretokenised::read(plain, kind, &data.documents, spelling, &mut into)?,
                }
            }
        }
    }
    Ok(())
}

/// Bytes of the text of a `data` declaration as they lie on the disk; about 500 for a generated tale.
pub(super) fn size(data: &Data, folder: &Path) -> Result<u64, DocumentsError> {
    match &data.text {
        Text::Tales { documents, .. } => Ok(TALE * documents),
        Text::Files(patterns) => {
            let sizes = matching(patterns, folder)?.into_iter().filter_map(|path| std::fs::metadata(path).ok());
            Ok(sizes.map(|file| file.len()).sum())
        }
    }
}

/// Which documents are held out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldOut(Vec<u64>);

impl HeldOut {
    /// Those whose content hashes lowest, the earlier of equal ones first, so that a document stays on its side when others come or go, and
    /// no seed or arm has a say. `ranks` are the first bytes of the hash of each document.
    pub(super) fn of(ranks: Vec<u64>, holdout: Holdout) -> Result<Self, DocumentsError> {
        let all = ranks.len();
        let count = match holdout {
            Holdout::Fraction(fraction) => ((all as f64 * fraction).round() as usize).max(usize::from(fraction > 0.0)),
            Holdout::Documents(count) => count as usize,
        };
        if count >= all {
            return Err(DocumentsError::TooSmall(format!(
                "the corpus has {all} documents, {count} of them held out: nothing is left to train on"
            )));
        }
        if count == 0 {
            return Ok(Self(Vec::new()));
        }
        let mut sorted = ranks.clone();
        let highest = *sorted.select_nth_unstable(count - 1).1;
        drop(sorted);
        let mut ties = count - ranks.iter().filter(|rank| **rank < highest).count();
        let mut held = Vec::with_capacity(count);
        for (at, rank) in (0..).zip(ranks) {
            let is_tie = rank == highest && ties > 0;
            ties -= usize::from(is_tie);
            if rank < highest || is_tie {
                held.push(at);
            }
        }
        Ok(Self(held))
    }
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
    /// Whether each document, one after the other, is held out.
    pub(super) fn walk(&self) -> impl FnMut() -> bool + '_ {
        let (mut left, mut at) = (self.0.iter().peekable(), 0);
        move || {
            at += 1;
            left.next_if_eq(&&(at - 1)).is_some()
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::study::{Documents, Layout, Shard, Tokenizer};

    /// Data of files beside it.
    pub(in crate::data) fn of_files(pattern: &str, documents: Documents) -> Data {
        Data {
            name: "d".into(),
            doc: None,
            text: Text::Files(vec![pattern.into()]),
            documents,
            tokenizer: Tokenizer::Bytes,
            context: 4,
            layout: Layout::Packed,
            shard: Shard::Whole,
            holdout: Holdout::Fraction(0.0),
            tokens_per_step: None,
        }
    }

    /// All documents, tokens written out.
    pub(in crate::data) fn all(data: &Data, folder: &Path, spelling: Option<Spelling>) -> Result<Vec<String>, String> {
        let (mut documents, mut begins) = (Vec::new(), true);
        let seen = each(data, folder, spelling, &mut |part| {
            if std::mem::replace(&mut begins, part.last) {
                documents.push(String::new());
            }
            let document: &mut String = documents.last_mut().expect("a document begins");
            match part.content {
                Content::Text(text) => {
                    assert!(!text.is_empty() && text.len() <= PART);
                    document.push_str(text);
                }
                Content::Tokens(tokens) => {
                    assert!(!tokens.is_empty() && tokens.len() <= PART);
                    tokens.iter().for_each(|token| document.push_str(&format!("{token} ")));
                }
            }
            Ok(())
        });
        let shown = |error: CorpusError| error.to_string().replace(&format!("{}/", folder.display()), "");
        seen.map(|()| documents).map_err(shown)
    }

    fn split(name: &str, text: &[u8], rule: Documents) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), text).expect("writes");
        all(&of_files(name, rule), folder.path(), None)
    }

    #[test]
    fn paragraphs_end_at_blank_lines() {
        let documents = split("a.txt", b"one\r\n  two\n\n \nthree\r\n\n\n", Documents::Paragraph).expect("splits");
        assert_eq!(documents, ["one\n  two", "three"]);
    }

    /// Against the library's own lines, with what comes in pieces at every place.
    #[test]
    fn lines_end_as_in_the_library_wherever_a_piece_ends() {
        for text in ["a\r\nb\rc\r\r\nd\r", "\n\r\n\r", "a\n", "", "ä\r\nö"] {
            let wanted: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(split("a.txt", text.as_bytes(), Documents::Line).expect("splits"), wanted, "{text:?}");
            for place in (PART - 6)..(PART + 3) {
                let long = "x".repeat(place) + text;
                let wanted: Vec<&str> = long.lines().filter(|line| !line.is_empty()).collect();
                assert_eq!(split("a.txt", long.as_bytes(), Documents::Line).expect("splits"), wanted, "{text:?} at {place}");
                assert_eq!(split("a.txt", long.as_bytes(), Documents::File).expect("splits"), std::slice::from_ref(&long));
            }
        }
    }

    #[test]
    fn a_line_that_is_no_object_with_the_field_is_named() {
        let said = |text: &str| split("a.jsonl", text.as_bytes(), Documents::Field("text".into())).expect_err("refused");
        assert_eq!(said("{\"text\":\"x\"}\n{\"txt\":\"y\"}"), "line 2 of `a.jsonl` has no text field `text`");
        assert_eq!(said("\n{\"text\":[\"x\"]}"), "line 2 of `a.jsonl` has no text field `text`");
        assert!(said("[1]").starts_with("line 1 of `a.jsonl` is not a JSON object: invalid type: sequence, expected an object"));
        assert!(said("{\"text\":\"x\"} 1").contains("trailing characters"));
        let deep = format!("{{\"other\":{}", "[".repeat(1 << 20));
        assert!(said(&deep).contains("EOF while parsing"), "{}", said(&deep));
        let deep = format!("{{\"text\":{}", "[".repeat(1 << 20));
        assert!(said(&deep).contains("recursion limit"), "{}", said(&deep));
        let fields = br#"{"other": {"text": "no"}, "text": "a\nb"}"#;
        assert_eq!(split("a.jsonl", fields, Documents::Field("text".into())).expect("reads"), ["a\nb"]);
    }

    #[test]
    fn what_is_not_text_is_named_with_its_place() {
        let mut bytes = vec![b'a'; PART + 1];
        bytes.extend([0xc3, 0x28]);
        let said = split("a.txt", &bytes, Documents::File).expect_err("refused");
        assert_eq!(said, format!("`a.txt` is not UTF-8 text (byte {})", PART + 1));
        let said = split("a.txt", &bytes[..=PART + 1], Documents::File).expect_err("refused");
        assert_eq!(said, format!("`a.txt` is not UTF-8 text (byte {})", PART + 1));
        let said = split("a.txt", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", Documents::File);
        assert!(said.expect_err("refused").contains("pointer of Git LFS"));
    }

    fn ranks(documents: &[String]) -> Vec<u64> {
        let rank = |text: &String| u64::from_be_bytes(*blake3::hash(text.as_bytes()).as_bytes().first_chunk().expect("32 bytes"));
        documents.iter().map(rank).collect()
    }

    fn held(documents: &[String], count: u64) -> Vec<String> {
        let held = HeldOut::of(ranks(documents), Holdout::Documents(count)).expect("holds");
        assert_eq!(held.count() as u64, count);
        let mut is_held = held.walk();
        documents.iter().filter(|_| is_held()).cloned().collect()
    }

    #[test]
    fn the_holdout_keeps_its_documents_when_others_come() {
        let mut documents: Vec<String> = (0..100).map(|at| format!("document {at}")).collect();
        let before = held(&documents, 10);
        // The lowest hashes, whole.
        let mut sorted = documents.clone();
        sorted.sort_by_key(|text| *blake3::hash(text.as_bytes()).as_bytes());
        assert!(before.iter().all(|document| sorted[..10].contains(document)));
        documents.insert(0, "another".into());
        let after = held(&documents, 11);
        assert!(before.iter().filter(|document| after.contains(document)).count() >= 10);
        assert!(HeldOut::of(ranks(&documents), Holdout::Documents(101)).is_err());
        // Of equal documents the first ones.
        let same = vec!["same".to_owned(); 5];
        let mut walk = Vec::new();
        let of = HeldOut::of(ranks(&same), Holdout::Fraction(0.4)).expect("holds");
        let mut is_held = of.walk();
        (0..5).for_each(|_| walk.push(is_held()));
        assert_eq!(walk, [true, true, false, false, false]);
    }
}
