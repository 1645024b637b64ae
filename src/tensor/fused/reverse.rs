//! The reverse pass of a program over the rows of one shard.
//!
//! Walks the steps backwards with the gradient of each value that has one. What a step leaves behind for the forward pass of another
//! batch goes back to the pool.

use super::Pool;
use super::plan::{PlacedNorm, Step};
use super::shard::{Kept, Saved, Shard, WORKSPACE};
use crate::kernel::{self, AttentionShape, NormSlopes, View, ViewMut, product};

/// What a reverse pass finds.
pub(super) struct Found {
    /// Of x and x0.
    pub streams: [Option<Vec<f32>>; 2],
    /// Of each buffer of weights that had any.
    pub weights: Vec<Option<Vec<f32>>>,
}

/// Gradients so far.
struct Slopes<'a> {
    pool: &'a Pool,
    /// Length of a value.
    length: usize,
    values: Vec<Option<Vec<f32>>>,
    weights: Vec<Option<Vec<f32>>>,
}

impl Slopes<'_> {
    /// A value's gradient, to be added to.
    fn value(&mut self, value: usize) -> &mut Vec<f32> {
        let (pool, length) = (self.pool, self.length);
        self.values[value].get_or_insert_with(|| pool.zeros(length))
    }
    /// The same to be written or, where it is `true`, added to.
    fn written(&mut self, value: usize) -> (&mut Vec<f32>, bool) {
        let (pool, length, some) = (self.pool, self.length, self.values[value].is_some());
        (self.values[value].get_or_insert_with(|| pool.take(length)), some)
    }
    /// A vector's gradient, to be added to, taken out of the list.
    fn vector(&mut self, at: usize, length: usize) -> Vec<f32> {
        self.weights[at].take().unwrap_or_else(|| vec![0.0; length])
    }
    /// Adds `factor` · `slope` to a value's gradient.
    fn give(&mut self, value: usize, mut slope: Vec<f32>, factor: f32) {
        match &mut self.values[value] {
            Some(sum) => {
                kernel::axpy(sum, factor, &slope);
                self.pool.give(slope);
            }
            empty => {
                if factor != 1.0 {
                    kernel::scaled(&mut slope, factor);
                }
                *empty = Some(slope);
            }
        }
    }
    /// Adds `slope` to a value's gradient without giving it away.
    fn give_copy(&mut self, value: usize, slope: &[f32]) {
        match &mut self.values[value] {
            Some(sum) => kernel::add(sum, slope),
            empty => *empty = Some(self.pool.copy(slope)),
        }
    }
}

/// The gradients of one norm's own parameters, taken out of the list while they are added to.
struct OwnSlopes {
    norm: Option<PlacedNorm>,
    weight: Vec<f32>,
    bias: Option<Vec<f32>>,
    alpha: f64,
}

impl OwnSlopes {
    /// Those of a norm over `width` channels; of none where there is no norm.
    fn take(norm: Option<PlacedNorm>, width: usize, slopes: &mut Slopes<'_>) -> Self {
        let weight = norm.map_or(Vec::new(), |norm| slopes.vector(norm.weight, width));
        let bias = norm.and_then(|norm| norm.bias).map(|bias| slopes.vector(bias, width));
        Self { norm, weight, bias, alpha: 0.0 }
    }
    fn view(&mut self) -> NormSlopes<'_> {
        NormSlopes { weight: &mut self.weight, bias: self.bias.as_deref_mut(), alpha: &mut self.alpha }
    }
    fn put(self, slopes: &mut Slopes<'_>) {
        let Some(norm) = self.norm else { return };
        slopes.weights[norm.weight] = Some(self.weight);
        if let Some(bias) = norm.bias {
            slopes.weights[bias] = self.bias;
        }
        if let Some(alpha) = norm.alpha() {
            let sum = slopes.weights[alpha].get_or_insert_with(|| vec![0.0]);
            sum[0] += self.alpha as f32;
        }
    }
}

