//! The operations that a model is made of, as a trait: what a device may do better than by composition.

use dfdx::prelude::{Gradients, NoneTape, Tape};

use super::program::{self, Program};
use super::update::{Update, update};
use super::{Device, Divergence, Fault, Matrix, Param, Real, Rows, Scalar, Targets, TeacherRows, Unspoken, Vector};

/// What a norm does before weight and shift.
#[derive(Debug)]
pub enum NormRule<'a, E: Real, D: Device<E>> {
    /// Division by a root.
    Root {
        /// Subtract the mean: layer norm (1607.06450) rather than RMS norm (1910.07467).
        centered: bool,
        /// Added to the mean square, respectively the variance.
        eps: f64,
    },
    /// tanh(alpha · x), alpha of shape (1): Dynamic Tanh (2503.10622).
    Tanh(&'a Vector<E, D>),
}

/// Weights of a norm over the last axis.
#[derive(Debug)]
pub struct NormWeights<'a, E: Real, D: Device<E>> {
    /// What comes before them.
    pub rule: NormRule<'a, E, D>,
    /// (D), or (K) for heads.
    pub weight: &'a Vector<E, D>,
    /// Shift, as long as the weight.
    pub bias: Option<&'a Vector<E, D>>,
}

/// Numbers and widths of heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// H.
    pub queries: usize,
    /// G, divides H: each group of R = H/G consecutive query heads shares one key/value head (2305.13245).
    pub keys: usize,
    /// K.
    pub width: usize,
}

/// Weights of attention; matrices are (out, in).
#[derive(Debug)]
pub struct AttentionWeights<'a, E: Real, D: Device<E>> {
    /// Heads.
    pub heads: Heads,
    /// (H·K, D).
    pub q: &'a Matrix<E, D>,
    /// (G·K, D).
    pub k: &'a Matrix<E, D>,
    /// (G·K, D).
    pub v: &'a Matrix<E, D>,
    /// (D, H·K).
    pub o: &'a Matrix<E, D>,
    /// Norm of each query head, before RoPE.
    pub q_norm: Option<NormWeights<'a, E, D>>,
    /// Norm of each key head, before RoPE.
    pub k_norm: Option<NormWeights<'a, E, D>>,
    /// Norm of each value head.
    pub v_norm: Option<NormWeights<'a, E, D>>,
}

/// Weights of the feed-forward network; matrices are (out, in).
#[derive(Debug)]
pub struct FfnWeights<'a, E: Real, D: Device<E>> {
    /// (F, D); SwiGLU (2002.05202) where present, else GELU by its tanh approximation (1606.08415).
    pub gate: Option<&'a Matrix<E, D>>,
    /// (F, D).
    pub up: &'a Matrix<E, D>,
    /// (D, F).
    pub down: &'a Matrix<E, D>,
}

/// A term of a loss, for the tokens of some rows.
#[derive(Debug, Clone, Copy)]
pub enum Term<'a, E: Real, D: Device<E>> {
    /// −log softmax(z)\[label\].
    CrossEntropy {
        /// What multiplies it.
        factor: f64,
    },
    /// How far a teacher and the student are apart, both softened.
    Apart {
        /// What multiplies it.
        factor: f64,
        /// By which measure.
        divergence: Divergence,
        /// τ.
        temperature: f64,
        /// What the teacher says.
        teacher: &'a TeacherRows<E, D>,
    },
    /// The mean over the vocabulary of the square of the difference of logits.
    Squares {
        /// What multiplies it.
        factor: f64,
        /// The teacher's logits.
        teacher: &'a Unspoken<E, D>,
    },
}

