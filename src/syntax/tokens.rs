//! The words of a text in a row, comments among them, as the grammar reads them.
//!
//! Owns nothing of its own: what a token is, the grammar says. Where the grammar names no rule there is a punctuation mark or a
//! keyword. Deliberately keeps of the space between tokens only what can matter to a layout. Invariant: the tokens' texts, in
//! order, are all of the text but for white space.

use pest::Parser;

use super::grammar::{Grammar, Rule};
use super::scan;
use crate::source::FileId;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    /// A number, a range or a quoted text.
    Value,
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// `,`.
    Comma,
    /// `:`.
    Colon,
    /// `=`.
    Equals,
    /// An operator between two operands.
    Operator,
    /// A minus sign before one.
    Minus,
    /// `// …`.
    Comment,
    /// `/// …`.
    Doc,
}

/// What begins with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// Nothing: it stands inside a statement.
    Nothing,
    /// An entry of the file.
    Entry,
    /// An item of a body.
    Item,
}

/// A token and the space before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) begins: Begins,
    /// So many lines end between the token before and this one.
    pub(super) lines: usize,
    /// White space stands before it.
    pub(super) apart: bool,
}

/// The tokens of a text in which [`parse`](super::parse()) finds no fault; nothing of any other.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    read(text, Rule::file).unwrap_or_default()
}

/// The tokens of one item, if it can be read.
pub(super) fn item(text: &str) -> Option<Vec<Token<'_>>> {
    // The grammar reads brackets that are not closed anew at each depth.
    let scanned = scan::scan(FileId::default(), text);
    if scanned.hopeless || !scanned.diagnostics.is_empty() {
        return None;
    }
    read(text, Rule::item_alone)
}

fn read(text: &str, rule: Rule) -> Option<Vec<Token<'_>>> {
    let pairs = Grammar::parse(rule, text).ok()?;
    let mut reader = Reader { text, at: 0, begins: Begins::Nothing, gap: 0, tokens: Vec::new() };
    for pair in pairs.flatten() {
        let span = pair.as_span();
        let kind = match pair.as_rule() {
            Rule::entry => {
                reader.begin(span.start(), Begins::Entry);
                continue;
            }
            Rule::let_item | Rule::content => {
                reader.begin(span.start(), Begins::Item);
                continue;
            }
            Rule::comment => Kind::Comment,
            Rule::doc => Kind::Doc,
            Rule::number | Rule::range | Rule::text => Kind::Value,
            Rule::word | Rule::name => Kind::Word,
            Rule::operator => Kind::Operator,
            Rule::minus => Kind::Minus,
            _ => continue,
        };
        // The ends of a range lie inside it.
        if span.start() >= reader.at {
            reader.gap(span.start());
            reader.token(kind, span.end());
        }
    }
    reader.gap(text.len());
    Some(reader.tokens)
}

struct Reader<'a> {
    text: &'a str,
    /// All before this byte has been read.
    at: usize,
    /// What begins with the next token.
    begins: Begins,
    /// Where the token before ends.
    gap: usize,
    tokens: Vec<Token<'a>>,
}

impl Reader<'_> {
    fn begin(&mut self, at: usize, begins: Begins) {
        self.gap(at);
        self.begins = begins;
    }

    /// Reads up to `end` what the grammar has no rule for: white space, punctuation, `use`, `let`.
    fn gap(&mut self, end: usize) {
        while let Some(byte) = self.text.as_bytes().get(self.at).filter(|_| self.at < end) {
            let kind = match byte {
                b'(' | b'[' | b'{' => Kind::Open,
                b')' | b']' | b'}' => Kind::Close,
                b',' => Kind::Comma,
                b':' => Kind::Colon,
                b'=' => Kind::Equals,
                b'a'..=b'z' => Kind::Word,
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            let letters = self.text[self.at..end].bytes().take_while(u8::is_ascii_lowercase).count();
            self.token(kind, self.at + letters.max(1));
        }
    }

    fn token(&mut self, kind: Kind, end: usize) {
        let space = &self.text[self.gap..self.at];
        let (lines, apart) = (space.bytes().filter(|byte| *byte == b'\n').count(), !space.is_empty());
        let text = self.text[self.at..end].trim_end();
        self.tokens.push(Token { kind, text, begins: self.begins, lines, apart });
        (self.at, self.gap, self.begins) = (end, end, Begins::Nothing);
    }
}
