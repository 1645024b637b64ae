//! The only door to dfdx: devices, tensors, tapes and the operations that a transformer is made of.
//!
//! Owns [`Operations`], the seam behind which kernels live; [`Composed`] builds each from dfdx's own operations, on any device, and
//! is the reference that [`Fused`], whole layers on the processor, is tested against; [`Home`] says which a device trains with. Deliberately knows no study, no file and no parameter's name.
//! Invariants: a stream between operations carries no tape — the tape belongs to the pass and is handed to each operation, so that
//! none can be lost; no operation slices, none reshapes a broadcast tensor, and no binary operation sees one tensor on both sides
//! (dfdx 0.13 gives wrong gradients for the first two and panics on the third).
//!
//! Shapes: B rows, T tokens of a row, N = B·T, D width, H query heads, G key/value heads, R = H/G, K head width, F hidden width,
//! V vocabulary.

mod attention;
mod composed;
mod device;
mod fused;
mod loss;
mod operations;
mod program;
mod rows;
mod update;

pub use crate::kernel::{Divergence, View, ViewMut, product};
pub use composed::Composed;
pub use device::{Device, Fault, Home, Matrix, Param, Real, Scalar, Tensor3, Vector, backward};
#[cfg(feature = "cuda")]
pub use dfdx::prelude::Cuda;
pub use dfdx::prelude::{Cpu, Gradients, NoneTape, OwnedTape, Tape};
pub use fused::Fused;
pub use operations::{AttentionWeights, FfnWeights, Heads, Moved, NormRule, NormWeights, Operations, Term};
pub use program::{Action, Instruction, Program};
pub use rows::{Rows, Targets, TeacherRows, Unspoken};
pub use update::{Rule, Update};
