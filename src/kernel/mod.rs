//! Kernels of the fused layers: arithmetic on slices of `f32`, each forward with its own backward, one thread each.
//!
//! Owns arithmetic and how it meets the processor's vector units. Deliberately knows no tensor, no tape, no equation and no thread.
//! Invariants: a result depends on the inputs alone, never on alignment or on who calls; sums along an axis run over sixteen lanes in a
//! fixed order, so that the AVX2 and the AVX-512 version of a kernel give the same bits; nothing of size T × T or N × V is ever held.
//!
//! Shapes: N tokens, T tokens of one row, D width, H query heads, G key/value heads, K head width, F hidden width, V vocabulary;
//! matrices are row-major and, where they are weights, (out, in).

mod activation;
mod attention;
mod loss;
mod norm;
mod optimizer;
mod product;
mod rotate;
mod simd;
mod sums;
mod tile;

pub use activation::{gelu, gelu_backward, swiglu, swiglu_backward};
pub use attention::{AttentionShape, HeadNorms, Sequence, Workspace, attention, attention_backward};
pub use loss::{Divergence, Heard, Softening, TeacherCells, loss_of_row, squares_of_row};
pub use norm::{Norm, NormRule, NormSlopes, norm, norm_backward};
pub use optimizer::{Adam, Signed, adamw, lion, sum_of_squares};
pub use product::{View, ViewMut, product};
pub use rotate::Rotations;
pub use simd::{Level, at_most};
pub use sums::{add, axpy, blend, dot_all, scaled, subtract, times_gain, times_gain_backward};

#[cfg(test)]
mod tests;
