//! A tiny index to change.

use candor_modelfile::{Index, Layout, Metadata, TensorInfo, Value};

/// What an index is made of.
#[derive(Clone)]
pub(crate) struct Tiny {
    pub(crate) architecture: &'static str,
    pub(crate) metadata: Vec<(&'static str, Value)>,
    pub(crate) tensors: Vec<(String, Vec<usize>, &'static str)>,
}

/// One layer: width 32, four heads of 8 that share two of key and value.
pub(crate) fn tiny(architecture: &'static str) -> Tiny {
    let metadata = vec![
        ("block_count", Value::Integer(1)),
        ("embedding_length", Value::Integer(32)),
        ("attention.head_count", Value::Integer(4)),
        ("attention.head_count_kv", Value::Integer(2)),
        ("feed_forward_length", Value::Integer(64)),
        ("context_length", Value::Integer(128)),
        ("attention.layer_norm_rms_epsilon", Value::Float(1e-5)),
    ];
    let matrix = |name: &str, rows, cols| (format!("{name}.weight"), vec![rows, cols], "Q8_0");
    let vector = |name: &str, len| (name.to_owned(), vec![len], "F32");
    let mut tensors = vec![
        matrix("token_embd", 50, 32),
        vector("blk.0.attn_norm.weight", 32),
        matrix("blk.0.attn_q", 32, 32),
        matrix("blk.0.attn_k", 16, 32),
        matrix("blk.0.attn_v", 16, 32),
        matrix("blk.0.attn_output", 32, 32),
        vector("blk.0.ffn_norm.weight", 32),
        matrix("blk.0.ffn_gate", 64, 32),
        matrix("blk.0.ffn_up", 64, 32),
        matrix("blk.0.ffn_down", 32, 64),
        vector("output_norm.weight", 32),
        matrix("output", 50, 32),
    ];
    if architecture == "qwen2" {
        tensors.extend([
            vector("blk.0.attn_q.bias", 32),
            vector("blk.0.attn_k.bias", 16),
            vector("blk.0.attn_v.bias", 16),
        ]);
    }
    Tiny {
        architecture,
        metadata,
        tensors,
    }
}

impl Tiny {
    /// Sets or replaces an entry.
    pub(crate) fn with(mut self, stem: &'static str, value: Value) -> Self {
        self.metadata.retain(|(key, _)| *key != stem);
        self.metadata.push((stem, value));
        self
    }

    pub(crate) fn without(mut self, stem: &str) -> Self {
        self.metadata.retain(|(key, _)| *key != stem);
        self
    }

    pub(crate) fn without_tensor(mut self, name: &str) -> Self {
        self.tensors.retain(|(tensor, ..)| tensor != name);
        self
    }

    pub(crate) fn with_tensor(mut self, name: &str, dims: &[usize], quant: &'static str) -> Self {
        self = self.without_tensor(name);
        self.tensors.push((name.to_owned(), dims.to_vec(), quant));
        self
    }

    pub(crate) fn index(&self) -> Index {
        let mut metadata = Metadata::new();
        for (stem, value) in &self.metadata {
            let key = format!("{}.{stem}", self.architecture);
            metadata.insert(key, value.clone()).expect("each key once");
        }
        let mut end = 0;
        let tensors = self.tensors.iter().map(|(name, dims, quant)| {
            let quant = candor_quant::by_name(quant).expect("a known type");
            let size = quant
                .bytes_for(dims.iter().product())
                .expect("whole blocks") as u64;
            end += size;
            TensorInfo {
                name: name.clone(),
                dims: dims.clone(),
                quant,
                range: end - size..end,
                layout: Layout::Rows,
            }
        });
        let tensors = tensors.collect();
        Index::new(self.architecture.to_owned(), metadata, tensors).expect("each tensor once")
    }
}
