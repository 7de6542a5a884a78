//! Pieces that architectures share.

mod attention;
mod decoder;
mod ffn;

pub use attention::{Biases, attention};
pub use decoder::{DenseDecoder, dense_decoder, norm};
pub use ffn::gated_ffn;
