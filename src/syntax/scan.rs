//! A look at the characters before the grammar sees them: what can be no token, and brackets that do not match.
//!
//! Owns lexical faults. Each is said once, on its own words, and then hidden from the grammar behind [`HOLE`] bytes of the same
//! length, so that one slip does not hide the next. Brackets that are left open are closed where the next declaration begins.
//! Invariant: the masked text is the text byte for byte, but for what was hidden and for closing brackets added at places that
//! [`Scanned::place`] knows; its brackets match and nest at most [`DEEPEST`] deep.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Problems};
use crate::source::{FileId, Span};

/// What the grammar reads where there was no token.
pub const HOLE: u8 = 1;

/// Brackets nest at most this deep: the grammar and the checker walk trees recursively, on the stacks of threads too.
pub const DEEPEST: usize = 64;

/// Longer texts are refused, in bytes: a study is written by hand, and its tree takes a hundred times the space of its text.
pub const LONGEST_TEXT: usize = 512 << 10;

/// A text without lexical faults, and what was wrong with it.
pub struct Scanned {
    /// What the grammar reads.
    pub masked: String,
    /// In the order found.
    pub diagnostics: Problems,
    /// Nothing more should be said about this text: it is too long or nested too deep to be read.
    pub hopeless: bool,
    /// Where brackets were added, as bytes of `masked`, and how many had been before.
    added: Vec<(Range<usize>, usize)>,
}

impl Scanned {
    /// The byte of the text that stands at a byte of what the grammar reads.
    pub fn place(&self, masked: usize) -> usize {
        let before = self.added.partition_point(|(added, _)| added.start < masked);
        let last = before.checked_sub(1).map(|last| &self.added[last]);
        masked - last.map_or(0, |(added, before)| before + added.end.min(masked) - added.start)
    }
    /// Whether a byte of what the grammar reads was added.
    pub fn is_added(&self, masked: usize) -> bool {
        let before = self.added.partition_point(|(added, _)| added.start <= masked);
        before.checked_sub(1).is_some_and(|last| self.added[last].0.contains(&masked))
    }
}

/// Looks through `text`.
pub fn scan(file: FileId, text: &str) -> Scanned {
    let mut scanned = Scanned { masked: String::new(), diagnostics: Problems::default(), hopeless: false, added: Vec::new() };
    if text.len() > LONGEST_TEXT {
        let message = format!("a text of more than {} KiB", LONGEST_TEXT >> 10);
        let said = Diagnostic::error("text-too-long", message, Span::new(file, 0..0));
        scanned.diagnostics.push(said.hint("move some of it into a file of its own, and take it from there with `use`"));
        return Scanned { hopeless: true, ..scanned };
    }
    let masked = text.as_bytes().to_vec();
    let (diagnostics, open, closers) = (Problems::default(), Vec::new(), Vec::new());
    let mut scanner = Scanner { file, text, masked, diagnostics, open, closers, line: 0..0, hopeless: false };
    scanner.run();
    // Only whole characters were replaced, each by as many single bytes as it had.
    let read = String::from_utf8_lossy(&scanner.masked);
    let (mut masked, mut added, mut from) = (String::new(), Vec::new(), 0);
    for (at, closers) in scanner.closers {
        masked.push_str(&read[from..at]);
        added.push((masked.len()..masked.len() + closers.len(), masked.len() - at));
        masked.push_str(&closers);
        from = at;
    }
    masked.push_str(&read[from..]);
    Scanned { masked, diagnostics: scanner.diagnostics, hopeless: scanner.hopeless, added }
}

