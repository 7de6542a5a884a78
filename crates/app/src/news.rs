//! Rare news for every window: not tokens, which go to the readers of a turn.

use std::sync::{Mutex, PoisonError};

use crate::app::App;
use crate::wire::{ConversationSummary, Download, ModelEntry, ModelFolder, RunningTurn, Status};
use crate::words::Phrase;

/// Something that every window has to know.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "news are rare, and never kept")]
pub enum News {
    /// The engine does something else.
    Status(Status),
    /// The list of conversations changed.
    Conversations(Vec<ConversationSummary>),
    /// The list of models changed.
    Models(Vec<ModelEntry>),
    /// A folder of models was looked through, or is another one.
    Folders(Vec<ModelFolder>),
    /// Downloads have come further.
    Downloads(Vec<Download>),
    /// A reply came to its end, however.
    TurnEnded(RunningTurn),
}

/// Hears the news. Called from several threads, one at a time, and must not call back into the
/// app.
pub type Listener = Box<dyn FnMut(News) + Send>;

impl App {
    /// A sentence that the next snapshot tells.
    pub fn notice(&self, sentence: Phrase) {
        let notices = &self.inner.notices;
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.push(sentence);
    }
}

/// Everybody who listens.
#[derive(Default)]
pub(crate) struct Listeners {
    listeners: Mutex<Vec<Listener>>,
}

impl Listeners {
    pub(crate) fn add(&self, listener: Listener) {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(listener);
    }

    pub(crate) fn tell(&self, news: &News) {
        for listener in self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter_mut()
        {
            listener(news.clone());
        }
    }
}
