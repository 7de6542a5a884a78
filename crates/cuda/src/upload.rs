//! The way of the weights onto the device.

use candor_arch::WeightId;

use crate::weights::{Matrix, Vector};

/// One weight on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weight {
    Matrix(Matrix),
    Vector(Vector),
}

/// All weights of a model on the device.
pub(crate) struct Weights {
    all: Vec<Weight>,
}

impl Weights {
    pub(crate) fn matrix(&self, id: WeightId) -> Matrix {
        match self.all[id.0] {
            Weight::Matrix(matrix) => matrix,
            Weight::Vector(_) => unreachable!("the graph says that it is a matrix"),
        }
    }

    pub(crate) fn vector(&self, id: WeightId) -> Vector {
        match self.all[id.0] {
            Weight::Vector(vector) => vector,
            Weight::Matrix(_) => unreachable!("the graph says that it is a vector"),
        }
    }
}
