//! What a reader sees of a reply that is written in channels.
//!
//! Models such as gpt-oss answer with several messages: `<|channel|>analysis<|message|>` and their
//! thoughts, `<|end|><|start|>assistant<|channel|>final<|message|>` and the answer. The names
//! between the marks are markup and would stand in the text as words. They are left out, and
//! thoughts are put between `<think>` and `</think>`, as other models write them. A message to a
//! tool (`to=functions.name`) is put between `<function=name>` and `</function>`.
//!
//! Control tokens by which models without channels mark their thoughts and calls are shown as they
//! are spelled, for [`crate::ReplyParser`].

use std::borrow::Cow;
use std::mem;

use candor_modelfile::{TokenType, TokenizerSpec};

use crate::reply::is_mark;
use crate::tokenizer::{Show, Tokenizer};

/// Longest text before a message that is taken for names of its author and channel. What is
/// longer is shown.
const HEADER_BYTES_MAX: usize = 256;

/// The channel of thoughts.
const THOUGHTS: &[u8] = b"analysis";

/// What a message to a tool says before the tool's name.
const RECIPIENT: &str = "to=functions.";

pub(crate) const THINK_OPEN: &str = "<think>\n";
pub(crate) const THINK_CLOSE: &str = "\n</think>\n\n";
const CALL_CLOSE: &str = "\n</function>\n";

/// The tokens around messages, of a vocabulary that has them all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChannelMarks {
    start: u32,
    channel: u32,
    message: u32,
    end: u32,
}

impl ChannelMarks {
    pub(crate) fn of(spec: &TokenizerSpec, kinds: &[TokenType]) -> Option<Self> {
        let id = |spelling: &str| {
            let place = spec.tokens.iter().position(|token| token == spelling)?;
            let is_mark = matches!(kinds[place], TokenType::Control | TokenType::UserDefined);
            u32::try_from(place).ok().filter(|_| is_mark)
        };
        Some(Self {
            start: id("<|start|>")?,
            channel: id("<|channel|>")?,
            message: id("<|message|>")?,
            end: id("<|end|>")?,
        })
    }
}

/// Where in its messages a reply is.
#[derive(Debug, Clone, Default)]
pub struct Channels {
    /// Names of author and channel, before a message begins.
    header: Option<Vec<u8>>,
    /// The tool that the message is for, as its author's name said.
    recipient: Option<String>,
    is_thinking: bool,
    is_calling: bool,
}

