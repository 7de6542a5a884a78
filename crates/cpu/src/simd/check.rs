//! Holds a table of kernels against the scalar truth.

use candor_quant::{ACTIVATION_ELEMS, ActivationBlock, quantize_activations};

use super::format::FORMATS;
use super::kernels::{Input, Kernels};
use super::packed::{InputKind, Packed};
use super::panel::Panel;
use super::tiles::TileQueue;

/// Output rows, input elements and activation rows of the check: a partial group, three and a
/// half units of 64 elements where the type allows it, and more rows than one tile of registers.
const CHECK_ROWS: usize = 21;
const CHECK_ACTIVATION_ROWS: usize = 9;

/// The difference that the order of summation may make, relative to the sum of magnitudes.
/// Sums of up to 512 products of float32: 512 roundings of 2^-24, if all went one way.
pub(super) const TOLERANCE: f32 = 512.0 / (1u32 << 24) as f32;

/// What is wrong first, in words; `None` if everything is right.
pub(super) fn first_miss(kernels: &Kernels) -> Option<String> {
    FORMATS
        .iter()
        .find(|f| !linear_is_right(kernels, f.quant))
        .map(|f| format!("the product with {} weights", f.quant.name))
}

/// Fixed numbers between -1 and 1 without a visible pattern.
pub(super) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    std::iter::repeat_with(|| {
        // xorshift32 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as i32 as f32 / i32::MAX as f32
    })
    .take(count)
    .collect()
}

fn linear_is_right(kernels: &Kernels, quant: &candor_quant::QuantType) -> bool {
    let cols = if quant.block_elems == 256 { 512 } else { 224 };
    let weights = numbers(CHECK_ROWS * cols, quant.id + 1);
    let acts = numbers(CHECK_ACTIVATION_ROWS * cols, 99);
    let Some(case) = Case::new(quant, &weights, &acts, cols) else {
        return false;
    };
    let got = case.compute(kernels);
    case.misses(&got) == 0
}

/// A product and its truth.
pub(super) struct Case<'a> {
    quant: &'a candor_quant::QuantType,
    pub(super) tensor: Vec<u8>,
    acts: &'a [f32],
    cols: usize,
    packed: Packed,
}

impl<'a> Case<'a> {
    /// `weights` are quantised; `acts` is rows of `cols`.
    pub(super) fn new(
        quant: &'a candor_quant::QuantType,
        weights: &[f32],
        acts: &'a [f32],
        cols: usize,
    ) -> Option<Self> {
        let mut tensor = vec![0; quant.bytes_for(weights.len())?];
        (quant.quantize)(weights, &mut tensor);
        Self::of_tensor(quant, tensor, acts, cols)
    }

    /// With the bytes of a file.
    pub(super) fn of_tensor(
        quant: &'a candor_quant::QuantType,
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

    /// The product by some kernels, all rows in one call.
    pub(super) fn compute(&self, kernels: &Kernels) -> Vec<f32> {
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
        let queue = TileQueue::new(&mut out, self.packed.rows(), rows, usize::MAX / 2);
        while let Some(mut tile) = queue.take() {
            kernels.linear(&self.packed, input, &mut tile);
        }
        out
    }

    /// How many results are not within [`TOLERANCE`] of the truth.
    pub(super) fn misses(&self, got: &[f32]) -> usize {
        let row_bytes = self.tensor.len() / self.packed.rows();
        let mut misses = 0;
        for (acts, got) in self
            .acts
            .chunks_exact(self.cols)
            .zip(got.chunks_exact(self.packed.rows()))
        {
            for (row, got) in self.tensor.chunks_exact(row_bytes).zip(got) {
                let (truth, magnitude) = self.truth(row, acts);
                let near = (truth - got).abs() <= TOLERANCE * magnitude;
                misses += usize::from(!near && !(truth.is_nan() && got.is_nan()));
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
