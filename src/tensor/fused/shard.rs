//! Runs a program over the rows of one shard, forward and in reverse, and hangs both on the tape.
//!
//! Saved for the reverse pass: inputs of norms, sublayers and gains, statistics of norms, q|k|v, attention's output and log-sum-exp,
//! gate|up. All else is made anew.

use std::cell::RefCell;
use std::sync::Arc;

use dfdx::prelude::{Cpu, HasShape, Tape, TensorFromVec};

use super::host::{put_gradient, take_gradient, values};
use super::plan::{Plan, Step};
use super::{SHARDS, shards};
use crate::kernel::{self, Sequence, View, ViewMut, Workspace, product};
use crate::tensor::program::Program;
use crate::tensor::rows::Cells;
use crate::tensor::{Fault, Matrix, Rows};

thread_local! {
    /// Attention's scratch memory: small, and needed by every layer.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
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
    let read = |value: usize, tensor: &Matrix<f32, Cpu>| if plan.reads(value) { values(tensor) } else { Vec::new() };
    let streams = Streams { x: read(0, x), x0: read(1, embedded), width };
    let cut = shards(rows.rows).map(|rows| rows.start * cells.context..rows.end * cells.context);
    let mut y = vec![0.0; tokens * width];
    let (y0, y1) = y.split_at_mut(cut[0].end * width);
    let [first, second] = cut.clone().map(|tokens| Shard { plan: &plan, cells: &cells, streams: &streams, tokens });
    let saved: [Saved; SHARDS] = rayon::join(|| first.forward(y0, T::OWNS_TAPE), || second.forward(y1, T::OWNS_TAPE)).into();
    let y = Cpu::default().try_tensor_from_vec(y, (tokens, width))?;
    if T::OWNS_TAPE {
        let ghosts = (y.ghost(), x.ghost(), embedded.ghost());
        tape.add_backward_op(move |map| {
            let dy = std::mem::take(&mut **map.get_or_alloc_mut(&ghosts.0)?);
            let [first, second] = cut.clone().map(|tokens| Shard { plan: &plan, cells: &cells, streams: &streams, tokens });
            let (dy0, dy1) = dy.split_at(cut[0].end * width);
            let [saved0, saved1] = saved;
            let (first, second) = rayon::join(|| first.backward(dy0, saved0), || second.backward(dy1, saved1));
            drop(dy);
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
            for (origins, gradients) in plan.origins.iter().zip(first.weights.iter().zip(&second.weights)) {
                let mut start = 0;
                for param in origins {
                    let mut sum = take_gradient(param, map)?;
                    let end = start + sum.len();
                    let half = sum.len() / 2;
                    let (low, high) = sum.split_at_mut(half);
                    let both = |sum: &mut [f32], at: usize| {
                        kernel::add(sum, &gradients.0[at..at + sum.len()]);
                        kernel::add(sum, &gradients.1[at..at + sum.len()]);
                    };
                    rayon::join(|| both(low, start), || both(high, start + half));
                    start = end;
                    put_gradient(param, map, sum)?;
                }
            }
            Ok(())
        });
    }
    Ok(y)
}

/// What a program reads, of all tokens; empty where it does not.
struct Streams {
    x: Vec<f32>,
    x0: Vec<f32>,
    width: usize,
}

/// One shard's view of a program.
struct Shard<'a> {
    plan: &'a Plan,
    cells: &'a Arc<Cells>,
    streams: &'a Streams,
    /// Its tokens: whole rows.
    tokens: std::ops::Range<usize>,
}

/// What the reverse pass needs of one step besides its input.
#[derive(Debug)]
enum Kept {
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
struct Saved {
    values: Vec<Vec<f32>>,
    steps: Vec<Kept>,
}

/// What a reverse pass finds.
struct Found {
    /// Of x and x0.
    streams: [Option<Vec<f32>>; 2],
    /// Of each buffer of weights.
    weights: Vec<Vec<f32>>,
}

impl Shard<'_> {
    fn count(&self) -> usize {
        self.tokens.len()
    }
    fn width(&self) -> usize {
        self.streams.width
    }

