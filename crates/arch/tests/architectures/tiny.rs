//! A tiny index to change.

use candor_arch::WeightKind;
use candor_modelfile::{Index, Layout, Metadata, TensorInfo, Value};

/// What an index is made of.
#[derive(Clone)]
pub(crate) struct Tiny {
    pub(crate) architecture: &'static str,
    pub(crate) metadata: Vec<(&'static str, Value)>,
    pub(crate) tensors: Vec<(String, Vec<usize>, &'static str)>,
}

/// One layer, or two of a kind each: width 32, four heads of 8 that share two of key and value.
pub(crate) fn tiny(architecture: &'static str) -> Tiny {
    match architecture {
        "llama" | "qwen2" => dense(architecture),
        _ => special(architecture),
    }
}

/// What families have beside the numbers of all.
fn features(architecture: &str) -> &'static [(&'static str, i128)] {
    match architecture {
        "qwen3" => &[("attention.key_length", 16)],
        "qwen3moe" => &[
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_feed_forward_length", 32),
        ],
        "gemma3" => &[
            ("block_count", 2),
            ("attention.sliding_window", 16),
            ("attention.sliding_window_pattern", 2),
        ],
        "gemma2" => &[("block_count", 2), ("attention.sliding_window", 16)],
        "granitemoe" => &[
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_shared_feed_forward_length", 32),
        ],
        "smollm3" => &[("block_count", 4)],
        "deepseek" => &[
            ("block_count", 2),
            ("leading_dense_block_count", 1),
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_shared_count", 2),
            ("expert_feed_forward_length", 32),
        ],
        "gpt-oss" => &[
            ("block_count", 2),
            ("attention.sliding_window", 16),
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_feed_forward_length", 32),
        ],
        "qwen35" => HYBRID,
        "qwen35moe" | "qwen3next" => HYBRID_OF_EXPERTS,
        _ => &[],
    }
}

const HYBRID: &[(&str, i128)] = &[
    ("block_count", 2),
    ("full_attention_interval", 2),
    ("rope.dimension_count", 4),
    ("ssm.conv_kernel", 4),
    ("ssm.state_size", 8),
    ("ssm.group_count", 2),
    ("ssm.time_step_rank", 4),
    ("ssm.inner_size", 32),
];

const HYBRID_OF_EXPERTS: &[(&str, i128)] = &[
    ("block_count", 2),
    ("full_attention_interval", 2),
    ("rope.dimension_count", 4),
    ("ssm.conv_kernel", 4),
    ("ssm.state_size", 8),
    ("ssm.group_count", 2),
    ("ssm.time_step_rank", 4),
    ("ssm.inner_size", 32),
    ("expert_count", 4),
    ("expert_used_count", 2),
    ("expert_feed_forward_length", 32),
    ("expert_shared_feed_forward_length", 64),
];

/// A family whose tensors are those that its graph asks for: that these are the files' own names
/// and shapes is shown by the models of the logits' tests.
fn special(architecture: &'static str) -> Tiny {
    let mut tiny = dense(architecture);
    for (stem, value) in features(architecture) {
        tiny = tiny.with(stem, Value::Integer(*value));
    }
    tiny.with_all_tensors()
}

fn dense(architecture: &'static str) -> Tiny {
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
    /// The embedding, and every tensor that the graph asks for beside it.
    pub(crate) fn with_all_tensors(mut self) -> Self {
        self.tensors
            .retain(|(name, ..)| name == "token_embd.weight");
        if let Ok(graph) = candor_arch::build(&self.index()) {
            let weights = graph.weights.into_iter().skip(1);
            // Of a tensor that is several weights, the first stands for all.
            let weights = weights.filter(|weight| weight.part.is_none_or(|part| part.first == 0));
            self.tensors.extend(weights.map(|weight| {
                let quant = match weight.kind {
                    WeightKind::Matrix if weight.dims.len() > 1 => "Q8_0",
                    _ => "F32",
                };
                let dims = weight.tensor_dims();
                (weight.name, dims, quant)
            }));
        }
        self
    }

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
