//! Rows of a table by token.

use dfdx::prelude::{Cpu, HasShape, Tape, TensorFromVec};

use super::host::view_of;
use crate::kernel;
use crate::tensor::{Fault, Matrix, Rows};

/// (N, D); backward adds rows up in the order of tokens.
pub(super) fn embedding<T: Tape<f32, Cpu>>(
    tape: &mut T,
    table: &Matrix<f32, Cpu>,
    rows: &Rows<f32, Cpu>,
) -> Result<Matrix<f32, Cpu>, Fault<Cpu>> {
    let width = table.shape().1;
    let from = view_of(table);
    let mut x = Vec::with_capacity(rows.cells.tokens.len() * width);
    for token in &rows.cells.tokens {
        x.extend_from_slice(&from[*token as usize * width..][..width]);
    }
    let y = Cpu::default().try_tensor_from_vec(x, (rows.rows * rows.context, width))?;
    if T::OWNS_TAPE {
        let (ghost, table, cells) = (y.ghost(), table.clone(), rows.cells.clone());
        tape.add_backward_op(move |map| {
            let dy = std::mem::take(&mut **map.get_or_alloc_mut(&ghost)?);
            let sum = map.get_or_alloc_mut(&table)?;
            for (dy, token) in dy.chunks_exact(width).zip(&cells.tokens) {
                kernel::add(&mut sum[*token as usize * width..][..width], dy);
            }
            Ok(())
        });
    }
    Ok(y)
}
