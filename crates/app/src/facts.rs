//! What a model file says of itself, in the few words that are shown.

use std::collections::BTreeMap;

use candor_modelfile::Index;

/// Names of `general.file_type`, as ggml's GGUF specification numbers them.
const FILE_TYPES: [(u32, &str); 17] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (32, "BF16"),
];

/// How the weights are stored, in one word: what the file calls it, else the type that most of
/// its values have.
pub(crate) fn quantization(index: &Index) -> String {
    let stated = index.metadata.find_u32("general.file_type").ok().flatten();
    let named = stated.and_then(|id| FILE_TYPES.iter().find(|(known, _)| *known == id));
    if let Some((_, name)) = named {
        return String::from(*name);
    }
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    for tensor in &index.tensors {
        let sum = values.entry(tensor.quant.name).or_default();
        *sum = sum.saturating_add(tensor.elems());
    }
    let most = values.into_iter().max_by_key(|(_, sum)| *sum);
    most.map_or_else(String::new, |(name, _)| String::from(name))
}

/// The number of weights.
pub(crate) fn parameters(index: &Index) -> u64 {
    index
        .tensors
        .iter()
        .fold(0, |sum, tensor| sum.saturating_add(tensor.elems() as u64))
}

/// How many tensors have which type.
pub(crate) fn types(index: &Index) -> BTreeMap<&'static str, usize> {
    let mut types = BTreeMap::new();
    for tensor in &index.tensors {
        *types.entry(tensor.quant.name).or_default() += 1;
    }
    types
}
