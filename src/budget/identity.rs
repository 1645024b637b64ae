//! Whether layers that arrive as identity leave the function as it was.
//!
//! Owns the reading of equations with sublayers that give zero. Deliberately knows no tensor: streams are multiples of `x`, or anything
//! else. Invariant: where it says that the function stays, it stays up to rounding; `tests/numerics` measures it for the library.

use super::params::{boundary, branches, entry, exit};
use crate::study::equation::{Equation, Moment, Scalar, Stream};
use crate::study::{Model, NormKind};
use crate::timeline::{FirstValues, LayerId, Segment};

/// Whether the layers that `after` adds as identity to the stack of `before` change no value of the model.
pub fn keeps(model: &Model, before: &Segment, after: &Segment) -> bool {
    let view = |segment| View { model, segment, step: after.steps.start };
    let (before, after) = (view(before), view(after));
    let identities = after.segment.new_layers.iter().filter(|new| new.first == FirstValues::Identity);
    let arrive: Vec<LayerId> = identities.map(|new| new.layer).collect();
    let stay = |layer: &LayerId| before.place(*layer).is_some() && after.place(*layer).is_some();
    let known = |layer: &LayerId| stay(layer) || arrive.contains(layer);
    arrive.iter().all(|layer| after.layer(*layer).iter().map(multiple).product::<Option<f64>>() == Some(1.0))
        && after.segment.stack.iter().filter(|layer| stay(layer)).all(|layer| before.layer(*layer) == after.layer(*layer))
        && before.segment.stack.iter().chain(&after.segment.stack).filter(|layer| known(layer)).all(|layer| {
            let (before, after) = (before.boundary(*layer), after.boundary(*layer));
            let passes = |boundary: &Option<Equation>| boundary.as_ref().is_none_or(|equation| multiple(equation) == Some(1.0));
            before == after || (passes(&before) && passes(&after))
        })
        && before.end(entry(model)) == after.end(entry(model))
        && before.end(exit(model)) == after.end(exit(model))
}

/// A model in a segment.
struct View<'a> {
    model: &'a Model,
    segment: &'a Segment,
    step: u64,
}

impl View<'_> {
    fn place(&self, layer: LayerId) -> Option<usize> {
        self.segment.stack.iter().position(|other| *other == layer)
    }
    fn moment(&self, layer: usize) -> Moment {
        Moment { layer, depth: self.model.layers, active_depth: self.segment.depth(), step: self.step }
    }
    /// The equations of a layer in order, their factors worked out.
    fn layer(&self, layer: LayerId) -> Vec<Equation> {
        let Some(place) = self.place(layer) else { return Vec::new() };
        let moment = self.moment(place + 1);
        let (first, second) = branches(self.model, place);
        std::iter::once(first).chain(second).map(|branches| self.worked_out(branches.at(&moment), &moment)).collect()
    }
    /// What stands behind a layer that ends a block.
    fn boundary(&self, layer: LayerId) -> Option<Equation> {
        let place = self.place(layer).filter(|place| self.segment.block_ends.contains(&(place + 1)))?;
        boundary(self.model, place).map(|equation| self.worked_out(equation, &self.moment(place + 1)))
    }
    /// The equation of entry or exit.
    fn end(&self, equation: Option<&Equation>) -> Option<Equation> {
        equation.map(|equation| self.worked_out(equation, &self.moment(0)))
    }
    /// An equation with the numbers that its factors and starts have at a moment, and the norms that the model has.
    fn worked_out(&self, equation: &Equation, moment: &Moment) -> Equation {
        let bare = self.model.norm.kind == NormKind::None;
        equation.replaced(&|part| {
            let part = part.with_scalar(|scalar| Scalar::Number(scalar.at(moment)));
            if bare { part.bare() } else { part }
        })
    }
}

/// By how much an equation multiplies `x` while every sublayer gives zero; `None` if it does anything else to it.
fn multiple(equation: &Equation) -> Option<f64> {
    let mut bound = Vec::new();
    for binding in &equation.bindings {
        bound.push(of(binding, &bound));
    }
    of(&equation.result, &bound)
}

fn of(stream: &Stream, bound: &[Option<f64>]) -> Option<f64> {
    let number = |scalar: &Scalar| if let Scalar::Number(number) = scalar { Some(*number) } else { None };
    match stream {
        Stream::X => Some(1.0),
        Stream::Embedded => None,
        Stream::Bound(index) => bound.get(*index).copied().flatten(),
        // The norm of nothing is nothing: its shift starts at zero.
        Stream::Norm { input, .. } => of(input, bound).filter(|multiple| *multiple == 0.0),
        Stream::Sublayer { .. } => Some(0.0),
        Stream::Gain { start, input, .. } | Stream::Learned { start, input, .. } | Stream::Scale { factor: start, input } => {
            Some(number(start)? * of(input, bound)?)
        }
        Stream::Add(left, right) => Some(of(left, bound)? + of(right, bound)?),
        Stream::Subtract(left, right) => Some(of(left, bound)? - of(right, bound)?),
        Stream::Stop(input) => of(input, bound),
    }
}
