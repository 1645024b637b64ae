//! Models that speak and learn nothing: how much of their work runs together, and the memory that it takes.
//!
//! Owns both, so that what a plan states is what a run does. Left out are the corpus, the program itself and the allocator's slack, as in
//! [`super::memory`]. Invariant: the memory of a model whose layers are streamed does not depend on how many it has, nor on how much it reads.

use super::memory::FLOAT;
use super::params::{ParamSpec, parameters, tied, vocabulary, whole};
use crate::study::{Ffn, Model};

/// Tokens that run through a layer together: so many that products are as fast as with more (an assumption), so few that under a width of
/// 4,096 they take 160 MB.
const TOKENS: usize = 512;

/// Tokens whose logits are held at a time: under a vocabulary of 151,936 they take 39 MB. A product of fewer reads the head too often.
pub const ROWS: usize = 64;

/// Log-probabilities are made of logits in so many steps that exist side by side: logits, softened, less the largest, and their copy.
const LOGITS: u64 = 4;

/// Bytes of the streams of a group: a layer is read again for every 64 MiB of them, 4,096 tokens at a width of 4,096, which takes a
/// twentieth of the time that they compute (an assumption about the disk: a gigabyte a second).
const GROUP: usize = 64 << 20;

/// Sequences of `context` tokens that run together.
pub fn together(context: usize) -> usize {
    (TOKENS / context.max(1)).max(1)
}

/// Sequences of `context` tokens that are worked on while a layer is at hand: whole batches. A function of the model and the context alone.
pub fn grouped(model: &Model, context: usize) -> u64 {
    let batch = together(context);
    let most = GROUP / (4 * model.width * context).max(1);
    (most / batch * batch).max(batch) as u64
}

/// Bytes of a model that is in memory as a whole, for so many tokens at a time.
pub fn resident(model: &Model, tokens: u64) -> u64 {
    let (stack, block_ends) = whole(model);
    let all: u64 = parameters(model, &stack, &block_ends).iter().map(ParamSpec::elements).sum();
    FLOAT * (all + joined(model) + at_work(model, tokens) + logits(model))
}

/// Bytes of a model whose layers are read one after the other, for so many sequences of `context` tokens.
pub fn streamed(model: &Model, context: usize, sequences: u64) -> u64 {
    let (stack, block_ends) = whole(model);
    let specs = parameters(model, &stack, &block_ends);
    let elements =
        |which: &dyn Fn(&ParamSpec) -> bool| -> u64 { specs.iter().filter(|spec| which(spec)).map(ParamSpec::elements).sum() };
    let around = elements(&|spec| spec.layer.is_none() && (spec.name != "embedding" || tied(model)));
    let layer = elements(&|spec| spec.layer == Some(stack[0]));
    let group = sequences.min(grouped(model, context));
    let tokens = (together(context) as u64).min(group) * context as u64;
    let streams = group * context as u64 * model.width as u64;
    FLOAT * (around + streams + at_work(model, tokens) + (layer + joined(model)).max(logits(model)))
}

/// Elements of a layer's matrices that are used together, and copied for it: queries, keys and values; gate and up.
fn joined(model: &Model) -> u64 {
    let inward = match model.ffn {
        Ffn::SwiGlu { width } => 2 * width,
        Ffn::Gelu { .. } => 0,
    };
    (model.width * ((model.heads + 2 * model.kv_heads) * model.head_dim + inward)) as u64
}

/// Floats of a layer at work: its input twice, its output, and what runs between them: the stream and a norm of it before each sublayer;
/// q, k, v and the weighted sum; the hidden activations.
fn at_work(model: &Model, tokens: u64) -> u64 {
    let hidden = match model.ffn {
        Ffn::SwiGlu { width } => 3 * width,
        Ffn::Gelu { width } => 2 * width,
    };
    tokens * (7 * model.width + 2 * (model.heads + model.kv_heads) * model.head_dim + hidden) as u64
}

fn logits(model: &Model) -> u64 {
    LOGITS * (ROWS * vocabulary(model)) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::testing::model;
    use crate::study::placement::Wiring;

    /// The paper's teacher, Qwen3-8B-Base, has 36 layers of width 4,096.
    fn teacher(layers: usize) -> Model {
        let wiring = Wiring::uniform(Arc::clone(&model().wiring.placements[0]), layers);
        Model { layers, block: 1, wiring, ..model() }
    }

    #[test]
    fn an_8b_teacher_fits_into_24_gib_and_whole_it_does_not() {
        let (streamed, resident) = (streamed(&teacher(36), 8_192, 100_000), resident(&teacher(36), 8_192));
        assert!(streamed < 8 << 30, "{streamed}");
        assert!(resident > 30 << 30, "{resident}");
    }

    #[test]
    fn what_is_streamed_does_not_grow_with_layers_or_texts() {
        let (few, many) = (teacher(2), teacher(36));
        assert_eq!(streamed(&few, 256, 1_000), streamed(&many, 256, 1_000_000));
        assert!(streamed(&few, 256, 1) < streamed(&few, 256, 1_000));
        assert!(resident(&few, 256) < resident(&many, 256) / 4);
    }

    #[test]
    fn groups_are_whole_batches() {
        for context in [1, 16, 100, 512, 8_192] {
            assert!(grouped(&teacher(2), context) >= together(context) as u64);
            assert_eq!(grouped(&teacher(2), context) % together(context) as u64, 0);
        }
    }
}