    fn value<'a>(&'a self, made: &'a [Vec<f32>], value: usize) -> &'a [f32] {
        let cut = self.tokens.start * self.width()..self.tokens.end * self.width();
        match value {
            0 => &self.streams.x[cut],
            1 => &self.streams.x0[cut],
            _ => &made[value - 2],
        }
    }

    /// The rows of this shard with what attention needs of them.
    fn sequences(&self) -> impl Iterator<Item = (usize, Sequence<'_>)> {
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
        let (plan, n) = (self.plan, self.count());
        let last = plan.last_reads();
        let kept = if keep { plan.kept() } else { vec![false; plan.steps.len() + 2] };
        let mut made: Vec<Vec<f32>> = Vec::with_capacity(plan.steps.len());
        let mut steps = Vec::with_capacity(plan.steps.len());
        for (at, step) in plan.steps.iter().enumerate() {
            let free = |value: usize| value >= 2 && last[value] == at && !kept[value];
            // The value itself if nobody reads it any more, else a copy.
            let owned = |made: &mut Vec<Vec<f32>>, value: usize| {
                if free(value) { std::mem::take(&mut made[value - 2]) } else { self.value(made, value).to_vec() }
            };
            let (value, left) = match *step {
                Step::Norm { input, norm } => {
                    let (mut out, mut stats) = (vec![0.0; n * self.width()], vec![[0.0; 2]; n]);
                    kernel::norm(plan.view(norm), self.value(&made, input), &mut out, &mut stats);
                    (out, Kept::Norm(stats))
                }
                Step::Attention { input, shape, qkv: inward, o, norms } => {
                    let input = self.value(&made, input);
                    let mut qkv = vec![0.0; n * shape.packed()];
                    self.product_t(&mut qkv, input, inward);
                    let (mut merged, mut lse) = (vec![0.0; n * shape.merged()], vec![0.0; n * shape.queries]);
                    let norms = plan.views(norms);
                    WORKSPACE.with_borrow_mut(|work| {
                        for (row, sequence) in self.sequences() {
                            let tokens = sequence.starts.len();
                            let cut = |side: usize| row * tokens * side..(row + 1) * tokens * side;
                            let (merged, lse) = (&mut merged[cut(shape.merged())], &mut lse[cut(shape.queries)]);
                            kernel::attention(shape, &norms, sequence, &qkv[cut(shape.packed())], merged, lse, work);
                        }
                    });
                    let mut out = vec![0.0; n * self.width()];
                    self.product_t(&mut out, &merged, o);
                    (out, Kept::Attention { qkv, out: merged, lse })
                }
                Step::Ffn { input, gated, inward, down } => {
                    let hidden = plan.weights[down].len() / self.width();
                    let mut wide = vec![0.0; n * plan.weights[inward].len() / self.width()];
                    self.product_t(&mut wide, self.value(&made, input), inward);
                    let mut bent = vec![0.0; n * hidden];
                    match gated {
                        true => kernel::swiglu(&wide, &mut bent, hidden),
                        false => kernel::gelu(&wide, &mut bent),
                    }
                    let mut out = vec![0.0; n * self.width()];
                    self.product_t(&mut out, &bent, down);
                    (out, Kept::Ffn(wide))
                }
                Step::Gain { input, gain } => {
                    let mut out = owned(&mut made, input);
                    kernel::times_gain(&mut out, &plan.weights[gain]);
                    (out, Kept::Nothing)
                }
                Step::Learned { input, factor } => {
                    let mut out = owned(&mut made, input);
                    kernel::scaled(&mut out, plan.weights[factor][0]);
                    (out, Kept::Nothing)
                }
                Step::Scale { input, factor } => {
                    let mut out = owned(&mut made, input);
                    kernel::scaled(&mut out, factor);
                    (out, Kept::Nothing)
                }
                Step::Add(left, right) => {
                    let (left, right) = if free(right) && !free(left) { (right, left) } else { (left, right) };
                    let mut out = if left == right { self.value(&made, left).to_vec() } else { owned(&mut made, left) };
                    kernel::add(&mut out, self.value(&made, right));
                    (out, Kept::Nothing)
                }
                Step::Subtract(left, right) => {
                    let mut out = if left == right { self.value(&made, left).to_vec() } else { owned(&mut made, left) };
                    kernel::subtract(&mut out, self.value(&made, right));
                    (out, Kept::Nothing)
                }
                Step::Stop(input) => (owned(&mut made, input), Kept::Nothing),
            };
            made.push(value);
            steps.push(if keep { left } else { Kept::Nothing });
            for input in step.inputs().into_iter().flatten().filter(|input| free(*input)) {
                made[input - 2] = Vec::new();
            }
        }
        y.copy_from_slice(self.value(&made, plan.result));
        if plan.result >= 2 && !kept[plan.result] {
            made[plan.result - 2] = Vec::new();
        }
        Saved { values: if keep { made } else { Vec::new() }, steps }
    }

