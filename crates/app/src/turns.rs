//! One chat message, from the question to the stored reply.
//!
//! A question is stored before anything else hears of it. A thread of the turn then asks the
//! engine and writes the reply to the store (`writer.rs`); every window that follows has a thread
//! that tells it what is new (`forward.rs`). A stop sets a flag and waits for nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::app::{App, Inner};
use crate::conversations::{Begun, Closing, StoredMessage};
use crate::error::Error;
use crate::forward::{TurnReader, forward};
use crate::models::ChatModel;
use crate::news::News;
use crate::prompt::{self, Prompt, Reader};
use crate::turn::Turn;
use crate::wire::{
    Code, Conversation, ConversationId, Message, MessageId, MessageState, Role, RunningTurn, Sent,
    Settings, TurnId,
};
use crate::writer::{self, Job, Prepared};

/// Turns that have ended and can still be attached to: a window that asks a moment too late, or
/// reloads, is told the end like any other.
const ENDED_KEPT: usize = 16;

/// Longest question in bytes. Far more than any context holds; it keeps the tokenizer's lists
/// within memory.
pub(crate) const QUESTION_BYTES_MAX: usize = 16 << 20;

/// The turns that run, and the last that have ended.
#[derive(Default)]
pub(crate) struct Turns {
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    running: BTreeMap<TurnId, Arc<Turn>>,
    ended: VecDeque<Arc<Turn>>,
}

impl Turns {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: TurnId) -> Option<Arc<Turn>> {
        let registry = self.registry();
        let ended = || registry.ended.iter().find(|turn| turn.id == id);
        registry.running.get(&id).or_else(ended).cloned()
    }

    fn begin(&self, turn: &Arc<Turn>) {
        self.registry().running.insert(turn.id, Arc::clone(turn));
    }

    fn end(&self, turn: &Arc<Turn>) {
        let mut registry = self.registry();
        registry.running.remove(&turn.id);
        registry.ended.push_front(Arc::clone(turn));
        registry.ended.truncate(ENDED_KEPT);
    }

    fn forget(&self, turn: &Turn) {
        self.registry().running.remove(&turn.id);
    }

    pub(crate) fn running(&self) -> Vec<RunningTurn> {
        self.registry()
            .running
            .values()
            .map(|turn| turn.running())
            .collect()
    }

    pub(crate) fn of_conversation(&self, id: ConversationId) -> Option<TurnId> {
        let registry = self.registry();
        let turn = registry
            .running
            .values()
            .find(|turn| turn.conversation == id);
        turn.map(|turn| turn.id)
    }

    /// The conversation whose reply the engine writes, and how many others it has.
    pub(crate) fn written_first(&self) -> Option<(ConversationId, usize)> {
        let registry = self.registry();
        let mut asked = registry.running.values().filter(|turn| turn.is_asked());
        let first = asked.next()?;
        Some((first.conversation, asked.count()))
    }

    pub(crate) fn stop_all(&self) {
        for turn in self.registry().running.values() {
            turn.cancel.cancel();
        }
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
            ..
        } = stored;
        Self {
            id,
            role,
            text,
            state,
            turn,
            record,
        }
    }
}

impl App {
    /// Asks a question, in a new conversation if none is named. The reply is written by the turn
    /// in the answer, which has begun when this returns.
    ///
    /// # Errors
    /// [`Code::TooLong`] if the question and what goes before it do not fit in the model's
    /// context, [`Code::Busy`] if this conversation is being answered; nothing is stored then. A
    /// question without a model is stored, and its turn fails with [`Code::NoModel`].
    pub fn send(&self, conversation: Option<ConversationId>, text: &str) -> Result<Sent, Error> {
        let inner = &self.inner;
        if text.trim().is_empty() {
            return Err(Error::new(Code::Internal, "There is nothing to send."));
        }
        if text.len() > QUESTION_BYTES_MAX {
            let message = "This message is too long for any model; shorten it.";
            return Err(Error::new(Code::TooLong, message));
        }
        inner.refuse_if_closed()?;
        let _one_at_a_time = inner.asking();
        let mut branch = match conversation {
            Some(id) => {
                inner.refuse_if_answered(id)?;
                inner.store.branch(id)?
            }
            None => Vec::new(),
        };
        let settings = inner.settings();
        let question = StoredMessage {
            id: 0,
            conversation: 0,
            parent: None,
            role: Role::User,
            state: MessageState::Finished,
            text: text.to_owned(),
            record: None,
        };
        branch.push(question);
        let prepared = inner.prepare(&branch, &settings)?;
        let begun = inner
            .store
            .ask(conversation, &prompt::title(text), text, inner.now_ms())?;
        inner.start_turn(begun, settings, prepared)
    }