impl Shard<'_> {
    /// The gradients of a result's gradient `dy` (N, D).
    pub(super) fn backward(&self, dy: &[f32], saved: Saved) -> Found {
        let (plan, n, width, pool) = (self.plan, self.count(), self.width(), &self.cells.pool);
        let Saved { values: mut made, steps } = saved;
        let (values, weights) = (vec![None; plan.steps.len() + 2], vec![None; self.weights.count()]);
        let mut slopes = Slopes { pool, length: n * width, values, weights };
        slopes.values[plan.result] = Some(pool.copy(dy));
        for (at, (step, kept)) in plan.steps.iter().zip(steps).enumerate().rev() {
            pool.give(std::mem::take(&mut made[at]));
            let Some(slope) = slopes.values[at + 2].take() else {
                kept.give(pool);
                continue;
            };
            match (*step, kept) {
                (Step::Norm { input, norm }, Kept::Norm(stats)) => {
                    let mut own = OwnSlopes::take(Some(norm), width, &mut slopes);
                    let (x, dx) = (self.value(&made, input), slopes.value(input));
                    kernel::norm_backward(self.weights.norm(norm), &slope, x, &stats, dx, &mut own.view());
                    own.put(&mut slopes);
                    pool.give(slope);
                }
                (Step::Attention { input, shape, qkv, o, norms }, Kept::Attention { qkv: inside, out, lse }) => {
                    self.weight_slopes((&slope, &out), o, &mut slopes);
                    let mut dout = pool.take(n * shape.merged());
                    self.input_slopes(&slope, o, &mut dout, false);
                    pool.give(slope);
                    let dinside = self.attention_slopes(shape, norms, (&inside, &out, &lse), &dout, &mut slopes);
                    [inside, out, lse, dout].into_iter().for_each(|buffer| pool.give(buffer));
                    self.weight_slopes((&dinside, self.value(&made, input)), qkv, &mut slopes);
                    let (dx, accumulate) = slopes.written(input);
                    self.input_slopes(&dinside, qkv, dx, accumulate);
                    pool.give(dinside);
                }
                (Step::Ffn { input, gated, inward, down }, Kept::Ffn(mut wide)) => {
                    let hidden = self.weights[down].len() / width;
                    // First d of the hidden values, then, in its place, those values again.
                    let mut bent = pool.take(n * hidden);
                    self.input_slopes(&slope, down, &mut bent, false);
                    match gated {
                        true => kernel::swiglu_backward(&mut wide, &mut bent, hidden),
                        false => kernel::gelu_backward(&mut wide, &mut bent),
                    }
                    self.weight_slopes((&slope, &bent), down, &mut slopes);
                    [slope, bent].into_iter().for_each(|buffer| pool.give(buffer));
                    self.weight_slopes((&wide, self.value(&made, input)), inward, &mut slopes);
                    let (dx, accumulate) = slopes.written(input);
                    self.input_slopes(&wide, inward, dx, accumulate);
                    pool.give(wide);
                }
                (Step::Gain { input, gain }, _) => {
                    let mut dgain = slopes.vector(gain, width);
                    let (x, dx) = (self.value(&made, input), slopes.value(input));
                    kernel::times_gain_backward(&slope, x, &self.weights[gain], dx, &mut dgain);
                    slopes.weights[gain] = Some(dgain);
                    pool.give(slope);
                }
                (Step::Learned { input, factor }, _) => {
                    let rows = slope.chunks(width).zip(self.value(&made, input).chunks(width));
                    let along: f64 = rows.map(|(dy, x)| f64::from(kernel::dot_all(dy, x))).sum();
                    let mut dfactor = slopes.vector(factor, 1);
                    dfactor[0] += along as f32;
                    slopes.weights[factor] = Some(dfactor);
                    slopes.give(input, slope, self.weights[factor][0]);
                }
                (Step::Scale { input, factor }, _) => slopes.give(input, slope, factor),
                (Step::Add(left, right), _) => {
                    let (first, last) = if slopes.values[left].is_some() { (left, right) } else { (right, left) };
                    slopes.give_copy(first, &slope);
                    slopes.give(last, slope, 1.0);
                }
                (Step::Subtract(left, right), _) => {
                    slopes.give_copy(left, &slope);
                    slopes.give(right, slope, -1.0);
                }
                (Step::Stop(_), _) => pool.give(slope),
                (Step::Norm { .. } | Step::Attention { .. } | Step::Ffn { .. }, _) => {
                    unreachable!("a forward pass under a tape keeps what its reverse needs")
                }
            }
        }
        Found { streams: [slopes.values[0].take(), slopes.values[1].take()], weights: slopes.weights }
    }

    /// d of q|k|v from that of attention's output, row by row.
    fn attention_slopes(
        &self,
        shape: AttentionShape,
        norms: [Option<PlacedNorm>; 3],
        (qkv, out, lse): (&[f32], &[f32], &[f32]),
        dout: &[f32],
        slopes: &mut Slopes<'_>,
    ) -> Vec<f32> {
        let mut dqkv = slopes.pool.take(qkv.len());
        let mut dnorms = norms.map(|norm| OwnSlopes::take(norm, shape.width, slopes));
        let views = self.weights.norms(norms);
        WORKSPACE.with_borrow_mut(|work| {
            for (row, sequence) in self.sequences() {
                let tokens = sequence.starts.len();
                let cut = |side: usize| row * tokens * side..(row + 1) * tokens * side;
                let saved = (&out[cut(shape.merged())], &lse[cut(shape.queries)]);
                let (qkv, dqkv) = (&qkv[cut(shape.packed())], &mut dqkv[cut(shape.packed())]);
                let mut dnorms = dnorms.each_mut().map(OwnSlopes::view);
                let dout = &dout[cut(shape.merged())];
                kernel::attention_backward(shape, &views, sequence, qkv, saved, dout, dqkv, &mut dnorms, work);
            }
        });
        dnorms.into_iter().for_each(|own| own.put(slopes));
        dqkv
    }

    /// Of y = x Wᵀ: dW (o, i) [+]= dyᵀ x.
    fn weight_slopes(&self, (dy, x): (&[f32], &[f32]), weight: usize, slopes: &mut Slopes<'_>) {
        let n = self.count();
        if n == 0 {
            return;
        }
        let (inward, outward, pool) = (x.len() / n, dy.len() / n, slopes.pool);
        let accumulate = slopes.weights[weight].is_some();
        let dweight = slopes.weights[weight].get_or_insert_with(|| pool.take(outward * inward));
        product(ViewMut::new(dweight, outward, inward), accumulate, View::new(dy, n, outward).t(), View::new(x, n, inward));
    }

    /// Of y = x Wᵀ: dx (N, i) [+]= dy W.
    fn input_slopes(&self, dy: &[f32], weight: usize, dx: &mut [f32], accumulate: bool) {
        let n = self.count();
        if n == 0 {
            return;
        }
        let (inward, outward) = (dx.len() / n, dy.len() / n);
        let weight = View::new(&self.weights[weight], outward, inward);
        product(ViewMut::new(dx, n, inward), accumulate, View::new(dy, n, outward), weight);
    }
}
