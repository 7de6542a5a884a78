//! Products with weight matrices.

use candor_quant::{ACTIVATION_ELEMS, ActivationBlock, QuantType, quantize_activations};

use super::super::format::{FORMATS, GROUP_ROWS};
use super::super::kernels::{Input, Kernels};
use super::super::packed::{InputKind, Packed};
use super::super::panel::Panel;
use super::super::tiles::TileQueue;
use super::{TOLERANCE, numbers};

/// Output rows of the check: the last group is partly empty, and the number of groups odd.
const OUTPUTS: usize = 37;

/// Activation rows of the check: more than the kernels take together.
const ROWS: usize = 9;

/// The first type whose product is wrong.
pub(super) fn first_miss(kernels: &Kernels) -> Option<&'static str> {
    let wrong = FORMATS.iter().find(|f| !is_right(kernels, f.quant))?;
    Some(wrong.quant.name)
}

/// Different blocks of the check. Choosing vectors of a codebook takes long, and the kernels know
/// no block from its neighbours.
const BLOCKS: usize = 7;

fn is_right(kernels: &Kernels, quant: &QuantType) -> bool {
    // Seven blocks: half a unit of two is left over.
    let cols = match quant.block_elems {
        256 => 512,
        elems => 7 * elems.max(32),
    };
    let acts = numbers(ROWS * cols, 99);
    let Some(case) = Case::of_tensor(quant, tensor(quant, cols), &acts, cols) else {
        return false;
    };
    let together = case.compute(kernels, ROWS);
    case.misses(&together) == 0 && together == case.compute(kernels, 1)
}

/// [`OUTPUTS`] rows of few different blocks, in another order each.
fn tensor(quant: &QuantType, cols: usize) -> Vec<u8> {
    let mut blocks = vec![0; BLOCKS * quant.block_bytes];
    (quant.quantize)(
        &numbers(BLOCKS * quant.block_elems, quant.id + 1),
        &mut blocks,
    );
    let mut tensor = Vec::new();
    for row in 0..OUTPUTS {
        for place in 0..cols / quant.block_elems {
            let block = (3 * row + 2 * place) % BLOCKS;
            tensor.extend_from_slice(&blocks[block * quant.block_bytes..][..quant.block_bytes]);
        }
    }
    tensor
}

/// A product and its truth.
pub(in crate::simd) struct Case<'a> {
    quant: &'a QuantType,
    tensor: Vec<u8>,
    acts: &'a [f32],
    cols: usize,
    packed: Packed,
}

impl<'a> Case<'a> {
    /// `weights` are quantised; `acts` is rows of `cols`.
    #[cfg(test)]
    pub(in crate::simd) fn new(
        quant: &'a QuantType,
        weights: &[f32],
        acts: &'a [f32],
        cols: usize,
    ) -> Option<Self> {
        let mut tensor = vec![0; quant.bytes_for(weights.len())?];
        (quant.quantize)(weights, &mut tensor);
        Self::of_tensor(quant, tensor, acts, cols)
    }

    /// With the bytes of a file.
    pub(in crate::simd) fn of_tensor(
        quant: &'a QuantType,
        tensor: Vec<u8>,
        acts: &'a [f32],
        cols: usize,
    ) -> Option<Self> {
        let rows = tensor.len() / quant.bytes_for(cols)?;
        let mut packed = Packed::new(quant, rows, cols)?;
        packed.parts(1).for_each(|part| part.fill(&tensor));
        Some(Self {
            quant,
            tensor,
            acts,
            cols,
            packed,
        })
    }

    /// The product by some kernels, so many rows in one call.
    pub(in crate::simd) fn compute(&self, kernels: &Kernels, rows_per_tile: usize) -> Vec<f32> {
        let rows = self.acts.len() / self.cols;
        let mut panel = Panel::new(rows, self.cols.next_multiple_of(ACTIVATION_ELEMS));
        let mut out = vec![f32::NAN; rows * self.packed.rows()];
        let input = match self.packed.input() {
            InputKind::Floats => Input::Floats(self.acts),
            InputKind::Codes => {
                for mut part in panel.parts(rows) {
                    kernels.quantize(self.acts, &mut part);
                }
                Input::Codes(&panel)
            }
        };
        let queue = TileQueue::new(&mut out, self.packed.rows(), rows_per_tile, 2 * GROUP_ROWS);
        while let Some(mut tile) = queue.take() {
            kernels.linear(&self.packed, input, &mut tile);
        }
        out
    }

    /// How many results are not within [`TOLERANCE`] of the truth.
    pub(in crate::simd) fn misses(&self, got: &[f32]) -> usize {
        let row_bytes = self.tensor.len() / self.packed.rows();
        let mut misses = 0;
        for (acts, got) in self
            .acts
            .chunks_exact(self.cols)
            .zip(got.chunks_exact(self.packed.rows()))
        {
            for (row, got) in self.tensor.chunks_exact(row_bytes).zip(got) {
                let (truth, magnitude) = self.truth(row, acts);
                let near = truth == *got || (truth - got).abs() <= TOLERANCE * magnitude;
                misses += usize::from(!(near || (truth.is_nan() && got.is_nan())));
            }
        }
        misses
    }

    /// The product of one row, and the sum of the magnitudes of its terms.
    fn truth(&self, row: &[u8], acts: &[f32]) -> (f32, f32) {
        let mut weights = vec![0.0; self.cols];
        (self.quant.dequantize)(row, &mut weights);
        let terms = weights.iter().zip(acts).map(|(w, a)| w * a);
        match self.quant.dot {
            None => (terms.clone().sum(), terms.map(f32::abs).sum()),
            Some(dot) => {
                let mut blocks: Vec<ActivationBlock> =
                    bytemuck::zeroed_vec(self.cols / ACTIVATION_ELEMS);
                quantize_activations(acts, &mut blocks);
                // The terms of types with a base cancel; 4 covers the parts of each.
                let magnitude = 4.0 * terms.map(f32::abs).sum::<f32>();
                (dot(row, &blocks), magnitude)
            }
        }
    }
}
