//! llama: Llama 1 to 3.x, Mistral, SmolLM2 and others that keep its form.
//!
//! The converter that writes these files reorders the rows of Q and K so that rotated pairs are
//! neighbours. Llama 3.1 and later scale the frequencies by `rope_freqs.weight`.

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape};
use crate::graph::{GraphBuilder, RopeStyle};
use crate::hparams::HParams;

/// The row of the table.
pub const LLAMA: Architecture = Architecture {
    names: &["llama"],
    hparams: HParams::dense,
    build,
};

fn build(hparams: &HParams, graph: &mut GraphBuilder<'_>) {
    let shape = AttentionShape::plain(hparams, RopeStyle::Adjacent);
    blocks::dense_decoder(hparams, graph, shape);
}
