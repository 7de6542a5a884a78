//! From the messages of a conversation to the tokens that the model reads. Pure.

use candor_text::{
    ChatFormat, Ends, LocalTime, Prompt as TypedText, RenderRequest, ReplyFormat, Tokenizer,
};
use serde_json::{Map, Value, json};

use crate::conversations::StoredMessage;
use crate::error::Error;
use crate::parts;
use crate::wire::{Code, Role};
use crate::words::{self, Count, Phrase, Tongue, phrase};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Who reads a conversation.
pub(crate) struct Reader<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) format: &'a ChatFormat,
    /// Whether the settings of the chat and not the model say how it is spoken to.
    pub(crate) is_chats_own: bool,
    /// What a template is told beside the messages.
    pub(crate) extra: Map<String, Value>,
    /// Tokens that its context holds.
    pub(crate) context: usize,
    /// Tokens that a reply may have.
    pub(crate) reply: usize,
}

/// A long text that goes with a message.
pub(crate) struct Enclosed {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A conversation on its way to a model.
pub(crate) struct Talk<'a> {
    /// The system text; it is in every prompt.
    pub(crate) system: &'a str,
    /// What each message says, first to last; none for replies without a word (stopped before the
    /// first one, or failed): a template could not tell them from an answer.
    pub(crate) said: Vec<Option<Value>>,
    /// The beginning of the reply, if it is gone on with.
    pub(crate) begun: &'a str,
    /// Messages that were not sent the last time.
    pub(crate) left_out: usize,
}

/// What a message says, as a template sees it. What was thought for earlier answers is left out:
/// every template that knows thoughts wants it so, and others would read them as answers.
pub(crate) fn said(message: &StoredMessage, enclosed: &[Enclosed]) -> Option<Value> {
    if message.role == Role::User {
        let content = with_enclosed(&message.text, enclosed);
        return Some(json!({ "role": "user", "content": content }));
    }
    let answer = parts::answer(&message.text);
    (!answer.is_empty()).then(|| json!({ "role": "assistant", "content": answer }))
}

/// A message with its cards written out below it, each in a fence that is longer than any in it.
pub(crate) fn with_enclosed(text: &str, enclosed: &[Enclosed]) -> String {
    let mut whole = text.to_owned();
    for Enclosed { name, text } in enclosed {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let gap = if whole.is_empty() { "" } else { "\n\n" };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        whole.push_str(&format!("{gap}{name}:\n{fence}\n{text}{end}{fence}"));
    }
    whole
}

/// A conversation as a model reads it.
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<u32>,
    /// What was done because the model's template refuses this conversation, in plain words. That
    /// a template is not used at all is said of the model.
    pub(crate) notice: Option<Phrase>,
    /// Messages from the start that are not in it.
    pub(crate) left_out: usize,
    /// The mark at its end by which the template has begun the reply's thoughts, if it has.
    pub(crate) opening: String,
    /// When it was made, in milliseconds since 1970: templates may write the date.
    pub(crate) made_ms: i64,
}

/// A prompt that is not shortened leaves at least this part of the context to the reply, or all
/// that the reply may have. With less, replies would break off in their first sentence.
const REPLY_SHARE: usize = 8;

/// A prompt that is shortened takes at most three of these four parts of the context. Otherwise
/// the next question would shorten it again, and with another beginning the model would have to
/// read all of it anew each time.
const SHORTENED_SHARE: (usize, usize) = (3, 4);

/// No token of a text is longer than this in the mean, so that what is far too long is shortened
/// before its tokens are counted.
const TOKEN_BYTES_MAX: usize = 24;

