//! Runs a program over the rows of each shard, and hangs its reverse on the tape.
//!
//! Saved for the reverse pass: inputs of norms, sublayers and gains, statistics of norms, q|k|v, attention's output and log-sum-exp,
//! gate|up. All else is made anew.

use std::cell::RefCell;
use std::sync::Arc;

use dfdx::prelude::{Cpu, HasShape, Tape, TensorFromVec};

use super::host::{put_gradient, take_gradient, view_of};
use super::plan::{Plan, Step, Weights};
use super::{Pool, SHARDS, shards};
use crate::kernel::{self, Sequence, View, ViewMut, Workspace, product};
use crate::tensor::program::Program;
use crate::tensor::rows::Cells;
use crate::tensor::{Fault, Matrix, Rows};

thread_local! {
    /// Attention's scratch memory: small, and needed by every layer.
    pub(super) static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// The program's result, with its reverse on the tape.
pub(super) fn run<T: Tape<f32, Cpu>>(
    tape: &mut T,
    program: &Program<'_, f32, Cpu>,
    rows: &Rows<f32, Cpu>,
    x: &Matrix<f32, Cpu>,
    embedded: &Matrix<f32, Cpu>,
) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
    let (tokens, width) = *x.shape();
    let plan = Plan::new(program);
    let cells = rows.cells.clone();
    let read = |value: usize, tensor: &Matrix<f32, Cpu>| plan.reads(value).then(|| tensor.clone());
    let streams = Streams { x: read(0, x), x0: read(1, embedded), width };
    let cut = shards(rows.rows).map(|rows| rows.start * cells.context..rows.end * cells.context);
    let mut y = vec![0.0; tokens * width];
    let (y0, y1) = y.split_at_mut(cut[0].end * width);
    let weights = plan.weights(&cells.pool);
    let [first, second] =
        cut.clone().map(|tokens| Shard { plan: &plan, weights: &weights, cells: &cells, streams: &streams, tokens });
    let saved: [Saved; SHARDS] = rayon::join(|| first.forward(y0, T::OWNS_TAPE), || second.forward(y1, T::OWNS_TAPE)).into();
    drop(weights);
    let y = Cpu::default().try_tensor_from_vec(y, (tokens, width))?;
    if T::OWNS_TAPE {
        let ghosts = (y.ghost(), x.ghost(), embedded.ghost());
        tape.add_backward_op(move |map| {
            let dy = std::mem::take(&mut **map.get_or_alloc_mut(&ghosts.0)?);
            let weights = plan.weights(&cells.pool);
            let [first, second] =
                cut.clone().map(|tokens| Shard { plan: &plan, weights: &weights, cells: &cells, streams: &streams, tokens });
            let (dy0, dy1) = dy.split_at(cut[0].end * width);
            let [saved0, saved1] = saved;
            let (first, second) = rayon::join(|| first.backward(dy0, saved0), || second.backward(dy1, saved1));
            drop((dy, weights));
            let [one, two] = [first.streams, second.streams];
            for (at, ghost) in [(0, &ghosts.1), (1, &ghosts.2)] {
                if one[at].is_some() || two[at].is_some() {
                    let mut sum = std::mem::take(&mut **map.get_or_alloc_mut(ghost)?);
                    for (gradient, tokens) in [&one[at], &two[at]].into_iter().zip(&cut) {
                        if let Some(gradient) = gradient {
                            kernel::add(&mut sum[tokens.start * width..tokens.end * width], gradient);
                        }
                    }
                    **map.get_or_alloc_mut(ghost)? = sum;
                }
            }
            for (origins, both) in plan.origins.iter().zip(first.weights.into_iter().zip(second.weights)) {
                let parts: Vec<Vec<f32>> = [both.0, both.1].into_iter().flatten().collect();
                let mut start = 0;
                for param in origins.iter().filter(|_| !parts.is_empty()) {
                    let mut sum = take_gradient(param, map)?;
                    let half = sum.len() / 2;
                    let (low, high) = sum.split_at_mut(half);
                    let add = |sum: &mut [f32], at: usize| {
                        parts.iter().for_each(|part| kernel::add(sum, &part[at..at + sum.len()]));
                    };
                    rayon::join(|| add(low, start), || add(high, start + half));
                    start += sum.len();
                    put_gradient(param, map, sum)?;
                }
                parts.into_iter().for_each(|part| cells.pool.give(part));
            }
            Ok(())
        });
    }
    Ok(y)
}