    /// Has a reply written again, beside the one that is there.
    ///
    /// # Errors
    /// As for [`App::send`]; [`Code::NotFound`] if the message is no reply.
    pub fn regenerate(&self, message: MessageId) -> Result<Sent, Error> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
        let _one_at_a_time = inner.asking();
        let old = inner.store.message(message)?;
        inner.refuse_if_answered(old.conversation)?;
        let settings = inner.settings();
        let branch = match old.parent {
            Some(question) => inner.store.branch_to(question)?,
            None => Vec::new(),
        };
        let prepared = inner.prepare(&branch, &settings)?;
        let begun = inner.store.ask_again(message, inner.now_ms())?;
        inner.start_turn(begun, settings, prepared)
    }

    /// Follows a turn from its event `from_seq` on: 0 gives all of it. The reader is told on a
    /// thread of its own, at most once a frame, and exactly one terminal event. False if the turn
    /// is over so long that only the stored message is left.
    pub fn attach(&self, turn: TurnId, from_seq: u32, reader: TurnReader) -> bool {
        let Some(turn) = self.inner.turns.find(turn) else {
            return false;
        };
        let clock = self.inner.config.clock.clone();
        let follow = move || forward(&turn, u64::from(from_seq), &clock, reader);
        let thread = thread::Builder::new().name(String::from("turn-reader"));
        thread.spawn(follow).is_ok()
    }

    /// Stops a turn. What it has written stays. A turn that is over, or unknown, is no error.
    pub fn stop(&self, turn: TurnId) {
        if let Some(turn) = self.inner.turns.find(turn) {
            turn.cancel.cancel();
        }
    }
}

impl Inner {
    fn refuse_if_answered(&self, conversation: ConversationId) -> Result<(), Error> {
        match self.turns.of_conversation(conversation) {
            Some(_) => Err(Error::new(
                Code::Busy,
                "This conversation is being answered.",
            )),
            None => Ok(()),
        }
    }

    /// The tokens for a reply, if it is known which model will write it.
    fn prepare(
        &self,
        branch: &[StoredMessage],
        settings: &Settings,
    ) -> Result<Option<Prepared>, Error> {
        let chat = {
            let state = self.models.state();
            state.chat().filter(|_| state.load.is_none())
        };
        let Some(chat) = chat else { return Ok(None) };
        let prompt = self.prompt(&chat, branch, settings)?;
        Ok(Some(Prepared { chat, prompt }))
    }

    fn prompt(
        &self,
        chat: &ChatModel,
        branch: &[StoredMessage],
        settings: &Settings,
    ) -> Result<Prompt, Error> {
        let reader = Reader {
            tokenizer: &chat.loaded.tokenizer,
            format: &chat.format,
            context: chat.loaded.ctx_len,
        };
        let messages = prompt::messages(&settings.system_prompt, branch);
        let Prompt { tokens, notice } = prompt::prompt(&reader, &messages, self.now_ms())?;
        let notice = prompt::told_once(notice, branch);
        Ok(Prompt { tokens, notice })
    }

    /// What a reply goes on from.
    pub(crate) fn prompt_of_reply(
        &self,
        chat: &ChatModel,
        reply: MessageId,
        settings: &Settings,
    ) -> Result<Prompt, Error> {
        let mut branch = self.store.branch_to(reply)?;
        branch.pop();
        self.prompt(chat, &branch, settings)
    }

    fn start_turn(
        self: &Arc<Self>,
        begun: Begun,
        settings: Settings,
        prepared: Option<Prepared>,
    ) -> Result<Sent, Error> {
        let turn = Arc::new(Turn::new(begun.reply, begun.conversation));
        self.turns.begin(&turn);
        // The last refusal is read once the user goes on.
        self.models.state().refusal = None;
        // Read before the reply can end, so that the window sees its message being written.
        let conversation = self.conversation(begun.conversation);
        let seed = settings
            .sampling
            .seed
            .unwrap_or_else(|| (self.config.fresh_seed)());
        let job = Job {
            turn: Arc::clone(&turn),
            settings,
            seed,
            prepared,
        };
        let inner = Arc::clone(self);
        let spawned = self.spawn("turn", move || {
            let turn = Arc::clone(&job.turn);
            let end = writer::write(&inner, job);
            // Whoever hears the end may ask the next question at once.
            inner.turns.end(&turn);
            turn.end(end);
            inner.publish_conversations();
            inner.publish_status();
            inner.listeners.tell(&News::TurnEnded(turn.running()));
        });
        if let Err(error) = spawned {
            // The question is stored; if this is not, the next start marks it as interrupted.
            let closing = Closing {
                text: "",
                state: MessageState::Failed,
                record: None,
                now_ms: self.now_ms(),
            };
            self.store.close_reply(turn.id, &closing).ok();
            self.turns.forget(&turn);
            return Err(error);
        }
        self.publish_conversations();
        self.publish_status();
        Ok(Sent {
            turn: turn.id,
            conversation: conversation?,
        })
    }

    /// A conversation as a window shows it.
    pub(crate) fn conversation(&self, id: ConversationId) -> Result<Conversation, Error> {
        let summary = self.store.summary(id)?;
        let branch = self.store.branch(id)?;
        let messages = branch.into_iter().map(|stored| {
            let turn = (stored.state == MessageState::Writing).then_some(stored.id);
            Message::of_stored(stored, turn)
        });
        Ok(Conversation {
            id,
            title: summary.title,
            messages: messages.collect(),
        })
    }
}
