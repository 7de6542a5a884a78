//! How matrices are stored anew, and what values they have then.

use super::{Storage, q4_k};
use crate::gguf::Tensor;

/// The values that a tensor has after a writer stored it anew.
pub fn rewritten(values: &[f32], cols: usize, storage: Storage) -> Vec<f32> {
    let (_, bytes) = pack(values, cols, storage);
    let unpack = |name: &str, bytes: &[u8], len: usize| {
        let mut out = vec![0.0; len];
        (candor_quant::by_name(name).expect("a type").dequantize)(bytes, &mut out);
        out
    };
    match storage {
        Storage::F32 => values.to_vec(),
        Storage::F16 => unpack("F16", &bytes, values.len()),
        Storage::Q8 | Storage::LegacyQ8 => {
            let (scale, codes) = bytes.split_first_chunk().expect("a scale");
            let scale = f32::from_le_bytes(*scale);
            codes
                .iter()
                .map(|code| f32::from(*code as i8) * scale)
                .collect()
        }
        Storage::Q4 | Storage::LegacyQ4 => {
            let block = |block: &[u8]| {
                let scale = unpack("F16", &block[..2], 1)[0];
                let nibbles: Vec<u8> = block[2..].iter().flat_map(|b| [b & 15, b >> 4]).collect();
                nibbles
                    .into_iter()
                    .map(move |n| scale * (f32::from(n) - 8.0))
                    .collect::<Vec<_>>()
            };
            let mut all: Vec<f32> = bytes.chunks_exact(18).flat_map(block).collect();
            all.truncate(values.len());
            all
        }
        Storage::PaddedQ4K => {
            let row_bytes = cols.div_ceil(256) * 144;
            let row = |row: &[u8]| {
                let mut row = unpack("Q4_K", row, cols.next_multiple_of(256));
                row.truncate(cols);
                row
            };
            bytes.chunks_exact(row_bytes).flat_map(row).collect()
        }
        Storage::FlatQ4K => {
            let mut all = unpack("Q4_K", &bytes, values.len().next_multiple_of(256));
            all.truncate(values.len());
            all
        }
    }
}

/// Code and bytes.
pub(crate) fn pack(values: &[f32], cols: usize, storage: Storage) -> (u8, Vec<u8>) {
    let typed = |name: &str, values: &[f32]| {
        let quant = candor_quant::by_name(name).expect("a type");
        let mut bytes = vec![0; quant.bytes_for(values.len()).expect("whole blocks")];
        (quant.quantize)(values, &mut bytes);
        bytes
    };
    let padded = |values: &[f32], elems: usize| {
        let mut values = values.to_vec();
        values.resize(values.len().next_multiple_of(elems), 0.0);
        values
    };
    let largest = |values: &[f32]| values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    match storage {
        Storage::F32 => (0, typed("F32", values)),
        Storage::F16 => (1, typed("F16", values)),
        Storage::Q8 | Storage::LegacyQ8 => {
            let scale = largest(values) / 127.0;
            let codes = values
                .iter()
                .map(|value| (value / scale).round() as i8 as u8);
            let bytes = scale.to_le_bytes().into_iter().chain(codes).collect();
            (if storage == Storage::Q8 { 129 } else { 9 }, bytes)
        }
        Storage::Q4 | Storage::LegacyQ4 => {
            // As the tool does it: the step before it is rounded to half precision divides.
            let block = |values: &[f32]| {
                let step = largest(values) / 7.0;
                let scale = typed("F16", &[step]);
                let nibble = |value: f32| ((value / step).round() + 8.0).clamp(0.0, 15.0) as u8;
                let pairs = values.as_chunks::<2>().0.iter();
                let bytes = pairs.map(|[low, high]| nibble(*low) | (nibble(*high) << 4));
                scale
                    .into_iter()
                    .chain(bytes.collect::<Vec<_>>())
                    .collect::<Vec<u8>>()
            };
            let bytes = padded(values, 32)
                .chunks_exact(32)
                .flat_map(block)
                .collect();
            (if storage == Storage::Q4 { 128 } else { 8 }, bytes)
        }
        Storage::PaddedQ4K => {
            let rows = values.chunks_exact(cols);
            (
                12,
                rows.flat_map(|row| q4_k::encode(&padded(row, 256)))
                    .collect(),
            )
        }
        Storage::FlatQ4K => (12, q4_k::encode(&padded(values, 256))),
    }
}

/// What a GGUF tensor's bytes stand for.
pub fn values_of(tensor: &Tensor) -> Vec<f32> {
    let quant = candor_quant::by_id(tensor.type_id).expect("a type of the table");
    let mut values = vec![0.0; tensor.dims.iter().product::<u64>() as usize];
    (quant.dequantize)(&tensor.bytes, &mut values);
    values
}
