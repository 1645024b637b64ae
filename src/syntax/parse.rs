//! Text to tree, by the grammar in `grammar/exp.pest`.
//!
//! Owns the step from pest's pairs to the [`ast`](super::ast) and what is said where the grammar gave up. An item or entry that the
//! grammar cannot read is skipped by it as a whole; it is then read once more, alone, to find where it goes wrong.

use std::ops::Range;

use pest::Parser;
use pest::iterators::Pair;

use super::ast::{
    Argument, Block, Declaration, DeclarationBody, Entry, Expr, ExprKind, File, Item, ItemContent, Let, Number, Operator, Phrase,
    Separator, SeparatorKind, Use, UseFrom, Word,
};
use super::grammar::{Grammar, Rule};
use super::scan;
use super::{number, symbols};
use crate::diagnostic::{Diagnostic, Problems, guess};
use crate::source::{FileId, Span};

/// Operators in one expression: more are refused, since trees are walked recursively.
const LONGEST_EXPRESSION: usize = 512;

/// Reads a text. The tree holds all that could be read; the diagnostics say what could not.
pub fn parse(file: FileId, text: &str) -> (File, Vec<Diagnostic>) {
    let mut scanned = scan::scan(file, text);
    let diagnostics = std::mem::take(&mut scanned.diagnostics);
    if scanned.hopeless {
        return (File::default(), diagnostics.into_iter().collect());
    }
    let mut reader = Reader { file, text, scanned: &scanned, diagnostics };
    let tree = match Grammar::parse(Rule::file, &scanned.masked) {
        Ok(mut pairs) => pairs.next().map(|pair| reader.file(pair)).unwrap_or_default(),
        Err(error) => {
            reader.syntax_error(&error, 0);
            File::default()
        }
    };
    (tree, reader.diagnostics.into_iter().collect())
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    scanned: &'a scan::Scanned,
    diagnostics: Problems,
}