/// What a program reads, of all tokens; none where it does not.
pub(super) struct Streams {
    x: Option<Matrix<f32, Cpu>>,
    x0: Option<Matrix<f32, Cpu>>,
    width: usize,
}

/// One shard's view of a program.
pub(super) struct Shard<'a> {
    pub plan: &'a Plan,
    pub weights: &'a Weights<'a>,
    pub cells: &'a Arc<Cells>,
    streams: &'a Streams,
    /// Its tokens: whole rows.
    tokens: std::ops::Range<usize>,
}

/// What the reverse pass needs of one step besides its input.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    /// Statistics (N).
    Norm(Vec<[f32; 2]>),
    /// q|k|v (N, (H+2G)·K), output (N, H·K), log-sum-exp (B, H, T).
    Attention {
        qkv: Vec<f32>,
        out: Vec<f32>,
        lse: Vec<f32>,
    },
    /// Gate and up (N, 2F), or up (N, F).
    Ffn(Vec<f32>),
}

/// What a forward pass leaves behind.
#[derive(Debug)]
pub(super) struct Saved {
    pub values: Vec<Vec<f32>>,
    pub steps: Vec<Kept>,
}

impl Kept {
    /// Gives its memory back.
    pub fn give(self, pool: &Pool) {
        match self {
            Kept::Nothing | Kept::Norm(_) => {}
            Kept::Attention { qkv, out, lse } => [qkv, out, lse].into_iter().for_each(|buffer| pool.give(buffer)),
            Kept::Ffn(wide) => pool.give(wide),
        }
    }
}