/// The operations. Streams are (N, D) and carry no tape; `tape` is that of the pass ([`NoneTape`] where nothing learns below).
///
/// Every parameter that an operation is given gets a gradient when its tape is run backward; who does not learn ignores it.
pub trait Operations<E: Real, D: Device<E>>: Copy + Default + 'static {
    /// Rows of `table` (V, D) by token: (N, D).
    fn embedding<T: Tape<E, D>>(&self, tape: &mut T, table: &Matrix<E, D>, rows: &Rows<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// Norm over the width.
    fn norm<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &NormWeights<'_, E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>>;

    /// Grouped-query attention under the mask and positions of `rows`.
    fn attention<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &AttentionWeights<'_, E, D>,
        rows: &Rows<E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>>;

    /// The feed-forward network.
    fn ffn<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        weights: &FfnWeights<'_, E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>>;

    /// Each channel times its gain (D).
    fn gain<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, gain: &Vector<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// All times a learned scalar, shape (1).
    fn learned<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, factor: &Vector<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// All times a number that is not learned.
    fn scale<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, factor: f64) -> Result<Matrix<E, D>, Fault<D>>;

    /// Sum of two tensors that are not the same one.
    fn add<T: Tape<E, D>>(&self, tape: &mut T, left: &Matrix<E, D>, right: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// Difference of two tensors that are not the same one.
    fn subtract<T: Tape<E, D>>(&self, tape: &mut T, left: &Matrix<E, D>, right: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// The same value, to which no gradient passes.
    fn stop(&self, x: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>> {
        self.scale(&mut NoneTape, x, 1.0)
    }

    /// The result of a program whose values 0 and 1 are `x` and `embedded`.
    ///
    /// One operation, so that an implementation may run a layer as a whole.
    fn run<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        program: &Program<'_, E, D>,
        rows: &Rows<E, D>,
        x: &Matrix<E, D>,
        embedded: &Matrix<E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        program::run(self, tape, program, rows, x, embedded)
    }

    /// What a backward pass found for a parameter, zeros if it was not reached; `found` may lose it.
    fn gradient(&self, param: &Param<E, D>, found: &mut Gradients<E, D>) -> Result<Param<E, D>, Fault<D>> {
        param.gradient(found)
    }

    /// Logits (N, V) under a head (V, D).
    fn head<T: Tape<E, D>>(&self, tape: &mut T, x: &Matrix<E, D>, table: &Matrix<E, D>) -> Result<Matrix<E, D>, Fault<D>>;

    /// −log softmax(z)\[label\] of each token, in nats: (N).
    fn cross_entropy<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        targets: &Targets<E, D>,
    ) -> Result<Vector<E, D>, Fault<D>>;

    /// How far teacher and student are apart at each token, both softened by `temperature`, in nats: (N).
    fn apart<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        teacher: &TeacherRows<E, D>,
        divergence: Divergence,
        temperature: f64,
    ) -> Result<Vector<E, D>, Fault<D>>;

    /// The mean over the vocabulary of the square of the difference of logits, at each token: (N).
    fn squares<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        logits: &Matrix<E, D>,
        teacher: &Unspoken<E, D>,
    ) -> Result<Vector<E, D>, Fault<D>>;

    /// log softmax(z / temperature): (N, V).
    fn log_probabilities(&self, logits: &Matrix<E, D>, temperature: f64) -> Result<Matrix<E, D>, Fault<D>>;

    /// Σₙ weightₙ · termₙ.
    fn weighted_sum<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        terms: &Vector<E, D>,
        targets: &Targets<E, D>,
    ) -> Result<Scalar<E, D>, Fault<D>>;

    /// Σ factor · scalar, 0 for none.
    fn combine<T: Tape<E, D>>(&self, tape: &mut T, terms: &[(f64, Scalar<E, D>)]) -> Result<Scalar<E, D>, Fault<D>>;

    /// Head and loss in one: Σ over terms of factor · Σₙ weightₙ · termₙ of the stream `x` under the head `table` (V, D).
    ///
    /// One operation, so that an implementation need not hold tokens × vocabulary.
    fn loss<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        x: &Matrix<E, D>,
        table: &Matrix<E, D>,
        targets: &Targets<E, D>,
        terms: &[Term<'_, E, D>],
    ) -> Result<Scalar<E, D>, Fault<D>> {
        let logits = self.head(tape, x, table)?;
        let mut shares = Vec::with_capacity(terms.len());
        for term in terms {
            let (factor, each) = match *term {
                Term::CrossEntropy { factor } => (factor, self.cross_entropy(tape, &logits, targets)?),
                Term::Apart { factor, divergence, temperature, teacher } => {
                    (factor, self.apart(tape, &logits, teacher, divergence, temperature)?)
                }
                Term::Squares { factor, teacher } => (factor, self.squares(tape, &logits, teacher)?),
            };
            shares.push((factor, self.weighted_sum(tape, &each, targets)?));
        }
        self.combine(tape, &shares)
    }

    /// Σ of squares of all elements, summed in f64.
    fn sum_of_squares(&self, gradient: &Param<E, D>) -> f64 {
        gradient
            .values()
            .into_iter()
            .map(|value| -> f64 {
                let value: f64 = value.into();
                value * value
            })
            .sum()
    }

    /// One update of every parameter of a step; either all of them or, on a failure, none.
    ///
    /// Here all new values exist before the first old one goes, which an implementation that cannot fail need not do.
    fn update(&self, moves: &mut [Moved<'_, E, D>]) -> Result<(), Fault<D>> {
        let updated: Result<Vec<_>, _> = moves.iter().map(|one| update(one.weight, one.kept, one.gradient, &one.by)).collect();
        for (one, (weight, kept)) in moves.iter_mut().zip(updated?) {
            *one.weight = weight;
            one.kept.iter_mut().zip(kept).for_each(|(old, new)| *old = new);
        }
        Ok(())
    }
}

/// A parameter that moves in a step.
#[derive(Debug)]
pub struct Moved<'a, E: Real, D: Device<E>> {
    /// Itself.
    pub weight: &'a mut Param<E, D>,
    /// What is kept of its past: as many tensors of its shape as its rule keeps.
    pub kept: &'a mut [Param<E, D>],
    /// Its gradient.
    pub gradient: &'a Param<E, D>,
    /// How it moves.
    pub by: Update,
}
