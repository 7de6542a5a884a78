//! A reply, split while it comes into text, thoughts and calls of tools; once, for the window and
//! for the server.
//!
//! Whatever a model writes, nothing of it is lost: the raw texts of the pieces, one after the
//! other, are what was put in. A mark that is broken is text. A call is told once, when it is
//! whole, because half a call that turns out to be none could not be taken back.
//!
//! Start reading at [`ReplyParser`].

mod calls;
mod forms;
mod json;
mod lines;
mod parser;

#[cfg(test)]
mod families;
#[cfg(test)]
mod tests;

pub use calls::{ToolCall, Tools};
pub use forms::ReplyFormat;
pub(crate) use forms::is_mark;
pub use parser::ReplyParser;

/// What a piece of a reply is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words of the answer. Empty where there was only a mark.
    Text(String),
    /// Words that the model thought. Empty where there was only a mark.
    Thinking(String),
    /// A whole call.
    ToolCall(ToolCall),
    /// An end of thoughts came that nobody had begun: the text since the last other part, all that
    /// was given out of it, was thought. Who cannot take it back need not.
    TextWasThinking,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Exactly what the model wrote, with its marks.
    pub raw: String,
    /// What it is.
    pub part: Part,
}

/// A reply that is whole, in as few parts as it has: neighbouring words of one kind are joined,
/// and what was only a mark is left out.
pub fn split(format: &ReplyFormat, tools: Tools, text: &str) -> Vec<Part> {
    let mut parser = ReplyParser::new(format, tools);
    let mut parts = Vec::new();
    for piece in parser.push(text).into_iter().chain(parser.finish()) {
        join(&mut parts, piece.part);
    }
    parts
}

/// Takes the next part into a list of them.
pub fn join(parts: &mut Vec<Part>, next: Part) {
    match (parts.last_mut(), next) {
        (Some(Part::Text(text)), Part::Text(more))
        | (Some(Part::Thinking(text)), Part::Thinking(more)) => text.push_str(&more),
        (last, Part::TextWasThinking) => {
            if let Some(Part::Text(text)) = last {
                let words = text.trim().to_owned();
                parts.pop();
                if !words.is_empty() {
                    parts.push(Part::Thinking(words));
                }
            }
        }
        (_, Part::Text(text) | Part::Thinking(text)) if text.is_empty() => {}
        (_, next) => parts.push(next),
    }
}
