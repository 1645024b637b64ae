//! A placement's portrait: its equations, its norms, what it makes of a layer that does nothing, what it does to the stream.
//!
//! Owns what can be read off an equation alone. Deliberately knows no model: sizes are told in its words.

use std::collections::BTreeSet;

use super::super::names::Kind;
use super::super::{Checker, LIBRARY, begins_statement, load};
use crate::source::{Source, World};
use crate::study::equation::{Branches, Equation, Scalar, Stream, Sublayer};
use crate::study::placement::{Body, Placement};
use crate::syntax::{ast, print};

/// What can be said about a placement by its name: one that `root` declares or uses, or one of the standard library.
pub fn placement(world: &dyn World, root: Option<Source>, name: &str) -> Option<String> {
    let nothing = || Source::new("nothing.exp", "");
    let loaded = load::load(world, root.unwrap_or_else(nothing));
    let checker = Checker::new(&loaded.sources, &loaded.units, loaded.said);
    let in_root = checker.names.last()?.of(Kind::Placement);
    let is_library =
        |unit: usize| LIBRARY.iter().any(|(library, _)| checker.sources.get(checker.units[unit].file).name == *library);
    let shipped =
        (0..checker.names.len()).filter(|unit| is_library(*unit)).flat_map(|unit| checker.names[unit].of(Kind::Placement));
    let declared = in_root.chain(shipped).find(|declared| declared.declaration.name.text == name)?;
    let placement = checker.placement(&checker.alone(declared)?)?;
    Some(portrait(&placement, &written(&checker, declared.declaration)))
}

/// The declaration as it is written, laid out.
fn written(checker: &Checker<'_>, declaration: &ast::Declaration) -> String {
    let span = crate::source::Span { start: declaration.keyword.span.start, ..declaration.span };
    let text = checker.sources.text(span);
    print(&Source::new("", text), &begins_statement).unwrap_or_else(|_| text.to_owned())
}

fn portrait(placement: &Placement, written: &str) -> String {
    let mut text = written.trim_end().to_owned() + "\n\n";
    if let Some(doc) = &placement.doc {
        text.push_str(&format!("{doc}\n\n"));
    }
    let mut rows: Vec<(String, String)> = Vec::new();
    let once =
        |name: &str, equation: &Option<Equation>| equation.as_ref().map(|equation| (name.to_owned(), told(equation, false)));
    rows.extend(once("entry, on the embeddings", &placement.entry));
    let (body, branches) = match &placement.body {
        Body::Sublayers { attention, .. } => ("sublayer, two a layer", attention),
        Body::Layer(branches) => ("layer", branches),
    };
    rows.extend(cases(branches).map(|(case, equation)| (format!("{body}{case}"), told(equation, true))));
    rows.extend(once("boundary, after each block", &placement.boundary));
    rows.extend(once("exit, before the head", &placement.exit));
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, told) in &rows {
        text.push_str(&format!("{name:widest$}  {told}\n"));
    }
    let all = || cases(branches).map(|(_, equation)| passes(equation, Reading::AtFirst));
    let bounded = placement.boundary.as_ref().is_some_and(|boundary| !passes(boundary, Reading::AtFirst));
    text.push_str(match (all().all(|passes| passes), all().any(|passes| passes)) {
        (true, _) if bounded => {
            "\nNew layers can start as the identity, but a new block brings a boundary of its own, which changes the stream.\n"
        }
        (true, _) => "\nNew layers can start as the identity: `grow block as identity` changes nothing the model says.\n",
        (false, true) => "\nWhether new layers can start as the identity depends on the case that they fall under.\n",
        (false, false) => {
            "\nNew layers cannot start as the identity: `grow block as identity` still changes what the model says.\n"
        }
    });
    text.push_str(
        "A norm has `width` weights, a norm of queries, keys or values the width of a head; a shift, where its kind has one, as many again, and\n\
         not in heads; `dyt` one scalar more; `none` nothing at all. A gain has `width` weights, a learned scalar one.\n",
    );
    text
}

/// The cases of an equation, with words for each.
fn cases(branches: &Branches) -> impl Iterator<Item = (String, &Equation)> {
    let several = !branches.cases.is_empty();
    let cases = branches.cases.iter().enumerate();
    let cases = cases.map(|(number, (_, equation))| (format!(", case {}", number + 1), equation));
    cases.chain([(if several { ", otherwise".to_owned() } else { String::new() }, &branches.otherwise)])
}

