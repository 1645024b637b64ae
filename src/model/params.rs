//! Parameters by name.

use indexmap::IndexMap;

use crate::budget::params::ParamSpec;
use crate::tensor::{Device, Fault, Matrix, Param, Real, Vector};

/// All parameters of a network, in the order of their specifications.
#[derive(Debug, Clone)]
pub struct Params<E: Real, D: Device<E>>(pub IndexMap<String, Param<E, D>>);

impl<E: Real, D: Device<E>> Default for Params<E, D> {
    fn default() -> Self {
        Self(IndexMap::new())
    }
}

impl<E: Real, D: Device<E>> Params<E, D> {
    /// On `device`, with the values that `value` gives for each specification.
    pub fn from_values(device: &D, specs: &[ParamSpec], mut value: impl FnMut(&ParamSpec) -> Vec<f32>) -> Result<Self, Fault<D>> {
        let mut params = IndexMap::new();
        for spec in specs {
            let values = value(spec).into_iter().map(|value| E::of(f64::from(value))).collect();
            params.insert(spec.name.clone(), Param::new(device, values, &spec.shape)?);
        }
        Ok(Self(params))
    }
    /// A matrix that the model has.
    ///
    /// # Panics
    /// If it has none of this name: the network and its specifications disagree, which is a bug in xrun.
    pub fn matrix(&self, name: &str) -> &Matrix<E, D> {
        match self.0.get(name) {
            Some(Param::Matrix(matrix)) => matrix,
            _ => panic!("this is a bug in xrun: no matrix `{name}`"),
        }
    }
    /// A vector, if the model has it.
    pub fn vector(&self, name: &str) -> Option<&Vector<E, D>> {
        match self.0.get(name) {
            Some(Param::Vector(vector)) => Some(vector),
            _ => None,
        }
    }
    /// A vector that the model has.
    ///
    /// # Panics
    /// As [`Params::matrix`].
    pub fn expect_vector(&self, name: &str) -> &Vector<E, D> {
        self.vector(name).unwrap_or_else(|| panic!("this is a bug in xrun: no vector `{name}`"))
    }
}