impl Reader<'_> {
    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        Span::new(self.file, self.scanned.place(pair.as_span().start())..self.scanned.place(pair.as_span().end()))
    }

    fn file(&mut self, pair: Pair<'_, Rule>) -> File {
        let (mut doc, mut entries) = (None, Vec::new());
        for entry in pair.into_inner().filter(|pair| pair.as_rule() == Rule::entry) {
            for pair in entry.into_inner() {
                if entries.is_empty() && matches!(pair.as_rule(), Rule::use_entry | Rule::let_entry) {
                    doc = pair.clone().into_inner().find(|pair| pair.as_rule() == Rule::docs).map(|pair| docs(&pair));
                }
                match pair.as_rule() {
                    Rule::use_entry => entries.push(Entry::Use(self.use_entry(pair))),
                    Rule::let_entry => entries.push(Entry::Let(self.binding(pair))),
                    Rule::declaration => entries.push(Entry::Declaration(self.declaration(pair))),
                    Rule::docs => self.describes_nothing(pair),
                    _ => self.bad(pair.as_span().start()..pair.as_span().end(), Rule::entry_alone),
                }
            }
        }
        File { doc, entries }
    }

    fn use_entry(&mut self, pair: Pair<'_, Rule>) -> Use {
        let span = self.span(&pair);
        let mut from = None;
        let mut names = Vec::new();
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::text => from = Some(UseFrom::Path(Word { text: unescape(pair.as_str()), span: self.span(&pair) })),
                Rule::name => from = Some(UseFrom::Library(self.word(&pair))),
                Rule::names => {
                    let taken = pair.into_inner().filter(|pair| pair.as_rule() == Rule::name);
                    names = taken.map(|pair| self.word(&pair)).collect();
                }
                _ => {}
            }
        }
        let from = from.unwrap_or_else(|| UseFrom::Library(Word { text: String::new(), span }));
        Use { from, names, span }
    }

    fn binding(&mut self, pair: Pair<'_, Rule>) -> Let {
        let span = self.span(&pair);
        let (mut name, mut value) = (None, None);
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::word => name = Some(self.word(&pair)),
                Rule::phrase => value = Some(self.phrase(pair)),
                _ => {}
            }
        }
        let name = name.unwrap_or_else(|| Word { text: String::new(), span });
        Let { name, value: value.unwrap_or_else(|| Phrase { parts: Vec::new(), span }), span }
    }

    fn declaration(&mut self, pair: Pair<'_, Rule>) -> Declaration {
        let whole = self.span(&pair);
        let (mut doc, mut words, mut parameters, mut body) = (None, Vec::new(), Vec::new(), None);
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::docs => doc = Some(docs(&pair)),
                Rule::word => words.push(self.word(&pair)),
                Rule::parameters => parameters = self.arguments(pair),
                Rule::block => body = Some(DeclarationBody::Block(self.block(pair))),
                Rule::phrase => body = Some(DeclarationBody::Derived(self.phrase(pair))),
                _ => {}
            }
        }
        let mut words = words.into_iter();
        let mut word = || words.next().unwrap_or_else(|| Word { text: String::new(), span: whole });
        let (keyword, name) = (word(), word());
        let span = keyword.span.to(whole);
        let body = body.unwrap_or_else(|| DeclarationBody::Block(Block { items: Vec::new(), span }));
        Declaration { doc, keyword, name, parameters, body, span }
    }

    fn block(&mut self, pair: Pair<'_, Rule>) -> Block {
        let span = self.span(&pair);
        let mut items: Vec<Item> = Vec::new();
        let mut separator: Option<Separator> = None;
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::separator => separator = Some(self.separator(&pair)),
                Rule::comment => {}
                _ => items.extend(self.item(pair).map(|item| Item { separator: separator.take(), ..item })),
            }
        }
        items.shrink_to_fit();
        Block { items, span }
    }

    fn separator(&self, pair: &Pair<'_, Rule>) -> Separator {
        let start = pair.as_span().start();
        let blanks = pair.as_str().len() - pair.as_str().trim_start_matches([' ', '\t', '\r']).len();
        let is_comma = pair.as_str()[blanks..].starts_with(',');
        let kind = if is_comma { SeparatorKind::Comma } else { SeparatorKind::Line };
        let at = self.scanned.place(start + blanks);
        Separator { kind, span: Span::new(self.file, at..at + usize::from(is_comma)) }
    }

    fn item(&mut self, pair: Pair<'_, Rule>) -> Option<Item> {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::let_item => {
                let doc = pair.clone().into_inner().find(|pair| pair.as_rule() == Rule::docs).map(|pair| docs(&pair));
                Some(Item { separator: None, doc, label: None, content: ItemContent::Let(self.binding(pair)), span })
            }
            Rule::content => {
                let (mut doc, mut lead, mut phrases) = (None, None, Vec::new());
                for inner in pair.clone().into_inner() {
                    match inner.as_rule() {
                        Rule::tail => {
                            self.bad_lines(&pair);
                            return None;
                        }
                        Rule::docs => doc = Some(docs(&inner)),
                        Rule::lead => lead = inner.into_inner().next().map(|name| self.primary(name)),
                        Rule::phrase => {
                            let mut phrase = self.phrase(inner);
                            if let Some(lead) = lead.take() {
                                phrase.span = lead.span.to(phrase.span);
                                phrase.parts.insert(0, lead);
                            }
                            phrases.push(phrase);
                        }
                        _ => {}
                    }
                }
                let content = phrases.pop()?;
                let label = phrases.pop();
                let span = label.as_ref().map_or(content.span, |label| label.span.to(content.span));
                Some(Item { separator: None, doc, label, content: ItemContent::Phrase(content), span })
            }
            Rule::missing => {
                let comma = Span { end: span.start + 1, ..span };
                self.diagnostics.push(Diagnostic::error("missing-item", "nothing stands before this comma", comma));
                None
            }
            Rule::docs => {
                self.describes_nothing(pair);
                None
            }
            _ => {
                self.bad(pair.as_span().start()..pair.as_span().end(), Rule::item_alone);
                None
            }
        }
    }

    fn phrase(&mut self, pair: Pair<'_, Rule>) -> Phrase {
        let mut parts: Vec<Expr> = pair
            .clone()
            .into_inner()
            .filter(|pair| pair.as_rule() == Rule::expression)
            .map(|pair| self.expression(pair))
            .collect();
        // Most have one.
        parts.shrink_to_fit();
        let span = match (parts.first(), parts.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.span(&pair),
        };
        Phrase { parts, span }
    }

    fn arguments(&mut self, pair: Pair<'_, Rule>) -> Vec<Argument> {
        let arguments = pair.into_inner().filter(|pair| pair.as_rule() == Rule::arguments).flat_map(Pair::into_inner);
        arguments.filter(|pair| pair.as_rule() == Rule::argument).map(|pair| self.argument(pair)).collect()
    }

    fn argument(&mut self, pair: Pair<'_, Rule>) -> Argument {
        let span = self.span(&pair);
        let (mut key, mut value) = (None, None);
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::key => key = pair.into_inner().next().map(|pair| self.word(&pair)),
                Rule::inner => value = Some(self.phrase(pair)),
                _ => {}
            }
        }
        Argument { key, value: value.unwrap_or_else(|| Phrase { parts: Vec::new(), span }) }
    }

    /// Operands and operators in a row, by precedence climbing.
    fn expression(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let (mut operands, mut operators) = (Vec::new(), Vec::new());
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::operand => operands.push(self.operand(pair)),
                Rule::operator => operators.push((operator(pair.as_str()), self.span(&pair))),
                _ => {}
            }
        }
        if operators.len() > LONGEST_EXPRESSION {
            let message = format!("an expression of more than {LONGEST_EXPRESSION} operators");
            self.diagnostics.push(Diagnostic::error("too-deep", message, span).hint("name a part with `let`"));
            return Expr { kind: ExprKind::Bad, span };
        }
        let mut operands = operands.into_iter();
        let mut operators = operators.into_iter().peekable();
        let first = operands.next().unwrap_or(Expr { kind: ExprKind::Bad, span });
        climb(first, 0, &mut operands, &mut operators)
    }

    fn operand(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let mut minuses = Vec::new();
        let mut inner = None;
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::minus => minuses.push(self.span(&pair)),
                _ => inner = Some(self.primary(pair)),
            }
        }
        let span = Span { file: self.file, ..Span::default() };
        let inner = inner.unwrap_or(Expr { kind: ExprKind::Bad, span });
        if let [_, second, ..] = minuses.as_slice() {
            self.diagnostics.push(Diagnostic::error("unexpected-token", "a second minus sign", *second).hint("take both away"));
        }
        match minuses.first() {
            Some(minus) => Expr { span: minus.to(inner.span), kind: ExprKind::Negate(Box::new(inner)) },
            None => inner,
        }
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::number => number::read(pair.as_str()).map_or(ExprKind::Bad, |number: Number| ExprKind::Number(number)),
            Rule::range => {
                let mut ends = pair.into_inner().filter_map(|end| number::read(end.as_str()).ok());
                match (ends.next(), ends.next()) {
                    (Some(first), Some(last)) => ExprKind::Range { first, last },
                    _ => ExprKind::Bad,
                }
            }
            Rule::text => ExprKind::Text(unescape(pair.as_str())),
            Rule::name => ExprKind::Name(pair.as_str().to_owned()),
            Rule::call => {
                let callee = self.first_word(&pair);
                ExprKind::Call { callee, arguments: self.arguments(pair) }
            }
            Rule::index => {
                let base = self.first_word(&pair);
                ExprKind::Index { base, arguments: self.arguments(pair) }
            }
            Rule::list => ExprKind::List(self.arguments(pair)),
            Rule::paren => {
                let mut arguments = self.arguments(pair);
                match arguments.as_mut_slice() {
                    [Argument { key: None, value }] if value.parts.len() == 1 => {
                        value.parts.pop().map_or(ExprKind::Bad, |inner| ExprKind::Group(Box::new(inner)))
                    }
                    _ => ExprKind::Tuple(arguments),
                }
            }
            Rule::block => ExprKind::Block(self.block(pair)),
            _ => ExprKind::Bad,
        };
        Expr { kind, span }
    }

    fn first_word(&self, pair: &Pair<'_, Rule>) -> Word {
        let span = self.span(pair);
        pair.clone().into_inner().next().map_or(Word { text: String::new(), span }, |pair| self.word(&pair))
    }
    fn word(&self, pair: &Pair<'_, Rule>) -> Word {
        Word { text: pair.as_str().to_owned(), span: self.span(pair) }
    }

    fn describes_nothing(&mut self, docs: Pair<'_, Rule>) {
        if let Some(last) = docs.into_inner().filter(|pair| pair.as_rule() == Rule::doc).last() {
            let span = Span { end: self.span(&last).start + last.as_str().trim_end().len() as u32, ..self.span(&last) };
            let said = Diagnostic::error("unexpected-token", "nothing follows that this describes", span);
            self.diagnostics.push(said.hint("write `//` for a remark"));
        }
    }

    /// Says where an item goes wrong that ends in what cannot follow. Where an operator ended a line, its value may be missing, and
    /// what stands below be a statement: such lines are looked at one by one.
    fn bad_lines(&mut self, pair: &Pair<'_, Rule>) {
        let mut line = pair.as_span().start();
        let parts = pair.clone().into_inner().filter(|part| part.as_rule() == Rule::phrase).flat_map(Pair::into_inner);
        for expression in parts.filter(|part| part.as_rule() == Rule::expression) {
            let mut operator: Option<usize> = None;
            for part in expression.into_inner().filter(|part| part.as_rule() != Rule::comment) {
                let span = part.as_span();
                if let Some(end) = operator.take().filter(|end| self.scanned.masked[*end..span.start()].contains('\n')) {
                    self.bad(line..end, Rule::item_alone);
                    line = span.start();
                }
                operator = (part.as_rule() == Rule::operator).then_some(span.end());
            }
        }
        self.bad(line..pair.as_span().end(), Rule::item_alone);
    }

    /// Says where a skipped fragment goes wrong: it is read once more by the strict `rule`.
    fn bad(&mut self, masked: Range<usize>, rule: Rule) {
        if self.diagnostics.is_full() {
            return;
        }
        let fragment = self.scanned.masked[masked.clone()].trim_end();
        let whole = Span::new(self.file, self.scanned.place(masked.start)..self.scanned.place(masked.end));
        let inside = |said: &Diagnostic| said.code == "unclosed-bracket" && whole.range().contains(&(said.span.start as usize));
        if self.diagnostics.iter().any(inside) || self.misspelt_keyword(masked.start, fragment, rule) {
            return;
        }
        match Grammar::parse(rule, fragment) {
            Ok(_) => {
                let end = self.scanned.place(masked.start + fragment.len()) as u32;
                let span = Span { end, ..whole };
                self.diagnostics.push(Diagnostic::error("unexpected-token", "this cannot stand here", span));
            }
            Err(error) => self.syntax_error(&error, masked.start),
        }
    }

    /// `ues std.placements (pre)`: no declaration has a dotted name or a text for its name; `lte y = norm(x)`: no item has an
    /// equals sign.
    fn misspelt_keyword(&mut self, start: usize, fragment: &str, rule: Rule) -> bool {
        let described = Grammar::parse(Rule::docs, fragment).map_or(0, |docs| docs.as_str().len());
        let (start, fragment) = (start + described, &fragment[described..]);
        let Some((word, rest)) = fragment.split_once([' ', '\t']) else { return false };
        let name = rest.trim_start().split(['(', ' ', '\t']).next().unwrap_or("");
        let is_use = (name.contains('.') || name.starts_with('"')) && rest.contains('(');
        let is_let = rest.trim_start()[name.len()..].trim_start().starts_with('=');
        let guess = match rule {
            Rule::entry_alone => guess(word, ["use"]).filter(|_| is_use),
            _ => guess(word, ["let"]).filter(|_| is_let),
        };
        let Some(guess) = guess else { return false };
        let start = self.scanned.place(start);
        let span = Span::new(self.file, start..start + word.len());
        self.diagnostics.push(Diagnostic::error("unknown-keyword", format!("`{word}` declares nothing"), span).hint(guess));
        true
    }

    fn syntax_error(&mut self, error: &pest::error::Error<Rule>, offset: usize) {
        let masked = offset
            + match error.location {
                pest::error::InputLocation::Pos(at) | pest::error::InputLocation::Span((at, _)) => at,
            };
        let blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
        let at = self.scanned.place(masked);
        let at = at + blanks(&self.text[at..]);
        let mut span = Span::new(self.file, at..at + symbols::token_length(&self.text[at..]));
        // A fault that has been said already: the hole that hides it, or a bracket that was not closed.
        let hidden = self.diagnostics.iter().any(|said| said.span.start <= span.start && span.start <= said.span.end);
        if hidden || self.scanned.is_added(masked) {
            return;
        }
        let expected = symbols::expected(error);
        let before = self.text[..at].trim_end();
        let found = self.text[span.range()].trim_end();
        // Where a line or a list ends too early, the word before it is the one to look at.
        let ends = found.is_empty() || found.starts_with("//") || (before.ends_with(':') && matches!(found, "," | "}"));
        let message = if ends {
            span = Span::new(self.file, before.len() - symbols::last_token_length(before)..before.len());
            format!("{} is missing after `{}`", expected.as_deref().unwrap_or("something"), &self.text[span.range()])
        } else {
            match expected {
                Some(expected) => format!("expected {expected}, found `{found}`"),
                None => format!("`{found}` cannot stand here"),
            }
        };
        let said = Diagnostic::error("unexpected-token", message, span);
        self.diagnostics.push(match found {
            "=" => said.hint("`==` compares, and a field takes no sign"),
            "/" if self.text[at..].starts_with("/*") => said.hint("write `//` for a remark"),
            _ => said,
        });
    }
}