/// What an equation has and does, in a line.
fn told(equation: &Equation, in_layer: bool) -> String {
    let mut parts = Vec::new();
    let counts = [
        ("norm", count(equation, &|stream| if let Stream::Norm { slot, .. } = stream { Some(*slot) } else { None })),
        ("gain", count(equation, &|stream| if let Stream::Gain { slot, .. } = stream { Some(*slot) } else { None })),
        ("learned scalar", count(equation, &|stream| if let Stream::Learned { slot, .. } = stream { Some(*slot) } else { None })),
        ("norm of queries, keys and values", count(equation, &|stream| normed_inside(stream).then_some(0))),
    ];
    for (what, number) in counts {
        match number {
            0 => {}
            1 => parts.push(format!("1 {what}")),
            _ => parts.push(format!("{number} {what}s")),
        }
    }
    if parts.is_empty() {
        parts.push("no norm".to_owned());
    }
    if in_layer {
        let passes = if passes(equation, Reading::Still) {
            "x passes unchanged where sublayers give 0"
        } else {
            "x changes even where sublayers give 0"
        };
        parts.push(passes.to_owned());
    }
    let sum = sum(equation, Reading::Whole);
    let is_normed = matches!(sum.as_slice(), [(factor, Stream::Norm { .. })] if *factor == 1.0);
    parts.push(if is_normed { "the stream leaves normalised" } else { "the stream leaves as it is" }.to_owned());
    parts.join("; ")
}

fn normed_inside(stream: &Stream) -> bool {
    matches!(stream, Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: true }, .. })
}

/// How many different slots the parts of an equation have: what is shared counts once.
fn count(equation: &Equation, slot: &dyn Fn(&Stream) -> Option<usize>) -> usize {
    fn of(stream: &Stream, slot: &dyn Fn(&Stream) -> Option<usize>, seen: &mut BTreeSet<usize>) {
        seen.extend(slot(stream));
        match stream {
            Stream::X | Stream::Embedded | Stream::Bound(_) => {}
            Stream::Norm { input, .. }
            | Stream::Sublayer { input, .. }
            | Stream::Gain { input, .. }
            | Stream::Learned { input, .. }
            | Stream::Scale { input, .. }
            | Stream::Stop(input) => of(input, slot, seen),
            Stream::Add(a, b) | Stream::Subtract(a, b) => {
                of(a, slot, seen);
                of(b, slot, seen);
            }
        }
    }
    let mut seen = BTreeSet::new();
    equation.bindings.iter().chain([&equation.result]).for_each(|stream| of(stream, slot, &mut seen));
    seen.len()
}

/// How an equation is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As it stands.
    Whole,
    /// Sublayers give 0.
    Still,
    /// Sublayers give 0, and learned factors have their first values.
    AtFirst,
}

/// Whether an equation gives back `x` where its sublayers give 0.
fn passes(equation: &Equation, reading: Reading) -> bool {
    matches!(sum(equation, reading).as_slice(), [(factor, Stream::X)] if *factor == 1.0)
}

/// The value of an equation as a sum of multiples of streams that are no sums.
fn sum(equation: &Equation, reading: Reading) -> Vec<(f64, &Stream)> {
    let mut terms: Vec<(f64, &Stream)> = Vec::new();
    add(equation, &equation.result, 1.0, reading, &mut terms);
    terms.retain(|(factor, _)| *factor != 0.0);
    terms
}

fn add<'e>(equation: &'e Equation, stream: &'e Stream, factor: f64, reading: Reading, terms: &mut Vec<(f64, &'e Stream)>) {
    match stream {
        Stream::Bound(index) => {
            if let Some(bound) = equation.bindings.get(*index) {
                add(equation, bound, factor, reading, terms);
            }
        }
        // The value is that of what is inside.
        Stream::Stop(input) => add(equation, input, factor, reading, terms),
        Stream::Add(a, b) => {
            add(equation, a, factor, reading, terms);
            add(equation, b, factor, reading, terms);
        }
        Stream::Subtract(a, b) => {
            add(equation, a, factor, reading, terms);
            add(equation, b, -factor, reading, terms);
        }
        Stream::Scale { factor: Scalar::Number(number), input } => add(equation, input, factor * number, reading, terms),
        Stream::Gain { start: Scalar::Number(start), input, .. }
        | Stream::Learned { start: Scalar::Number(start), input, .. }
            if reading == Reading::AtFirst =>
        {
            add(equation, input, factor * start, reading, terms);
        }
        _ if reading != Reading::Whole && is_zero(equation, stream) => {}
        _ => match terms.iter_mut().find(|(_, known)| *known == stream) {
            Some((known, _)) => *known += factor,
            None => terms.push((factor, stream)),
        },
    }
}

/// Whether a stream is 0 where sublayers give 0: of 0, norms, gains and all multiples are 0.
fn is_zero(equation: &Equation, stream: &Stream) -> bool {
    match stream {
        Stream::Sublayer { .. } => true,
        Stream::Norm { input, .. }
        | Stream::Gain { input, .. }
        | Stream::Learned { input, .. }
        | Stream::Scale { input, .. }
        | Stream::Stop(input) => is_zero(equation, input),
        Stream::Bound(index) => equation.bindings.get(*index).is_some_and(|bound| is_zero(equation, bound)),
        Stream::Add(a, b) | Stream::Subtract(a, b) => is_zero(equation, a) && is_zero(equation, b),
        Stream::X | Stream::Embedded => false,
    }
}
