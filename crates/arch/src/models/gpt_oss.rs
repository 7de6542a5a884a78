//! gpt-oss: OpenAI's models with open weights. Every second layer sees the last tokens only, every
//! head has a sink beside its scores, and all of a layer's matrices have biases.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, Biases, ExpertsShape, Layers, RoutedBiases, Sinks};
use crate::error::ArchError;
use crate::features::Window;
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const GPT_OSS: Architecture = Architecture {
    names: &["gpt-oss"],
    hparams,
    build,
};

/// Each second layer sees all tokens where the file says nothing (the models' configuration files).
const PERIOD_DEFAULT: usize = 2;

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    h.features.experts = Some(keys.experts()?);
    h.features.window = Some(Window {
        tokens: keys.count("attention.sliding_window", limits::CONTEXT_MAX)?,
        period: keys.window_period(h.n_layers, PERIOD_DEFAULT)?,
        rope_base: keys.positive("rope.freq_base_swa", Some(h.rope_base))?,
    });
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let numbers = h.features.experts.expect("read with the other numbers");
    let mut global = AttentionShape::plain(h, RopeStyle::Halves);
    global.biases = Biases::Required;
    global.sinks = Sinks::Required;
    let routed = ExpertsShape {
        biases: RoutedBiases::Required,
        activation: Activation::ClampedSwiglu,
        ..ExpertsShape::PLAIN
    };
    let layers = Layers {
        mix: &|graph, layer, x| {
            let mut shape = global.of_layer(h, layer);
            // Stretched in every layer, unlike in other families.
            shape.rope_scaling = global.rope_scaling;
            blocks::attention(h, graph, shape, layer, x)
        },
        ffn_norm: "post_attention_norm",
        feed: &|graph, layer, x| blocks::experts(numbers, routed, graph, layer, x),
        scales: None,
    };
    blocks::decoder(h, graph, &layers);
}
