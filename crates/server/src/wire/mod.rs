//! What the protocols look like, one file each, and how their fields are read.

pub(crate) mod fields;
pub(crate) mod openai;
