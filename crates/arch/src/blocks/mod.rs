//! Pieces that architectures share.

mod attention;
mod decoder;
mod delta_net;
mod experts;
mod ffn;
mod hybrid;
mod post_norm;

pub use attention::{
    AttentionShape, Biases, HeadNorms, Matrices, OutputGate, Positions, Sinks, attention,
};
pub use decoder::{
    Half, Layers, add, decoder, dense_decoder, embedding, logits, norm, output, scale,
};
pub use delta_net::{AlphaBeta, delta_net};
pub use experts::{ExpertsShape, RoutedBiases, experts};
pub use ffn::{gated_ffn, stacked_ffn};
pub use hybrid::{FeedForward, hybrid_decoder, hybrid_hparams};
pub use post_norm::{FrontNorms, PostNormed, post_normed_decoder};
