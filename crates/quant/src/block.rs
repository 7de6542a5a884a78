//! What a storage type is, as a trait for its author and as a table row for its users.

use std::fmt;

use bytemuck::Pod;

use crate::activation::{ACTIVATION_ELEMS, ActivationBlock};

/// One packed block of a storage type.
///
/// The structs consist of bytes only, so that a block may lie at any address of
/// a mapped file.
pub trait Block: Pod {
    /// The type's number in GGUF files.
    const ID: u32;
    /// The type's customary name.
    const NAME: &'static str;
    /// How many values a block stands for.
    const ELEMS: usize;

    /// Writes the values of the block; `out` holds `ELEMS` values.
    fn dequantize(&self, out: &mut [f32]);

    /// Packs `ELEMS` finite values by a plain rule (smallest and largest value).
    fn quantize(values: &[f32]) -> Self;
}

/// A block whose values are small integers with scales, so that it can be
/// multiplied with 8-bit activations in integer arithmetic.
pub trait IntegerBlock: Block {
    /// The product with `ELEMS / 32` activation blocks.
    ///
    /// Sums of integer products over 32 elements (16 where the type has a scale
    /// for each 16) are exact; only then comes float arithmetic, in order of the
    /// elements. Each file under [`crate::types`] states its formula.
    fn dot(&self, activations: &[ActivationBlock]) -> f32;
}

/// One row of packed weights times one vector of 8-bit activations.
pub type DotFn = fn(&[u8], &[ActivationBlock]) -> f32;

/// A storage type with its author's functions behind plain byte slices.
pub struct QuantType {
    /// The type's number in GGUF files.
    pub id: u32,
    /// The type's customary name, such as `Q4_K`.
    pub name: &'static str,
    /// How many values a block stands for.
    pub block_elems: usize,
    /// How many bytes a block takes.
    pub block_bytes: usize,
    /// Unpacks whole blocks.
    ///
    /// Panics if the lengths do not belong together.
    pub dequantize: fn(&[u8], &mut [f32]),
    /// One row times one vector of 8-bit activations, block by block in order,
    /// summed in `f32`. `None` for the float types: their fast path keeps the
    /// activations in `f32`.
    ///
    /// Panics if the lengths do not belong together.
    pub dot: Option<DotFn>,
    /// Packs values by a plain rule; for test models.
    ///
    /// Panics if the lengths do not belong together.
    pub quantize: fn(&[f32], &mut [u8]),
}

impl QuantType {
    /// The bytes that `elems` values take; `None` if they are not whole blocks or
    /// too many to count.
    pub fn bytes_for(&self, elems: usize) -> Option<usize> {
        if !elems.is_multiple_of(self.block_elems) {
            return None;
        }
        (elems / self.block_elems).checked_mul(self.block_bytes)
    }
}

impl fmt::Debug for QuantType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for QuantType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for QuantType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for QuantType {}

/// The table row of a float type.
pub const fn describe<B: Block>() -> QuantType {
    QuantType {
        id: B::ID,
        name: B::NAME,
        block_elems: B::ELEMS,
        block_bytes: size_of::<B>(),
        dequantize: dequantize_row::<B>,
        dot: None,
        quantize: quantize_row::<B>,
    }
}

/// The table row of a type of small integers.
pub const fn describe_integer<B: IntegerBlock>() -> QuantType {
    QuantType {
        dot: Some(dot_row::<B>),
        ..describe::<B>()
    }
}

fn dequantize_row<B: Block>(bytes: &[u8], out: &mut [f32]) {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    assert_eq!(
        blocks.len() * B::ELEMS,
        out.len(),
        "{}: one value for each element",
        B::NAME
    );
    for (block, values) in blocks.iter().zip(out.chunks_exact_mut(B::ELEMS)) {
        block.dequantize(values);
    }
}

fn quantize_row<B: Block>(values: &[f32], bytes: &mut [u8]) {
    let blocks: &mut [B] = bytemuck::cast_slice_mut(bytes);
    assert_eq!(
        blocks.len() * B::ELEMS,
        values.len(),
        "{}: one value for each element",
        B::NAME
    );
    for (block, values) in blocks.iter_mut().zip(values.chunks_exact(B::ELEMS)) {
        *block = B::quantize(values);
    }
}

fn dot_row<B: IntegerBlock>(bytes: &[u8], activations: &[ActivationBlock]) -> f32 {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    let per_block = B::ELEMS / ACTIVATION_ELEMS;
    assert_eq!(
        blocks.len() * per_block,
        activations.len(),
        "{}: rows of one length",
        B::NAME
    );
    let mut sum = 0.0;
    for (block, activations) in blocks.iter().zip(activations.chunks_exact(per_block)) {
        sum += block.dot(activations);
    }
    sum
}
