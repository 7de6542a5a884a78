//! olmo2: OLMo 2, and OLMo 3, which is of this form with a window in most layers. Attention and
//! feed-forward read the row as it is and are normalised behind; Q and K are normalised over all
//! their heads together.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, FrontNorms, HeadNorms, PostNormed};
use crate::error::ArchError;
use crate::features::Window;
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const OLMO2: Architecture = Architecture {
    names: &["olmo2"],
    hparams,
    build,
};

/// Of so many layers the last sees all tokens, in files that speak of a window and say no more
/// (OLMo 3's configuration files).
const PERIOD_DEFAULT: usize = 4;

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let mut h = HParams::dense(index)?;
    let keys = Keys { index };
    let stem = "attention.sliding_window";
    if keys.find(stem)?.is_some_and(|tokens| tokens > 0) {
        keys.refuse_other("rope.freq_base_swa", h.rope_base)?;
        h.features.window = Some(Window {
            tokens: keys.count(stem, limits::CONTEXT_MAX)?,
            period: keys.window_period(h.n_layers, PERIOD_DEFAULT)?,
            rope_base: h.rope_base,
        });
    }
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.head_norms = HeadNorms::Whole;
    let form = PostNormed {
        shape: &|layer| shape.of_layer(h, layer),
        front_norms: FrontNorms::Without,
        activation: Activation::Silu,
        embedding_scale: 1.0,
    };
    blocks::post_normed_decoder(h, graph, &form);
}
