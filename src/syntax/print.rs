//! The layout of a text: `xrun fmt`.
//!
//! Owns indentation, blanks and columns; line ends stay where their author put them, but for those that only white space needs. A body
//! stays on one line if it was written on one and fits in [`WIDTH`] columns. Deliberately knows no vocabulary but the words of
//! `value_column` and the one statement whose middle is aligned (`vary … over`): which words begin a statement is asked for.
//! Invariants: what is laid out reads back as the same tree, every comment is kept, and a second time changes nothing.

use super::tokens::{self, Begins, Kind, Token};
use super::{align, parse};
use crate::diagnostic::Problems;
use crate::source::{FileId, Source};

/// A body written on one line stays there up to this column; nothing is set below what stands behind it.
pub(super) const WIDTH: usize = 100;
/// Columns by which a body, and what hangs on a bracket, is indented.
const INDENT: usize = 2;
/// At least so many blanks stand before a comment behind words.
const COMMENT_GAP: usize = 3;

/// Tells whether a word begins statements in the body of a declaration with this keyword; without one, of any.
pub type Vocabulary<'v> = &'v dyn Fn(Option<&str>, &str) -> bool;

/// Lays a text out; a text that cannot be read is refused with what is wrong with it.
pub fn print(source: &Source, vocabulary: Vocabulary<'_>) -> Result<String, Problems> {
    let (_, said) = parse(FileId::default(), &source.text);
    if !said.is_empty() {
        let mut problems = Problems::default();
        problems.extend(said);
        return Err(problems);
    }
    let tokens = tokens::tokens(&source.text);
    let file =
        Bracket { brace: true, split: Split::Lines, indent: 0, close: 0, head: "", in_field: false, hang: INDENT, marks: false };
    let pads = vec![0; tokens.len()];
    let near = Near::new(&tokens);
    let mut printer = Printer { tokens: &tokens, near, vocabulary, pads, lines: Vec::new(), open: vec![file], entry: "" };
    for at in 0..tokens.len() {
        printer.token(at);
    }
    Ok(finish(printer.lines))
}

/// Words of a text on one line, as they would be laid out; what is not a whole item has its white space folded.
pub fn one_line(text: &str) -> String {
    let Some(mut tokens) = tokens::item(text) else { return text.split_whitespace().collect::<Vec<_>>().join(" ") };
    tokens.retain(|token| token.kind != Kind::Comment);
    align::line(&tokens, 0, tokens.len().saturating_sub(1))
}

/// How the items of a body are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// All on one line.
    No,
    /// On lines, as written.
    Lines,
    /// On lines, though they were written on one: it was too long.
    Wrapped,
}

/// A bracket that is open.
struct Bracket<'a> {
    /// Braces hold items; the others hold arguments, on lines of their own ([`Split::Lines`]) or behind the bracket.
    brace: bool,
    split: Split,
    /// Where a line inside begins.
    indent: usize,
    /// Where the closing bracket stands if it begins a line.
    close: usize,
    /// The first word of the statement.
    head: &'a str,
    /// The statement begins with the name of a field: items after a comma may belong to it.
    in_field: bool,
    /// Where a line begins that goes on with the statement.
    hang: usize,
    /// The next token, if it stands on this line, is where further lines of the statement begin.
    marks: bool,
}

/// A line of the result.
struct Line<'a> {
    /// What stands on it, indent included.
    code: String,
    /// Its columns.
    width: usize,
    /// Behind the code.
    comment: Option<&'a str>,
    /// Nothing can follow on it.
    full: bool,
}

/// Where a token stands.
enum Place {
    /// On the line, with a blank before it or none.
    Here { apart: bool },
    /// On a line of its own, at a column, an empty line before it or none.
    Line { indent: usize, empty: bool },
}

