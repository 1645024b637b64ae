//! The vocabulary of bodies, and the grouping of items into statements by it.
//!
//! Owns the tables of field names. An item after a comma that begins with a field's name starts a statement and else belongs to the
//! one before; an item after a line end must start one. Deliberately knows no meanings.

use std::rc::Rc;

use super::Checker;
use super::names::{Kind, listed, twice};
use super::record::{Env, Record, Scope, Statement};
use super::schedule::ACTIONS;
use super::words::Words;
use crate::diagnostic::{Diagnostic, near, nearest};
use crate::source::Span;
use crate::syntax::ast::{Block, Expr, ExprKind, Item, ItemContent, Let, Phrase, SeparatorKind};

/// A word that begins a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// The word.
    pub(super) name: &'static str,
    /// What it gives; words that exclude one another give the same.
    pub(super) key: &'static str,
    /// What it takes, for a reader: of which type, in which unit; words of the language in backticks.
    pub(super) takes: &'static str,
    /// May stand more than once.
    pub(super) repeats: bool,
}

const fn field(name: &'static str, takes: &'static str) -> Field {
    Field { name, key: name, takes, repeats: false }
}
const fn gives(name: &'static str, key: &'static str, takes: &'static str) -> Field {
    Field { name, key, takes, repeats: false }
}
const fn repeats(name: &'static str, takes: &'static str) -> Field {
    Field { name, key: name, takes, repeats: true }
}

const DATA: &[Field] = &[
    gives("files", "text", "texts: patterns of paths"),
    gives("generate", "text", "`tales(…)`"),
    field("document", "`file`, `line`, `paragraph` or `field` with a text"),
    field("tokenizer", "`bytes`, `teacher` or a text: a path"),
    field("context", "a number of tokens"),
    field("layout", "`packed` or `padded`"),
    gives("packed", "layout", "nothing"),
    gives("padded", "layout", "nothing"),
    field("tokens", "`per step` and a number of tokens"),
    field("shard", "a number of tokens"),
    field("holdout", "a percentage, or a number of documents"),
];
const MODEL: &[Field] = &[
    field("layers", "a number of layers"),
    field("block", "a number of layers"),
    field("width", "a whole number"),
    field("heads", "a whole number"),
    field("kv", "a whole number"),
    field("dim", "a whole number"),
    field("ffn", "`swiglu(…)` or `gelu(…)`"),
    field("norm", "`rms(…)`, `layer(…)`, `dyt(…)` or `none`"),
    field("qk_norm", "`on` or `off`"),
    field("placement", "a placement; one for `attention` and one for `ffn`; several, each `in layers`"),
    field("positions", "`rope(…)` or `none`"),
    field("embedding", "`own`, `tied` or `teacher`, which may be `frozen`"),
    field("head", "`own`, `tied` or `teacher`, which may be `frozen`"),
    field("init", "`normal(…)`, or `from` with a text: a path"),
    field("vocabulary", "a whole number"),
];
const TEACHER: &[Field] = &[
    field("model", "a model"),
    field("train", "a number of steps, `with` and a training"),
    field("checkpoint", "a text: the path of a folder"),
    field("cache", "`none`, `all` or `top` with a whole number"),
];
const TRAINING: &[Field] = &[
    field("loss", "a sum of losses with factors"),
    field("optimizer", "`adamw(…)`, `sgd(…)`, `lion(…)` or `muon(…)`"),
    field("lr", "`warmup` with a number of steps or a percentage, `then`; `constant`, `linear`, `cosine` or `wsd(…)`"),
    field("batch", "a number of sequences, `in` and how many at a time"),
    field("clip", "a number or `none`"),
    field("precision", "`f32`"),
];
const PLACEMENT: &[Field] = &[
    field("entry", "an equation"),
    gives("sublayer", "body", "an equation with `f(…)`, or cases: `when`, `otherwise`"),
    gives("layer", "body", "an equation with `attention(…)` and `ffn(…)`, or cases: `when`, `otherwise`"),
    field("boundary", "an equation"),
    field("exit", "an equation"),
    field("init", "names of weights (`q`, `k`, `v`, `o`, `gate`, `up`, `down`) times a number"),
];
const SCHEDULE: &[Field] = &[
    field("start", "`with` and a number of blocks or layers, or `all blocks`"),
    repeats("at", "a moment (`step`, `token` or a percentage), and actions"),
    repeats("after", "a number of steps, and actions"),
    repeats("every", "a number of steps, how many `times`, and actions"),
    field("end", "a moment: `at`, or `after` a number of steps"),
];
const STUDY: &[Field] = &[
    field("data", "a data"),
    field("model", "a model"),
    field("training", "a training"),
    field("schedule", "a schedule"),
    repeats("vary", "a field or several in parentheses, `over` and values"),
    repeats("except", "arms in brackets"),
    field("seeds", "a whole number, or a list of them"),
    repeats("control", "a name and an arm in brackets, `matched` to another, or `with` other fields"),
    repeats("measure", "metrics, each `every` so many steps"),
    repeats("probe", "a probe and its moments: `at`, and its batch: `on`"),
    repeats("claim", "a name and two sides: numbers of arms, compared"),
    repeats("report", "`ablation(…)`"),
];
/// What `control … with { … }` may replace besides fields of models, trainings and data.
const PARTS: &[Field] = STUDY.split_at(4).0;

