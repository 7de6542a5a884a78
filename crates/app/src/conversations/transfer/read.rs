//! Reads a file of conversations, whichever program wrote it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{FORMAT, Talk, TalkFile, VERSION, chatgpt, llama_cpp, open_webui};
use crate::error::Error;
use crate::library;
use crate::turns::QUESTION_BYTES_MAX;
use crate::wire::Code;
use crate::words::{Bytes, Phrase, phrase};

/// Largest file that is read: an export of some years is a few hundred megabytes. All of it is in
/// memory at once.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Most conversations and messages of one file: ten times what anybody has written.
const CONVERSATIONS_MAX: usize = 100_000;
const MESSAGES_MAX: usize = 2_000_000;

/// Most texts that go with one message.
const CARDS_MAX: usize = 100;

/// What was read.
pub(crate) struct Taken {
    /// Which program wrote it.
    pub(crate) source: &'static str,
    pub(crate) talks: Vec<Talk>,
    /// Parts that have no place here.
    pub(crate) left_out: u32,
}

/// Reads a file.
///
/// # Errors
/// [`Code::Refused`] with what was found instead, [`Code::TooLong`] beyond the limits.
pub(crate) fn read(path: &Path) -> Result<Taken, Error> {
    let name = library::shown_name(path);
    let bytes = bytes(path, &name)?;
    if bytes.starts_with(b"PK\x03\x04") {
        let message = phrase!(
            "{name} is an archive. Unpack it and import conversations.json.",
            "{name} ist ein Archiv. Packe es aus und importiere conversations.json.",
            name,
        );
        return Err(Error::new(Code::Refused, message));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| refused(phrase!("{name} is no text.", "{name} ist kein Text.", name)))?;
    let mut taken = parsed(&text, &name)?;
    bound(&mut taken, &name)?;
    Ok(taken)
}

fn bytes(path: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let unread = |source: std::io::Error| {
        let why = phrase!(
            "{name} could not be read.",
            "{name} ließ sich nicht lesen.",
            name,
        );
        refused(why).because(source)
    };
    let file = File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    // One byte more than is taken tells a file that is too long.
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = phrase!(
            "{name} is larger than {most}, the most that is imported at once.",
            "{name} ist größer als {most}, mehr wird nicht auf einmal importiert.",
            name,
            most = Bytes(FILE_BYTES_MAX),
        );
        return Err(Error::new(Code::TooLong, message));
    }
    Ok(bytes)
}

fn refused(why: Phrase) -> Error {
    Error::new(Code::Refused, why)
}

fn parsed(text: &str, name: &str) -> Result<Taken, Error> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.contains(FORMAT) && text.starts_with('{') {
        return ours(text, name);
    }
    if text.contains("\"mapping\"") {
        return others("ChatGPT", text, name, chatgpt::talk);
    }
    if text.contains("\"conv\"") {
        return others("llama.cpp", text, name, llama_cpp::talk);
    }
    if text.contains("\"chat\"") {
        return others("Open WebUI", text, name, open_webui::talk);
    }
    Err(refused(phrase!(
        "{name} is no export of Candor, ChatGPT, Open WebUI or llama.cpp's web page.",
        "{name} ist kein Export von Candor, ChatGPT, Open WebUI oder der Webseite von llama.cpp.",
        name,
    )))
}

fn ours(text: &str, name: &str) -> Result<Taken, Error> {
    let file: TalkFile = json(text, name)?;
    if file.format != FORMAT || file.version > VERSION {
        return Err(refused(phrase!(
            "{name} was written by a newer version of Candor (its format is {found}, this version \
             knows {known}).",
            "{name} hat eine neuere Version von Candor geschrieben (ihr Format ist {found}, diese \
             Version kennt {known}).",
            name,
            found = file.version,
            known = VERSION,
        )));
    }
    Ok(Taken {
        source: "Candor",
        talks: file.conversations,
        left_out: 0,
    })
}

fn others<T: DeserializeOwned>(
    source: &'static str,
    text: &str,
    name: &str,
    talk: fn(T) -> (Talk, u32),
) -> Result<Taken, Error> {
    let list: Vec<&RawValue> = match text.starts_with('[') {
        true => json(text, name)?,
        false => vec![json(text, name)?],
    };
    let (mut talks, mut left_out, mut fault) = (Vec::new(), 0_u32, None);
    for conversation in list {
        // One of thousands that is not as the others keeps none of them away.
        let lost = match json(conversation.get(), name) {
            Ok(conversation) => {
                let (talk, lost) = talk(conversation);
                talks.push(talk);
                lost
            }
            Err(error) => {
                fault = fault.or(Some(error));
                1
            }
        };
        left_out = left_out.saturating_add(lost);
    }
    if let Some(error) = fault.filter(|_| talks.is_empty()) {
        return Err(error);
    }
    Ok(Taken {
        source,
        talks,
        left_out,
    })
}

fn json<'a, T: Deserialize<'a>>(text: &'a str, name: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|source| {
        let why = phrase!(
            "{name} is damaged ({source}).",
            "{name} ist beschädigt ({source}).",
            name,
            source,
        );
        refused(why).because(source)
    })
}

/// Holds what was read to the limits. What follows a message that is left out follows the one
/// before it.
fn bound(taken: &mut Taken, name: &str) -> Result<(), Error> {
    let messages: usize = taken.talks.iter().map(|talk| talk.messages.len()).sum();
    if taken.talks.len() > CONVERSATIONS_MAX || messages > MESSAGES_MAX {
        let message = phrase!(
            "{name} holds more conversations than can be imported at once.",
            "{name} enthält mehr Gespräche, als sich auf einmal importieren lassen.",
            name,
        );
        return Err(Error::new(Code::TooLong, message));
    }
    let mut left_out = 0;
    for talk in &mut taken.talks {
        left_out += bound_talk(talk);
    }
    taken.left_out = taken.left_out.saturating_add(left_out);
    // A conversation of which nothing is left is none.
    taken
        .talks
        .retain(|talk| !talk.messages.is_empty() || talk.unsent.is_some());
    Ok(())
}

fn bound_talk(talk: &mut Talk) -> u32 {
    let (mut kept, mut left_out) = (Vec::new(), 0);
    // Where each message of the file has got to: its own place, or that of the one before it.
    let mut places: Vec<Option<usize>> = Vec::new();
    for mut said in std::mem::take(&mut talk.messages) {
        // Only what stands before it can go before it.
        let after = said
            .after
            .and_then(|after| places.get(after).copied().flatten());
        let cards = said.cards.len();
        said.cards
            .retain(|card| card.text.len() <= QUESTION_BYTES_MAX);
        said.cards.truncate(CARDS_MAX);
        left_out += (cards - said.cards.len()) as u32;
        let is_known = matches!(said.role.as_str(), "user" | "assistant");
        if !is_known || said.text.len() > QUESTION_BYTES_MAX {
            left_out += 1;
            places.push(after);
            continue;
        }
        said.after = after;
        places.push(Some(kept.len()));
        kept.push(said);
    }
    let shown = talk
        .shown
        .and_then(|shown| places.get(shown).copied().flatten());
    talk.shown = shown.or(kept.len().checked_sub(1));
    talk.messages = kept;
    left_out
}
