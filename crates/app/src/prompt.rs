//! From the messages of a conversation to the tokens that the model reads. Pure.

use candor_text::{ChatFormat, Ends, LocalTime, RenderRequest, Tokenizer};
use serde_json::{Value, json};

use crate::conversations::StoredMessage;
use crate::error::Error;
use crate::wire::{Code, Role};
use crate::words;

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Who reads a conversation.
pub(crate) struct Reader<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) format: &'a ChatFormat,
    /// Tokens that its context holds.
    pub(crate) context: usize,
}

/// The conversation as a template sees it: the system text, if there is one, and the messages.
/// Replies without a word (stopped before the first one, or failed) are left out: a template
/// could not tell them from an answer.
pub(crate) fn messages(system: &str, branch: &[StoredMessage]) -> Vec<Value> {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let system = Some(system).filter(|text| !text.trim().is_empty());
    let said = branch
        .iter()
        .filter(|m| m.role == Role::User || !m.text.is_empty());
    let said = said.map(|stored| match stored.role {
        Role::User => message("user", &stored.text),
        Role::Assistant => message("assistant", &stored.text),
    });
    system
        .map(|text| message("system", text))
        .into_iter()
        .chain(said)
        .collect()
}

/// A conversation as a model reads it.
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<u32>,
    /// What was done because the model's template refuses this conversation, in plain words. That
    /// a template is not used at all is said of the model.
    pub(crate) notice: Option<String>,
}

/// The tokens of a conversation.
///
/// # Errors
/// [`Code::TooLong`] if they leave no room for a reply.
pub(crate) fn prompt(
    reader: &Reader<'_>,
    messages: &[Value],
    now_ms: i64,
) -> Result<Prompt, Error> {
    let mut request = RenderRequest::new(reader.tokenizer, messages);
    request.now = Some(utc(now_ms));
    let rendered = reader.format.render(&request);
    let tokens = reader
        .tokenizer
        .encode(&rendered.prompt, Ends::Chat)
        .map_err(|source| {
            let message = format!("This message cannot be read by the model: {source}.");
            Error::new(Code::TooLong, message).because(source)
        })?;
    if tokens.len() >= reader.context {
        let (needed, holds) = (tokens.len() as u64, reader.context as u64);
        let message = format!(
            "With what goes before it this message has {} tokens; the context holds {}. \
             Shorten it, or begin a new conversation.",
            words::count(needed),
            words::count(holds),
        );
        return Err(Error::new(Code::TooLong, message));
    }
    let is_of_model = reader.format.fallback().is_some();
    let fallback = rendered.fallback.filter(|_| !is_of_model);
    let notice = fallback.map(|fallback| words::sentence(&fallback.to_string()));
    Ok(Prompt { tokens, notice })
}

/// The notice, unless an earlier reply of the branch has it already.
pub(crate) fn told_once(notice: Option<String>, branch: &[StoredMessage]) -> Option<String> {
    let is_told = |notice: &String| {
        let mut records = branch.iter().filter_map(|message| message.record.as_ref());
        records.any(|record| record.notice.as_ref() == Some(notice))
    };
    notice.filter(|notice| !is_told(notice))
}

/// The time in UTC: which zone the user is in is not known here, and templates write no more than
/// the date. The steps from days to a date are Howard Hinnant's "chrono-Compatible Low-Level Date
/// Algorithms".
pub(crate) fn utc(now_ms: i64) -> LocalTime {
    let days = now_ms.div_euclid(MS_PER_DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years that begin in March have the leap day at their end.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let second = now_ms.rem_euclid(MS_PER_DAY) / 1_000;
    LocalTime {
        year: year as i32,
        month: month as u8,
        day: day as u8,
        hour: (second / 3_600) as u8,
        minute: (second / 60 % 60) as u8,
        second: (second % 60) as u8,
    }
}

/// Characters of a title made of a question: about what a sidebar shows.
const TITLE_CHARS_MAX: usize = 60;

/// A title from the first words of a question.
pub(crate) fn title(question: &str) -> String {
    let line = question
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut title = String::new();
    for word in line.split_whitespace() {
        if title.chars().count() + word.chars().count() >= TITLE_CHARS_MAX {
            if title.is_empty() {
                title.extend(word.chars().take(TITLE_CHARS_MAX - 1));
            }
            title.push('…');
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MessageState;

    fn said(role: Role, state: MessageState, text: &str) -> StoredMessage {
        let text = String::from(text);
        StoredMessage {
            id: 1,
            conversation: 1,
            parent: None,
            role,
            state,
            text,
            record: None,
        }
    }

    #[test]
    fn replies_without_a_word_are_left_out() {
        let branch = [
            said(Role::User, MessageState::Finished, "A?"),
            said(Role::Assistant, MessageState::Stopped, ""),
            said(Role::User, MessageState::Finished, "B?"),
            said(Role::Assistant, MessageState::Stopped, "Part"),
            said(Role::User, MessageState::Finished, "C?"),
            said(Role::Assistant, MessageState::Failed, ""),
        ];
        let want = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "A?" },
            { "role": "user", "content": "B?" },
            { "role": "assistant", "content": "Part" },
            { "role": "user", "content": "C?" },
        ]);
        assert_eq!(Value::from(messages("Be brief.", &branch)), want);
        assert_eq!(messages(" \n", &branch).len(), 4);
    }

    #[test]
    fn a_title_is_the_first_words() {
        let long = "word ".repeat(40);
        let cases = [
            ("How do birds sleep?", "How do birds sleep?"),
            ("\n\n  two   spaces \n second line", "two spaces"),
            ("", ""),
        ];
        for (question, want) in cases {
            assert_eq!(title(question), want);
        }
        assert!(title(&long).ends_with("word…") && title(&long).chars().count() <= 60);
        assert_eq!(title(&"é".repeat(100)), format!("{}…", "é".repeat(59)));
    }

    #[test]
    fn the_date_is_that_of_the_calendar() {
        let cases = [
            (0, (1970, 1, 1, 0, 0, 0)),
            (951_782_399_000, (2000, 2, 28, 23, 59, 59)),
            (951_782_400_000, (2000, 2, 29, 0, 0, 0)),
            (1_735_689_599_999, (2024, 12, 31, 23, 59, 59)),
            (-1, (1969, 12, 31, 23, 59, 59)),
        ];
        for (ms, want) in cases {
            let LocalTime {
                year,
                month,
                day,
                hour,
                minute,
                second,
            } = utc(ms);
            assert_eq!((year, month, day, hour, minute, second), want);
        }
    }
}
