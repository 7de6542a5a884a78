//! What the protocols look like, one file each, and how their fields are read.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod embeddings;
pub(crate) mod fields;
mod likely;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod plain;
pub(crate) mod responses;
