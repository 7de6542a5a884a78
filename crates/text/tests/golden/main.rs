//! The golden data of tokenizers and chat templates, on the models that are here.

mod chat;
mod support;
mod tokenizer;
