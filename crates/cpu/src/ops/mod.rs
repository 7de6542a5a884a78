//! The operations, one file each.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod causal_conv;
pub(crate) mod delta_net;
pub(crate) mod embed;
pub(crate) mod experts;
pub(crate) mod gate;
pub(crate) mod gated_ffn;
pub(crate) mod linear;
pub(crate) mod logits;
pub(crate) mod part;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod scale;