/// For each token, the ones around it that comments are passed over for.
struct Near {
    /// The token itself or the first behind it that is neither comment nor description.
    head: Vec<usize>,
    /// The token itself or the first behind it that is no comment.
    word: Vec<usize>,
    /// The token itself or the first behind it that is neither comment nor comma.
    item: Vec<usize>,
    /// The last before it that is no comment.
    before: Vec<Option<usize>>,
    /// The last before it that is neither comment nor description.
    word_before: Vec<Option<usize>>,
}

impl Near {
    fn new(tokens: &[Token<'_>]) -> Self {
        let behind = |skipped: [Kind; 2]| {
            let mut behind: Vec<usize> = (0..=tokens.len()).collect();
            for at in (0..tokens.len()).rev().filter(|at| skipped.contains(&tokens[*at].kind)) {
                behind[at] = behind[at + 1];
            }
            behind
        };
        let before = |skipped: [Kind; 2]| {
            let mut last = None;
            let note = |(at, token): (usize, &Token<'_>)| {
                let before = last;
                last = if skipped.contains(&token.kind) { last } else { Some(at) };
                before
            };
            tokens.iter().enumerate().map(note).collect()
        };
        Self {
            head: behind([Kind::Comment, Kind::Doc]),
            word: behind([Kind::Comment, Kind::Comment]),
            item: behind([Kind::Comment, Kind::Comma]),
            before: before([Kind::Comment, Kind::Comment]),
            word_before: before([Kind::Comment, Kind::Doc]),
        }
    }
}

struct Printer<'a> {
    tokens: &'a [Token<'a>],
    near: Near,
    vocabulary: Vocabulary<'a>,
    /// Columns behind the beginning of its line at which a token stands at the earliest.
    pads: Vec<usize>,
    lines: Vec<Line<'a>>,
    /// The file, then what is open in it.
    open: Vec<Bracket<'a>>,
    /// The keyword of the entry.
    entry: &'a str,
}

impl<'a> Printer<'a> {
    fn token(&mut self, at: usize) {
        let token = self.tokens[at];
        if token.begins == Begins::Entry {
            self.entry = self.tokens[self.head(at)].text;
        }
        match token.kind {
            Kind::Comment => return self.comment(at),
            Kind::Comma if self.next(at).is_some_and(|next| next.kind == Kind::Close) => return,
            // A comma follows its item, also where a comment came between.
            Kind::Comma => {
                if let Some(line) = self.lines.iter_mut().rfind(|line| !line.code.trim().is_empty()) {
                    line.code.push(',');
                    line.width += 1;
                }
                return;
            }
            _ => {}
        }
        let place = self.place(at);
        let moved = matches!(place, Place::Line { .. });
        self.put(place, token.text, self.pads[at]);
        let end = self.lines.last().map_or(0, |line| line.width);
        self.mark(at, moved, end - token.text.chars().count());
        match token.kind {
            Kind::Doc => self.fill(),
            Kind::Open => self.opening(at, end),
            Kind::Close if self.open.len() > 1 => drop(self.open.pop()),
            _ => {}
        }
    }

    /// Writes words at their place.
    fn put(&mut self, place: Place, text: &str, pad: usize) {
        let begun = |indent: usize| {
            let width = indent + text.chars().count();
            Line { code: " ".repeat(indent) + text, width, comment: None, full: false }
        };
        match place {
            Place::Here { apart } => {
                let start = self.bracket().indent;
                let Some(line) = self.lines.last_mut() else { return self.lines.push(begun(0)) };
                let blanks = (start + pad).saturating_sub(line.width).max(usize::from(apart));
                line.code.push_str(&" ".repeat(blanks));
                line.code.push_str(text);
                line.width += blanks + text.chars().count();
            }
            Place::Line { indent, empty } => {
                if empty {
                    self.lines.push(Line { code: String::new(), width: 0, comment: None, full: true });
                }
                self.lines.push(begun(indent));
            }
        }
    }

