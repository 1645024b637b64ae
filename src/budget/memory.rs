//! Memory that training takes, by what holds it.
//!
//! Owns the convention, which is that of the fused engine: everything in 32-bit floats; a gradient and what the optimizer keeps for each
//! element that learns; for each layer that gradients reach, what its reverse pass reads (inputs of norms, sublayers and gains,
//! statistics of norms, queries, keys, values and their sum, the hidden activations) for every token of a micro-batch; besides, what one layer
//! and the head need while they are worked on. The corpus and the allocator's slack are left out; a teacher that runs beside is
//! [`super::speaking`]'s. Invariant: what does not learn costs nothing but its value. Held against what is taken in `tests/alone/memory.rs`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::learning::{self, Learns};
use super::params::{Group, ParamSpec, boundary, branches, parameters, vocabulary};
use crate::study::equation::{Equation, Stream};
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
    /// What a layer and the head need while they are worked on, and a checkpoint while it is written.
    pub work: u64,
    /// The program itself.
    pub program: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.parameters + self.gradients + self.moments + self.activations + self.work + self.program
    }
}

pub(super) const FLOAT: u64 = 4;
/// Parts that a batch is worked on in, side by side: each has gradients and scratch memory of its own.
const SHARDS: u64 = 2;
/// Tokens of a part whose logits are held at a time.
const LOGITS: u64 = 256;
/// Queries whose scores the reverse pass of attention holds at a time.
const QUERIES: u64 = 64;
/// Bytes of code and of what it keeps besides; measured: the largest resident size of a run of a model of width 8.
pub const PROGRAM: u64 = 18 << 20;

/// Training in a segment.
pub fn estimate(model: &Model, training: &Training, data: &Data, segment: &Segment) -> Memory {
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let elements = |some: &dyn Fn(&&ParamSpec) -> bool| specs.iter().filter(some).map(ParamSpec::elements).sum::<u64>();
    let learning: Vec<&ParamSpec> = specs.iter().filter(|spec| learning::learns(model, spec, segment) == Learns::Yes).collect();
    let moments = |spec: &&ParamSpec| training.optimizer.moments(spec.group == Group::Matrix) as u64 * spec.elements();

    let rows = training.batch.micro.min(segment.batch);
    let context = segment.context(data) as u64;
    let tokens = rows * context;
    let [width, heads, kv_heads, head_dim] = [model.width, model.heads, model.kv_heads, model.head_dim].map(|size| size as u64);
    let (hidden, inward) = match model.ffn {
        Ffn::SwiGlu { width } => (width as u64, 2 * width as u64),
        Ffn::Gelu { width } => (width as u64, width as u64),
    };
    let (packed, merged) = ((heads + 2 * kv_heads) * head_dim, heads * head_dim);
    let lowest = learning::lowest(model, &specs, segment);
    let kept: u64 = (lowest..segment.depth())
        .map(|place| streams(model, segment, place).floats(width) + packed + merged + heads + inward)
        .sum();
    // Of what is kept, what layers pass on goes with the reverse pass while gradients come: the larger of both is held.
    let reached = (segment.depth() - lowest) as u64;
    let passed = tokens * width * (reached + 2);
    let gradients = learning.iter().map(|spec| spec.elements()).sum::<u64>();
    let activations = tokens * (kept - reached * width) + passed.saturating_sub(gradients);

    // What a layer makes on its way and keeps not: values of the model's width, and those inside a sublayer; memory of one size serves all.
    let inside: BTreeSet<u64> = [width, packed, merged, hidden].into();
    let layer = tokens * (2 * width + inside.iter().sum::<u64>());
    let largest = segment.stack.iter().map(|layer| elements(&|spec: &&ParamSpec| spec.layer == Some(*layer))).max().unwrap_or(0);
    let slopes = if lowest < segment.depth() { (SHARDS + 1) * largest } else { 0 };
    let (context, across) = (context.next_multiple_of(16), head_dim.next_multiple_of(16));
    let attention = SHARDS * (context * (9 * across + 2 * head_dim + 6) + 2 * QUERIES * context);
    let size = vocabulary(model) as u64;
    let learns = learning.iter().any(|spec| matches!(spec.group, Group::Embedding | Group::Head));
    let head = SHARDS * size * (tokens.div_ceil(SHARDS).min(LOGITS) + 2 + if learns { width } else { 0 });
    // A checkpoint is written when gradients are gone: a tensor at a time, as values and as bytes.
    let tensor = specs.iter().map(ParamSpec::elements).max().unwrap_or(0);
    let saved = (2 * tensor).saturating_sub(gradients);
    Memory {
        parameters: FLOAT * elements(&|_| true),
        gradients: FLOAT * gradients,
        moments: FLOAT * learning.iter().map(moments).sum::<u64>(),
        activations: FLOAT * activations,
        work: FLOAT * (layer + slopes + attention + head + saved),
        program: PROGRAM,
    }
}

/// What equations keep of each token.
#[derive(Default)]
struct Streams {
    /// Inputs that the reverse pass reads, of the model's width.
    inputs: u64,
    /// Norms, with two numbers each.
    norms: u64,
}

impl Streams {
    fn floats(&self, width: u64) -> u64 {
        self.inputs * width + 2 * self.norms
    }
}

/// Those of the layer at a place, under whichever case of its equations keeps the most.
fn streams(model: &Model, segment: &Segment, place: usize) -> Streams {
    let (first, second) = branches(model, place);
    let most = [Some(first), second].into_iter().flatten().filter_map(|branches| {
        branches.cases.iter().map(|(_, equation)| equation).chain([&branches.otherwise]).map(of).max_by_key(|kept| kept.inputs)
    });
    let end = segment.block_ends.contains(&(place + 1)).then(|| boundary(model, place)).flatten().map(of);
    most.chain(end).fold(Streams::default(), |sum, one| Streams { inputs: sum.inputs + one.inputs, norms: sum.norms + one.norms })
}

fn of(equation: &Equation) -> Streams {
    let (mut inputs, mut norms): (Vec<&Stream>, u64) = (Vec::new(), 0);
    for stream in equation.bindings.iter().chain([&equation.result]) {
        super::params::walk(stream, &mut |part| match part {
            Stream::Norm { input, .. }
            | Stream::Sublayer { input, .. }
            | Stream::Gain { input, .. }
            | Stream::Learned { input, .. } => {
                norms += u64::from(matches!(part, Stream::Norm { .. }));
                if !inputs.contains(&&**input) {
                    inputs.push(input);
                }
            }
            Stream::X | Stream::Embedded | Stream::Bound(_) => {}
            Stream::Scale { .. } | Stream::Add(..) | Stream::Subtract(..) | Stream::Stop(_) => {}
        });
    }
    Streams { inputs: inputs.len() as u64, norms }
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
        assert_eq!((last.gradients, last.activations, last.work), (first.gradients, first.activations, first.work));
        assert_eq!(last.moments, 2 * last.gradients);
        // The stated student has 2.981B parameters, its frozen embedding 0.622B of them.
        assert_eq!(last.parameters / 4 / 1_000_000, 2_981);
        assert_eq!(last.total(), last.parameters + 3 * last.gradients + last.activations + last.work + last.program);
    }
}
