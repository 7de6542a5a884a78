//! The hybrid decoder: delta nets in most layers, gated attention in each fourth or so.

use candor_modelfile::Index;

use super::attention::{AttentionShape, HeadNorms, OutputGate, attention};
use super::decoder::{Layers, decoder};
use super::delta_net::{AlphaBeta, delta_net};
use super::experts::{ExpertsShape, experts};
use super::ffn::gated_ffn;
use crate::error::ArchError;
use crate::features::Recurrence;
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// Whether the feed-forward is one of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForward {
    /// One for all rows.
    Dense,
    /// A choice, and one beside them.
    Experts,
}

/// Each fourth layer is one of attention where the file says nothing (the models' configuration
/// files).
const ATTENTION_PERIOD: usize = 4;

/// Reads the numbers.
///
/// # Errors
/// [`ArchError`], naming the key, what was expected and what was found.
pub fn hybrid_hparams(index: &Index, feed_forward: FeedForward) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    // Layers that guess several tokens ahead would stand behind the others.
    keys.refuse_other_count("nextn_predict_layers", 0)?;
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    match feed_forward {
        FeedForward::Dense => keys.refuse_experts()?,
        FeedForward::Experts => h.features.experts = Some(keys.experts_with_shared()?),
    }
    let state_size = keys.count("ssm.state_size", limits::HEAD_DIM_MAX)?;
    let n_key_heads = keys.count("ssm.group_count", limits::HEADS_MAX)?;
    let n_value_heads = keys.count("ssm.time_step_rank", limits::HEADS_MAX)?;
    keys.divides("ssm.time_step_rank", n_key_heads, n_value_heads)?;
    keys.equals("ssm.inner_size", state_size * n_value_heads)?;
    h.features.recurrence = Some(Recurrence {
        attention_period: keys.count_or(
            "full_attention_interval",
            limits::LAYERS_MAX,
            ATTENTION_PERIOD,
        )?,
        conv_taps: keys.count("ssm.conv_kernel", limits::CONV_TAPS_MAX)?,
        state_size,
        n_key_heads,
        n_value_heads,
    });
    Ok(h)
}

/// The whole graph.
pub fn hybrid_decoder(h: &HParams, graph: &mut GraphBuilder<'_>, alpha_beta: AlphaBeta) {
    let recurrence = h.features.recurrence.expect("read with the other numbers");
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.head_norms = HeadNorms::PerHead;
    shape.output_gate = OutputGate::BesideQuery;
    let routed = ExpertsShape {
        shared_gate: Some(Activation::Sigmoid),
        ..ExpertsShape::PLAIN
    };
    let layers = Layers {
        mix: &|graph, layer, x| {
            if (layer + 1).is_multiple_of(recurrence.attention_period) {
                attention(h, graph, shape, layer, x)
            } else {
                delta_net(h, graph, (recurrence, alpha_beta), layer, x)
            }
        },
        ffn_norm: "post_attention_norm",
        feed: &|graph, layer, x| match h.features.experts {
            None => gated_ffn(h, graph, Activation::Silu, layer, x),
            Some(these) => experts(these, routed, graph, layer, x),
        },
        scales: None,
    };
    decoder(h, graph, &layers);
}
