//! The part of a card that says how to load a model: with `transformers`, or by hand from its equations.
//!
//! Sublayers, norms and positions are defined here as they are computed; numbered parts of equations are called as their parameters are.

use super::Words;
use crate::budget::params::{boundary, entry, exit, placements, tied};
use crate::study::equation::{Branches, Comparison, Equation, Scalar, Stream, Sublayer};
use crate::study::placement::Body;
use crate::study::{Ffn, Model, NormKind, Positions};
use crate::timeline::Segment;

/// For a folder that `transformers` loads.
pub(super) fn theirs(words: &Words) -> String {
    let tokenizer = if words.file.is_some() { "tokenizer = AutoTokenizer.from_pretrained(folder)\n" } else { "" };
    let import = if words.file.is_some() { "AutoModelForCausalLM, AutoTokenizer" } else { "AutoModelForCausalLM" };
    format!(
        "```python\nfrom transformers import {import}\n\nmodel = AutoModelForCausalLM.from_pretrained(folder)\n{tokenizer}```\n\n\
         With xrun, `checkpoint` of a `teacher` takes the folder, and `init from` its `model.safetensors`.\n\n{}",
        spelling(words)
    )
}

fn spelling(words: &Words) -> String {
    let end = match &words.file {
        Some(_) => format!("Token {} ends a document.", words.end),
        None => {
            format!("There is no tokenizer file: a token is a byte of UTF-8 text, 0 to 255, and {} ends a document.", words.end)
        }
    };
    format!("{end} No token begins one: the first token of a document saw nothing before it.\n")
}

/// For a folder that nothing but xrun loads, for a `reason`.
pub(super) fn ours(model: &Model, segment: &Segment, reason: &str, words: &Words) -> String {
    let mut rows = Vec::new();
    let mut row = |prefix: String, text: String| rows.push(format!("| `{prefix}` | `{text}` |\n"));
    if let Some(equation) = entry(model) {
        row("entry".to_owned(), told(equation));
    }
    let mut place = 0;
    while place < segment.depth() {
        let (first, second) = placements(model, place);
        let same =
            |other: usize| std::ptr::eq(placements(model, other).0, first) && std::ptr::eq(placements(model, other).1, second);
        let until = (place..segment.depth()).take_while(|other| same(*other)).last().unwrap_or(place);
        let layers = if until == place { format!("layers.{place}") } else { format!("layers.{place} to {until}") };
        match (&first.body, &second.body) {
            (Body::Layer(branches), _) | (Body::Sublayers { .. }, Body::Layer(branches)) => row(layers, cases(branches)),
            (Body::Sublayers { attention, .. }, Body::Sublayers { ffn, .. }) => {
                row(format!("{layers}, attention"), cases(attention));
                row(format!("{layers}, ffn"), cases(ffn));
            }
        }
        place = until + 1;
    }
    let ends = segment.block_ends.iter().filter_map(|end| Some((*end, boundary(model, end.checked_sub(1)?)?)));
    for (end, equation) in ends {
        row(format!("layers.{}.boundary", end - 1), told(equation));
    }
    if let Some(equation) = exit(model) {
        row("exit".to_owned(), told(equation));
    }
    format!(
        "`transformers` has no such architecture, for it has {reason}. With xrun, `init from` starts a model of the same declaration from `model.safetensors`.\n\n\
         The file has every parameter under xrun's own name, in 32-bit floats; layers are counted from the bottom, from 0; a matrix has the shape (out, in) and is \
         applied as y = x Wᵀ. {}\n| parameters | what is computed |\n| :-- | :-- |\n{}\n{}\n{}",
        spelling(words),
        rows.concat(),
        reading(model, segment),
        sizes(model, segment),
    )
}

/// What the words of the equations are.
fn reading(model: &Model, segment: &Segment) -> String {
    let ffn = match model.ffn {
        Ffn::SwiGlu { .. } => "down(silu(gate s) ⊙ up s)",
        Ffn::Gelu { .. } => "down(gelu(up s)), tanh approximation",
    };
    let eps = model.norm.eps;
    let norm = match model.norm.kind {
        NormKind::Rms => format!("w ⊙ s / sqrt(mean(s²) + {eps:e})"),
        NormKind::Layer { bias } => {
            let shift = if bias { " + bias" } else { "" };
            format!("w ⊙ (s − mean(s)) / sqrt(var(s) + {eps:e}){shift}")
        }
        NormKind::Dyt { .. } => "w ⊙ tanh(alpha · s) + bias".to_owned(),
        NormKind::None => "s itself".to_owned(),
    };
    let positions = match model.positions {
        Positions::Rope { base } => format!(
            "queries and keys are rotated in pairs (i, i + {}) by position · {base}^(−2i/{})",
            model.head_dim / 2,
            model.head_dim
        ),
        Positions::None => "nothing tells positions".to_owned(),
    };
    let qk = if model.qk_norm { ", after `q_norm` and `k_norm` head by head" } else { "" };
    let head = if tied(model) { "embedding" } else { "head" };
    format!(
        "- `x` is the stream, `x0` the embeddings after `entry`; a part's own parameters are called after it: `norm2` of `layers.3, ffn` is `layers.3.ffn.norm2`.\n\
         - `l` is a layer's place from 1, `L` is {}, `L_active` {}, `step` {}.\n\
         - `attention(s)` is causal, {} query heads of {} over {} of keys and values, scores divided by sqrt({}); {positions}{qk}; `q k v o` of its layer.\n\
         - `ffn(s)` is {ffn}.\n- `norm(s)` is {norm}.\n- Logits are the last stream times `{head}`ᵀ.\n",
        model.layers,
        segment.depth(),
        segment.steps.end,
        model.heads,
        model.head_dim,
        model.kv_heads,
        model.head_dim,
    )
}