/// Words at the beginning of a line that belongs to the statement before.
const GO_ON: [&str; 2] = ["then", "otherwise"];

/// Fields that have a use for items after a comma.
const HAS_MORE: &[&str] = &["files", "placement"];

/// The fields of a kind of declaration.
pub(super) fn fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Data => DATA,
        Kind::Model => MODEL,
        Kind::Teacher => TEACHER,
        Kind::Training => TRAINING,
        Kind::Placement => PLACEMENT,
        Kind::Schedule => SCHEDULE,
        Kind::Study => STUDY,
    }
}

/// Whether a word begins statements in the body of a declaration; without a keyword, or with none that is known, of any.
pub fn begins_statement(keyword: Option<&str>, word: &str) -> bool {
    let first = word.split('.').next().unwrap_or(word);
    let has = |kind| fields(kind).iter().any(|field| field.name == first);
    keyword.and_then(Kind::read).map_or_else(|| Kind::ALL.into_iter().any(has), has)
}

/// The words that begin statements in the body of a declaration; none for a keyword that declares nothing.
pub fn fields_of(keyword: &str) -> Vec<&'static str> {
    Kind::read(keyword).map_or_else(Vec::new, |kind| fields(kind).iter().map(|field| field.name).collect())
}

/// What a field of a declaration takes: its type and its unit, words of the language in backticks.
pub fn takes(keyword: &str, field: &str) -> Option<&'static str> {
    fields(Kind::read(keyword)?).iter().find(|known| known.name == field).map(|known| known.takes)
}

/// Which words begin a statement in a body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Vocabulary {
    /// The fields of a declaration.
    Of(Kind),
    /// What `with` may replace in a declaration: fields, and arguments by dotted words (`optimizer.lr`).
    With(Kind),
    /// What `with` may replace in a study's arm.
    Arm,
}

impl Vocabulary {
    fn fields(self) -> Vec<Field> {
        match self {
            Vocabulary::Of(kind) | Vocabulary::With(kind) => fields(kind).to_vec(),
            Vocabulary::Arm => [PARTS, MODEL, TRAINING, DATA].concat(),
        }
    }
    fn is_dotted(self) -> bool {
        !matches!(self, Vocabulary::Of(_))
    }
    /// The part of a word that names a field: of dotted ones the first.
    fn first(self, word: &str) -> &str {
        if self.is_dotted() { word.split('.').next().unwrap_or(word) } else { word }
    }
    /// The field that a word begins with.
    fn find(self, word: &str) -> Option<Field> {
        self.fields().into_iter().find(|field| field.name == self.first(word))
    }
    /// Words that a line can begin with.
    fn words(self) -> impl Iterator<Item = &'static str> {
        self.fields().into_iter().map(|field| field.name).chain(GO_ON)
    }
}

/// A body by statements.
pub(super) struct Grouped<'a> {
    pub(super) statements: Vec<Statement<'a>>,
    /// Something in it is wrong.
    pub(super) poisoned: bool,
    /// Words that statements which could not be read were probably meant to begin with: what they say is not missing.
    pub(super) lost: Vec<&'static str>,
}

/// The `let`s of a body.
pub(super) fn lets(block: &Block) -> impl Iterator<Item = &Let> {
    block.items.iter().filter_map(|item| match &item.content {
        ItemContent::Let(binding) => Some(binding),
        ItemContent::Phrase(_) => None,
    })
}

