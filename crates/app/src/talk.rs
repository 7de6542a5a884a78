//! The calls that are about conversations as a whole: where they stand, what is found in them,
//! which branch is shown, and the long texts that go with a message.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::app::App;
use crate::conversations::transfer::{Talk, TalkFile, markdown, read};
use crate::error::Error;
use crate::library;
use crate::turns::QUESTION_BYTES_MAX;
use crate::wire::{
    Card, Code, Conversation, ConversationId, ConversationSummary, ExportFormat, Exported, Found,
    Imported, MessageId, Place,
};
use crate::words::{self, Phrase, phrase};

/// Longest name that is given to a file, without its ending. File systems take 255 bytes.
const NAME_CHARS_MAX: usize = 60;

/// Whether a file is to be opened as a model: by its ending, or by its first bytes.
pub fn looks_like_model(path: &Path) -> bool {
    let ends = |end: &str| {
        path.extension()
            .is_some_and(|found| found.eq_ignore_ascii_case(end))
    };
    if ends("gguf") || ends("apr") {
        return true;
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && (&magic == b"GGUF" || magic.starts_with(b"APR"))
}

impl App {
    /// Pins a conversation or puts it into a folder.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn place_conversation(
        &self,
        id: ConversationId,
        place: &Place,
    ) -> Result<ConversationSummary, Error> {
        let summary = self.inner.store.place(id, place)?;
        self.inner.publish_conversations();
        Ok(summary)
    }

    /// Gives a folder another name; an empty one takes its conversations out of it.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn rename_folder(&self, from: &str, to: &str) -> Result<(), Error> {
        self.inner.store.rename_folder(from, to)?;
        self.inner.publish_conversations();
        Ok(())
    }

    /// Where these words are found in titles and messages. The beginning of a word is enough, and
    /// all of the words have to be there.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn search(&self, words: &str) -> Result<Vec<Found>, Error> {
        self.inner.store.search(words)
    }

    /// Shows the branch on which a message lies, and gives its conversation. One that is shown
    /// already stays as it is.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Busy`] for another branch than the one that is being answered,
    /// whose reply would end up there; or the store cannot be written.
    pub fn show_message(&self, message: MessageId) -> Result<Conversation, Error> {
        let inner = &self.inner;
        let _one_at_a_time = inner.asking();
        let id = inner.store.message(message)?.conversation;
        let branch = inner.store.branch(id)?;
        if !branch.iter().any(|shown| shown.id == message) {
            inner.refuse_if_answered(id)?;
            inner.store.show_message(message)?;
        }
        inner.conversation(id)
    }

    /// Makes a new conversation of the messages from the first to this one.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn duplicate(&self, to: MessageId) -> Result<Conversation, Error> {
        let id = self.inner.store.duplicate(to, self.inner.now_ms())?;
        self.inner.publish_conversations();
        self.inner.conversation(id)
    }

    /// Keeps a long text that will go with a message. It is forgotten with the next start, unless
    /// it was sent or stands with words that were kept.
    ///
    /// # Errors
    /// [`Code::TooLong`] for a text that no model could read, or the store cannot be written.
    pub fn add_card(&self, name: &str, text: &str) -> Result<Card, Error> {
        if text.len() > QUESTION_BYTES_MAX {
            return Err(too_long(name));
        }
        self.inner.store.add_card(name, text)
    }

    /// The same with the words of a file.
    ///
    /// # Errors
    /// [`Code::TooLong`]; [`Code::Refused`] if the file is no text or cannot be read.
    pub fn add_file_card(&self, path: &Path) -> Result<Card, Error> {
        let name = library::shown_name(path);
        let refused = |why: Phrase| Error::new(Code::Refused, why);
        let unread = |source: io::Error| {
            let why = phrase!(
                "{name} could not be read.",
                "{name} ließ sich nicht lesen.",
                name,
            );
            refused(why).because(source)
        };
        let mut bytes = Vec::new();
        // One byte more than is taken tells a file that is too long.
        let limit = QUESTION_BYTES_MAX as u64 + 1;
        let file = File::open(path).map_err(unread)?;
        file.take(limit).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() > QUESTION_BYTES_MAX {
            return Err(too_long(&name));
        }
        if bytes.contains(&0) {
            return Err(refused(phrase!(
                "{name} is no text file.",
                "{name} ist keine Textdatei.",
                name,
            )));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            refused(phrase!(
                "{name} is not written in UTF-8.",
                "{name} ist nicht in UTF-8 geschrieben.",
                name,
            ))
        })?;
        self.inner.store.add_card(&name, &text)
    }

    /// A name for the file of an export: the title, or the day.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be read.
    pub fn export_name(
        &self,
        id: Option<ConversationId>,
        format: ExportFormat,
    ) -> Result<String, Error> {
        let name = match id {
            Some(id) => self.inner.store.summary(id)?.title,
            None => format!("Candor {}", words::day(self.inner.now_ms())),
        };
        let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let name: String = name.chars().filter(is_kept).take(NAME_CHARS_MAX).collect();
        let end = match format {
            ExportFormat::Json => "json",
            ExportFormat::Markdown => "md",
        };
        Ok(format!("{}.{end}", name.trim()))
    }

    /// Writes one conversation, or all of them, into a file. What was there is only replaced once
    /// all of it is written.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Storage`] if the store cannot be read or the file not written.
    pub fn export_conversations(
        &self,
        id: Option<ConversationId>,
        format: ExportFormat,
        path: &Path,
    ) -> Result<Exported, Error> {
        let store = &self.inner.store;
        let ids = match id {
            Some(id) => vec![id],
            None => {
                let mut ids: Vec<_> = store.summaries()?.iter().map(|talk| talk.id).collect();
                ids.sort_unstable();
                ids
            }
        };
        let talks = ids.iter().map(|id| store.talk(*id));
        let talks = talks.collect::<Result<Vec<Talk>, Error>>()?;
        let text = match format {
            ExportFormat::Json => {
                // Plain values always become JSON.
                serde_json::to_string_pretty(&TalkFile::new(talks)).unwrap_or_default()
            }
            ExportFormat::Markdown => {
                let tongue = self.inner.tongue();
                let each: Vec<String> = talks.iter().map(|talk| markdown(talk, tongue)).collect();
                each.join("\n")
            }
        };
        let unwritten = |source: io::Error| {
            let message = phrase!(
                "{path} could not be written: {source}.",
                "{path} ließ sich nicht schreiben: {source}.",
                path = path.display(),
                source,
            );
            Error::new(Code::Storage, message).because(source)
        };
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
        if let Err(error) = written {
            // Half a file helps nobody.
            let _ = fs::remove_file(&part);
            return Err(unwritten(error));
        }
        Ok(Exported {
            path: path.display().to_string(),
            conversations: count(ids.len()),
        })
    }

    /// Takes conversations in from a file that this program, ChatGPT, Open WebUI or llama.cpp's web
    /// page has written. They are added to those that are here.
    ///
    /// # Errors
    /// [`Code::Refused`] with what was found instead, [`Code::TooLong`] beyond the limits, or the
    /// store cannot be written.
    pub fn import_conversations(&self, path: &Path) -> Result<Imported, Error> {
        let taken = read(path)?;
        let mut imported = Imported {
            source: taken.source.to_owned(),
            left_out: taken.left_out,
            ..Imported::default()
        };
        for talk in &taken.talks {
            let id = self.inner.store.add_talk(talk, self.inner.now_ms())?;
            imported.first = imported.first.or(Some(id));
            imported.conversations += 1;
            imported.messages += count(talk.messages.len());
        }
        self.inner.publish_conversations();
        Ok(imported)
    }

    /// The words of a card.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be read.
    pub fn card_text(&self, id: i64) -> Result<String, Error> {
        self.inner.store.card_text(id)
    }
}

fn too_long(name: &str) -> Error {
    let message = phrase!(
        "{name} is too long for any model; take a part of it.",
        "{name} ist für jedes Modell zu lang; nimm einen Teil davon.",
        name,
    );
    Error::new(Code::TooLong, message)
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
