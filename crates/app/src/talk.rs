//! The calls that are about conversations as a whole: where they stand, what is found in them,
//! which branch is shown, and the long texts that go with a message.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::app::App;
use crate::error::Error;
use crate::library;
use crate::turns::QUESTION_BYTES_MAX;
use crate::wire::{
    Card, Code, Conversation, ConversationId, ConversationSummary, Found, MessageId, Place,
};

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

    /// Shows the branch on which a message lies, and gives its conversation.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn show_message(&self, message: MessageId) -> Result<Conversation, Error> {
        let id = self.inner.store.show_message(message)?;
        self.inner.conversation(id)
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
        let refused = |why: &str| Error::new(Code::Refused, format!("{name} {why}."));
        let unread = |source| refused("could not be read").because(source);
        let mut bytes = Vec::new();
        // One byte more than is taken tells a file that is too long.
        let limit = QUESTION_BYTES_MAX as u64 + 1;
        let file = File::open(path).map_err(unread)?;
        file.take(limit).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() > QUESTION_BYTES_MAX {
            return Err(too_long(&name));
        }
        if bytes.contains(&0) {
            return Err(refused("is no text file"));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("is not written in UTF-8"))?;
        self.inner.store.add_card(&name, &text)
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
    let message = format!("{name} is too long for any model; take a part of it.");
    Error::new(Code::TooLong, message)
}
