//! The values of each type against vectors that ggml made, and its quantiser and
//! integer product against its own values.
//!
//! The vectors are described in `tests/golden/README.md` at the workspace root.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its data has to stop"
)]

use std::path::PathBuf;

use candor_quant::{
    ACTIVATION_ELEMS, ActivationBlock, QuantType, TYPES, by_id, by_name, name_of,
    quantize_activations,
};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dequant")
}

fn number(value: &serde_json::Value, key: &str) -> usize {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {value}")) as usize
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

/// Both NaN, or the same bits.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn values_equal_the_golden_ones_bit_for_bit() {
    let index = std::fs::read_to_string(golden().join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let mut checked = Vec::new();
    for entry in index["types"].as_array().unwrap() {
        let kind = by_id(number(entry, "id") as u32).unwrap();
        assert_eq!(entry["type"], kind.name);
        assert_eq!(number(entry, "block_elems"), kind.block_elems);
        assert_eq!(number(entry, "block_bytes"), kind.block_bytes);
        let file = std::fs::read(golden().join(entry["file"].as_str().unwrap())).unwrap();
        for section in entry["sections"].as_array().unwrap() {
            check_section(kind, &file, section);
        }
        checked.push(kind.name);
    }
    // F32 has no vectors: there is nothing to unpack.
    assert_eq!(checked.len(), TYPES.len() - 1, "{checked:?}");
}

fn check_section(kind: &QuantType, file: &[u8], section: &serde_json::Value) {
    let blocks = number(section, "n_blocks");
    let raw = &file[number(section, "raw")..][..blocks * kind.block_bytes];
    let want = floats(&file[number(section, "values")..][..blocks * kind.block_elems * 4]);
    let mut found = vec![0.0; want.len()];
    (kind.dequantize)(raw, &mut found);
    for (i, (found, want)) in found.iter().zip(&want).enumerate() {
        assert!(
            same(*found, *want),
            "{kind} {} value {i}: {found} {want}",
            section["kind"]
        );
    }
}

/// A seeded sequence between -1 and 1 (splitmix64).
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn packed(kind: &QuantType, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; kind.bytes_for(values.len()).unwrap()];
    (kind.quantize)(values, &mut bytes);
    bytes
}

fn unpacked(kind: &QuantType, bytes: &[u8], len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    (kind.dequantize)(bytes, &mut values);
    values
}

#[test]
fn quantisers_stay_within_the_step_of_their_type() {
    // Half a step for values between -1 and 1; more for the K types, whose scales
    // and offsets are rounded too.
    let limits = [
        ("F32", 0.0),
        ("F16", 2.5e-4),
        ("BF16", 2.0e-3),
        ("Q8_0", 0.0045),
        ("Q4_0", 0.13),
        ("Q4_1", 0.07),
        ("Q5_0", 0.065),
        ("Q5_1", 0.034),
        ("Q4_K", 0.1),
        ("Q5_K", 0.055),
        ("Q6_K", 0.025),
        // Where signs come in even numbers, the smallest value of eight may have the wrong one.
        ("Q3_K", 0.25),
        ("Q2_K", 0.35),
        ("IQ4_NL", 0.12),
        ("IQ4_XS", 0.12),
        ("MXFP4", 0.26),
        ("NVFP4", 0.18),
        ("IQ3_S", 0.35),
        ("IQ3_XXS", 0.95),
        ("IQ2_S", 0.5),
        ("IQ2_XS", 1.1),
        ("IQ2_XXS", 1.1),
        ("IQ1_M", 0.85),
        ("IQ1_S", 0.85),
        ("TQ1_0", 0.51),
        ("TQ2_0", 0.51),
    ];
    assert_eq!(limits.len(), TYPES.len());
    for (name, limit) in limits {
        let kind = by_name(name).unwrap();
        for values in [
            noise(7, 1024),
            vec![0.0; 256],
            vec![0.5; 256],
            vec![-0.5; 256],
        ] {
            let back = unpacked(kind, &packed(kind, &values), values.len());
            let worst = values
                .iter()
                .zip(&back)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(worst <= limit, "{name}: {worst} > {limit}");
            // Zeros for everything would have all of it as an error.
            let power = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>();
            let lost: Vec<f32> = values.iter().zip(&back).map(|(a, b)| a - b).collect();
            assert!(power(&lost) <= 0.4 * power(&values), "{name}");
        }
    }
}

#[test]
fn integer_products_equal_products_of_the_values() {
    let len = 1024;
    let activations = noise(11, len);
    let mut blocks = vec![bytemuck::Zeroable::zeroed(); len / ACTIVATION_ELEMS];
    quantize_activations(&activations, &mut blocks);
    let rounded = |b: &ActivationBlock| b.codes.map(|c| f64::from(b.scale) * f64::from(c));
    let rounded: Vec<f64> = blocks.iter().flat_map(rounded).collect();
    let mut checked = 0;
    for kind in TYPES {
        let Some(dot) = kind.dot else { continue };
        let bytes = packed(kind, &noise(13, len));
        let weights = unpacked(kind, &bytes, len);
        let want: f64 = weights
            .iter()
            .zip(&rounded)
            .map(|(w, a)| f64::from(*w) * a)
            .sum();
        let found = f64::from(dot(&bytes, &blocks));
        // Only the float sums over blocks are inexact.
        assert!((found - want).abs() < 2e-4, "{kind}: {found} {want}");
        checked += 1;
    }
    // All but F32, F16 and BF16.
    assert_eq!(checked, TYPES.len() - 3);
}

#[test]
fn a_nan_among_the_activations_makes_each_product_nan() {
    for kind in TYPES {
        let Some(dot) = kind.dot else { continue };
        // Zero weights are the hard case: they must not hide the NaN.
        let mut activations = noise(17, 256);
        activations[100] = f32::NAN;
        let mut blocks = vec![bytemuck::Zeroable::zeroed(); 8];
        quantize_activations(&activations, &mut blocks);
        assert!(dot(&packed(kind, &[0.0; 256]), &blocks).is_nan(), "{kind}");
    }
}

#[test]
fn blocks_may_lie_at_any_address() {
    for kind in TYPES {
        let bytes = packed(kind, &noise(19, 256));
        let mut shifted = vec![0];
        shifted.extend_from_slice(&bytes);
        assert_eq!(
            unpacked(kind, &bytes, 256),
            unpacked(kind, &shifted[1..], 256),
            "{kind}"
        );
    }
}

#[test]
fn sizes_are_checked() {
    let kind = by_name("q4_k").unwrap();
    assert_eq!(kind.bytes_for(512), Some(288));
    assert_eq!(kind.bytes_for(0), Some(0));
    assert_eq!(kind.bytes_for(255), None);
    assert_eq!(
        kind.bytes_for(usize::MAX - 255),
        Some((usize::MAX - 255) / 256 * 144)
    );
    assert_eq!(by_name("F32").unwrap().bytes_for(usize::MAX), None);
}

#[test]
fn numbers_have_names_also_where_the_type_is_not_supported() {
    assert_eq!(name_of(15), Some("Q8_K"));
    assert_eq!(name_of(1000), None);
    for kind in TYPES {
        assert_eq!(name_of(kind.id), Some(kind.name));
        assert_eq!(by_id(kind.id), Some(kind));
    }
}