/// The word that an expression is or begins a call with.
fn word(expr: &Expr) -> Option<(&str, Span)> {
    match &expr.kind {
        ExprKind::Name(name) => Some((name, expr.span)),
        ExprKind::Call { callee, .. } => Some((&callee.text, callee.span)),
        ExprKind::Index { base, .. } => Some((&base.text, base.span)),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Groups the items of a body into statements; `owner` is what the body belongs to, for messages.
    pub(super) fn group(&self, block: &'a Block, vocabulary: Vocabulary, env: &Env<'a>, owner: &str) -> Grouped<'a> {
        let body = Rc::new((vocabulary, owner.to_owned()));
        let mut grouped = Grouped { statements: Vec::new(), poisoned: self.is_unreadable(block.span), lost: Vec::new() };
        let is_open = self.is_unreadable(Span { end: block.span.start + 1, ..block.span });
        // Whether the statement before could be read: what belongs to one that could not is passed over.
        let mut skipping = false;
        for (index, item) in block.items.iter().enumerate() {
            if self.has_enough() {
                break;
            }
            let ItemContent::Phrase(content) = &item.content else { continue };
            let after_comma = item.separator.is_some_and(|separator| separator.kind == SeparatorKind::Comma);
            let begins = item.label.as_ref().unwrap_or(content);
            let Some(first) = begins.parts.first() else { continue };
            let name = if let ExprKind::Name(name) = &first.kind { Some(name.as_str()) } else { None };
            // `placement attention: pre, ffn: post`: the second colon belongs to the first.
            let goes_on = after_comma
                && item.label.as_ref().is_some_and(|label| label.parts.len() == 1)
                && match grouped.statements.last() {
                    _ if skipping => grouped.lost.contains(&"placement"),
                    last => last.is_some_and(|last| last.key == "placement" && last.label.is_some()),
                };
            let name = name.filter(|_| !goes_on);
            match name.and_then(|name| vocabulary.find(name).map(|field| (name, field))) {
                Some((name, field)) => {
                    skipping = false;
                    let (label, said) = match &item.label {
                        Some(label) => (Some(&label.parts[1..]), content.parts.as_slice()),
                        None => (None, &content.parts[1..]),
                    };
                    let comma = block.items.get(index + 1).and_then(|next| next.separator);
                    grouped.statements.push(Statement {
                        key: field.key,
                        head: name,
                        head_span: first.span,
                        doc: item.doc.as_deref(),
                        label,
                        said,
                        more: Vec::new(),
                        comma: comma.filter(|next| next.kind == SeparatorKind::Comma).map(|next| next.span),
                        span: item.span,
                        env: env.clone(),
                        given: Vec::new(),
                        body: Rc::clone(&body),
                    });
                }
                // A misspelt field behind one that could not be read; or a word with which that one went on.
                None if after_comma && skipping && self.is_near_a_field(begins, vocabulary.words()) => {
                    grouped.lost.extend(near(name.unwrap_or(""), vocabulary.words()));
                    self.unknown_field(first, vocabulary, owner);
                }
                None if after_comma && (skipping || grouped.poisoned && matches!(name, Some("then" | "otherwise"))) => {}
                None if after_comma && !grouped.statements.is_empty() => {
                    if let (Some((name, _)), true) = (word(first), begins.parts.len() > 1 || item.label.is_some()) {
                        grouped.lost.extend(near(vocabulary.first(name), vocabulary.words()));
                    }
                    if let Some(statement) = grouped.statements.last_mut() {
                        statement.more.push(item);
                        statement.span = statement.span.to(item.span);
                    }
                }
                None => {
                    skipping = true;
                    grouped.poisoned = true;
                    if let Some((name, _)) = word(first) {
                        grouped.lost.extend(near(vocabulary.first(name), vocabulary.words()));
                    }
                    // A body that is not closed swallows what follows it.
                    if !is_open {
                        self.unknown_field(first, vocabulary, owner);
                    }
                }
            }
        }
        grouped
    }

    /// Something begins a statement and is no field.
    pub(super) fn unknown_field(&self, first: &Expr, vocabulary: Vocabulary, owner: &str) {
        if matches!(first.kind, ExprKind::Bad) {
            return;
        }
        let known = || vocabulary.fields().into_iter().map(|field| field.name);
        let said = match word(first) {
            Some((name, span)) if vocabulary.find(name).is_some() => {
                Diagnostic::error("unexpected-words", format!("`{name}` is a field and no function"), span)
                    .hint(format!("put a space behind `{name}`"))
            }
            Some((name, span)) => {
                let said = Diagnostic::error("unknown-field", format!("unknown field `{name}` in {owner}"), span);
                let otherwise = || Some(format!("the fields are {}", listed(known(), "and")));
                said.did_you_mean_or(vocabulary.first(name), vocabulary.words(), otherwise)
            }
            None => Diagnostic::error("missing-field-name", "a statement begins with the name of a field", first.span)
                .hint(format!("the fields are {}", listed(known(), "and"))),
        };
        self.say(said);
    }

    /// Says where a field is given a second time; keeps the first.
    pub(super) fn once(&self, grouped: &mut Grouped<'a>, kind: Kind) {
        let mut firsts: Vec<(&'static str, &'a str, Span)> = Vec::new();
        let mut poisoned = false;
        grouped.statements.retain(|statement| {
            let repeats = fields(kind).iter().any(|field| field.key == statement.key && field.repeats);
            // A dotted word gives an argument only.
            if repeats || statement.head.contains('.') {
                return true;
            }
            match firsts.iter().find(|(key, ..)| *key == statement.key) {
                None => {
                    firsts.push((statement.key, statement.head, statement.head_span));
                    true
                }
                Some((_, head, span)) => {
                    poisoned = true;
                    self.say(if *head == statement.head {
                        twice(format!("`{head}`"), statement.head_span, *span)
                    } else {
                        let message = format!("`{}` and `{head}` exclude each other", statement.head);
                        Diagnostic::error("excluding-fields", message, statement.head_span)
                            .note_at(*span, "the other one is given here")
                            .hint("take one of them away")
                    });
                    false
                }
            }
        });
        grouped.poisoned |= poisoned;
    }

    /// Whether an item reads as a misspelt field with its value rather than as one more value of the field before.
    pub(super) fn looks_like_a_field(&self, phrase: &Phrase, record: &Record<'a>) -> bool {
        self.is_near_a_field(phrase, fields(record.kind).iter().map(|field| field.name))
    }

    fn is_near_a_field(&self, phrase: &Phrase, known: impl IntoIterator<Item = &'static str>) -> bool {
        let [Expr { kind: ExprKind::Name(name), .. }, second, ..] = phrase.parts.as_slice() else { return false };
        let goes_on = matches!(&second.kind, ExprKind::Name(word) if word == "with" || word == "in");
        // `restart lr` is an action and no `start`.
        !goes_on && !ACTIONS.contains(&name.as_str()) && nearest(name, known).is_some()
    }

    /// Items that a statement's meaning leaves no room for.
    pub(super) fn nothing_more(&self, statement: &Statement<'a>) -> Option<()> {
        let (item, others) = match statement.more.split_first() {
            Some(more) => more,
            None => return Some(()),
        };
        let (vocabulary, owner) = &*statement.body;
        for other in others {
            if let ItemContent::Phrase(content) = &other.content
                && self.is_near_a_field(other.label.as_ref().unwrap_or(content), vocabulary.words())
                && let Some(first) = other.label.as_ref().unwrap_or(content).parts.first()
            {
                self.unknown_field(first, *vocabulary, owner);
            }
        }
        self.left_over(statement, item)
    }

    /// An item that belongs to no statement: a misspelt field, most likely.
    pub(super) fn left_over<T>(&self, statement: &Statement<'a>, item: &'a Item) -> Option<T> {
        if let ItemContent::Phrase(content) = &item.content
            && let Some(first) = item.label.as_ref().unwrap_or(content).parts.first()
        {
            let (vocabulary, owner) = &*statement.body;
            self.unknown_field(first, *vocabulary, owner);
        }
        None
    }
}

