//! qwen2: Qwen2 and Qwen2.5, dense. As llama, with biases on Q, K and V and rotated halves.

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, Biases};
use crate::graph::{GraphBuilder, RopeStyle};
use crate::hparams::HParams;

/// The row of the table.
pub const QWEN2: Architecture = Architecture {
    names: &["qwen2"],
    hparams: HParams::dense,
    build,
};

fn build(hparams: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(hparams, RopeStyle::Halves);
    shape.biases = Biases::Required;
    blocks::dense_decoder(hparams, graph, shape);
}
