//! Pieces that architectures share.

mod attention;
mod decoder;
mod delta_net;
mod experts;
mod ffn;
mod hybrid;

pub use attention::{AttentionShape, Biases, HeadNorms, OutputGate, attention};
pub use decoder::{add, dense_decoder, embedding, norm, output};
pub use delta_net::{AlphaBeta, delta_net};
pub use experts::experts;
pub use ffn::gated_ffn;
pub use hybrid::{FeedForward, hybrid_decoder, hybrid_hparams};
