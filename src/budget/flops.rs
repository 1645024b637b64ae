//! FLOPs of steps: an estimate from the architecture, for comparing arms and for guessing times.
//!
//! Owns the convention. A multiply-add is 2. A matrix costs 2 per element and token forward; backward as much again for the gradient
//! of its input and as much for its own. Attention proper is counted over the causal half: 2·T²·H·K a layer and sequence forward and
//! twice that backward, so that training costs 6·L·B·T²·H·K; T is the mean of real tokens of a sequence, and boundaries between the
//! documents of a packed sequence save nothing. Layers below the lowest thing that learns run forward only; a frozen layer above it
//! has gradients of its input and none of its own. Head apart; embedding look-ups, norms, gains, softmax, loss and optimizer count
//! nothing; a teacher runs forward and is told apart. Deliberately knows no machine. Invariant: an unresolved
//! `Vocabulary::OfTokenizer` makes the head 0.

use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

use super::learning;
use super::params::{Group, ParamSpec, parameters, vocabulary};
use super::tokens::Count;
use crate::study::Model;
use crate::timeline::{LayerId, Segment};

/// What steps cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Flops {
    /// The matrices of layers.
    pub matrices: f64,
    /// Attention proper: scores and weighted sums.
    pub attention: f64,
    /// The head.
    pub head: f64,
}

impl Flops {
    /// All of it.
    pub fn with_head(&self) -> f64 {
        self.matrices + self.attention + self.head
    }
    /// The layers alone.
    pub fn without_head(&self) -> f64 {
        self.matrices + self.attention
    }
}

impl Add for Flops {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (matrices, attention) = (self.matrices + other.matrices, self.attention + other.attention);
        Self { matrices, attention, head: self.head + other.head }
    }
}

impl Sum for Flops {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// Training on what a segment reads.
pub fn training(model: &Model, segment: &Segment, read: &Count) -> Flops {
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let forward = forward_of(model, &specs, &segment.stack, read);
    let from = learning::lowest(model, &specs, segment);
    let mut total = Flops { head: forward.head * (2.0 + learning::head(model, segment)), ..Flops::default() };
    for (place, layer) in forward.layers.iter().enumerate() {
        let passes = if place >= from { 1.0 } else { 0.0 };
        let own = if segment.learns(place) { 1.0 } else { 0.0 };
        total.matrices += layer.matrices * (1.0 + passes + own);
        total.attention += layer.attention * (1.0 + 2.0 * passes);
    }
    total
}

/// A forward pass of a stack over so much: evaluation, or a teacher.
pub fn forward(model: &Model, stack: &[LayerId], block_ends: &[usize], read: &Count) -> Flops {
    let forward = forward_of(model, &parameters(model, stack, block_ends), stack, read);
    let layers: Flops = forward.layers.into_iter().sum();
    Flops { head: forward.head, ..layers }
}

struct Forward {
    layers: Vec<Flops>,
    head: f64,
}

fn forward_of(model: &Model, specs: &[ParamSpec], stack: &[LayerId], read: &Count) -> Forward {
    let tokens = read.tokens as f64;
    let length = if read.sequences == 0 { 0.0 } else { tokens / read.sequences as f64 };
    let attention = 2.0 * tokens * length * (model.heads * model.head_dim) as f64;
    let layer = |id: &LayerId| {
        let matrices = specs.iter().filter(|spec| spec.layer == Some(*id) && spec.group == Group::Matrix);
        let elements: u64 = matrices.map(ParamSpec::elements).sum();
        Flops { matrices: 2.0 * tokens * elements as f64, attention, head: 0.0 }
    };
    let head = 2.0 * tokens * vocabulary(model) as f64 * model.width as f64;
    Forward { layers: stack.iter().map(layer).collect(), head }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::testing::{grow, joint, model, training as recipe};
    use crate::study::schedule::Layers;
    use crate::study::{Action, Schedule};
    use crate::timeline::{Declared, build};

    fn costs(schedule: &Schedule) -> Vec<Flops> {
        let source = Declared::PerStep { tokens: 100, batch: 1 };
        let timeline = build(schedule, &model(), &recipe(), &source, None).expect("a schedule");
        let read = |segment: &Segment| Count { sequences: segment.length(), tokens: 100 * segment.length(), ..Count::default() };
        timeline.segments.iter().map(|segment| training(&model(), segment, &read(segment))).collect()
    }

    /// Matrix elements of a layer: q and o, k and v, three of the feed-forward network.
    const LAYER: f64 = (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 12_288) as f64;
    const HEAD: f64 = (151_936 * 4096) as f64;

    #[test]
    fn training_is_six_per_element_and_token() {
        // Nothing learns below the first layer of this student, but the layer itself passes gradients within.
        let cost = costs(&joint(10))[0];
        assert_eq!(cost.matrices, 6.0 * 1_000.0 * 9.0 * LAYER);
        assert_eq!(cost.attention, 6.0 * 9.0 * 10.0 * 100.0 * 100.0 * 4096.0);
        assert_eq!(cost.head, 6.0 * 1_000.0 * HEAD);
    }

    #[test]
    fn a_frozen_prefix_runs_forward_only() {
        let mut schedule = grow(10);
        schedule.events[0].actions.push(Action::Freeze(Layers::Prefix));
        let cost = costs(&schedule);
        assert_eq!(cost[1].matrices, (6.0 + 2.0) * 1_000.0 * 3.0 * LAYER);
        assert_eq!(cost[2].attention, (6.0 * 3.0 + 2.0 * 6.0) * 10.0 * 100.0 * 100.0 * 4096.0);
    }

    #[test]
    fn frozen_layers_above_a_learning_one_pass_gradients() {
        let mut schedule = grow(10);
        schedule.events[0].actions.push(Action::Freeze(Layers::Range { first: 4, last: 5 }));
        assert_eq!(costs(&schedule)[1].matrices, 1_000.0 * (4.0 * 6.0 + 2.0 * 4.0) * LAYER);
    }

    #[test]
    fn the_head_makes_growth_dearer_than_its_active_layer_tokens() {
        let (grown, long): (Flops, Flops) = (costs(&grow(50)).into_iter().sum(), costs(&joint(100)).into_iter().sum());
        assert_eq!(grown.without_head(), long.without_head());
        let excess = grown.with_head() / long.with_head() - 1.0;
        assert!((0.12..0.14).contains(&excess), "{excess}");
    }
}