    /// out (N, o) = x (N, i) · Wᵀ, W (o, i) by its place.
    fn product_t(&self, out: &mut [f32], x: &[f32], weight: usize) {
        let (n, weight) = (self.count(), &self.plan.weights[weight]);
        if n == 0 {
            return;
        }
        let (inward, outward) = (x.len() / n, out.len() / n);
        let weight = View::new(weight, outward, inward).t();
        product(ViewMut::new(out, n, outward), false, View::new(x, n, inward), weight);
    }

    /// Of y = x Wᵀ: dW += dyᵀ x; dx [+]= dy W.
    fn product_back(&self, (dy, x): (&[f32], &[f32]), weight: usize, dweight: &mut [f32], dx: Option<(&mut [f32], bool)>) {
        let (n, weight) = (self.count(), &self.plan.weights[weight]);
        if n == 0 {
            return;
        }
        let (inward, outward) = (x.len() / n, dy.len() / n);
        let dy = View::new(dy, n, outward);
        product(ViewMut::new(dweight, outward, inward), true, dy.t(), View::new(x, n, inward));
        if let Some((dx, accumulate)) = dx {
            product(ViewMut::new(dx, n, inward), accumulate, dy, View::new(weight, outward, inward));
        }
    }

    /// The gradients of a result's gradient `dy` (N, D).
    fn backward(&self, dy: &[f32], saved: Saved) -> Found {
        let (plan, n, width) = (self.plan, self.count(), self.width());
        let Saved { values: mut made, steps } = saved;
        let mut weights: Vec<Vec<f32>> = plan.weights.iter().map(|weight| vec![0.0; weight.len()]).collect();
        let mut slopes: Vec<Option<Vec<f32>>> = vec![None; plan.steps.len() + 2];
        slopes[plan.result] = Some(dy.to_vec());
        for (at, (step, kept)) in plan.steps.iter().zip(steps).enumerate().rev() {
            let Some(slope) = slopes[at + 2].take() else { continue };
            made[at] = Vec::new();
            match (*step, kept) {
                (Step::Norm { input, norm }, Kept::Norm(stats)) => {
                    let dx = slopes[input].get_or_insert_with(|| vec![0.0; n * width]);
                    let mut dweight = std::mem::take(&mut weights[norm.weight]);
                    let dbias = norm.bias.map(|bias| weights[bias].as_mut_slice());
                    kernel::norm_backward(plan.view(norm), &slope, self.value(&made, input), &stats, dx, &mut dweight, dbias);
                    weights[norm.weight] = dweight;
                }
                (Step::Attention { input, shape, qkv: inward, o, norms }, Kept::Attention { qkv, out, lse }) => {
                    let mut dmerged = vec![0.0; n * shape.merged()];
                    self.product_back((&slope, &out), o, &mut weights[o], Some((&mut dmerged, false)));
                    drop(slope);
                    let mut dqkv = vec![0.0; n * shape.packed()];
                    let mut dnorms = norms.map(|norm| norm.map_or(Vec::new(), |norm| std::mem::take(&mut weights[norm.weight])));
                    let views = plan.views(norms);
                    WORKSPACE.with_borrow_mut(|work| {
                        for (row, sequence) in self.sequences() {
                            let tokens = sequence.starts.len();
                            let cut = |side: usize| row * tokens * side..(row + 1) * tokens * side;
                            let saved = (&out[cut(shape.merged())], &lse[cut(shape.queries)]);
                            let (qkv, dqkv) = (&qkv[cut(shape.packed())], &mut dqkv[cut(shape.packed())]);
                            let dnorms = dnorms.each_mut().map(Vec::as_mut_slice);
                            let dmerged = &dmerged[cut(shape.merged())];
                            kernel::attention_backward(shape, &views, sequence, qkv, saved, dmerged, dqkv, dnorms, work);
                        }
                    });
                    for (norm, dweight) in norms.into_iter().zip(dnorms) {
                        if let Some(norm) = norm {
                            weights[norm.weight] = dweight;
                        }
                    }
                    let x = self.value(&made, input);
                    let accumulate = slopes[input].is_some();
                    let dx = slopes[input].get_or_insert_with(|| vec![0.0; n * width]);
                    self.product_back((&dqkv, x), inward, &mut weights[inward], Some((dx, accumulate)));
                }
                (Step::Ffn { input, gated, inward, down }, Kept::Ffn(mut wide)) => {
                    let hidden = plan.weights[down].len() / width;
                    // First d of the hidden values, then, in its place, those values again.
                    let mut bent = vec![0.0; n * hidden];
                    let down_view = View::new(&plan.weights[down], width, hidden);
                    product(ViewMut::new(&mut bent, n, hidden), false, View::new(&slope, n, width), down_view);
                    match gated {
                        true => kernel::swiglu_backward(&mut wide, &mut bent, hidden),
                        false => kernel::gelu_backward(&mut wide, &mut bent),
                    }
                    self.product_back((&slope, &bent), down, &mut weights[down], None);
                    drop((slope, bent));
                    let x = self.value(&made, input);
                    let accumulate = slopes[input].is_some();
                    let dx = slopes[input].get_or_insert_with(|| vec![0.0; n * width]);
                    self.product_back((&wide, x), inward, &mut weights[inward], Some((dx, accumulate)));
                }
                (Step::Gain { input, gain }, _) => {
                    let dx = slopes[input].get_or_insert_with(|| vec![0.0; n * width]);
                    let x = self.value(&made, input);
                    kernel::times_gain_backward(&slope, x, &plan.weights[gain], dx, &mut weights[gain]);
                }
                (Step::Learned { input, factor }, _) => {
                    let x = self.value(&made, input);
                    let along: f64 =
                        slope.chunks(width).zip(x.chunks(width)).map(|(a, b)| f64::from(kernel::dot_all(a, b))).sum();
                    weights[factor][0] += along as f32;
                    give(&mut slopes, input, slope, plan.weights[factor][0]);
                }
                (Step::Scale { input, factor }, _) => give(&mut slopes, input, slope, factor),
                (Step::Add(left, right), _) => {
                    if slopes[left].is_none() && slopes[right].is_some() {
                        give_copy(&mut slopes, right, &slope, 1.0);
                        give(&mut slopes, left, slope, 1.0);
                    } else {
                        give_copy(&mut slopes, left, &slope, 1.0);
                        give(&mut slopes, right, slope, 1.0);
                    }
                }
                (Step::Subtract(left, right), _) => {
                    give_copy(&mut slopes, left, &slope, 1.0);
                    give(&mut slopes, right, slope, -1.0);
                }
                (Step::Stop(_), _) => {}
                (Step::Norm { .. } | Step::Attention { .. } | Step::Ffn { .. }, _) => {
                    unreachable!("a forward pass under a tape keeps what its reverse needs")
                }
            }
        }
        Found { streams: [slopes[0].take(), slopes[1].take()], weights }
    }
}

/// Adds `factor` · `slope` to a value's gradient.
fn give(slopes: &mut [Option<Vec<f32>>], value: usize, mut slope: Vec<f32>, factor: f32) {
    match &mut slopes[value] {
        Some(sum) => kernel::axpy(sum, factor, &slope),
        empty => {
            if factor != 1.0 {
                kernel::scaled(&mut slope, factor);
            }
            *empty = Some(slope);
        }
    }
}

/// The same, without giving the slope away.
fn give_copy(slopes: &mut [Option<Vec<f32>>], value: usize, slope: &[f32], factor: f32) {
    match &mut slopes[value] {
        Some(sum) => kernel::axpy(sum, factor, slope),
        None => give(slopes, value, slope.to_vec(), factor),
    }
}