fn sizes(model: &Model, segment: &Segment) -> String {
    let hidden = match model.ffn {
        Ffn::SwiGlu { width } | Ffn::Gelu { width } => width,
    };
    format!(
        "Sizes: {} layers, width {}, hidden width {hidden}, vocabulary {}.\n",
        segment.depth(),
        model.width,
        crate::budget::params::vocabulary(model)
    )
}

fn cases(branches: &Branches) -> String {
    if branches.cases.is_empty() {
        return told(&branches.otherwise);
    }
    let case = |(condition, equation): &(crate::study::equation::Condition, Equation)| {
        let sign = match condition.comparison {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
        };
        format!("{} when {} {sign} {}, ", told(equation), scalar(&condition.left), scalar(&condition.right))
    };
    let all: String = branches.cases.iter().map(case).collect();
    format!("{all}otherwise {}", told(&branches.otherwise))
}

fn told(equation: &Equation) -> String {
    let bound = equation.bindings.iter().enumerate().map(|(at, value)| format!("y{} = {}; ", at + 1, stream(value)));
    bound.chain([stream(&equation.result)]).collect()
}

fn stream(of: &Stream) -> String {
    let numbered = |word: &str, slot: usize| if slot == 0 { word.to_owned() } else { format!("{word}{}", slot + 1) };
    // A sum that is scaled or taken away stands in parentheses.
    let part = |of: &Stream| match of {
        Stream::Add(..) | Stream::Subtract(..) => format!("({})", stream(of)),
        _ => stream(of),
    };
    match of {
        Stream::X => "x".to_owned(),
        Stream::Embedded => "x0".to_owned(),
        Stream::Bound(index) => format!("y{}", index + 1),
        Stream::Norm { slot, input } => format!("{}({})", numbered("norm", *slot), stream(input)),
        Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: true }, input } => {
            format!("attention({}, norm: qkv)", stream(input))
        }
        Stream::Sublayer { sublayer: Sublayer::Attention { .. }, input } => format!("attention({})", stream(input)),
        Stream::Sublayer { sublayer: Sublayer::Ffn, input } => format!("ffn({})", stream(input)),
        Stream::Gain { slot, input, .. } => format!("{} * {}", numbered("gain", *slot), part(input)),
        Stream::Learned { slot, input, .. } => format!("{} * {}", numbered("learned", *slot), part(input)),
        Stream::Scale { factor, input } => format!("{} * {}", scalar(factor), part(input)),
        Stream::Add(left, right) => format!("{} + {}", stream(left), stream(right)),
        Stream::Subtract(left, right) => format!("{} - {}", stream(left), part(right)),
        Stream::Stop(input) => format!("stop({})", stream(input)),
    }
}

fn scalar(of: &Scalar) -> String {
    let both = |left: &Scalar, sign: &str, right: &Scalar| format!("({} {sign} {})", scalar(left), scalar(right));
    match of {
        Scalar::Number(value) => value.to_string(),
        Scalar::Layer => "l".to_owned(),
        Scalar::Depth => "L".to_owned(),
        Scalar::ActiveDepth => "L_active".to_owned(),
        Scalar::Step => "step".to_owned(),
        Scalar::Add(left, right) => both(left, "+", right),
        Scalar::Subtract(left, right) => both(left, "-", right),
        Scalar::Multiply(left, right) => both(left, "*", right),
        Scalar::Divide(left, right) => both(left, "/", right),
        Scalar::Power(left, right) => both(left, "^", right),
        Scalar::Sqrt(inner) => format!("sqrt({})", scalar(inner)),
        Scalar::Min(left, right) => format!("min({}, {})", scalar(left), scalar(right)),
        Scalar::Max(left, right) => format!("max({}, {})", scalar(left), scalar(right)),
    }
}