/// The tokens of a conversation. What does not fit is left out: whole turns, the oldest first,
/// never the system text and never the last question. What was left out before stays left out, so
/// that a prompt begins like the one before it.
///
/// # Errors
/// [`Code::TooLong`] if the last question alone leaves no room for a reply.
pub(crate) fn prompt(reader: &Reader<'_>, talk: &Talk<'_>, now_ms: i64) -> Result<Prompt, Error> {
    let limit = reader.context - reader.reply.min(reader.context / REPLY_SHARE).max(1);
    let begins = turns(&talk.said);
    let first = first_turn(reader, talk, &begins);
    let whole = rendered(reader, talk, begins[first], now_ms)?;
    if whole.tokens.len() <= limit {
        return Ok(whole);
    }
    let (of, parts) = SHORTENED_SHARE;
    let goal = limit.min(reader.context * of / parts);
    let (mut low, mut high) = (first + 1, begins.len());
    let mut longest = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let part = rendered(reader, talk, begins[middle], now_ms)?;
        if part.tokens.len() <= goal {
            (longest, high) = (Some(part), middle);
        } else {
            low = middle + 1;
        }
    }
    if let Some(prompt) = longest {
        return Ok(prompt);
    }
    // Only the last turn is left.
    let last = match begins.last() {
        Some(&begin) if begin != whole.left_out => rendered(reader, talk, begin, now_ms)?,
        _ => whole,
    };
    if last.tokens.len() < reader.context {
        return Ok(last);
    }
    Err(too_long(reader, talk, last.tokens.len()))
}

/// Where turns begin: at the first message, and at every question.
fn turns(said: &[Option<Value>]) -> Vec<usize> {
    let asks = |message: &Option<Value>| message.as_ref().is_some_and(|m| m["role"] == "user");
    let later = (1..said.len()).filter(|&place| asks(&said[place]));
    std::iter::once(0).chain(later).collect()
}

/// The turn with which the last prompt began, or a later one if what follows it is far too long.
fn first_turn(reader: &Reader<'_>, talk: &Talk<'_>, begins: &[usize]) -> usize {
    let before = begins.partition_point(|&begin| begin <= talk.left_out);
    let mut first = begins.len() - 1;
    let mut bytes = 0;
    for turn in (before.saturating_sub(1)..begins.len()).rev() {
        let end = begins.get(turn + 1).copied().unwrap_or(talk.said.len());
        let words = talk.said[begins[turn]..end].iter().flatten();
        bytes += words
            .filter_map(|message| message["content"].as_str())
            .map(str::len)
            .sum::<usize>();
        if turn + 1 < begins.len() && bytes > reader.context * TOKEN_BYTES_MAX {
            break;
        }
        first = turn;
    }
    first
}

/// The prompt without the first messages.
fn rendered(
    reader: &Reader<'_>,
    talk: &Talk<'_>,
    from: usize,
    now_ms: i64,
) -> Result<Prompt, Error> {
    let system = Some(talk.system).filter(|text| !text.trim().is_empty());
    let system = system.map(|text| json!({ "role": "system", "content": text }));
    let said = talk.said[from..].iter().flatten().cloned();
    let messages: Vec<Value> = system.into_iter().chain(said).collect();
    let mut request = RenderRequest::new(reader.tokenizer, &messages);
    request.now = Some(utc(now_ms));
    request.extra = reader.extra.clone();
    let mut rendered = reader.format.render(&request);
    let opening = ReplyFormat::opened_by(&rendered.prompt.text).to_owned();
    // The words of a reply that is gone on with begin with that mark, too.
    let begun = talk.begun.strip_prefix(opening.trim_end());
    rendered.prompt.push_typed(match begun {
        Some(rest) if !opening.is_empty() => rest.trim_start(),
        _ => talk.begun,
    });
    let tokens = reader
        .tokenizer
        .encode(&rendered.prompt, Ends::Chat)
        .map_err(|source| {
            let message = phrase!(
                "This message cannot be read by the model: {why}.",
                "Das Modell kann diese Nachricht nicht lesen: {why}.",
                why = Phrase::of(&source),
            );
            Error::new(Code::TooLong, message).because(source)
        })?;
    // Of the model's own template the window says it beside the model, once for all chats.
    let is_of_model = reader.format.fallback().is_some() && !reader.is_chats_own;
    let fallback = rendered.fallback.filter(|_| !is_of_model);
    let notice = fallback.map(|fallback| words::fallback(&fallback).sentence());
    Ok(Prompt {
        tokens,
        notice,
        left_out: from,
        opening: if talk.begun.is_empty() {
            opening
        } else {
            String::new()
        },
        made_ms: now_ms,
    })
}

