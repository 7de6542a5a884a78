//! A reply in its parts: what was thought, and what was said.
//!
//! The store keeps the words as the model wrote them, with its marks; where the template has begun
//! the thoughts itself, with that beginning before them. Windows, copies and later prompts get the
//! parts.

use candor_text::ReplyFormat;
use candor_text::reply::{self, Part, ReplyParser, Tools};

use crate::conversations::StoredMessage;
use crate::wire::{Message, MessagePart, PartKind, ReplyRecord, Role, TurnId};

/// The format by which the chat reads replies of every model: it offers no tools, so that what
/// looks like a call is text, and knows every mark of thoughts.
fn format() -> ReplyFormat {
    ReplyFormat::of_template(None)
}

/// A parser for a reply that begins.
pub(crate) fn parser() -> ReplyParser {
    ReplyParser::new(&format(), Tools::None)
}

/// A reply in its parts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// What was said.
    pub(crate) answer: String,
    /// All parts in order; empty if there is nothing but the answer.
    pub(crate) all: Vec<MessagePart>,
}

impl Parts {
    /// The parts of a reply that thought for so long each time.
    pub(crate) fn of(text: &str, thinking_ms: &[f64]) -> Self {
        let parts = reply::split(&format(), Tools::None, text);
        let mut durations = thinking_ms.iter().copied();
        let mut all: Vec<MessagePart> = Vec::new();
        let mut answer = String::new();
        for part in parts {
            match part {
                Part::Thinking(text) => all.push(MessagePart {
                    kind: PartKind::Thinking,
                    text,
                    // A clock that was not looked at says nothing.
                    ms: durations.next().filter(|ms| *ms > 0.0),
                }),
                Part::Text(text) => {
                    answer.push_str(&text);
                    all.push(MessagePart {
                        kind: PartKind::Text,
                        text,
                        ms: None,
                    });
                }
                Part::ToolCall(_) | Part::TextWasThinking => {}
            }
        }
        if all.iter().all(|part| part.kind == PartKind::Text) {
            all.clear();
        }
        Self { answer, all }
    }

    /// The parts of a stored reply.
    pub(crate) fn of_stored(text: &str, record: Option<&ReplyRecord>) -> Self {
        Self::of(text, record.map_or(&[], |record| &record.thinking_ms))
    }
}

impl Message {
    pub(crate) fn of_stored(stored: StoredMessage, turn: Option<TurnId>) -> Self {
        let StoredMessage {
            id,
            role,
            state,
            text,
            record,
            versions,
            kept,
            cards,
            ..
        } = stored;
        let Parts { answer, all } = match role {
            Role::Assistant => Parts::of_stored(&text, record.as_ref()),
            Role::User => Parts {
                answer: text,
                all: Vec::new(),
            },
        };
        Self {
            id,
            role,
            text: answer,
            parts: all,
            state,
            turn,
            // Windows have no use for what a replay needs.
            record: record.map(|record| ReplyRecord {
                replay: None,
                ..record
            }),
            versions,
            kept,
            cards,
        }
    }
}

/// What was said, without what was thought.
pub(crate) fn answer(text: &str) -> String {
    Parts::of(text, &[]).answer
}

/// UTF-16 units, in which windows count, of all that is shown of a reply.
pub(crate) fn shown_units(text: &str) -> u32 {
    let parts = Parts::of(text, &[]);
    let units = |text: &str| text.encode_utf16().count();
    let sum = match parts.all.is_empty() {
        true => units(&parts.answer),
        false => parts.all.iter().map(|part| units(&part.text)).sum(),
    };
    u32::try_from(sum).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: PartKind, text: &str, ms: Option<f64>) -> MessagePart {
        let text = String::from(text);
        MessagePart { kind, text, ms }
    }

    #[track_caller]
    fn check(text: &str, ms: &[f64], answer: &str, all: &[MessagePart]) {
        let want = Parts {
            answer: String::from(answer),
            all: all.to_vec(),
        };
        assert_eq!(Parts::of(text, ms), want, "{text:?}");
    }

    #[test]
    fn an_answer_is_what_was_not_thought() {
        use PartKind::{Text, Thinking};
        check("Hello.", &[], "Hello.", &[]);
        check("", &[], "", &[]);
        let thought = part(Thinking, "hm", Some(1_500.0));
        let said = part(Text, "Hello.", None);
        check(
            "<think>\nhm\n</think>\n\nHello.",
            &[1_500.0],
            "Hello.",
            &[thought.clone(), said.clone()],
        );
        check("<think>hm", &[1_500.0], "", &[thought]);
        let unknown = part(Thinking, "hm", None);
        check(
            "hm\n</think>\nHello.",
            &[],
            "Hello.",
            &[unknown.clone(), said.clone()],
        );
        check(
            "[THINK]hm[/THINK]Hello.",
            &[0.0],
            "Hello.",
            &[unknown, said],
        );
        // No tools are offered in the chat.
        let call = r#"<tool_call>{"name":"f"}</tool_call>"#;
        check(call, &[], call, &[]);
    }

    #[test]
    fn what_is_shown_is_counted_as_windows_count() {
        assert_eq!(shown_units("é🙂"), 3);
        assert_eq!(shown_units("<think>é</think>\n🙂"), 3);
        assert_eq!(shown_units(""), 0);
    }
}
