//! A look at the characters before the grammar sees them: what can be no token, and brackets that do not match.
//!
//! Owns lexical faults. Each is said once, on its own words, and then hidden from the grammar behind [`HOLE`] bytes of the same
//! length, so that places stay true and one slip does not hide the next. Invariant: the masked text has as many bytes as the
//! text, but for closing brackets added at its end; its brackets match and nest at most [`DEEPEST`] deep.

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Span};

/// What the grammar reads where there was no token.
pub const HOLE: u8 = 1;

/// Brackets nest at most this deep: the grammar and the checker walk trees recursively, on the stacks of threads too.
pub const DEEPEST: usize = 64;

/// A text without lexical faults, and what was wrong with it.
pub struct Scanned {
    /// What the grammar reads.
    pub masked: String,
    /// In the order found.
    pub diagnostics: Vec<Diagnostic>,
    /// Nothing more should be said about this text: it is nested too deep to be read.
    pub hopeless: bool,
}

/// Looks through `text`.
pub fn scan(file: FileId, text: &str) -> Scanned {
    let mut scanner =
        Scanner { file, text, masked: text.as_bytes().to_vec(), diagnostics: Vec::new(), open: Vec::new(), hopeless: false };
    scanner.run();
    // Only whole characters were replaced, each by as many single bytes as it had.
    let masked = String::from_utf8_lossy(&scanner.masked).into_owned();
    Scanned { masked, diagnostics: scanner.diagnostics, hopeless: scanner.hopeless }
}

struct Scanner<'a> {
    file: FileId,
    text: &'a str,
    masked: Vec<u8>,
    diagnostics: Vec<Diagnostic>,
    /// Open brackets with their places.
    open: Vec<(u8, usize)>,
    hopeless: bool,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() && !self.hopeless {
            let byte = bytes[at];
            at = match byte {
                b'/' if bytes.get(at + 1) == Some(&b'/') => self.line_end(at),
                b'"' => self.quoted(at),
                b'(' | b'[' | b'{' => self.opening(at, byte),
                b')' | b']' | b'}' => self.closing(at, byte),
                b'0'..=b'9' => self.number(at),
                // `1..3`; what the dots may stand between is the grammar's to say.
                b'.' if bytes.get(at + 1) == Some(&b'.') && bytes.get(at + 2).is_some_and(u8::is_ascii_digit) => at + 2,
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => self.number(at),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word_end(at),
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'=' | b'<' | b'>' | b'~' | b'^' | b'*' | b'/' | b'+' | b'-'
                | b'!' => at + 1,
                _ => self.stray(at),
            };
        }
        while let Some((bracket, place)) = self.open.pop() {
            self.unclosed(bracket, place);
            // A newline first: the last line may end in a comment.
            self.masked.extend([b'\n', closer(bracket)]);
        }
    }
    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |length| at + length)
    }
    fn word_end(&self, at: usize) -> usize {
        let length =
            self.text[at..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')).count();
        at + length
    }
    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start..end)
    }
    fn mask(&mut self, start: usize, end: usize) {
        self.masked[start..end].fill(HOLE);
    }

    fn quoted(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let line_end = self.line_end(start);
        let mut at = start + 1;
        while at < line_end {
            match bytes[at] {
                // A word cannot follow a text directly: that quotation mark stands in a comment behind an unclosed text.
                b'"' if self.text[start..at].contains("//") && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) => break,
                b'"' => return at + 1,
                b'\\' if at + 1 < line_end => {
                    if !matches!(bytes[at + 1], b'"' | b'\\' | b'n' | b't') {
                        let length = self.text[at + 1..].chars().next().map_or(0, char::len_utf8);
                        self.diagnostics.push(
                            Diagnostic::error("unknown-escape", "unknown escape in a text", self.span(at, at + 1 + length))
                                .hint("write `\\\"`, `\\\\`, `\\n` or `\\t`"),
                        );
                    }
                    at += 2;
                }
                _ => at += 1,
            }
        }
        // A comment after an unclosed text is still a comment; brackets at its end still close what they closed.
        let said = self.text[start..line_end].find("//").map_or(line_end, |length| start + length);
        let end = start + self.text[start..said].trim_end().len();
        self.diagnostics.push(
            Diagnostic::error("unclosed-text", "this text is not closed on its line", self.span(start, end))
                .hint("close it with `\"`"),
        );
        let content = start + self.text[start..end].trim_end_matches([')', ']', '}', ' ', '\t']).len();
        self.mask(start, content.max(start + 1));
        content.max(start + 1)
    }

    fn opening(&mut self, at: usize, bracket: u8) -> usize {
        self.open.push((bracket, at));
        if self.open.len() > DEEPEST {
            self.diagnostics.push(
                Diagnostic::error("too-deep", format!("brackets nest deeper than {DEEPEST}"), self.span(at, at + 1))
                    .hint("name a part with `let`"),
            );
            self.hopeless = true;
        }
        at + 1
    }
    fn closing(&mut self, at: usize, bracket: u8) -> usize {
        // A brace closes what was left open inside it; a parenthesis does not reach past a brace.
        while let Some(&(open, place)) = self.open.last() {
            if closer(open) == bracket {
                self.open.pop();
                return at + 1;
            }
            if bracket != b'}' || !self.open.iter().any(|(open, _)| *open == b'{') {
                break;
            }
            self.open.pop();
            self.unclosed(open, place);
            let end = self.line_end(place).min(at);
            self.mask(place, end);
        }
        let shown = char::from(bracket);
        self.diagnostics.push(Diagnostic::error("stray-bracket", format!("`{shown}` closes nothing"), self.span(at, at + 1)));
        self.masked[at] = b' ';
        at + 1
    }
    fn unclosed(&mut self, bracket: u8, place: usize) {
        let message = format!("`{}` is not closed", char::from(bracket));
        let hint = format!("close it with `{}`", char::from(closer(bracket)));
        self.diagnostics.push(Diagnostic::error("unclosed-bracket", message, self.span(place, place + 1)).hint(hint));
    }

    fn number(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            let sign_of_exponent = matches!(byte, b'+' | b'-')
                && matches!(bytes[end - 1], b'e' | b'E')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
                && !self.text[start..end - 1].contains(|c: char| c.is_ascii_alphabetic());
            if self.text[end..].starts_with("..") {
                break;
            }
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%') || (end > start && sign_of_exponent)) {
                break;
            }
            end += 1;
        }
        if let Err(reason) = super::number::read(&self.text[start..end]) {
            self.diagnostics.push(
                Diagnostic::error(
                    "not-a-number",
                    format!("`{}` is not a number: {reason}", &self.text[start..end]),
                    self.span(start, end),
                )
                .hint("write `12`, `12_000`, `0.5`, `3e-4`, `2.5M` or `5%`"),
            );
            self.mask(start, end);
        }
        end
    }

    fn stray(&mut self, at: usize) -> usize {
        let length = self.text[at..].chars().next().map_or(1, char::len_utf8);
        let message = format!("`{}` has no meaning here", self.text[at..at + length].escape_debug());
        self.diagnostics.push(Diagnostic::error("unexpected-character", message, self.span(at, at + length)));
        self.mask(at, at + length);
        at + length
    }
}

fn closer(bracket: u8) -> u8 {
    match bracket {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}
