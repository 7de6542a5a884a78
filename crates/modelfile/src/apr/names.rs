//! From the two sets of tensor names in these files to the canonical ones, which are GGUF's.

/// Names outside the layers, Hugging Face's and ours.
const OUTER: &[(&str, &str)] = &[
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "lm_head"),
];

/// Names in a layer.
const LAYER: &[(&str, &str)] = &[
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
];

/// The canonical name of a tensor. Only `lm_head` keeps its own: whether it is the output matrix
/// depends on the rest of the file.
pub(super) fn canonical(name: &str) -> String {
    let Some((stem, end)) = name.rsplit_once('.') else {
        return name.to_owned();
    };
    let look_up = |table: &[(&str, &'static str)], stem: &str| {
        table
            .iter()
            .find(|(theirs, _)| *theirs == stem)
            .map(|(_, ours)| *ours)
    };
    if let Some(ours) = look_up(OUTER, stem) {
        return format!("{ours}.{end}");
    }
    let in_layer = stem
        .strip_prefix("model.layers.")
        .and_then(|rest| rest.split_once('.'));
    match in_layer {
        // A name that the importer did not know passes through behind its prefix.
        Some((layer, part)) => {
            format!("blk.{layer}.{}.{end}", look_up(LAYER, part).unwrap_or(part))
        }
        None => name.to_owned(),
    }
}

/// Whether a name is of GGUF's set.
pub(super) fn is_gguf(name: &str) -> bool {
    name == "token_embd.weight"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_of_names_become_one() {
        let check = |theirs: &str, ours: &str| assert_eq!(canonical(theirs), ours);
        check(
            "model.layers.12.self_attn.q_proj.bias",
            "blk.12.attn_q.bias",
        );
        check(
            "model.layers.0.post_attention_layernorm.weight",
            "blk.0.ffn_norm.weight",
        );
        check(
            "model.layers.0.ffn_gate_exps.weight",
            "blk.0.ffn_gate_exps.weight",
        );
        check("model.norm.weight", "output_norm.weight");
        check("lm_head.weight", "lm_head.weight");
        check("blk.0.attn_q.weight", "blk.0.attn_q.weight");
        check("rope_freqs.weight", "rope_freqs.weight");
        check("odd", "odd");
    }
}
