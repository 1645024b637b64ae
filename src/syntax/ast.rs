//! The tree of a text: names unresolved, vocabulary unchecked, every node with its span.
//!
//! A body is a list of [`Item`]s: what stands between separators. Which items start a statement and which belong to the one
//! before is a question of vocabulary ("an item that begins with the name of a field begins a statement"), so `check` groups them.

use crate::source::Span;

/// A word with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The text; may be dotted (`training.optimizer.lr`, `std.placements`).
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// One `.exp` text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
    /// The `///` lines before its first entry where that is a `use` or a `let`: they describe its studies.
    pub doc: Option<String>,
    /// Top-level entries in the order of the text.
    pub entries: Vec<Entry>,
}

/// A top-level entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// `use std.placements (pre, post)`.
    Use(Use),
    /// `let width = 128`.
    Let(Let),
    /// `model student { … }` or `training distilled = base with { … }`.
    Declaration(Declaration),
}

/// `use PATH (names)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// Where the names come from.
    pub from: UseFrom,
    /// The names taken.
    pub names: Vec<Word>,
    /// The whole entry.
    pub span: Span,
}

/// The origin named by a `use`.
#[derive(Debug, Clone, PartialEq)]
pub enum UseFrom {
    /// `std.placements`.
    Library(Word),
    /// `"./common.exp"`, unescaped.
    Path(Word),
}

/// `let NAME = phrase`, at the top or inside a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Let {
    /// The name bound.
    pub name: Word,
    /// Its value.
    pub value: Phrase,
    /// The whole entry.
    pub span: Span,
}

/// `KIND NAME(parameters) { … }` or `KIND NAME = BASE with { … }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The `///` lines before it, without the slashes, joined by line ends.
    pub doc: Option<String>,
    /// `data`, `model`, `teacher`, `training`, `placement`, `schedule`, `study`, or a misspelling of one.
    pub keyword: Word,
    /// Its name.
    pub name: Word,
    /// Parameters with their defaults: `(alpha: 2 * L)`.
    pub parameters: Vec<Argument>,
    /// What it is.
    pub body: DeclarationBody,
    /// The whole declaration.
    pub span: Span,
}

/// What a declaration says.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarationBody {
    /// `{ … }`.
    Block(Block),
    /// `= base with { … }`: the phrase after the equals sign.
    Derived(Phrase),
}

/// `{ … }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its items in the order of the text.
    pub items: Vec<Item>,
    /// Braces included.
    pub span: Span,
}

/// What stands between two separators of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What stands before it; `None` for the first of a block.
    pub separator: Option<Separator>,
    /// The `///` lines directly before it.
    pub doc: Option<String>,
    /// The phrase before a colon: `at step 5` of `at step 5: grow block`, `control NAME` of `control NAME: …`.
    pub label: Option<Phrase>,
    /// `let y = …`, or what is said. Empty where nothing was written between two separators.
    pub content: ItemContent,
    /// The item without its separator.
    pub span: Span,
}

/// The content of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemContent {
    /// `let y = phrase`.
    Let(Let),
    /// Anything else.
    Phrase(Phrase),
}

/// What separates two items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Separator {
    /// Which.
    pub kind: SeparatorKind,
    /// The comma; for a line end the empty place before the item.
    pub span: Span,
}

/// The two separators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeparatorKind {
    /// `,` — with or without a line end after it.
    Comma,
    /// A line end that ends the statement.
    Line,
}

/// Expressions side by side: `warmup 100 steps then cosine to 1%` is seven of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Phrase {
    /// The parts, left to right.
    pub parts: Vec<Expr>,
    /// All of them.
    pub span: Span,
}

/// An expression with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its place, parentheses included.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `12_000`, `0.5`, `3e-4`, `2.5M`, `5%`.
    Number(Number),
    /// `1..3`: both ends belong to it.
    Range {
        /// From.
        first: Number,
        /// To.
        last: Number,
    },
    /// `"…"`, unescaped.
    Text(String),
    /// A name, dotted or not; keywords such as `with` and `over` are names too.
    Name(String),
    /// `name(key: value, …)`; no space before the parenthesis.
    Call {
        /// What is called.
        callee: Word,
        /// With what.
        arguments: Vec<Argument>,
    },
    /// `metric[post, grow]`; no space before the bracket.
    Index {
        /// What is indexed.
        base: Word,
        /// By what.
        arguments: Vec<Argument>,
    },
    /// `[a, b]`.
    List(Vec<Argument>),
    /// `(a, b)`; a single phrase in parentheses with more than one part is one of these too.
    Tuple(Vec<Argument>),
    /// `(expression)`.
    Group(Box<Expr>),
    /// `-x`.
    Negate(Box<Expr>),
    /// `a + b`.
    Binary {
        /// Which.
        operator: Operator,
        /// Where it stands.
        operator_span: Span,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// `{ … }` after `with` or `layer`.
    Block(Block),
    /// What could not be read; its diagnostic has been given, and nothing more is said about it.
    Bad,
}

/// A number as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// Its value with the magnitude suffix applied; a percentage as its fraction (`5%` is 0.05).
    pub value: f64,
    /// The exact value where it is a whole number that fits.
    pub whole: Option<u64>,
    /// Written with `%`.
    pub percent: bool,
}

/// `key: value` or a value alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The key, if given.
    pub key: Option<Word>,
    /// The value; a phrase, so that `50_000 steps` is one argument.
    pub value: Phrase,
}

/// Infix operators, loosest last: `^`, then `* /`, then `+ -`, then comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `^`, to the right.
    Power,
    /// `*`.
    Times,
    /// `/`.
    Over,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `~`: equivalent within a margin.
    About,
}
