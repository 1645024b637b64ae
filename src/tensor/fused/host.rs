//! Between tensors and slices, without a pointer: values are copied out, results and gradients are moved in.

use dfdx::prelude::{CopySlice, Cpu, Gradients, HasShape, Shape, Tensor, Unit};

use crate::tensor::{Fault, Param};

/// The elements of a tensor in row-major order, appended to `out`.
///
/// The tensor's memory is copied as it lies: parameters, streams and targets are made from vectors, never broadcast or permuted.
pub(super) fn append<S: Shape, U: Unit>(tensor: &Tensor<S, U, Cpu>, out: &mut Vec<U>) {
    let start = out.len();
    out.resize(start + tensor.shape().num_elements(), U::default());
    Cpu::copy_into(tensor, &mut out[start..]);
}

/// The elements of a tensor.
pub(super) fn values<S: Shape, U: Unit>(tensor: &Tensor<S, U, Cpu>) -> Vec<U> {
    let mut out = Vec::new();
    append(tensor, &mut out);
    out
}

/// The elements of a parameter.
pub(super) fn read(param: &Param<f32, Cpu>) -> Vec<f32> {
    match param {
        Param::Vector(vector) => values(vector),
        Param::Matrix(matrix) => values(matrix),
    }
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