impl Channels {
    /// A reply that begins with text, or with a mark.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that the next token of the reply adds to what a reader sees. For vocabularies
    /// without channels these are always the token's own.
    pub fn show<'t>(&mut self, tokenizer: &'t Tokenizer, id: u32) -> Cow<'t, [u8]> {
        let piece = tokenizer.piece(id, Show::Text);
        let Some(marks) = tokenizer.channel_marks() else {
            let spelling = tokenizer.piece(id, Show::Control);
            let is_shown = piece.is_empty() && is_mark(spelling);
            return Cow::Borrowed(if is_shown { spelling } else { piece });
        };
        if id == marks.start || id == marks.channel {
            self.note_recipient();
            if id == marks.start {
                self.recipient = None;
            }
            self.header = Some(Vec::new());
            return self.message_ends();
        }
        if id == marks.end {
            self.recipient = None;
            return self.message_ends();
        }
        if id == marks.message {
            self.note_recipient();
            let header = self.header.take().unwrap_or_default();
            if let Some(tool) = self.recipient.take() {
                self.is_calling = true;
                return Cow::Owned(format!("<function={tool}>\n").into_bytes());
            }
            if !self.is_thinking && header.trim_ascii_start().starts_with(THOUGHTS) {
                self.is_thinking = true;
                return Cow::Borrowed(THINK_OPEN.as_bytes());
            }
            return Cow::Borrowed(&[]);
        }
        let Some(header) = &mut self.header else {
            return Cow::Borrowed(piece);
        };
        header.extend_from_slice(piece);
        if header.len() <= HEADER_BYTES_MAX {
            return Cow::Borrowed(&[]);
        }
        Cow::Owned(self.header.take().unwrap_or_default())
    }

    /// Keeps whom the names before a message say it is for.
    fn note_recipient(&mut self) {
        let header = self.header.as_deref().map(String::from_utf8_lossy);
        let header = header.unwrap_or_default();
        let words = header.split_whitespace();
        let mut tools = words.filter_map(|word| word.strip_prefix(RECIPIENT));
        if let Some(tool) = tools.next() {
            self.recipient = Some(tool.to_owned());
        }
    }

    fn message_ends<'t>(&mut self) -> Cow<'t, [u8]> {
        if mem::take(&mut self.is_calling) {
            return Cow::Borrowed(CALL_CLOSE.as_bytes());
        }
        match mem::take(&mut self.is_thinking) {
            true => Cow::Borrowed(THINK_CLOSE.as_bytes()),
            false => Cow::Borrowed(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 12] = [
        "<|start|>",
        "<|channel|>",
        "<|message|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "analysis",
        "final",
        "assistant",
        "a",
        "b",
        " to=functions.f json",
    ];

    fn shown(names: &[&str], reply: &[&str]) -> String {
        let tokens: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let kind = |name: &String| match name.starts_with('<') {
            true => TokenType::Control,
            false => TokenType::Normal,
        };
        let spec = TokenizerSpec {
            model: "gpt2".to_owned(),
            pre: Some("gpt-4o".to_owned()),
            types: tokens.iter().map(kind).collect(),
            tokens,
            ..TokenizerSpec::default()
        };
        let tokenizer = Tokenizer::from_spec(&spec).unwrap();
        let mut channels = Channels::new();
        let mut bytes = Vec::new();
        for token in reply {
            let id = names.iter().position(|name| name == token).unwrap();
            let id = u32::try_from(id).unwrap();
            bytes.extend_from_slice(&channels.show(&tokenizer, id));
        }
        String::from_utf8(bytes).unwrap()
    }

    fn check(reply: &[&str], expected: &str) {
        assert_eq!(shown(&NAMES, reply), expected, "{reply:?}");
    }

    #[test]
    fn thoughts_are_marked_and_names_of_channels_left_out() {
        let [start, channel, message, end] = [NAMES[0], NAMES[1], NAMES[2], NAMES[3]];
        let thought = [channel, "analysis", message, "a"];
        let answer = [start, "assistant", channel, "final", message, "b"];
        check(&["a", "b"], "ab");
        check(&thought, "<think>\na");
        check(&answer, "b");
        check(
            &[&thought[..], &[end], &answer[..]].concat(),
            "<think>\na\n</think>\n\nb",
        );
        // A model may forget an end, or begin with the name of a channel.
        check(
            &[&thought[..], &answer[..]].concat(),
            "<think>\na\n</think>\n\nb",
        );
        check(&[channel, "final", message, "a", end], "a");
        check(&[message, "a"], "a");
        check(
            &[channel, "analysis", message, "a", message, "b"],
            "<think>\nab",
        );
    }

    #[test]
    fn a_message_to_a_tool_is_marked_as_a_call() {
        let [start, channel, message, call] = [NAMES[0], NAMES[1], NAMES[2], NAMES[5]];
        let recipient = NAMES[11];
        let want = "<function=f>\na";
        check(&[channel, "final", recipient, message, "a", call], want);
        let said_by_author = [
            start,
            "assistant",
            recipient,
            channel,
            "final",
            message,
            "a",
        ];
        check(&said_by_author, want);
        check(
            &[
                channel, recipient, message, "a", channel, "final", message, "b",
            ],
            "<function=f>\na\n</function>\nb",
        );
    }

    #[test]
    fn marks_of_thoughts_and_calls_are_shown_and_other_control_tokens_are_not() {
        let names = ["[THINK]", "[/THINK]", "[TOOL_CALLS]", "<|im_end|>", "a"];
        let tokens: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let types = [TokenType::Control; 4]
            .into_iter()
            .chain([TokenType::Normal]);
        let spec = TokenizerSpec {
            model: "gpt2".to_owned(),
            pre: Some("gpt-4o".to_owned()),
            types: types.collect(),
            tokens,
            ..TokenizerSpec::default()
        };
        let tokenizer = Tokenizer::from_spec(&spec).unwrap();
        let mut channels = Channels::new();
        let ids = 0..names.len() as u32;
        let bytes: Vec<u8> = ids
            .flat_map(|id| channels.show(&tokenizer, id).into_owned())
            .collect();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "[THINK][/THINK][TOOL_CALLS]a"
        );
    }

    #[test]
    fn text_that_is_no_header_is_shown() {
        let mut reply = vec![NAMES[0]];
        reply.resize(1 + HEADER_BYTES_MAX, "a");
        check(&reply, "");
        reply.resize(9 + HEADER_BYTES_MAX, "a");
        check(&reply, &"a".repeat(8 + HEADER_BYTES_MAX));
    }

    #[test]
    fn a_vocabulary_without_channels_shows_its_tokens() {
        assert_eq!(shown(&NAMES[1..], &["<|channel|>", "final", "a"]), "finala");
    }
}
