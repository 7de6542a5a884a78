//! smollm3: SmolLM3, dense. As llama, but each fourth layer knows no positions.

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, Layers, Positions};
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::HParams;

/// The row of the table.
pub const SMOLLM3: Architecture = Architecture {
    names: &["smollm3"],
    hparams: HParams::dense,
    build,
};

/// Of so many layers, the last does not turn queries and keys. No key of the file says it (the
/// model's configuration file).
const WITHOUT_POSITIONS_PERIOD: usize = 4;

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let rotated = AttentionShape::plain(h, RopeStyle::Adjacent);
    let layers = Layers {
        mix: &|graph, layer, x| {
            let mut shape = rotated;
            if (layer + 1).is_multiple_of(WITHOUT_POSITIONS_PERIOD) {
                shape.positions = Positions::Without;
            }
            blocks::attention(h, graph, shape, layer, x)
        },
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| blocks::gated_ffn(h, graph, Activation::Silu, layer, x),
        scales: None,
    };
    blocks::decoder(h, graph, &layers);
}
