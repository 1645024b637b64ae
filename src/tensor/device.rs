//! Devices, element types and the few tensor shapes in use.

use dfdx::prelude::{CopySlice, HasErr, Tensor};
use dfdx::shapes::Rank0;

/// A device of dfdx with every operation for `E`.
pub trait Device<E: Real>: dfdx::tensor_ops::Device<E> + CopySlice<E> {}
impl<E: Real, D: dfdx::tensor_ops::Device<E>> Device<E> for D {}

/// A device that models train on.
pub trait Home: Device<f32> {
    /// The fastest operations that it has.
    type Operations: super::Operations<f32, Self>;
}
impl Home for dfdx::prelude::Cpu {
    type Operations = super::Fused;
}
#[cfg(feature = "cuda")]
impl Home for dfdx::prelude::Cuda {
    type Operations = super::Composed;
}

/// What went wrong on a device: in practice, that its memory is full.
pub type Fault<D> = <D as HasErr>::Err;

/// A floating-point element: `f32` to train, `f64` to check gradients.
pub trait Real: dfdx::dtypes::Dtype + Into<f64> {
    /// The nearest value.
    fn of(value: f64) -> Self;
}
impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}
impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// One number, shape ().
pub type Scalar<E, D, T = dfdx::prelude::NoneTape> = Tensor<Rank0, E, D, T>;
/// Shape (n).
pub type Vector<E, D, T = dfdx::prelude::NoneTape> = Tensor<(usize,), E, D, T>;
/// Shape (m, n).
pub type Matrix<E, D, T = dfdx::prelude::NoneTape> = Tensor<(usize, usize), E, D, T>;
/// Shape (l, m, n).
pub type Tensor3<E, D, T = dfdx::prelude::NoneTape> = Tensor<(usize, usize, usize), E, D, T>;

/// A parameter, or anything of its shape: gradient, moment.
#[derive(Debug, Clone)]
pub enum Param<E: Real, D: Device<E>> {
    /// Norms, gains, shifts, learned scalars.
    Vector(Vector<E, D>),
    /// Matrices (out, in) and embeddings (V, D).
    Matrix(Matrix<E, D>),
}

impl<E: Real, D: Device<E>> Param<E, D> {
    /// From values in row-major order; `shape` has one or two sides and as many elements as there are values.
    pub fn new(device: &D, values: Vec<E>, shape: &[usize]) -> Result<Self, Fault<D>> {
        match *shape {
            [rows, columns] => Ok(Param::Matrix(device.try_tensor_from_vec(values, (rows, columns))?)),
            _ => {
                let length = values.len();
                Ok(Param::Vector(device.try_tensor_from_vec(values, (length,))?))
            }
        }
    }
    /// The values in row-major order.
    pub fn values(&self) -> Vec<E> {
        match self {
            Param::Vector(vector) => vector.as_vec(),
            Param::Matrix(matrix) => matrix.as_vec(),
        }
    }
    /// Sides.
    pub fn shape(&self) -> Vec<usize> {
        use dfdx::shapes::HasShape;
        match self {
            Param::Vector(vector) => vec![vector.shape().0],
            Param::Matrix(matrix) => vec![matrix.shape().0, matrix.shape().1],
        }
    }
    /// Zeros of the same shape.
    pub fn zeros_like(&self) -> Result<Self, Fault<D>> {
        match self {
            Param::Vector(vector) => Ok(Param::Vector(vector.device().try_zeros_like(vector)?)),
            Param::Matrix(matrix) => Ok(Param::Matrix(matrix.device().try_zeros_like(matrix)?)),
        }
    }
    /// Elementwise sum with one of the same shape.
    pub fn plus(self, other: Self) -> Result<Self, Fault<D>> {
        use dfdx::tensor_ops::TryAdd;
        match (self, other) {
            (Param::Vector(a), Param::Vector(b)) => Ok(Param::Vector(a.try_add(b)?)),
            (Param::Matrix(a), Param::Matrix(b)) => Ok(Param::Matrix(a.try_add(b)?)),
            (this, _) => Ok(this),
        }
    }
    /// What a backward pass found for it; zeros if it was not reached.
    pub fn gradient(&self, found: &mut dfdx::prelude::Gradients<E, D>) -> Result<Self, Fault<D>> {
        match self {
            Param::Vector(vector) => {
                found.get_or_alloc_mut(vector)?;
                Ok(Param::Vector(found.get(vector)))
            }
            Param::Matrix(matrix) => {
                found.get_or_alloc_mut(matrix)?;
                Ok(Param::Matrix(found.get(matrix)))
            }
        }
    }
}

/// Runs a tape backward from the loss that it ends in.
pub fn backward<E: Real, D: Device<E>>(
    loss: Scalar<E, D>,
    tape: dfdx::prelude::OwnedTape<E, D>,
) -> Result<dfdx::prelude::Gradients<E, D>, Fault<D>> {
    use dfdx::prelude::{Backward, PutTape};
    loss.put_tape(tape).try_backward()
}
