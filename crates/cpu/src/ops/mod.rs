//! The operations, one file each.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod embed;
pub(crate) mod gated_ffn;
pub(crate) mod linear;
pub(crate) mod logits;
pub(crate) mod rms_norm;
pub(crate) mod rope;