    fn comment(&mut self, at: usize) {
        let token = self.tokens[at];
        if let Some(line) = self.lines.last_mut().filter(|line| token.lines == 0 && !line.full) {
            line.comment = Some(token.text);
            line.full = true;
            return;
        }
        // It stands above what follows, with the indent of that.
        let next = Some(self.near.item[at]).filter(|next| *next < self.tokens.len());
        let inner = self.bracket().indent;
        let (indent, between) = match next.map(|next| (self.tokens[next], next)) {
            None => (0, true),
            Some((next, _)) if next.kind == Kind::Close => (inner, self.bracket().brace),
            Some((token, next)) => match self.place(next) {
                Place::Line { indent, .. } => (indent, token.begins != Begins::Nothing),
                Place::Here { .. } => (self.hang(), false),
            },
        };
        let empty = between && token.lines > 1 && !self.is_first();
        self.put(Place::Line { indent, empty }, "", 0);
        if let Some(line) = self.lines.last_mut() {
            (line.comment, line.full) = (Some(token.text), true);
        }
    }

    /// Where a token stands.
    fn place(&self, at: usize) -> Place {
        let (token, bracket) = (self.tokens[at], self.bracket());
        let line = |indent| Place::Line { indent, empty: token.lines > 1 && !self.is_first() };
        // Comments end their line.
        let pushed = at.checked_sub(1).is_some_and(|before| matches!(self.tokens[before].kind, Kind::Comment | Kind::Doc));
        match (token.begins, token.kind) {
            (Begins::Entry, _) => line(0),
            (Begins::Item, _) if bracket.split != Split::No => self.item(at, pushed).map_or(Place::Here { apart: true }, line),
            (_, Kind::Close) if bracket.split != Split::No || pushed => Place::Line { indent: bracket.close, empty: false },
            (_, Kind::Close | Kind::Equals | Kind::Colon) if !pushed => self.here(at),
            (_, Kind::Open) if token.text == "{" && !pushed => self.here(at),
            _ if self.before(at).is_some_and(|before| before.kind == Kind::Doc) => {
                Place::Line { indent: self.indent(), empty: false }
            }
            _ if pushed || token.lines > 0 => Place::Line { indent: self.hang(), empty: false },
            _ => self.here(at),
        }
    }

    fn here(&self, at: usize) -> Place {
        let is_list = self.entry == "use" && self.tokens[at].kind == Kind::Open;
        Place::Here { apart: is_list || align::apart(self.tokens, at) }
    }

    /// The column of an item that begins a line.
    fn item(&self, at: usize, pushed: bool) -> Option<usize> {
        let (bracket, token) = (self.bracket(), self.tokens[at]);
        let begins = self.begins_statement(self.head(at));
        if self.before(at).is_none_or(|before| before.kind != Kind::Comma) {
            return Some(bracket.indent);
        }
        let breaks = pushed || token.lines > 0 || token.kind == Kind::Doc || (bracket.split == Split::Wrapped && begins);
        let goes_on = !begins && bracket.in_field;
        breaks.then_some(if goes_on { bracket.hang } else { bracket.indent })
    }

    /// Whether an item that begins with this token is a statement, and belongs to none before it.
    fn begins_statement(&self, head: usize) -> bool {
        let token = self.tokens[head];
        token.kind == Kind::Word && (token.text == "let" || self.is_field(token.text))
    }

    /// Whether a word begins statements in the innermost body.
    fn is_field(&self, word: &str) -> bool {
        // What stands inside a body of a declaration may be the body of another.
        let bodies = self.open.iter().filter(|bracket| bracket.brace).count();
        (self.vocabulary)(Some(self.entry).filter(|_| bodies == 2), word)
    }

