//! The weights on the device.

use candor_quant::QuantType;

use crate::buffer::DevicePtr;

/// A matrix in the layout of the file: rows of blocks. Several of them one after the other where
/// it is one for each expert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub(crate) ptr: DevicePtr,
    pub(crate) quant: &'static QuantType,
    /// Outputs, of one expert.
    pub(crate) rows: usize,
    /// Inputs.
    pub(crate) cols: usize,
    /// From one row to the next.
    pub(crate) row_bytes: usize,
    /// From one expert's matrix to the next.
    pub(crate) expert_bytes: usize,
}

impl Matrix {
    /// The module of an operation for this type: `linear_q4_k`.
    pub(crate) fn module(&self, op: &str) -> String {
        format!("{op}_{}", self.quant.name.to_ascii_lowercase())
    }

    /// Whether the decode path multiplies with 8-bit activations; with float32 ones otherwise.
    pub(crate) fn takes_codes(&self) -> bool {
        self.quant.dot.is_some()
    }
}

/// Values used one by one: float32 on the device whatever they are in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector {
    pub(crate) ptr: DevicePtr,
    /// Over all dimensions.
    pub(crate) len: usize,
}
