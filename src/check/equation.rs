//! The algebra of placements: from expressions to streams, scalars and learned factors.
//!
//! Owns what may be written in an equation: `f` exactly once (a `layer` names `attention` and `ffn`, each once), norms that count up
//! in the order of the text, factors only before streams. A sum of learned factors is spread over its stream, which then has a name of its
//! own: (1 − a) s is s − a s. Knows no model: the same equation serves any.

use super::Checker;
use super::record::{Env, Scope};
use super::units::Unit;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::study::equation::{Equation, Scalar, Stream, Sublayer};
use crate::syntax::ast::{Argument, Block, Expr, ExprKind, ItemContent, Operator};

/// Names of the algebra, which parameters and `let`s of a placement cannot have.
pub(super) const RESERVED: [&str; 16] =
    ["x", "x0", "f", "l", "L", "L_active", "step", "norm", "attention", "ffn", "gain", "learned", "stop", "sqrt", "min", "max"];

/// Terms of one equation, with those that its names stand for: names that double at each step would fill any memory.
const MOST_TERMS: usize = 4_096;

/// Where an equation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Entry,
    /// A `sublayer`, `f` being attention.
    Attention,
    /// A `sublayer`, `f` being the feed-forward network.
    Ffn,
    Layer,
    Boundary,
    Exit,
    /// Factors of first values.
    Init,
}

impl Place {
    fn is_inside_layers(self) -> bool {
        matches!(self, Place::Attention | Place::Ffn | Place::Layer | Place::Init)
    }
    fn functions(self) -> &'static [&'static str] {
        match self {
            Place::Attention | Place::Ffn => &["norm", "f", "gain", "learned", "stop", "sqrt", "min", "max"],
            Place::Layer => &["norm", "attention", "ffn", "gain", "learned", "stop", "sqrt", "min", "max"],
            Place::Entry | Place::Boundary | Place::Exit => &["norm", "gain", "learned", "stop", "sqrt", "min", "max"],
            Place::Init => &["sqrt", "min", "max"],
        }
    }
}

/// What an expression of an equation is.
enum Term {
    Scalar(Scalar),
    Stream(Stream),
    /// Learned factors that wait for their stream.
    Factors(Factors),
}

/// A product, first factor first.
type Factors = Vec<Factor>;

#[derive(Clone)]
enum Factor {
    Scalar(Scalar),
    Gain { slot: usize, start: Scalar },
    Learned { slot: usize, start: Scalar },
    Add(Factors, Factors),
    Subtract(Factors, Factors),
}

impl Factor {
    /// How many numbers and operations it is made of.
    fn terms(&self) -> usize {
        1 + match self {
            Factor::Scalar(scalar) => scalar.terms(),
            Factor::Gain { start, .. } | Factor::Learned { start, .. } => start.terms(),
            Factor::Add(a, b) | Factor::Subtract(a, b) => a.iter().chain(b).map(Factor::terms).sum(),
        }
    }
}

