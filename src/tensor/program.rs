//! Equations as straight-line programs, with the weights that each instruction reads.
//!
//! Value 0 is `x`, value 1 is `x0`, instruction i makes value i + 2. An implementation of [`Operations`] may run a program as a whole;
//! [`run`] runs it one operation after another.

use super::{AttentionWeights, Device, Fault, FfnWeights, Matrix, NoneTape, NormWeights, Operations, Real, Rows, Tape, Vector};

/// What an instruction does to earlier values.
#[derive(Debug)]
pub enum Action<'a, E: Real, D: Device<E>> {
    /// Norm over the width.
    Norm(usize, NormWeights<'a, E, D>),
    /// Grouped-query attention.
    Attention(usize, AttentionWeights<'a, E, D>),
    /// The feed-forward network.
    Ffn(usize, FfnWeights<'a, E, D>),
    /// Times a gain for each channel.
    Gain(usize, &'a Vector<E, D>),
    /// Times a learned scalar.
    Learned(usize, &'a Vector<E, D>),
    /// Times a number.
    Scale(usize, f64),
    /// Sum.
    Add(usize, usize),
    /// The first less the second.
    Subtract(usize, usize),
    /// The same value, to which no gradient passes.
    Stop(usize),
}

/// One step of a program.
#[derive(Debug)]
pub struct Instruction<'a, E: Real, D: Device<E>> {
    /// What it does.
    pub action: Action<'a, E, D>,
    /// Its value is read under a `stop` alone: no gradient will come.
    pub stopped: bool,
}

/// A straight-line program.
#[derive(Debug)]
pub struct Program<'a, E: Real, D: Device<E>> {
    /// In the order of evaluation.
    pub instructions: Vec<Instruction<'a, E, D>>,
    /// The value that is its result.
    pub result: usize,
}

impl<E: Real, D: Device<E>> Program<'_, E, D> {
    /// The value `x`.
    pub const X: usize = 0;
    /// The value `x0`.
    pub const EMBEDDED: usize = 1;
}

/// Runs a program one operation at a time.
pub(super) fn run<E: Real, D: Device<E>, O: Operations<E, D>, T: Tape<E, D>>(
    ops: &O,
    tape: &mut T,
    program: &Program<'_, E, D>,
    rows: &Rows<E, D>,
    x: &Matrix<E, D>,
    embedded: &Matrix<E, D>,
) -> Result<Matrix<E, D>, Fault<D>> {
    let mut values = vec![x.clone(), embedded.clone()];
    for instruction in &program.instructions {
        let value = if instruction.stopped {
            act(ops, &mut NoneTape, &instruction.action, rows, &values)?
        } else {
            act(ops, tape, &instruction.action, rows, &values)?
        };
        values.push(value);
    }
    Ok(values.swap_remove(program.result))
}

fn act<E: Real, D: Device<E>, O: Operations<E, D>, T: Tape<E, D>>(
    ops: &O,
    tape: &mut T,
    action: &Action<'_, E, D>,
    rows: &Rows<E, D>,
    values: &[Matrix<E, D>],
) -> Result<Matrix<E, D>, Fault<D>> {
    // `x` and `x0` are one tensor in the first layer, and operations must not see one on both sides.
    let right = |tape: &mut T, left: usize, right: usize| {
        let same = left == right || left.max(right) <= Program::<E, D>::EMBEDDED;
        if same { ops.scale(tape, &values[right], 1.0) } else { Ok(values[right].clone()) }
    };
    match action {
        Action::Norm(input, weights) => ops.norm(tape, &values[*input], weights),
        Action::Attention(input, weights) => ops.attention(tape, &values[*input], weights, rows),
        Action::Ffn(input, weights) => ops.ffn(tape, &values[*input], weights),
        Action::Gain(input, gain) => ops.gain(tape, &values[*input], gain),
        Action::Learned(input, factor) => ops.learned(tape, &values[*input], factor),
        Action::Scale(input, factor) => ops.scale(tape, &values[*input], *factor),
        Action::Add(left, other) => {
            let right = right(tape, *left, *other)?;
            ops.add(tape, &values[*left], &right)
        }
        Action::Subtract(left, other) => {
            let right = right(tape, *left, *other)?;
            ops.subtract(tape, &values[*left], &right)
        }
        Action::Stop(input) => ops.stop(&values[*input]),
    }
}
