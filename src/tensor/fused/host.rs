//! Between tensors and slices: parameters and streams are looked at where they lie, results and gradients are moved in.

use dfdx::prelude::{CopySlice, Cpu, Gradients, HasShape, Shape, Tensor, Unit};

use crate::tensor::{Fault, Matrix, Param};

/// A copy of the elements of a tensor, as they lie: targets are made from vectors, never broadcast or permuted.
pub(super) fn values<S: Shape, U: Unit>(tensor: &Tensor<S, U, Cpu>) -> Vec<U> {
    let mut out = vec![U::default(); tensor.shape().num_elements()];
    Cpu::copy_into(tensor, &mut out);
    out
}

/// The elements of a parameter in row-major order, where they lie.
pub(super) fn view(param: &Param<f32, Cpu>) -> &[f32] {
    match param {
        Param::Vector(vector) => lying((1, vector.shape().0), |_, at| &vector[[at]]),
        Param::Matrix(matrix) => view_of(matrix),
    }
}

/// The elements of a matrix in row-major order, where they lie.
pub(super) fn view_of(matrix: &Matrix<f32, Cpu>) -> &[f32] {
    lying(*matrix.shape(), |row, column| &matrix[[row, column]])
}

/// The same to be changed; what else shares the parameter's memory does not see it.
pub(super) fn view_mut(param: &mut Param<f32, Cpu>) -> &mut [f32] {
    let length = view(param).len();
    if length == 0 {
        return &mut [];
    }
    let first: *mut f32 = match param {
        Param::Vector(vector) => &mut vector[[0]],
        Param::Matrix(matrix) => &mut matrix[[0, 0]],
    };
    // SAFETY: `view` found `length` elements from the first on within one `Vec`, and `IndexMut` of dfdx (`Arc::make_mut`) leaves them
    // there or in a copy of that `Vec` that nobody else knows; either is borrowed as long as `param` is. The pointer is made from a
    // reference to the first element alone: the aliasing model under which it may reach the rest is Tree Borrows.
    unsafe { std::slice::from_raw_parts_mut(first, length) }
}

/// What `at` gives for each row and column in turn, as the slice that they are.
///
/// # Panics
/// If they do not lie next to each other: parameters and streams are made from vectors, never broadcast or permuted.
fn lying<'a>((rows, columns): (usize, usize), at: impl Fn(usize, usize) -> &'a f32) -> &'a [f32] {
    if rows * columns == 0 {
        return &[];
    }
    let first = std::ptr::from_ref(at(0, 0));
    let place =
        |row: usize, column: usize| std::ptr::from_ref(at(row, column)).addr().wrapping_sub(first.addr()) / size_of::<f32>();
    assert!(place(0, columns - 1) == columns - 1 && place(rows - 1, columns - 1) == rows * columns - 1, "a tensor is contiguous");
    // SAFETY: a tensor's elements are in one `Vec`, at places that are linear in row and column; by the assertion the first and the
    // last of them are as far apart as there are elements, so that all of these lie within it. It is borrowed for 'a. The pointer is
    // made from a reference to the first element alone: the aliasing model under which it may reach the rest is Tree Borrows.
    unsafe { std::slice::from_raw_parts(first, rows * columns) }
}

/// Takes the gradient of a parameter out of a map; zeros if there is none.
pub(super) fn take_gradient(param: &Param<f32, Cpu>, map: &mut Gradients<f32, Cpu>) -> Result<Vec<f32>, Fault<Cpu>> {
    Ok(match param {
        Param::Vector(vector) => std::mem::take(&mut **map.get_or_alloc_mut(vector)?),
        Param::Matrix(matrix) => std::mem::take(&mut **map.get_or_alloc_mut(matrix)?),
    })
}

/// Puts it back.
pub(super) fn put_gradient(param: &Param<f32, Cpu>, map: &mut Gradients<f32, Cpu>, gradient: Vec<f32>) -> Result<(), Fault<Cpu>> {
    match param {
        Param::Vector(vector) => **map.get_or_alloc_mut(vector)? = gradient,
        Param::Matrix(matrix) => **map.get_or_alloc_mut(matrix)? = gradient,
    }
    Ok(())
}