/// Reads one equation.
pub(super) struct Reader<'c, 'a> {
    checker: &'c Checker<'a>,
    place: Place,
    span: Span,
    norms: usize,
    gains: usize,
    learned: usize,
    attention: Vec<Span>,
    ffn: Vec<Span>,
    /// `let`s of the equation that are streams: name and index.
    bound: Vec<(&'a str, usize)>,
    /// `let`s that are scalars.
    scalars: Vec<(&'a str, Scalar)>,
    /// `let`s that are learned factors.
    factors: Vec<(&'a str, Factors)>,
    bindings: Vec<Stream>,
    /// Terms made so far.
    terms: usize,
    fine: bool,
}

impl<'a> Checker<'a> {
    /// Reads an equation: an expression, or `{ let y = …, … }`.
    pub(super) fn equation(&self, expr: &'a Expr, scope: Scope<'_, 'a>, place: Place) -> Option<Equation> {
        let mut reader = Reader::new(self, place, expr.span);
        let result = match &expr.kind {
            ExprKind::Block(block) => reader.block(block, scope),
            _ => reader.stream(expr, scope),
        };
        reader.sublayers_once(result.is_some() && reader.fine);
        let equation = Equation { bindings: std::mem::take(&mut reader.bindings), result: result? };
        if !reader.fine {
            return None;
        }
        if !equation.keeps_x() {
            let around = if place.is_inside_layers() { ": nothing of it goes around the sublayers" } else { "" };
            let said = Diagnostic::error("residual-lost", format!("`x` is lost here{around}"), expr.span);
            return self.fail(said.hint("write `x + …`; `0 * x + …`, where that is meant"));
        }
        Some(equation)
    }
}

impl<'c, 'a> Reader<'c, 'a> {
    pub(super) fn new(checker: &'c Checker<'a>, place: Place, span: Span) -> Self {
        Self {
            checker,
            place,
            span,
            norms: 0,
            gains: 0,
            learned: 0,
            attention: Vec::new(),
            ffn: Vec::new(),
            bound: Vec::new(),
            scalars: Vec::new(),
            factors: Vec::new(),
            bindings: Vec::new(),
            terms: 0,
            fine: true,
        }
    }

    fn fail<T>(&mut self, said: Diagnostic) -> Option<T> {
        self.fine = false;
        self.checker.fail(said)
    }

    /// `f` once, or `attention` and `ffn` once each. A name that could not be read may have been one of them.
    fn sublayers_once(&mut self, is_whole: bool) {
        let counted: &[(&str, &[Span])] = match self.place {
            Place::Attention => &[("f", &self.attention)],
            Place::Ffn => &[("f", &self.ffn)],
            Place::Layer => &[("attention", &self.attention), ("ffn", &self.ffn)],
            Place::Entry | Place::Boundary | Place::Exit | Place::Init => &[],
        };
        let mut said = Vec::new();
        for (name, uses) in counted {
            let message = format!("`{name}` must appear exactly once");
            match uses {
                [] if is_whole => {
                    said.push(Diagnostic::error("sublayer-once", message, self.span).label("it does not appear here"))
                }
                [first, second, ..] => {
                    said.push(Diagnostic::error("sublayer-once", message, *second).note_at(*first, "it appears here first"));
                }
                _ => {}
            }
        }
        for said in said {
            self.fail::<()>(said);
        }
    }

    fn block(&mut self, block: &'a Block, scope: Scope<'_, 'a>) -> Option<Stream> {
        let mut result: Option<Option<Stream>> = None;
        for item in &block.items {
            match &item.content {
                _ if result.is_some() => {
                    return self.fail(Diagnostic::error("unexpected-words", "the equation has ended before this", item.span));
                }
                ItemContent::Let(binding) => {
                    let [value] = binding.value.parts.as_slice() else {
                        return self.fail(Diagnostic::error("unexpected-words", "expected one expression", binding.value.span));
                    };
                    let name = binding.name.text.as_str();
                    if self.named().any(|known| known == name) {
                        let message = format!("`{name}` is given twice");
                        self.fail::<()>(Diagnostic::error("given-twice", message, binding.name.span));
                    }
                    match self.term(value, scope) {
                        Some(Term::Stream(stream)) => {
                            self.bound.push((name, self.bindings.len()));
                            self.bindings.push(stream);
                        }
                        Some(Term::Scalar(scalar)) => self.scalars.push((name, scalar)),
                        Some(Term::Factors(factors)) => self.factors.push((name, factors)),
                        // Later uses of the name stay silent.
                        None => {
                            self.fine = false;
                            self.scalars.push((name, Scalar::Number(f64::NAN)));
                        }
                    }
                }
                ItemContent::Phrase(phrase) => {
                    result = Some(match (phrase.parts.as_slice(), &item.label) {
                        ([expr], None) => self.stream(expr, scope),
                        _ => self.fail(Diagnostic::error("unexpected-words", "expected one expression", item.span)),
                    });
                }
            }
        }
        match result {
            Some(result) => result,
            None => self.fail(Diagnostic::error("missing-value", "an equation ends with its result", block.span)),
        }
    }

    /// Names that `let`s of the equation have given.
    fn named(&self) -> impl Iterator<Item = &'a str> {
        let streams = self.bound.iter().map(|(name, _)| *name);
        streams.chain(self.scalars.iter().map(|(name, _)| *name)).chain(self.factors.iter().map(|(name, _)| *name))
    }

    fn stream(&mut self, expr: &'a Expr, scope: Scope<'_, 'a>) -> Option<Stream> {
        match self.term(expr, scope)? {
            Term::Stream(stream) => Some(stream),
            // Said already where the `let` could not be read.
            Term::Scalar(Scalar::Number(number)) if number.is_nan() => None,
            Term::Scalar(_) => self.fail(stream_wanted("a number", expr.span)),
            Term::Factors(_) => self.fail(stream_wanted("a learned factor", expr.span).hint("multiply it with a stream")),
        }
    }

    /// An expression that has to be a number.
    pub(super) fn scalar(&mut self, expr: &'a Expr, scope: Scope<'_, 'a>) -> Option<Scalar> {
        match self.term(expr, scope)? {
            Term::Scalar(scalar) => Some(scalar),
            Term::Stream(_) => self.fail(Diagnostic::error("wrong-type", "expected a number, found a stream", expr.span)),
            Term::Factors(_) => {
                self.fail(Diagnostic::error("wrong-type", "expected a number, found a learned factor", expr.span))
            }
        }
    }

    /// Counts terms; more than an equation may have are refused.
    fn count(&mut self, terms: usize) -> Option<()> {
        let had_enough = self.terms > MOST_TERMS;
        self.terms += terms;
        if self.terms <= MOST_TERMS {
            return Some(());
        }
        if had_enough {
            return None;
        }
        let message = format!("an equation of more than {MOST_TERMS} terms, those of its names counted");
        self.fail(Diagnostic::error("too-deep", message, self.span).hint("name fewer parts of it, or shorter ones"))
    }

    fn term(&mut self, expr: &'a Expr, scope: Scope<'_, 'a>) -> Option<Term> {
        self.count(1)?;
        match &expr.kind {
            ExprKind::Group(inner) => self.term(inner, scope),
            ExprKind::Name(name) => self.name(name, expr.span, scope),
            ExprKind::Negate(inner) => match self.term(inner, scope)? {
                Term::Scalar(scalar) => Some(Term::Scalar(multiply(Scalar::Number(-1.0), scalar))),
                Term::Stream(input) => Some(Term::Stream(scale(Scalar::Number(-1.0), input))),
                Term::Factors(mut factors) => {
                    factors.insert(0, Factor::Scalar(Scalar::Number(-1.0)));
                    Some(Term::Factors(factors))
                }
            },
            ExprKind::Binary { operator, operator_span, left, right } => {
                let (left, right) = (self.term(left, scope), self.term(right, scope));
                self.combine(*operator, *operator_span, left?, right?, expr.span)
            }
            ExprKind::Call { callee, arguments } => self.call(&callee.text, callee.span, arguments, expr.span, scope),
            // Numbers and quantities, in parentheses or not.
            _ => match self.checker.amount(expr, scope) {
                Some(amount) => Some(Term::Scalar(Scalar::Number(amount.value))),
                None => {
                    self.fine = false;
                    None
                }
            },
        }
    }

    fn name(&mut self, name: &'a str, span: Span, scope: Scope<'_, 'a>) -> Option<Term> {
        if let Some((_, index)) = self.bound.iter().find(|(known, _)| *known == name) {
            return Some(Term::Stream(Stream::Bound(*index)));
        }
        if let Some((_, scalar)) = self.scalars.iter().find(|(known, _)| *known == name) {
            if matches!(scalar, Scalar::Number(number) if number.is_nan()) {
                return None;
            }
            let terms = scalar.terms();
            let scalar = scalar.clone();
            return self.count(terms).map(|()| Term::Scalar(scalar));
        }
        if let Some((_, factors)) = self.factors.iter().find(|(known, _)| *known == name) {
            let factors = factors.clone();
            return self.count(factors.iter().map(Factor::terms).sum()).map(|()| Term::Factors(factors));
        }
        // A name of the algebra cannot be bound; where one is, that has been said.
        let meaning = if RESERVED.contains(&name) { None } else { self.checker.meaning(name, scope) };
        match meaning {
            Some(Some((said, env))) => return self.meaning(name, said, &env, span),
            Some(None) => {
                self.fine = false;
                return None;
            }
            None => {}
        }
        // Fields of the model around an argument: `deepnorm(alpha: layers)`.
        if let Some((_, amount)) = scope.env.0.outer.iter().find(|(field, _)| *field == name) {
            self.fine &= amount.is_some();
            self.checker.note_number(span);
            return amount.map(|amount| Term::Scalar(Scalar::Number(amount.value)));
        }
        Some(match name {
            "x" if self.place != Place::Init => Term::Stream(Stream::X),
            "x0" if !matches!(self.place, Place::Entry | Place::Init) => Term::Stream(Stream::Embedded),
            "l" if self.place.is_inside_layers() => Term::Scalar(Scalar::Layer),
            "L" => Term::Scalar(Scalar::Depth),
            "L_active" => Term::Scalar(Scalar::ActiveDepth),
            "step" if self.place != Place::Init => Term::Scalar(Scalar::Step),
            "l" | "x" | "x0" | "step" => {
                let message = format!("`{name}` has no value here");
                return self.fail(Diagnostic::error("unknown-name", message, span));
            }
            _ if self.place.functions().contains(&name) => {
                let said = Diagnostic::error("wrong-type", format!("`{name}` is a function"), span);
                return self.fail(said.hint(format!("write `{name}(…)`")));
            }
            _ => {
                self.fine = false;
                let bindings = &scope.env.0;
                if self.checker.is_broken(bindings.unit, name) || self.checker.is_unreadable(self.span) {
                    return None;
                }
                let known = bindings.parameters.keys().chain(bindings.lets.keys()).copied().chain(self.named());
                let known = known.chain(bindings.outer.iter().map(|(field, _)| *field));
                let known = known.chain(["x", "x0", "l", "L", "L_active", "step"]);
                let message = format!("nothing is called `{name}` in this equation");
                let said = Diagnostic::error("unknown-name", message, span).did_you_mean(name, known);
                return self.fail(said.hint("known are `x`, `x0`, `l`, `L`, `L_active`, `step`, parameters and `let`s"));
            }
        })
    }

    /// What a parameter or a `let` stands for: a number that may depend on `l`, `L`, `L_active` and `step`.
    fn meaning(&mut self, name: &str, said: &'a [Expr], env: &Env<'a>, span: Span) -> Option<Term> {
        let scope = Scope { env, record: None };
        let checker = self.checker;
        let scalar = checker.guarded(said.as_ptr() as usize, span, || match said {
            [one] => self.scalar(one, scope),
            _ => {
                let mut words = checker.words(said, span, scope);
                let amount = words.amount()?;
                words.finish()?;
                // What an equation counts: `step` and `l`.
                match amount.value.unit {
                    None | Some(Unit::Steps | Unit::Layers) => Some(Scalar::Number(amount.value.value)),
                    Some(unit) => {
                        let message = format!("expected steps, layers or a plain number, found {}", unit.name());
                        checker.fail(Diagnostic::error("wrong-unit", message, amount.span))
                    }
                }
            }
        });
        if scalar.is_none() {
            self.fine = false;
        }
        let scalar = scalar?;
        if let Scalar::Number(value) = scalar {
            if !value.is_finite() {
                return self.fail(Diagnostic::error("not-finite", format!("`{name}` is no finite number"), span));
            }
            checker.note_number(span);
        }
        Some(Term::Scalar(scalar))
    }

    fn combine(&mut self, operator: Operator, at: Span, left: Term, right: Term, span: Span) -> Option<Term> {
        match (operator, left, right) {
            (Operator::Plus, Term::Stream(a), Term::Stream(b)) => Some(Term::Stream(Stream::Add(Box::new(a), Box::new(b)))),
            (Operator::Minus, Term::Stream(a), Term::Stream(b)) => Some(Term::Stream(Stream::Subtract(Box::new(a), Box::new(b)))),
            (_, Term::Scalar(a), Term::Scalar(b)) => self.arithmetic(operator, at, a, b, span),
            (Operator::Times, Term::Stream(input), Term::Scalar(factor))
            | (Operator::Times, Term::Scalar(factor), Term::Stream(input)) => Some(Term::Stream(scale(factor, input))),
            (Operator::Over, Term::Stream(input), Term::Scalar(divisor)) => {
                Some(Term::Stream(scale(divide(Scalar::Number(1.0), divisor), input)))
            }
            (Operator::Times, Term::Stream(input), Term::Factors(factors))
            | (Operator::Times, Term::Factors(factors), Term::Stream(input)) => {
                Some(Term::Stream(factors.into_iter().rev().fold(input, |input, factor| self.apply(input, factor))))
            }
            (Operator::Over, Term::Factors(mut factors), Term::Scalar(scalar)) => {
                factors.push(Factor::Scalar(divide(Scalar::Number(1.0), scalar)));
                Some(Term::Factors(factors))
            }
            (Operator::Plus | Operator::Minus, Term::Factors(_), Term::Stream(_))
            | (Operator::Plus | Operator::Minus, Term::Stream(_), Term::Factors(_)) => {
                let said = Diagnostic::error("wrong-type", "a stream and a learned factor cannot be added", at);
                self.fail(said.hint("multiply the factor with a stream"))
            }
            (Operator::Plus | Operator::Minus | Operator::Times, Term::Factors(a), Term::Factors(b)) => joined(operator, a, b),
            (Operator::Plus | Operator::Minus | Operator::Times, Term::Factors(a), Term::Scalar(b)) => {
                joined(operator, a, vec![Factor::Scalar(b)])
            }
            (Operator::Plus | Operator::Minus | Operator::Times, Term::Scalar(a), Term::Factors(b)) => {
                joined(operator, vec![Factor::Scalar(a)], b)
            }
            (Operator::Plus | Operator::Minus, ..) => {
                let said = Diagnostic::error("wrong-type", "a stream and a number cannot be added", at);
                self.fail(said.hint("multiply the number with a stream"))
            }
            (Operator::Times, ..) => self.fail(Diagnostic::error("wrong-type", "two streams cannot be multiplied", at)),
            (Operator::Over, ..) => self.fail(Diagnostic::error("wrong-type", "only a number can divide", at)),
            (Operator::Power, ..) => self.fail(Diagnostic::error("wrong-type", "only numbers have powers", at)),
            (Operator::About | Operator::Less | Operator::LessEqual | Operator::Greater, ..)
            | (Operator::GreaterEqual | Operator::Equal | Operator::NotEqual, ..) => self.fail(comparison(at)),
        }
    }

    /// A stream times a factor.
    fn apply(&mut self, input: Stream, factor: Factor) -> Stream {
        match factor {
            Factor::Scalar(factor) => scale(factor, input),
            Factor::Gain { slot, start } => Stream::Gain { slot, start, input: Box::new(input) },
            Factor::Learned { slot, start } => Stream::Learned { slot, start, input: Box::new(input) },
            Factor::Add(a, b) => {
                let [a, b] = self.spread(input, [a, b]);
                Stream::Add(a, b)
            }
            Factor::Subtract(a, b) => {
                let [a, b] = self.spread(input, [a, b]);
                Stream::Subtract(a, b)
            }
        }
    }

    /// A stream times each of two products: it is worked out once.
    fn spread(&mut self, input: Stream, products: [Factors; 2]) -> [Box<Stream>; 2] {
        let shared = match input {
            Stream::X | Stream::Embedded | Stream::Bound(_) => input,
            input => {
                self.bindings.push(input);
                Stream::Bound(self.bindings.len() - 1)
            }
        };
        products.map(|factors| {
            let times = |input, factor| match factor {
                Factor::Scalar(Scalar::Number(1.0)) => input,
                factor => self.apply(input, factor),
            };
            Box::new(factors.into_iter().rev().fold(shared.clone(), times))
        })
    }

    fn arithmetic(&mut self, operator: Operator, at: Span, a: Scalar, b: Scalar, span: Span) -> Option<Term> {
        let scalar = match operator {
            Operator::Plus => fold(Scalar::Add(Box::new(a), Box::new(b))),
            Operator::Minus => fold(Scalar::Subtract(Box::new(a), Box::new(b))),
            Operator::Times => multiply(a, b),
            Operator::Over => divide(a, b),
            Operator::Power => fold(Scalar::Power(Box::new(a), Box::new(b))),
            _ => return self.fail(comparison(at)),
        };
        self.constant(scalar, span)
    }

    /// A scalar; a constant that is no finite number is refused.
    fn constant(&mut self, scalar: Scalar, span: Span) -> Option<Term> {
        match scalar {
            Scalar::Number(value) if !value.is_finite() => {
                self.fail(Diagnostic::error("not-finite", format!("this is {value}"), span))
            }
            scalar => Some(Term::Scalar(scalar)),
        }
    }

    fn call(&mut self, name: &'a str, at: Span, arguments: &'a [Argument], span: Span, scope: Scope<'_, 'a>) -> Option<Term> {
        let known = self.place.functions();
        if !known.contains(&name) {
            // What stands inside is read all the same: it may hold `f`, or faults of its own.
            for part in arguments.iter().flat_map(|argument| &argument.value.parts) {
                self.term(part, scope);
            }
            let said = Diagnostic::error("unknown-function", format!("no function is called `{name}` here"), at);
            let said = said.did_you_mean(name, known.iter().copied());
            return self.fail(match (name, self.place) {
                ("attention" | "ffn", Place::Attention | Place::Ffn) => said.hint("in `sublayer`, `f` stands for both in turn"),
                ("f", Place::Layer) => said.hint("in `layer`, write `attention` and `ffn`"),
                ("f" | "attention" | "ffn", _) => said.hint("sublayers belong into `sublayer` and `layer`"),
                _ => said,
            });
        }
        match name {
            "norm" => {
                let [input] = self.operands(arguments, span)?;
                let slot = self.norms;
                self.norms += 1;
                Some(Term::Stream(Stream::Norm { slot, input: Box::new(self.stream(input, scope)?) }))
            }
            "stop" => {
                let [input] = self.operands(arguments, span)?;
                Some(Term::Stream(Stream::Stop(Box::new(self.stream(input, scope)?))))
            }
            "f" | "attention" | "ffn" => self.sublayer(name, arguments, span, scope),
            "gain" | "learned" => {
                let [start] = self.operands(arguments, span)?;
                let start = self.scalar(start, scope)?;
                let counter = if name == "gain" { &mut self.gains } else { &mut self.learned };
                let slot = *counter;
                *counter += 1;
                Some(Term::Factors(vec![if name == "gain" {
                    Factor::Gain { slot, start }
                } else {
                    Factor::Learned { slot, start }
                }]))
            }
            "sqrt" => {
                let [input] = self.operands(arguments, span)?;
                let input = self.scalar(input, scope)?;
                self.constant(fold(Scalar::Sqrt(Box::new(input))), span)
            }
            _ => {
                let [a, b] = self.operands(arguments, span)?;
                let (a, b) = (self.scalar(a, scope), self.scalar(b, scope));
                let (a, b) = (Box::new(a?), Box::new(b?));
                Some(Term::Scalar(fold(if name == "min" { Scalar::Min(a, b) } else { Scalar::Max(a, b) })))
            }
        }
    }

    fn sublayer(&mut self, name: &str, arguments: &'a [Argument], span: Span, scope: Scope<'_, 'a>) -> Option<Term> {
        let is_attention = name == "attention" || (name == "f" && self.place == Place::Attention);
        if is_attention {
            self.attention.push(span)
        } else {
            self.ffn.push(span)
        }
        let (inputs, options): (Vec<&'a Argument>, Vec<&'a Argument>) =
            arguments.iter().partition(|argument| argument.key.is_none());
        let mut qkv_norm = false;
        for option in options {
            let word = match option.value.parts.as_slice() {
                [Expr { kind: ExprKind::Name(word), .. }] => word.as_str(),
                _ => "",
            };
            let key = option.key.as_ref().map_or("", |key| key.text.as_str());
            match (name, key, word) {
                ("attention", "norm", "qkv") => qkv_norm = true,
                ("attention", "norm", _) => {
                    return self.fail(Diagnostic::error("unknown-name", "expected `qkv`", option.value.span));
                }
                _ => {
                    let message = format!("`{name}` has no parameter `{key}`");
                    let at = option.key.as_ref().map_or(option.value.span, |key| key.span);
                    return self.fail(Diagnostic::error("unknown-argument", message, at).did_you_mean(key, ["norm"]));
                }
            }
        }
        let [Argument { value, .. }] = inputs.as_slice() else {
            return self.fail(Diagnostic::error("wrong-arguments", format!("`{name}` reads one stream"), span));
        };
        let [input] = value.parts.as_slice() else {
            return self.fail(Diagnostic::error("unexpected-words", "expected one expression", value.span));
        };
        let input = Box::new(self.stream(input, scope)?);
        let sublayer = if is_attention { Sublayer::Attention { qkv_norm } } else { Sublayer::Ffn };
        Some(Term::Stream(Stream::Sublayer { sublayer, input }))
    }

    fn operands<const N: usize>(&mut self, arguments: &'a [Argument], span: Span) -> Option<[&'a Expr; N]> {
        let operands = self.checker.operands(arguments, N, span);
        if operands.is_none() {
            self.fine = false;
        }
        operands?.try_into().ok()
    }
}

fn stream_wanted(given: &str, span: Span) -> Diagnostic {
    Diagnostic::error("wrong-type", format!("expected a stream, found {given}"), span)
}

fn comparison(at: Span) -> Diagnostic {
    Diagnostic::error("unexpected-operator", "a comparison belongs behind `when`", at)
}

fn scale(factor: Scalar, input: Stream) -> Stream {
    Stream::Scale { factor, input: Box::new(input) }
}

/// A sum, difference or product of factors.
fn joined(operator: Operator, mut a: Factors, b: Factors) -> Option<Term> {
    Some(Term::Factors(match operator {
        Operator::Plus => vec![Factor::Add(a, b)],
        Operator::Minus => vec![Factor::Subtract(a, b)],
        _ => {
            a.extend(b);
            a
        }
    }))
}

/// A product; 1 is left out.
pub(super) fn multiply(a: Scalar, b: Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Number(1.0), other) | (other, Scalar::Number(1.0)) => other,
        (a, b) => fold(Scalar::Multiply(Box::new(a), Box::new(b))),
    }
}

/// A quotient.
pub(super) fn divide(a: Scalar, b: Scalar) -> Scalar {
    fold(Scalar::Divide(Box::new(a), Box::new(b)))
}

/// Constants become one number, so that equal equations have equal keys however they are written.
fn fold(scalar: Scalar) -> Scalar {
    let is_number = |scalar: &Scalar| matches!(scalar, Scalar::Number(_));
    let constant = match &scalar {
        Scalar::Add(a, b)
        | Scalar::Subtract(a, b)
        | Scalar::Multiply(a, b)
        | Scalar::Divide(a, b)
        | Scalar::Power(a, b)
        | Scalar::Min(a, b)
        | Scalar::Max(a, b) => is_number(a) && is_number(b),
        Scalar::Sqrt(a) => is_number(a),
        Scalar::Number(_) | Scalar::Layer | Scalar::Depth | Scalar::ActiveDepth | Scalar::Step => false,
    };
    if !constant {
        return scalar;
    }
    let nowhere = crate::study::equation::Moment { layer: 0, depth: 0, active_depth: 0, step: 0 };
    Scalar::Number(scalar.at(&nowhere))
}
