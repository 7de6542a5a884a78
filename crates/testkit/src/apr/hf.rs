//! What is different in files in Hugging Face's form.

use super::{Writer, find};
use crate::gguf::{Gguf, Tensor, Value};

/// The name of a tensor in Hugging Face's files, as the tool maps it: what it does not know
/// passes through.
pub(super) fn name(name: &str) -> String {
    let parts = [
        ("attn_q_norm", "self_attn.q_norm"),
        ("attn_k_norm", "self_attn.k_norm"),
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ];
    match name.split('.').collect::<Vec<_>>()[..] {
        ["token_embd", end] => format!("model.embed_tokens.{end}"),
        ["output_norm", end] => format!("model.norm.{end}"),
        ["output", end] => format!("lm_head.{end}"),
        ["blk", layer, part, end] => {
            let part = parts
                .iter()
                .find(|(ours, _)| *ours == part)
                .map_or(part, |(_, theirs)| theirs);
            format!("model.layers.{layer}.{part}.{end}")
        }
        _ => name.to_owned(),
    }
}

/// One tensor for each expert, as Hugging Face's files have them, and the router under its name
/// there.
pub(super) fn loose_experts(tensors: Vec<Tensor>) -> Vec<Tensor> {
    let mut all = Vec::new();
    for mut tensor in tensors {
        let layer = tensor.name.split('.').nth(1).unwrap_or_default().to_owned();
        let part = tensor.name.split('.').nth(2).unwrap_or_default();
        let part = match part {
            "ffn_gate_exps" => "gate_proj",
            "ffn_up_exps" => "up_proj",
            "ffn_down_exps" => "down_proj",
            "ffn_gate_inp" => {
                tensor.name = format!("model.layers.{layer}.mlp.gate.weight");
                all.push(tensor);
                continue;
            }
            _ => {
                all.push(tensor);
                continue;
            }
        };
        let bytes = tensor.bytes.len() / tensor.dims[0] as usize;
        let each = tensor.bytes.chunks_exact(bytes).enumerate();
        all.extend(each.map(|(expert, bytes)| Tensor {
            name: format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight"),
            dims: tensor.dims[1..].to_vec(),
            type_id: tensor.type_id,
            bytes: bytes.to_vec(),
        }));
    }
    all
}

/// Adds a copy of the embeddings as an output matrix, as the importers do where they find none of
/// that name; tells whether it did.
pub(super) fn make_head(model: &mut Gguf, writer: Writer) -> bool {
    let is_llama = super::text_of(model, "general.architecture") == "llama";
    let has_output = model
        .tensors
        .iter()
        .any(|tensor| tensor.name == "output.weight");
    let makes = match writer {
        Writer::RawImport => !has_output,
        // Under GGUF's names it does not find the real one either.
        Writer::Rewrite(_) => !has_output || is_llama,
        _ => false,
    };
    if !makes {
        return false;
    }
    let table = model
        .tensors
        .iter()
        .find(|tensor| tensor.name == "token_embd.weight");
    let mut head = table.expect("a model has embeddings").clone();
    head.name = "lm_head.weight".to_owned();
    model.tensors.push(head);
    true
}

/// What the importer of whole files says of experts.
pub(super) fn experts(model: &Gguf) -> impl Iterator<Item = (&'static str, String)> {
    let architecture = super::text_of(model, "general.architecture");
    let keys = [
        ("num_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("head_dim", "attention.key_length"),
    ];
    keys.into_iter().filter_map(move |(theirs, ours)| {
        match find(model, &format!("{architecture}.{ours}"))? {
            Value::U32(number) => Some((theirs, number.to_string())),
            _ => None,
        }
    })
}