    /// Notes where further lines of a statement begin.
    fn mark(&mut self, at: usize, moved: bool, start: usize) {
        let token = self.tokens[at];
        let before = self.near.word_before[at].map(|before| self.tokens[before].kind);
        let is_head = token.kind != Kind::Doc
            && (token.begins != Begins::Nothing || self.before(at).is_some_and(|before| before.kind == Kind::Doc));
        let begins = self.begins_statement(at);
        let goes_on = !begins && before == Some(Kind::Comma) && self.bracket().in_field;
        let is_field = begins && token.text != "let";
        let Some(bracket) = self.open.last_mut().filter(|bracket| bracket.brace) else { return };
        if std::mem::take(&mut bracket.marks) && !moved && start <= WIDTH {
            bracket.hang = start;
        }
        if is_head && !goes_on {
            (bracket.head, bracket.in_field) = (token.text, is_field);
            (bracket.hang, bracket.marks) = (bracket.indent + INDENT, is_field);
        } else if matches!(token.kind, Kind::Colon | Kind::Equals) || (token.text == "over" && bracket.head == "vary") {
            bracket.marks = true;
        }
    }

    /// Opens a bracket that ends at a column.
    fn opening(&mut self, at: usize, end: usize) {
        let close = align::close(self.tokens, at);
        let inside = &self.tokens[at + 1..=close.max(at + 1).min(self.tokens.len() - 1)];
        let (brace, is_empty) = (self.tokens[at].text == "{", close == at + 1);
        let indent = self.indent();
        let split = match brace {
            _ if is_empty => Split::No,
            true if inside.iter().any(|token| token.lines > 0) => Split::Lines,
            true if !align::fits(self.tokens, (at, close), WIDTH.saturating_sub(end)) => Split::Wrapped,
            false if inside[0].lines > 0 || inside[0].kind == Kind::Comment => Split::Lines,
            _ => Split::No,
        };
        let hangs = brace || split != Split::No || end > WIDTH;
        let (inner, outer) = if hangs { (indent + INDENT, indent) } else { (end, end - 1) };
        let hang = inner + INDENT;
        self.open.push(Bracket { brace, split, indent: inner, close: outer, head: "", in_field: false, hang, marks: false });
        if brace && split != Split::No {
            let mut pads = std::mem::take(&mut self.pads);
            align::align(self.tokens, (at, close), (self.entry, split), &|word| self.is_field(word), &mut pads);
            self.pads = pads;
        }
    }

    /// The last line takes no more.
    fn fill(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.full = true;
        }
    }
    fn bracket(&self) -> &Bracket<'a> {
        &self.open[self.open.len() - 1]
    }
    /// The first word of an entry or an item that begins with this token, behind its description.
    fn head(&self, at: usize) -> usize {
        self.near.head[at].min(self.tokens.len() - 1)
    }
    /// Where the last line begins.
    fn indent(&self) -> usize {
        self.lines.last().map_or(0, |line| line.code.chars().take_while(|letter| *letter == ' ').count())
    }
    /// Where a line begins that goes on with what is open.
    fn hang(&self) -> usize {
        let bracket = self.bracket();
        if bracket.brace { bracket.hang } else { bracket.indent }
    }
    fn next(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(self.near.word[at + 1]).copied()
    }
    fn before(&self, at: usize) -> Option<Token<'a>> {
        self.near.before[at].map(|before| self.tokens[before])
    }
    /// Whether no line stands above in the file or the body.
    fn is_first(&self) -> bool {
        self.lines.last().is_none_or(|line| line.code.ends_with('{'))
    }
}

/// Sets comments behind words, on lines that follow one another below each other.
fn finish(mut lines: Vec<Line<'_>>) -> String {
    let is_remark = |line: &&Line<'_>| line.comment.is_some() && !line.code.trim().is_empty();
    let mut first = 0;
    while first < lines.len() {
        let run = lines[first..].iter().take_while(is_remark).count();
        // A line that is too long pushes no other.
        let widths = lines[first..first + run].iter().map(|line| line.width).filter(|width| *width <= WIDTH);
        let column = widths.max().unwrap_or(0) + COMMENT_GAP;
        for line in &mut lines[first..first + run] {
            let blanks = column.saturating_sub(line.width).max(COMMENT_GAP);
            line.code.push_str(&" ".repeat(blanks));
        }
        first += run.max(1);
    }
    lines.into_iter().map(|line| (line.code + line.comment.unwrap_or("")).trim_end().to_owned() + "\n").collect()
}
