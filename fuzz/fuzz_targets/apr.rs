//! Any bytes as an APR file: the reader must answer, and keep what it promises of each index
//! that it gives out.
#![no_main]

use candor_modelfile::apr;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file_len = bytes.len() as u64;
    let index = match apr::parse(bytes, file_len) {
        Ok(index) => index,
        Err(error) => {
            // Messages go to a person: short, whatever the file says.
            assert!(error.to_string().len() < 1000);
            return;
        }
    };
    for tensor in &index.tensors {
        assert!(!tensor.dims.is_empty() && tensor.elems() > 0);
        let len = tensor.quant.bytes_for(tensor.elems()).map(|len| len as u64);
        assert_eq!(len, Some(tensor.range.end - tensor.range.start));
        assert!(tensor.range.end <= file_len + index.unpacked_bytes);
        assert!(tensor.range.end <= file_len || tensor.range.start >= file_len);
    }
    if let Some(spec) = &index.tokenizer {
        assert!(spec.types.is_empty() || spec.types.len() == spec.tokens.len());
        assert!(spec.scores.is_empty() || spec.scores.len() == spec.tokens.len());
    }
});
