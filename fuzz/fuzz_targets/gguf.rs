//! Any bytes as a GGUF file: the reader must answer, and keep what it promises of
//! each index that it gives out.
#![no_main]

use candor_modelfile::gguf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file_len = bytes.len() as u64;
    let index = match gguf::parse(bytes, file_len) {
        Ok(index) => index,
        Err(error) => {
            // Messages go to a person: short, whatever the file says.
            assert!(error.to_string().len() < 1000);
            return;
        }
    };
    let mut ranges = Vec::new();
    for tensor in &index.tensors {
        assert!(!tensor.dims.is_empty() && tensor.elems() > 0);
        let len = tensor.quant.bytes_for(tensor.elems()).map(|len| len as u64);
        assert_eq!(len, Some(tensor.range.end - tensor.range.start));
        assert!(tensor.range.end <= file_len);
        ranges.push((tensor.range.start, tensor.range.end));
    }
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    if let Some(spec) = &index.tokenizer {
        assert!(spec.types.is_empty() || spec.types.len() == spec.tokens.len());
        assert!(spec.scores.is_empty() || spec.scores.len() == spec.tokens.len());
    }
});
