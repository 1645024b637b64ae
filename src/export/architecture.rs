//! Whether a model, as it stands at the end of a phase, is computed as a Llama or a Qwen3: by its equations, not by a placement's name.
//!
//! What an equation does in a forward pass is what counts: `stop` and factors that have come to 1 are nothing.

use crate::budget::params::{boundary, entry, exit, placements};
use crate::study::equation::{Equation, Moment, Stream, Sublayer};
use crate::study::placement::Body;
use crate::study::{Ffn, Model, NormKind, Positions};
use crate::timeline::Segment;

/// Which equation is another than theirs; `None`: none is.
pub(super) fn strange(model: &Model, segment: &Segment) -> Option<String> {
    let around = Moment { layer: 0, depth: model.layers, active_depth: segment.depth(), step: segment.steps.end };
    if let Some(equation) = entry(model)
        && !matches!(seen(&equation.result, equation, &around), Stream::X)
    {
        return Some("an entry equation".to_owned());
    }
    for place in 0..segment.depth() {
        let moment = Moment { layer: place + 1, ..around };
        let (first, second) = placements(model, place);
        let (Body::Sublayers { attention, .. }, Body::Sublayers { ffn, .. }) = (&first.body, &second.body) else {
            return Some(format!("the placement `{}`, an equation of whole layers", first.name));
        };
        for (placement, equation, sublayer) in
            [(first, attention.at(&moment), Sublayer::Attention { qkv_norm: false }), (second, ffn.at(&moment), Sublayer::Ffn)]
        {
            if !is_pre(equation, sublayer, &moment) {
                return Some(format!("the placement `{}`, which is not x + f(norm(x))", placement.name));
            }
        }
        if segment.block_ends.contains(&(place + 1))
            && let Some(equation) = boundary(model, place)
            && !matches!(seen(&equation.result, equation, &moment), Stream::X)
        {
            return Some("a boundary equation".to_owned());
        }
    }
    let normed = exit(model).is_some_and(|equation| match seen(&equation.result, equation, &around) {
        Stream::Norm { slot: 0, input } => matches!(seen(input, equation, &around), Stream::X),
        _ => false,
    });
    (!normed).then(|| "an exit that is not norm(x)".to_owned())
}

/// Why a model whose equations are theirs is none of theirs: what [`crate::data::hub::write`] has no word for.
pub(super) fn kinds(model: &Model) -> String {
    match (model.norm.kind, model.ffn, model.positions) {
        (NormKind::Layer { .. }, ..) => "layer norm in the place of RMS norm",
        (NormKind::Dyt { .. }, ..) => "Dynamic Tanh in the place of RMS norm",
        (NormKind::None, ..) => "no norms",
        (_, Ffn::Gelu { .. }, _) => "a GELU feed-forward network in the place of SwiGLU",
        (.., Positions::None) => "no positions",
        (NormKind::Rms, Ffn::SwiGlu { .. }, Positions::Rope { .. }) => "a vocabulary of unknown size",
    }
    .to_owned()
}

/// x + f(norm(x)), either way round.
fn is_pre(equation: &Equation, sublayer: Sublayer, moment: &Moment) -> bool {
    let see = |stream| seen(stream, equation, moment);
    let is_x = |stream| matches!(see(stream), Stream::X);
    let is_branch = |stream| match see(stream) {
        Stream::Sublayer { sublayer: found, input } if *found == sublayer => match see(input) {
            Stream::Norm { slot: 0, input } => is_x(input),
            _ => false,
        },
        _ => false,
    };
    match see(&equation.result) {
        Stream::Add(left, right) => is_x(left) && is_branch(right) || is_branch(left) && is_x(right),
        _ => false,
    }
}

/// A stream behind names and what does nothing in a forward pass.
fn seen<'a>(stream: &'a Stream, equation: &'a Equation, moment: &Moment) -> &'a Stream {
    let (mut stream, mut bound) = (stream, equation.bindings.len());
    loop {
        stream = match stream {
            // A name stands for something that was named before it.
            Stream::Bound(index) if *index < bound => {
                bound = *index;
                &equation.bindings[bound]
            }
            Stream::Stop(input) => input,
            Stream::Scale { factor, input } if factor.at(moment) == 1.0 => input,
            _ => return stream,
        };
    }
}
