//! A batch as tensors: tokens, mask, rotations, labels; made once for all layers.

use std::cell::OnceCell;
use std::sync::Arc;

use dfdx::prelude::Tensor;

use super::fused::Pool;
use super::{Device, Fault, Matrix, Real, Tensor3, Vector};
use crate::kernel::Rotations;

/// What layers need of a batch. Mask and rotations as tensors are made when first asked for: not every implementation wants them.
#[derive(Debug, Clone)]
pub struct Rows<E: Real, D: Device<E>> {
    /// B.
    pub rows: usize,
    /// T.
    pub context: usize,
    /// (N), each below the vocabulary.
    pub tokens: Tensor<(usize,), usize, D>,
    pub(super) cells: Arc<Cells>,
    rope: Option<(f64, usize)>,
    mask: OnceCell<Tensor3<E, D>>,
    rotation: OnceCell<Rope<E, D>>,
}

/// A batch on the host.
#[derive(Debug)]
pub(super) struct Cells {
    /// T.
    pub context: usize,
    /// (N).
    pub tokens: Vec<u32>,
    /// (N): within its row, the first token of a token's document.
    pub starts: Vec<u32>,
    /// (N): within the document.
    pub positions: Vec<u32>,
    /// For all positions that occur; `None` without RoPE.
    pub rotations: Option<Rotations>,
    /// Memory for work on this batch.
    pub pool: Arc<Pool>,
}

/// Rotary embeddings (2104.09864) that rotate halves: x·cos + (x P)·sin with x P = (−x₂, x₁) for x = (x₁, x₂).
///
/// P is a product with a signed permutation: exact, and without the slices whose gradients dfdx 0.13 gets wrong.
#[derive(Debug, Clone)]
pub struct Rope<E: Real, D: Device<E>> {
    /// (N, K).
    pub cosines: Matrix<E, D>,
    /// (N, K).
    pub sines: Matrix<E, D>,
    /// P, (K, K).
    pub rotation: Matrix<E, D>,
}

impl<E: Real, D: Device<E>> Rows<E, D> {
    /// Low enough that a masked score's exponential is exactly 0, and finite, so that no 0 · ∞ arises.
    const MASKED: f64 = -1e30;

    /// From tokens, documents and positions, row-major (B·T); a token sees itself and those before it in its own document.
    ///
    /// `rope` is base and head width K.
    pub fn new(
        device: &D,
        (rows, context): (usize, usize),
        tokens: &[u32],
        document: &[u32],
        position: &[u32],
        rope: Option<(f64, usize)>,
    ) -> Result<Self, Fault<D>> {
        let mut starts = Vec::with_capacity(document.len());
        for documents in document.chunks_exact(context.max(1)) {
            let mut start = 0;
            for at in 0..documents.len() {
                if at > 0 && documents[at] != documents[at - 1] {
                    start = at as u32;
                }
                starts.push(start);
            }
        }
        let positions = position.iter().max().map_or(0, |last| *last as usize + 1);
        let rotations = rope.map(|(base, width)| Rotations::new(base, width, positions));
        Ok(Self {
            rows,
            context,
            tokens: device.try_tensor_from_vec(tokens.iter().map(|token| *token as usize).collect(), (rows * context,))?,
            cells: Arc::new(Cells {
                context,
                tokens: tokens.to_vec(),
                starts,
                positions: position.to_vec(),
                rotations,
                pool: Pool::of_thread(rows * context),
            }),
            rope,
            mask: OnceCell::new(),
            rotation: OnceCell::new(),
        })
    }

    /// (B, T, T), added to scores: 0 where a token sees another, else a number so low that its exponential is 0.
    pub(super) fn mask(&self) -> Result<&Tensor3<E, D>, Fault<D>> {
        if let Some(mask) = self.mask.get() {
            return Ok(mask);
        }
        let context = self.context;
        let mut mask = vec![E::of(Self::MASKED); self.rows * context * context];
        for (row, starts) in mask.chunks_exact_mut((context * context).max(1)).zip(self.cells.starts.chunks_exact(context.max(1)))
        {
            for (query, start) in starts.iter().enumerate() {
                row[query * context + *start as usize..=query * context + query].fill(E::of(0.0));
            }
        }
        let mask = self.tokens.device().try_tensor_from_vec(mask, (self.rows, context, context))?;
        Ok(self.mask.get_or_init(|| mask))
    }

    /// Rotations of each token's position; `None` without RoPE.
    pub(super) fn rope(&self) -> Result<Option<&Rope<E, D>>, Fault<D>> {
        let Some((base, width)) = self.rope else { return Ok(None) };
        if let Some(rotation) = self.rotation.get() {
            return Ok(Some(rotation));
        }
        let rotation = Rope::new(self.tokens.device(), base, width, &self.cells.positions)?;
        Ok(Some(self.rotation.get_or_init(|| rotation)))
    }
}

