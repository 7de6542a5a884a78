//! The golden data of tokenizers and chat templates, on the models that are here.
#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod chat;
mod made;
mod support;
mod tokenizer;
