//! Weights on a card, as the engine holds them.

use std::sync::Arc;

use candor_backend::{LoadError, Loaded, Model, OpenError, OpenOptions, Progress, Session, Step};

use super::desk::{Key, Order};
use super::session::RemoteSession;
use super::{Asker, Card, Hasty, Patient, Silence, Word};
use crate::backend::unsupported;

/// A model on a card.
pub(crate) struct RemoteLoaded {
    card: Arc<Card>,
    key: Key,
    model: Arc<Model>,
    weights_bytes: u64,
}

/// Who watches a load.
struct Watcher<'a> {
    progress: &'a mut dyn Progress,
    done: u64,
    total: u64,
}

impl<'a> Watcher<'a> {
    fn new(progress: &'a mut dyn Progress) -> Self {
        Self {
            progress,
            done: 0,
            total: 0,
        }
    }
}

impl Asker for Watcher<'_> {
    fn wants_to_leave(&mut self) -> bool {
        self.progress.report(self.done, self.total) == Step::Stop
    }

    fn hear(&mut self, word: Word) -> Step {
        match word {
            Word::Progress { done, total } => {
                (self.done, self.total) = (done, total);
                self.progress.report(done, total)
            }
            Word::Node { .. } => Step::Go,
        }
    }
}

impl RemoteLoaded {
    /// The first of these ways to open a session for which there is room.
    pub(crate) fn fit(
        card: &Arc<Card>,
        order: Order,
        wishes: &[OpenOptions],
        progress: &mut dyn Progress,
    ) -> Result<OpenOptions, LoadError> {
        let wishes = wishes.to_vec();
        let mut watcher = Watcher::new(progress);
        let fitted = card.ask(&mut watcher, move |desk, line| {
            desk.fit(order, &wishes, line)
        });
        fitted.map_err(LoadError::from)?
    }

    pub(crate) fn load(
        card: Arc<Card>,
        order: Order,
        progress: &mut dyn Progress,
    ) -> Result<Self, LoadError> {
        let model = Arc::clone(&order.model);
        let mut watcher = Watcher::new(progress);
        let loaded = card.ask(&mut watcher, move |desk, line| {
            let key = desk.load(order, line)?;
            Ok::<_, LoadError>((key, desk.loaded(key).weights_bytes()))
        });
        let (key, weights_bytes) = loaded.map_err(LoadError::from)??;
        Ok(Self {
            card,
            key,
            model,
            weights_bytes,
        })
    }
}

impl Loaded for RemoteLoaded {
    fn open(&self, options: OpenOptions) -> Result<Box<dyn Session>, OpenError> {
        options.check()?;
        let missing = unsupported(&options);
        if !missing.is_empty() {
            return Err(OpenError::Unsupported(missing));
        }
        let key = self.key;
        let opened = self.card.ask(&mut Patient, move |desk, _| {
            let session = desk.open(key, options)?;
            Ok::<_, OpenError>((session, desk.session(session).about()))
        });
        let (session, about) = opened.map_err(|silence| OpenError::Device {
            reason: silence.into_reason(),
        })??;
        let card = Arc::clone(&self.card);
        Ok(Box::new(RemoteSession::new(card, session, about)))
    }

    fn weights_bytes(&self) -> u64 {
        self.weights_bytes
    }

    fn model(&self) -> &Arc<Model> {
        &self.model
    }
}

impl Drop for RemoteLoaded {
    fn drop(&mut self) {
        let key = self.key;
        // A thread that hangs gives it back when it can, or never.
        let _ = self
            .card
            .ask(&mut Hasty, move |desk, _| desk.drop_loaded(key));
    }
}

impl Silence {
    /// In plain words.
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::Lost(reason) => reason,
            Self::Left => String::from("it is busy"),
        }
    }
}

impl From<Silence> for LoadError {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Left => Self::Stopped,
            Silence::Lost(reason) => Self::Device { reason },
        }
    }
}