/// Reading the fields of a record.
impl<'a> Checker<'a> {
    /// Reads a field that may be left out: `Some(None)` if it is, `None` if it is wrong.
    pub(super) fn optional<T>(
        &self,
        record: &Record<'a>,
        key: &str,
        read: impl FnOnce(&Statement<'a>, &mut Words<'_, 'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        let Some(statement) = record.field(key) else { return Some(None) };
        let scope = Scope { env: &statement.env, record: Some(record) };
        let mut words = self.said(statement, scope)?;
        let value = read(statement, &mut words)?;
        words.finish()?;
        if !HAS_MORE.contains(&statement.head) {
            self.nothing_more(statement)?;
        }
        Some(Some(value))
    }

    /// Reads a field that may not be left out; [`Checker::complete`] says so if it is.
    pub(super) fn needed<T>(
        &self,
        record: &Record<'a>,
        key: &str,
        read: impl FnOnce(&Statement<'a>, &mut Words<'_, 'a>) -> Option<T>,
    ) -> Option<T> {
        self.optional(record, key, read).flatten()
    }

    /// The value given, or the default, which is noted.
    pub(super) fn or_default<T>(&self, record: &Record<'a>, field: &str, given: Option<T>, shown: &str, default: T) -> T {
        given.unwrap_or_else(|| {
            self.fill(record, field, shown);
            default
        })
    }

    /// Says which fields are missing, unless something else is wrong with the declaration.
    pub(super) fn complete(&self, record: &Record<'a>, needed: &[(&str, &str)]) -> Option<()> {
        self.all_used(record)?;
        let missing: Vec<&str> = needed.iter().filter(|(key, _)| record.field(key).is_none()).map(|(_, name)| *name).collect();
        if record.poisoned {
            return None;
        }
        if missing.is_empty() {
            return Some(());
        }
        if record.bodies.iter().any(|body| self.is_at_fault(*body)) {
            return None;
        }
        let message = format!("`{}` lacks {}", record.owner, listed(missing, "and"));
        self.fail(Diagnostic::error("missing-field", message, record.name_span))
    }
}
