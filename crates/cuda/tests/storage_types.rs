//! The kernels' headers of storage types against `candor-quant`: their sizes, and every vector of
//! their codebooks as the values that a block gives which names it. What they make of blocks is
//! held against it by the conformance suite.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its data has to stop"
)]

use candor_quant::{QuantType, TYPES, by_name};

/// One half-precision number, for the unit of a block.
const ONE: u16 = 0x3c00;
const FOUR: u16 = 0x4400;
const EIGHT: u16 = 0x4800;

/// How a block names a vector of its codebook.
struct Codebook {
    quant: &'static str,
    /// The array in the header.
    array: &'static str,
    /// What places stand for.
    levels: &'static [f32],
    /// The unit of the block with which a level is a value.
    unit: u16,
    /// Where the upper bits of the number of its first vector lie; the lower eight are at byte 2.
    high_at: Option<usize>,
    /// Values of a vector.
    len: usize,
    /// Bits of a place.
    bits: usize,
    /// What the type adds to a level.
    shift: f32,
}

const IQ2: &[f32] = &[8.0, 25.0, 43.0];

const CODEBOOKS: &[Codebook] = &[
    Codebook {
        quant: "IQ1_S",
        array: "GRID_IQ1_PAIRS",
        levels: &[-1.0, 0.0, 1.0],
        unit: ONE,
        high_at: Some(34),
        len: 8,
        bits: 2,
        shift: 0.125,
    },
    Codebook {
        quant: "IQ2_XXS",
        array: "GRID_IQ2_XXS_PAIRS",
        levels: IQ2,
        unit: EIGHT,
        high_at: None,
        len: 8,
        bits: 2,
        shift: 0.0,
    },
    Codebook {
        quant: "IQ2_XS",
        array: "GRID_IQ2_XS_PAIRS",
        levels: IQ2,
        unit: EIGHT,
        high_at: Some(3),
        len: 8,
        bits: 2,
        shift: 0.0,
    },
    Codebook {
        quant: "IQ2_S",
        array: "GRID_IQ2_S_PAIRS",
        levels: IQ2,
        unit: EIGHT,
        high_at: Some(66),
        len: 8,
        bits: 2,
        shift: 0.0,
    },
    Codebook {
        quant: "IQ3_XXS",
        array: "GRID_IQ3_XXS_NIBBLES",
        levels: &[4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0],
        unit: FOUR,
        high_at: None,
        len: 4,
        bits: 4,
        shift: 0.0,
    },
    Codebook {
        quant: "IQ3_S",
        array: "GRID_IQ3_S_NIBBLES",
        levels: &[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
        unit: ONE,
        high_at: Some(66),
        len: 4,
        bits: 4,
        shift: 0.0,
    },
];

#[test]
fn every_type_has_a_header_of_its_sizes() {
    for quant in TYPES {
        let name = quant.name.to_ascii_lowercase();
        let header = header(&format!("quant/{name}.cuh"));
        let says = |what: &str| header.contains(&format!("static constexpr {what};\n"));
        assert!(
            says(&format!("int BYTES = {}", quant.block_bytes)),
            "{name}"
        );
        assert!(says(&is_float(quant)), "{name}");
        if quant.dot.is_some() {
            assert!(
                says(&format!("int ELEMS = {}", quant.block_elems)),
                "{name}"
            );
        }
    }
}

fn is_float(quant: &QuantType) -> String {
    format!("bool IS_FLOAT = {}", quant.dot.is_none())
}

/// A header of the kernels.
fn header(name: &str) -> String {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/include/");
    std::fs::read_to_string(format!("{include}{name}")).unwrap()
}

#[test]
fn codebooks_hold_the_vectors_of_the_types() {
    let header = header("grids.cuh");
    for codebook in CODEBOOKS {
        check(codebook, &words(&header, codebook.array));
    }
}

/// The numbers of an array, by its name.
fn words(header: &str, array: &str) -> Vec<u32> {
    let (_, from) = header.split_once(&format!("{array}[")).unwrap();
    let (len, from) = from.split_once("] = {").unwrap();
    let (body, _) = from.split_once("};").unwrap();
    let numbers = body.split(',').filter_map(|n| n.trim().strip_prefix("0x"));
    let words: Vec<u32> = numbers
        .map(|n| u32::from_str_radix(n, 16).unwrap())
        .collect();
    assert_eq!(words.len(), len.parse::<usize>().unwrap(), "{array}");
    words
}

fn check(codebook: &Codebook, words: &[u32]) {
    let quant = by_name(codebook.quant).unwrap();
    for (vector, word) in words.iter().enumerate() {
        let mut block = vec![0; quant.block_bytes];
        block[..2].copy_from_slice(&codebook.unit.to_le_bytes());
        block[2] = vector as u8;
        if let Some(at) = codebook.high_at {
            block[at] = (vector >> 8) as u8;
        }
        let mut values = vec![0.0; quant.block_elems];
        (quant.dequantize)(&block, &mut values);
        let place = |i: usize| (word >> (codebook.bits * i)) as usize & ((1 << codebook.bits) - 1);
        let expected: Vec<f32> = (0..codebook.len)
            .map(|i| codebook.levels[place(i)] + codebook.shift)
            .collect();
        assert_eq!(
            values[..codebook.len],
            expected,
            "{} {vector}",
            codebook.quant
        );
        let behind = word >> (codebook.bits * codebook.len);
        assert_eq!(behind, 0, "{} {vector}: nothing else", codebook.quant);
    }
}