/// Precedence climbing: `left` and all that binds at least as tightly as `least`.
fn climb(
    mut left: Expr,
    least: u8,
    operands: &mut std::vec::IntoIter<Expr>,
    operators: &mut std::iter::Peekable<std::vec::IntoIter<(Operator, Span)>>,
) -> Expr {
    while let Some((operator, operator_span)) = operators.next_if(|(operator, _)| strength(*operator) >= least) {
        let Some(mut right) = operands.next() else { break };
        // `^` binds to the right, the others to the left.
        let next = if operator == Operator::Power { strength(operator) } else { strength(operator) + 1 };
        right = climb(right, next, operands, operators);
        let span = left.span.to(right.span);
        left = Expr { kind: ExprKind::Binary { operator, operator_span, left: Box::new(left), right: Box::new(right) }, span };
    }
    left
}

fn strength(operator: Operator) -> u8 {
    match operator {
        Operator::Less
        | Operator::LessEqual
        | Operator::Greater
        | Operator::GreaterEqual
        | Operator::Equal
        | Operator::NotEqual
        | Operator::About => 1,
        Operator::Plus | Operator::Minus => 2,
        Operator::Times | Operator::Over => 3,
        Operator::Power => 4,
    }
}

fn operator(text: &str) -> Operator {
    match text {
        "<=" => Operator::LessEqual,
        ">=" => Operator::GreaterEqual,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        ">" => Operator::Greater,
        "~" => Operator::About,
        "^" => Operator::Power,
        "*" => Operator::Times,
        "/" => Operator::Over,
        "+" => Operator::Plus,
        _ => Operator::Minus,
    }
}

fn docs(pair: &Pair<'_, Rule>) -> String {
    let lines = pair.clone().into_inner().filter(|pair| pair.as_rule() == Rule::doc);
    let lines: Vec<&str> = lines.map(|line| line.as_str().trim_start_matches('/').trim()).collect();
    lines.join("\n").trim().to_owned()
}

fn unescape(quoted: &str) -> String {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or("");
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}