struct Scanner<'a> {
    file: FileId,
    text: &'a str,
    masked: Vec<u8>,
    diagnostics: Problems,
    /// Open brackets with their places.
    open: Vec<(u8, usize)>,
    /// Brackets to add before bytes of the text, in its order.
    closers: Vec<(usize, String)>,
    /// Bytes between which no line ends, the last that were asked about, up to where one does.
    line: Range<usize>,
    hopeless: bool,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        // Where the description of what comes next begins, if it stands above.
        let mut described = None;
        while at < bytes.len() && !self.hopeless {
            let byte = bytes[at];
            let begins_line = at == 0 || bytes[at - 1] == b'\n';
            if self.text[at..].starts_with("///") {
                described = described.or(Some(at));
            } else if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') && !self.text[at..].starts_with("//") {
                if begins_line && !self.open.is_empty() && self.begins_entry(at) {
                    self.close_all(described.unwrap_or(at));
                }
                described = None;
            }
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
        if !self.hopeless {
            self.close_all(bytes.len());
        }
    }

    /// Closes what is open before a byte of the text.
    fn close_all(&mut self, at: usize) {
        if self.open.is_empty() {
            return;
        }
        // On a line of their own: the line before may end in a comment.
        let mut closers = String::from("\n");
        while let Some((bracket, place)) = self.open.pop() {
            self.unclosed(bracket, place);
            if bracket != b'{' && self.open.iter().any(|(open, _)| *open == b'{') {
                self.hide(place, at);
            } else {
                closers.push(char::from(closer(bracket)));
            }
        }
        closers.push('\n');
        self.closers.push((at, closers));
    }

    /// Whether a line can only be the first of an entry of the file: `word word {`, `word word(…) {`, `word word =`, `use … (`.
    fn begins_entry(&self, at: usize) -> bool {
        let line = &self.text[at..];
        let word = |text: &str| text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let keyword = &line[..word(line)];
        let rest = line[keyword.len()..].trim_start_matches([' ', '\t']);
        if keyword.is_empty() || rest.len() + keyword.len() == line.len() {
            return false;
        }
        let in_body = self.open.iter().any(|(bracket, _)| *bracket == b'{');
        match keyword {
            "use" => return rest.starts_with('"') || word(rest) > 0,
            // A body may hold one too, and need not be indented.
            "let" if in_body => return false,
            _ => {}
        }
        let name = word(rest);
        let mut rest = &rest[name..];
        if rest.starts_with('(') {
            // What is nested deeper is too deep anyway: the search ends there, since every line may begin one.
            let (mut depth, mut end) = (0, None);
            for (at, byte) in rest.bytes().enumerate() {
                depth = if byte == b'(' { depth + 1 } else { depth - usize::from(byte == b')') };
                if depth == 0 || depth > DEEPEST {
                    end = (depth == 0).then_some(at);
                    break;
                }
            }
            rest = end.map_or("", |end| &rest[end + 1..]);
        }
        let rest = rest.trim_start_matches([' ', '\t']);
        name > 0 && (rest.starts_with('{') || rest.starts_with('=') && !rest.starts_with("=="))
    }

    fn line_end(&mut self, at: usize) -> usize {
        if !self.line.contains(&at) {
            self.line = at..self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
        }
        self.line.end
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
        // A brace closes what was left open inside it; another bracket does not reach past a brace.
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
            self.hide(place, at);
        }
        let shown = char::from(bracket);
        self.diagnostics.push(Diagnostic::error("stray-bracket", format!("`{shown}` closes nothing"), self.span(at, at + 1)));
        self.masked[at] = b' ';
        at + 1
    }
    /// Hides a bracket inside a body that is not closed before `end`, with the rest of its line: what stands below is statements.
    fn hide(&mut self, place: usize, end: usize) {
        let line_end = self.text[place..end].find('\n').map_or(end, |length| place + length);
        self.mask(place, line_end);
    }
    fn unclosed(&mut self, bracket: u8, place: usize) {
        let message = format!("`{}` is not closed", char::from(bracket));
        let hint = format!("close it with `{}`", char::from(closer(bracket)));
        self.diagnostics.push(Diagnostic::error("unclosed-bracket", message, self.span(place, place + 1)).hint(hint));
    }

    fn number(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut end, mut letters) = (start, 0);
        while let Some(byte) = bytes.get(end) {
            let sign_of_exponent = matches!(byte, b'+' | b'-')
                && matches!(bytes[end - 1], b'e' | b'E')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
                && letters == 1;
            if self.text[end..].starts_with("..") {
                break;
            }
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%') || (end > start && sign_of_exponent)) {
                break;
            }
            letters += usize::from(byte.is_ascii_alphabetic());
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
        let dots = self.text.len() - at - self.text[at..].trim_start_matches('.').len();
        let letter = self.text[at..].chars().next().unwrap_or(' ');
        let length = letter.len_utf8().max(dots);
        let message = format!("`{}` has no meaning here", self.text[at..at + length].escape_debug());
        let said = Diagnostic::error("unexpected-character", message, self.span(at, at + length));
        self.diagnostics.push(match letter {
            '#' => said.hint("write `//` for a remark"),
            ';' => said.hint("a comma or a new line ends a statement"),
            '\'' => said.hint("write texts in `\"…\"`"),
            _ if letter.is_alphabetic() => said.hint("names are made of the letters a to z, digits and `_`"),
            _ => said,
        });
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