impl Shard<'_> {
    pub(super) fn count(&self) -> usize {
        self.tokens.len()
    }
    pub(super) fn width(&self) -> usize {
        self.streams.width
    }

    pub(super) fn value<'a>(&'a self, made: &'a [Vec<f32>], value: usize) -> &'a [f32] {
        let cut = self.tokens.start * self.width()..self.tokens.end * self.width();
        match value {
            0 => &self.streams.x.as_ref().map_or(&[][..], view_of)[cut],
            1 => &self.streams.x0.as_ref().map_or(&[][..], view_of)[cut],
            _ => &made[value - 2],
        }
    }

    /// The rows of this shard with what attention needs of them.
    pub(super) fn sequences(&self) -> impl Iterator<Item = (usize, Sequence<'_>)> {
        let context = self.cells.context.max(1);
        let cells = &**self.cells;
        self.tokens.clone().step_by(context).enumerate().map(move |(row, start)| {
            let cut = start..start + context;
            let rotation = cells.rotations.as_ref().map(|rotations| (&cells.positions[cut.clone()], rotations));
            (row, Sequence { starts: &cells.starts[cut], rotation })
        })
    }

    /// Writes the result to `y` (N, D).
    fn forward(&self, y: &mut [f32], keep: bool) -> Saved {
        let (plan, n, pool) = (self.plan, self.count(), &self.cells.pool);
        let last = plan.last_reads();
        let kept = if keep { plan.kept() } else { vec![false; plan.steps.len() + 2] };
        let mut made: Vec<Vec<f32>> = Vec::with_capacity(plan.steps.len());
        let mut steps = Vec::with_capacity(plan.steps.len());
        for (at, step) in plan.steps.iter().enumerate() {
            let free = |value: usize| value >= 2 && last[value] == at && !kept[value];
            // The value itself if nobody reads it any more, else a copy.
            let owned = |made: &mut Vec<Vec<f32>>, value: usize| {
                if free(value) { std::mem::take(&mut made[value - 2]) } else { pool.copy(self.value(made, value)) }
            };
            let (value, left) = match *step {
                Step::Norm { input, norm } => {
                    let (mut out, mut stats) = (pool.take(n * self.width()), vec![[0.0; 2]; n]);
                    kernel::norm(self.weights.norm(norm), self.value(&made, input), &mut out, &mut stats);
                    (out, Kept::Norm(stats))
                }
                Step::Attention { input, shape, qkv: inward, o, norms } => {
                    let input = self.value(&made, input);
                    let mut qkv = pool.take(n * shape.packed());
                    self.product_t(&mut qkv, input, inward);
                    let (mut merged, mut lse) = (pool.take(n * shape.merged()), pool.take(n * shape.queries));
                    let norms = self.weights.norms(norms);
                    WORKSPACE.with_borrow_mut(|work| {
                        for (row, sequence) in self.sequences() {
                            let tokens = sequence.starts.len();
                            let cut = |side: usize| row * tokens * side..(row + 1) * tokens * side;
                            let (merged, lse) = (&mut merged[cut(shape.merged())], &mut lse[cut(shape.queries)]);
                            kernel::attention(shape, &norms, sequence, &qkv[cut(shape.packed())], merged, lse, work);
                        }
                    });
                    let mut out = pool.take(n * self.width());
                    self.product_t(&mut out, &merged, o);
                    (out, Kept::Attention { qkv, out: merged, lse })
                }
                Step::Ffn { input, gated, inward, down } => {
                    let hidden = self.weights[down].len() / self.width();
                    let mut wide = pool.take(n * self.weights[inward].len() / self.width());
                    self.product_t(&mut wide, self.value(&made, input), inward);
                    let mut bent = pool.take(n * hidden);
                    match gated {
                        true => kernel::swiglu(&wide, &mut bent, hidden),
                        false => kernel::gelu(&wide, &mut bent),
                    }
                    let mut out = pool.take(n * self.width());
                    self.product_t(&mut out, &bent, down);
                    pool.give(bent);
                    (out, Kept::Ffn(wide))
                }
                Step::Gain { input, gain } => {
                    let mut out = owned(&mut made, input);
                    kernel::times_gain(&mut out, &self.weights[gain]);
                    (out, Kept::Nothing)
                }
                Step::Learned { input, factor } => {
                    let mut out = owned(&mut made, input);
                    kernel::scaled(&mut out, self.weights[factor][0]);
                    (out, Kept::Nothing)
                }
                Step::Scale { input, factor } => {
                    let mut out = owned(&mut made, input);
                    kernel::scaled(&mut out, factor);
                    (out, Kept::Nothing)
                }
                Step::Add(left, right) => {
                    let (left, right) = if free(right) && !free(left) { (right, left) } else { (left, right) };
                    let mut out = if left == right { pool.copy(self.value(&made, left)) } else { owned(&mut made, left) };
                    kernel::add(&mut out, self.value(&made, right));
                    (out, Kept::Nothing)
                }
                Step::Subtract(left, right) => {
                    let mut out = if left == right { pool.copy(self.value(&made, left)) } else { owned(&mut made, left) };
                    kernel::subtract(&mut out, self.value(&made, right));
                    (out, Kept::Nothing)
                }
                Step::Stop(input) => (owned(&mut made, input), Kept::Nothing),
            };
            made.push(value);
            steps.push(match (keep, left) {
                (true, left) => left,
                (false, left) => {
                    left.give(pool);
                    Kept::Nothing
                }
            });
            for input in step.inputs().into_iter().flatten().filter(|input| free(*input)) {
                pool.give(std::mem::take(&mut made[input - 2]));
            }
        }
        y.copy_from_slice(self.value(&made, plan.result));
        if plan.result >= 2 && !kept[plan.result] {
            pool.give(std::mem::take(&mut made[plan.result - 2]));
        }
        Saved { values: if keep { made } else { Vec::new() }, steps }
    }

    /// out (N, o) = x (N, i) · Wᵀ, W (o, i) by its place.
    fn product_t(&self, out: &mut [f32], x: &[f32], weight: usize) {
        let (n, weight) = (self.count(), &self.weights[weight]);
        if n == 0 {
            return;
        }
        let (inward, outward) = (x.len() / n, out.len() / n);
        let weight = View::new(weight, outward, inward).t();
        product(ViewMut::new(out, n, outward), false, View::new(x, n, inward), weight);
    }
}