impl<E: Real, D: Device<E>> Rope<E, D> {
    fn new(device: &D, base: f64, width: usize, position: &[u32]) -> Result<Self, Fault<D>> {
        let half = width / 2;
        let frequencies: Vec<f64> =
            (0..width).map(|channel| libm::pow(base, -2.0 * (channel % half) as f64 / width as f64)).collect();
        let angles = || position.iter().flat_map(|at| frequencies.iter().map(move |frequency| f64::from(*at) * frequency));
        let mut rotation = vec![E::of(0.0); width * width];
        for channel in 0..half {
            rotation[(channel + half) * width + channel] = E::of(-1.0);
            rotation[channel * width + channel + half] = E::of(1.0);
        }
        let table = (position.len(), width);
        Ok(Self {
            cosines: device.try_tensor_from_vec(angles().map(|angle| E::of(libm::cos(angle))).collect(), table)?,
            sines: device.try_tensor_from_vec(angles().map(|angle| E::of(libm::sin(angle))).collect(), table)?,
            rotation: device.try_tensor_from_vec(rotation, (width, width))?,
        })
    }
}

/// What the loss needs of a batch.
#[derive(Debug, Clone)]
pub struct Targets<E: Real, D: Device<E>> {
    /// (N), each below the vocabulary.
    pub labels: Tensor<(usize,), usize, D>,
    /// (N): one over the counted tokens of the whole batch where the token counts, else 0.
    pub weights: Vector<E, D>,
}

impl<E: Real, D: Device<E>> Targets<E, D> {
    /// `total`: counted tokens of the whole batch, of which these may be a part.
    pub fn new(device: &D, labels: &[u32], counted: &[bool], total: u64) -> Result<Self, Fault<D>> {
        let weight = if total == 0 { 0.0 } else { 1.0 / total as f64 };
        let weights = counted.iter().map(|counted| E::of(if *counted { weight } else { 0.0 })).collect();
        Ok(Self {
            labels: device.try_tensor_from_vec(labels.iter().map(|label| *label as usize).collect(), (labels.len(),))?,
            weights: device.try_tensor_from_vec(weights, (counted.len(),))?,
        })
    }
}

/// A teacher's logits, not worked out yet.
#[derive(Debug, Clone)]
pub struct Unspoken<E: Real, D: Device<E>> {
    /// Its last stream, (N, D of the teacher).
    pub x: Matrix<E, D>,
    /// Its head, (V, D of the teacher).
    pub table: Matrix<E, D>,
}

/// What a teacher says about each token.
#[derive(Debug, Clone)]
pub enum TeacherRows<E: Real, D: Device<E>> {
    /// All log-probabilities at the loss' temperature, (N, V).
    Full(Matrix<E, D>),
    /// Logits, at no temperature yet.
    Unspoken(Unspoken<E, D>),
    /// The K most likely tokens at the loss' temperature; the missing mass is one more outcome.
    Top {
        /// Their tokens, (N, K), without repetition within a row.
        tokens: Tensor<(usize, usize), usize, D>,
        /// Their log-probabilities, (N, K).
        logs: Matrix<E, D>,
        /// log of the missing mass, (N); so low that its exponential is 0 where there is none.
        rest: Vector<E, D>,
        /// (N, V): so low at the K tokens that their exponential is 0, else 0.
        mask: Matrix<E, D>,
    },
}

impl<E: Real, D: Device<E>> TeacherRows<E, D> {
    /// From K tokens and K + 1 log-probabilities a row, the last that of the missing mass (−∞ where there is none).
    pub fn top(device: &D, outcomes: usize, vocabulary: usize, tokens: &[u32], logs: &[f32]) -> Result<Self, Fault<D>> {
        let rows = tokens.len() / outcomes.max(1);
        let mut mask = vec![E::of(0.0); rows * vocabulary];
        for (row, tokens) in tokens.chunks_exact(outcomes).enumerate() {
            for token in tokens {
                mask[row * vocabulary + *token as usize] = E::of(Rows::<E, D>::MASKED);
            }
        }
        let (mut kept, mut rest) = (Vec::new(), Vec::new());
        for logs in logs.chunks_exact(outcomes + 1) {
            kept.extend(logs[..outcomes].iter().map(|log| E::of(f64::from(*log))));
            rest.push(E::of(f64::from(logs[outcomes]).max(Rows::<E, D>::MASKED)));
        }
        Ok(TeacherRows::Top {
            tokens: device.try_tensor_from_vec(tokens.iter().map(|token| *token as usize).collect(), (rows, outcomes))?,
            logs: device.try_tensor_from_vec(kept, (rows, outcomes))?,
            rest: device.try_tensor_from_vec(rest, (rows,))?,
            mask: device.try_tensor_from_vec(mask, (rows, vocabulary))?,
        })
    }
}
