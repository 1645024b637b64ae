//! Memory that training takes: a rough estimate, good to perhaps a factor of two, and to be printed as one.
//!
//! Owns the convention: everything in 32-bit floats; a gradient and what the optimizer keeps for each element that learns; for each layer that
//! gradients reach, what its reverse pass reads (the stream and its norms, queries, keys, values and their sum, the hidden
//! activations) for every token of a micro-batch, and the logits of a stretch of tokens twice. Scores of attention,
//! the corpus and the allocator's slack are left out; a teacher that runs beside is [`super::speaking`]'s. Deliberately knows no engine. Invariant: what does not learn costs nothing but
//! its value.

use serde::{Deserialize, Serialize};

use super::learning::{self, Learns};
use super::params::{Group, ParamSpec, parameters, vocabulary};
use crate::study::{Data, Ffn, Model, Training};
use crate::timeline::Segment;

/// Bytes, by what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Values of all parameters.
    pub parameters: u64,
    /// Gradients of those that learn.
    pub gradients: u64,
    /// What the optimizer keeps of those that learn.
    pub moments: u64,
    /// What the forward pass keeps for the reverse pass.
    pub activations: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.parameters + self.gradients + self.moments + self.activations
    }
}

pub(super) const FLOAT: u64 = 4;
/// Tokens whose logits are held at a time.
const LOGITS: u64 = 256;

/// Training in a segment.
pub fn estimate(model: &Model, training: &Training, data: &Data, segment: &Segment) -> Memory {
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let all: u64 = specs.iter().map(ParamSpec::elements).sum();
    let learning: Vec<&ParamSpec> = specs.iter().filter(|spec| learning::learns(model, spec, segment) == Learns::Yes).collect();
    let moments = |spec: &&ParamSpec| training.optimizer.moments(spec.group == Group::Matrix) as u64 * spec.elements();

    let tokens = training.batch.micro.min(segment.batch) * segment.context(data) as u64;
    let layer = working(model);
    let reached = (segment.depth() - learning::lowest(model, &specs, segment)) as u64;
    let logits = 2 * tokens.min(LOGITS) * vocabulary(model) as u64;
    Memory {
        parameters: FLOAT * all,
        gradients: FLOAT * learning.iter().map(|spec| spec.elements()).sum::<u64>(),
        moments: FLOAT * learning.iter().map(moments).sum::<u64>(),
        // Entry, exit and the layer at work need room of their own.
        activations: FLOAT * (tokens * (reached * layer + 2 * model.width as u64) + logits),
    }
}

/// Floats that a token needs in a layer: the stream and a norm of it before each sublayer; q, k, v and the weighted sum; the hidden
/// activations.
pub(super) fn working(model: &Model) -> u64 {
    let hidden = match model.ffn {
        Ffn::SwiGlu { width } => 3 * width,
        Ffn::Gelu { width } => 2 * width,
    };
    (4 * model.width + 2 * (model.heads + model.kv_heads) * model.head_dim + hidden) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::testing::{data, grow, model, training};
    use crate::study::schedule::Layers;
    use crate::study::{Action, Layout, Shard};
    use crate::timeline::{Declared, build};

    #[test]
    fn what_does_not_learn_costs_its_value_alone() {
        let mut schedule = grow(10);
        schedule.events[0].actions.push(Action::Freeze(Layers::Prefix));
        let timeline = build(&schedule, &model(), &training(), &Declared::Unknown, None).expect("a schedule");
        let data = data(Layout::Packed, Shard::Whole, None);
        let [first, _, last] = [0, 1, 2].map(|at| estimate(&model(), &training(), &data, &timeline.segments[at]));
        assert!(last.parameters > first.parameters);
        assert_eq!((last.gradients, last.activations), (first.gradients, first.activations));
        assert_eq!(last.moments, 2 * last.gradients);
        // The stated student has 2.981B parameters, its frozen embedding 0.622B of them.
        assert_eq!(last.parameters / 4 / 1_000_000, 2_981);
        assert_eq!(last.total(), last.parameters + 3 * last.gradients + last.activations);
    }
}
