//! Columns of a body whose statements stand on lines of their own.
//!
//! Owns which words stand below one another: the values of fields, what follows the colons of statements of one kind, the `over`s of
//! axes. Deliberately sees tokens alone. Invariant: a column depends on the words of the body, never on the space between them.

use super::print::{Split, WIDTH};
use super::tokens::{Begins, Kind, Token};

/// Where the values of fields begin in a body of a declaration, behind its indent; `None` where statements are sentences.
fn value_column(keyword: &str) -> Option<usize> {
    match keyword {
        "schedule" => None,
        "placement" => Some("sublayer ".len()),
        _ => Some("placement ".len()),
    }
}

/// The first word of an entry or an item that begins with this token, behind its description.
pub(super) fn head(tokens: &[Token<'_>], at: usize) -> usize {
    let skipped = tokens[at..].iter().take_while(|token| matches!(token.kind, Kind::Doc | Kind::Comment)).count();
    (at + skipped).min(tokens.len() - 1)
}

/// Where the bracket that opens here closes.
pub(super) fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}

/// Whether a blank stands before a token on a line.
pub(super) fn apart(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| tokens[before]) else { return false };
    let token = tokens[at];
    match (before.kind, token.kind) {
        (Kind::Minus, _) | (_, Kind::Comma | Kind::Colon) | (Kind::Open, Kind::Close) => false,
        (Kind::Open, _) => before.text == "{",
        (_, Kind::Close) => token.text == "}",
        // A call has no blank; a word before a list has.
        (Kind::Word, Kind::Open) => token.apart || token.text == "{",
        _ => true,
    }
}

/// Tokens on one line, the first without the blank before it.
pub(super) fn line(tokens: &[Token<'_>], first: usize, last: usize) -> String {
    let closes = |at: usize| tokens.get(at).is_some_and(|token| token.kind == Kind::Close);
    let mut line = String::new();
    for at in (first..=last).filter(|at| tokens[*at].kind != Kind::Comma || !closes(at + 1)) {
        line.push_str(if at > first && apart(tokens, at) { " " } else { "" });
        line.push_str(tokens[at].text);
    }
    line
}

/// Columns that tokens take on one line.
fn width(tokens: &[Token<'_>], first: usize, last: usize) -> usize {
    line(tokens, first, last).chars().count()
}

/// Whether the rest of a line behind a brace takes at most so many columns: the body, and what follows it before anything that may
/// begin a line.
pub(super) fn fits(tokens: &[Token<'_>], (open, close): (usize, usize), columns: usize) -> bool {
    let ends = |token: &Token<'_>| {
        token.lines > 0 || token.begins != Begins::Nothing || matches!(token.kind, Kind::Comment | Kind::Close | Kind::Comma)
    };
    let closes = |at: usize| tokens.get(at).is_some_and(|token| token.kind == Kind::Close);
    let mut taken = 0;
    for (at, token) in tokens.iter().enumerate().skip(open + 1).take_while(|(at, token)| *at <= close || !ends(token)) {
        if token.kind != Kind::Comma || !closes(at + 1) {
            taken += usize::from(apart(tokens, at)) + token.text.chars().count();
        }
        if taken > columns {
            return false;
        }
    }
    true
}

/// A statement that begins a line.
struct Leading {
    head: usize,
    /// The colon behind its label.
    colon: Option<usize>,
    /// `over`, if it is an axis.
    over: Option<usize>,
    /// An empty line stands before it.
    after_gap: bool,
    last: usize,
}

/// Sets the columns of the body between two brackets.
pub(super) fn align(
    tokens: &[Token<'_>],
    (open, close): (usize, usize),
    (keyword, split): (&str, Split),
    is_field: &dyn Fn(&str) -> bool,
    pads: &mut [usize],
) {
    let Some(least) = value_column(keyword) else { return };
    let leading = leading(tokens, (open, close), split, is_field);
    // What is in a column with a value of its own: words of a sentence have none.
    let valued = |statement: &&Leading| {
        let next = statement.head + 1;
        statement.colon.is_none() && statement.over.is_none() && next <= statement.last && {
            let next = tokens[next];
            next.lines == 0 && next.apart && next.kind != Kind::Colon && next.kind != Kind::Comment
        }
    };
    let longest = leading.iter().filter(valued).map(|statement| width(tokens, statement.head, statement.head) + 1).max();
    for statement in leading.iter().filter(valued) {
        pads[statement.head + 1] = least.max(longest.unwrap_or(0));
    }
    for run in leading.chunk_by(|a, b| tokens[a.head].text == tokens[b.head].text && !b.after_gap) {
        // The token that moves, and how far it is from the head on its own. A label that is too long moves no other.
        let moved = |statement: &Leading| match (statement.colon, statement.over) {
            (Some(colon), _) => Some((colon + 1, width(tokens, statement.head, colon) + 1)),
            (None, Some(over)) => Some((over, width(tokens, statement.head, over - 1) + 1)),
            (None, None) => None,
        };
        let columns = run.iter().filter_map(moved).map(|(_, column)| column);
        let column = columns.filter(|column| *column <= WIDTH).max().unwrap_or(0);
        for (at, _) in run.iter().filter_map(moved).filter(|(at, _)| tokens[*at].lines == 0) {
            pads[at] = column;
        }
    }
}

/// The statements of a body that begin lines with the name of a field.
fn leading(tokens: &[Token<'_>], (open, close): (usize, usize), split: Split, is_field: &dyn Fn(&str) -> bool) -> Vec<Leading> {
    let mut found: Vec<Leading> = Vec::new();
    let (mut at, mut depth, mut before) = (open + 1, 0, open);
    let mut leads = false;
    while at < close {
        let token = tokens[at];
        if depth == 0 && token.begins == Begins::Item {
            let head = head(tokens, at);
            let on_line = tokens[before].kind != Kind::Comma || split == Split::Wrapped || head > at || token.lines > 0;
            leads = on_line && tokens[head].kind == Kind::Word && is_field(tokens[head].text);
            if leads {
                let after_gap = token.lines > 1;
                found.push(Leading { head, colon: None, over: None, after_gap, last: head });
            }
        }
        if let Some(statement) = found.last_mut().filter(|_| leads && depth == 0) {
            match token.kind {
                Kind::Colon => statement.colon = statement.colon.or(Some(at)),
                Kind::Word if token.text == "over" && tokens[statement.head].text == "vary" => {
                    statement.over = statement.over.or(Some(at));
                }
                Kind::Comma => leads = false,
                _ => {}
            }
            if leads {
                statement.last = at.max(statement.head);
            }
        }
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        if token.kind != Kind::Comment {
            before = at;
        }
        at += 1;
    }
    found
}
