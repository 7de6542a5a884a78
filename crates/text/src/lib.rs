//! Characters to tokens and back: tokenizers, chat templates, streaming text, stop strings.
//!
//! Everything here is built from what the model file itself says (its vocabulary, merges, token
//! types and template) and is pure: no file, clock, thread or environment is touched. Text that a
//! person typed can never become a control token: a [`Prompt`] carries the byte ranges in which
//! the tokenizer must not look for any.
//!
//! What it deliberately does not do: it reads no model files (`modelfile` does), it downloads no
//! tokenizers, and it calls no tools: it says which a reply asks for.
//!
//! Where to start: [`Tokenizer::from_spec`] and [`Tokenizer::encode`]; then [`ChatFormat`], which
//! turns a conversation into a [`Prompt`], and [`Detokenizer`], [`StopMatcher`] and [`ReplyParser`]
//! for the way back.
#![forbid(unsafe_code)]

mod channels;
mod controls;
mod detokenize;
mod prompt;
pub mod reply;
mod stop;
mod template;
mod tokenizer;

pub use channels::Channels;
pub use controls::ControlSpellings;
pub use detokenize::Detokenizer;
pub use prompt::Prompt;
pub use reply::{ReplyFormat, ReplyParser};
pub use stop::{STOP_BYTES_MAX, STOP_STRINGS_MAX, StopError, StopMatcher, StopStep};
pub use template::{
    Builtin, ChatFormat, ChatTemplate, Fallback, Generation, LocalTime, RENDER_BYTES_MAX,
    RENDER_FUEL, RenderRequest, Rendered, TEMPLATE_BYTES_MAX, TemplateError,
};
pub use tokenizer::{Ends, Show, TEXT_BYTES_MAX, Tokenizer, TokenizerError};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_shares_between_threads_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Tokenizer>();
        shared::<ChatFormat>();
        shared::<ChatTemplate>();
        shared::<Prompt>();
    }
}
