//! qwen3: Qwen3, dense. The heads of Q and K are normalised, each on its own, and their width does
//! not follow from the model's.

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, HeadNorms};
use crate::graph::{GraphBuilder, RopeStyle};
use crate::hparams::HParams;

/// The row of the table.
pub const QWEN3: Architecture = Architecture {
    names: &["qwen3"],
    hparams: HParams::dense,
    build,
};

fn build(hparams: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(hparams, RopeStyle::Halves);
    shape.head_norms = HeadNorms::PerHead;
    blocks::dense_decoder(hparams, graph, shape);
}