/// Tokens of words that stand for themselves.
pub(crate) fn count(tokenizer: &Tokenizer, text: &str) -> usize {
    let tokens = tokenizer.encode(&TypedText::typed(text), Ends::None);
    tokens.map_or(0, |tokens| tokens.len())
}

fn too_long(reader: &Reader<'_>, talk: &Talk<'_>, needed: usize) -> Error {
    let holds = Count::of(reader.context);
    let system = count(reader.tokenizer, talk.system);
    let message = if system >= reader.context {
        phrase!(
            "The system prompt alone has {system} tokens; the context holds {holds}. Shorten it in \
             the settings.",
            "Allein die Vorgabe an das Modell hat {system} Tokens; der Kontext fasst {holds}. Kürze \
             sie in den Einstellungen.",
            system = Count::of(system),
            holds,
        )
    } else {
        phrase!(
            "With the system prompt this message has {needed} tokens; the context holds {holds}. \
             Shorten it, or give the model a longer context in the settings.",
            "Mit der Vorgabe an das Modell hat diese Nachricht {needed} Tokens; der Kontext fasst \
             {holds}. Kürze sie oder gib dem Modell in den Einstellungen einen längeren Kontext.",
            needed = Count::of(needed),
            holds,
        )
    };
    Error::new(Code::TooLong, message)
}

/// The notice, unless an earlier reply of the branch has it already.
pub(crate) fn told_once(notice: Option<Phrase>, branch: &[StoredMessage]) -> Option<Phrase> {
    let is_told = |notice: &Phrase| {
        let records = branch.iter().filter_map(|message| message.record.as_ref());
        let mut told = records.filter_map(|record| record.notice.as_deref());
        // In whichever language the window spoke then.
        told.any(|told| {
            let tongues = [Tongue::English, Tongue::German].into_iter();
            let mut said = tongues.map(|tongue| notice.in_tongue(tongue));
            said.any(|said| said == told)
        })
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

    fn said_by(role: Role, state: MessageState, text: &str) -> StoredMessage {
        StoredMessage {
            role,
            state,
            ..StoredMessage::question(text, Vec::new())
        }
    }

    #[test]
    fn replies_without_a_word_are_left_out() {
        let branch = [
            said_by(Role::User, MessageState::Finished, "A?"),
            said_by(Role::Assistant, MessageState::Stopped, ""),
            said_by(Role::Assistant, MessageState::Stopped, "Part"),
            said_by(Role::Assistant, MessageState::Failed, ""),
        ];
        let want = [
            Some(json!({ "role": "user", "content": "A?" })),
            None,
            Some(json!({ "role": "assistant", "content": "Part" })),
            None,
        ];
        assert_eq!(branch.map(|message| said(&message, &[])), want);
    }

    #[test]
    fn cards_stand_below_the_words_in_fences_that_hold() {
        let cases = [
            ("Why?", "a.txt", "x\ny\n", "Why?\n\na.txt:\n```\nx\ny\n```"),
            ("", "b", "```\ncode\n```", "b:\n````\n```\ncode\n```\n````"),
            ("w", "c", "", "w\n\nc:\n```\n\n```"),
        ];
        for (text, name, card, want) in cases {
            let enclosed = Enclosed {
                name: name.to_owned(),
                text: card.to_owned(),
            };
            assert_eq!(with_enclosed(text, &[enclosed]), want);
        }
        assert_eq!(with_enclosed("alone", &[]), "alone");
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
