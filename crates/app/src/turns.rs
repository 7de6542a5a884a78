//! One chat message, from the question to the stored reply.
//!
//! A question is stored before anything else hears of it. A thread of the turn then asks the
//! engine and writes the reply to the store (`writer.rs`); every window that follows has a thread
//! that tells it what is new (`forward.rs`). A stop sets a flag and waits for nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::app::{App, Inner};
use crate::chat_settings;
use crate::conversations::{Begun, Closing, Question, StoredMessage};
use crate::error::{Error, Thing};
use crate::forward::{TurnReader, forward};
use crate::models::ChatModel;
use crate::news::News;
use crate::prompt::{self, Enclosed, Prompt, Reader, Talk};
use crate::turn::Turn;
use crate::wire::{
    Code, Conversation, ConversationId, Message, MessageId, MessageState, Role, RunningTurn, Sent,
    Settings, TokenCount, TurnId,
};
use crate::words::phrase;
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

impl App {
    /// Asks a question, in a new conversation if none is named. The reply is written by the turn
    /// in the answer, which has begun when this returns.
    ///
    /// # Errors
    /// [`Code::TooLong`] if the question does not fit in the model's context even without what
    /// goes before it, [`Code::Busy`] if this conversation is being answered; nothing is stored
    /// then. A question without a model is stored, and its turn fails with [`Code::NoModel`].
    pub fn send(&self, conversation: Option<ConversationId>, text: &str) -> Result<Sent, Error> {
        self.send_with(conversation, text, &[])
    }

    /// The same with long texts that were kept as cards before, see [`App::add_card`].
    ///
    /// # Errors
    /// As for [`App::send`]; [`Code::NotFound`] if a card is gone or was sent already.
    pub fn send_with(
        &self,
        conversation: Option<ConversationId>,
        text: &str,
        cards: &[i64],
    ) -> Result<Sent, Error> {
        let inner = &self.inner;
        refuse_nothing_and_too_much(text, cards)?;
        inner.refuse_if_closed()?;
        let _one_at_a_time = inner.asking();
        let mut branch = match conversation {
            Some(id) => {
                inner.refuse_if_answered(id)?;
                inner.store.branch(id)?
            }
            None => Vec::new(),
        };
        let settings = inner.settings_of(conversation)?;
        let enclosed = inner.store.cards(cards)?;
        let name = enclosed.first().map(|card| card.name.clone());
        branch.push(StoredMessage::question(text, enclosed));
        let prepared = inner.prepare(&branch, "", &settings)?;
        let title = match prompt::title(text) {
            title if title.is_empty() => name.unwrap_or_default(),
            title => title,
        };
        let question = Question { text, cards };
        let now_ms = inner.now_ms();
        let begun = inner.store.ask(conversation, &title, &question, now_ms)?;
        if conversation.is_none() {
            inner.store.hand_chat_settings_on(begun.conversation)?;
        }
        inner.start_turn(begun, settings, prepared)
    }

    /// Has a reply written again, beside the one that is there; or a question answered that has no
    /// reply.
    ///
    /// # Errors
    /// As for [`App::send`]; [`Code::NotFound`] if the message is not there.
    pub fn regenerate(&self, message: MessageId) -> Result<Sent, Error> {
        let inner = &self.inner;
        let (_one_at_a_time, old) = inner.take_up(message)?;
        let settings = inner.settings_of(Some(old.conversation))?;
        let question = match old.role {
            Role::User => Some(message),
            Role::Assistant => old.parent,
        };
        let branch = match question {
            Some(question) => inner.store.branch_to(question)?,
            None => Vec::new(),
        };
        let prepared = inner.prepare(&branch, "", &settings)?;
        let begun = inner.store.ask_again(message, inner.now_ms())?;
        inner.start_turn(begun, settings, prepared)
    }

    /// Asks a question in other words, beside the one that is there. Its cards go with it.
    ///
    /// # Errors
    /// As for [`App::send`]; [`Code::NotFound`] if the message is no question.
    pub fn edit_question(&self, message: MessageId, text: &str) -> Result<Sent, Error> {
        let inner = &self.inner;
        let (_one_at_a_time, old) = inner.take_up(message)?;
        let mut branch = inner.store.branch_to(message)?;
        let cards = branch.pop().map(|old| old.cards).unwrap_or_default();
        let ids: Vec<i64> = cards.iter().map(|card| card.id).collect();
        refuse_nothing_and_too_much(text, &ids)?;
        if old.role != Role::User {
            return Err(Error::not_found(Thing::Question));
        }
        let settings = inner.settings_of(Some(old.conversation))?;
        branch.push(StoredMessage::question(text, cards));
        let prepared = inner.prepare(&branch, "", &settings)?;
        let begun = inner.store.ask_otherwise(message, text, inner.now_ms())?;
        inner.start_turn(begun, settings, prepared)
    }

    /// Gives a reply other words, beside the one that is there: what the model is to have said.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the message is no reply, [`Code::Busy`] if its conversation is being
    /// answered, or the store cannot be written.
    pub fn edit_reply(&self, message: MessageId, text: &str) -> Result<Conversation, Error> {
        let inner = &self.inner;
        let (_one_at_a_time, _) = inner.take_up(message)?;
        refuse_nothing_and_too_much(text, &[])?;
        let id = inner.store.edit_reply(message, text, inner.now_ms())?;
        inner.publish_conversations();
        inner.conversation(id)
    }

    /// Goes on with a reply that was stopped, interrupted or came to a limit, at the place where it
    /// ends.
    ///
    /// # Errors
    /// As for [`App::send`]; [`Code::NotFound`] if the reply has come to its own end, or if
    /// messages follow it.
    pub fn continue_reply(&self, message: MessageId) -> Result<Sent, Error> {
        let inner = &self.inner;
        let (_one_at_a_time, old) = inner.take_up(message)?;
        let settings = inner.settings_of(Some(old.conversation))?;
        let mut branch = inner.store.branch_to(message)?;
        branch.pop();
        let prepared = inner.prepare(&branch, &old.text, &settings)?;
        let begun = inner.store.go_on(message, inner.now_ms())?;
        inner.start_turn(begun, settings, prepared)
    }

    /// What this message would take of the context, with all that would be sent with it; none if
    /// no model is open to count. It may take as long as reading the conversation does.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a conversation that is not there, or the store cannot be read.
    pub fn count_tokens(
        &self,
        conversation: Option<ConversationId>,
        text: &str,
        cards: &[i64],
    ) -> Result<Option<TokenCount>, Error> {
        let inner = &self.inner;
        let Some(chat) = inner.models.state().chat() else {
            return Ok(None);
        };
        let mut branch = match conversation {
            Some(id) => inner.store.branch(id)?,
            None => Vec::new(),
        };
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let cards = inner.store.cards(cards)?;
        let is_empty = text.trim().is_empty() && cards.is_empty();
        let question = StoredMessage::question(text, cards);
        let words = prompt::with_enclosed(text, &inner.enclosed(&question)?);
        let message = count(prompt::count(&chat.loaded.tokenizer, &words));
        if !is_empty {
            branch.push(question);
        }
        let context = count(chat.loaded.ctx_len);
        let settings = inner.settings_of(conversation)?;
        if branch.is_empty() {
            let prompt = count(prompt::count(
                &chat.loaded.tokenizer,
                &settings.system_prompt,
            ));
            return Ok(Some(TokenCount {
                message,
                prompt,
                context,
                left_out: 0,
                too_long: None,
            }));
        }
        let (prompt, left_out, too_long) = match inner.prompt(&chat, &branch, "", &settings) {
            Ok(prompt) => (count(prompt.tokens.len()), count(prompt.left_out), None),
            Err(error) if error.code == Code::TooLong => {
                (context, 0, Some(error.message.to(inner.tongue())))
            }
            Err(error) => return Err(error),
        };
        Ok(Some(TokenCount {
            message,
            prompt,
            context,
            left_out,
            too_long,
        }))
    }

    /// Follows a turn from its event `from_seq` on: 0 gives all of it. The reader is told on a
    /// thread of its own, at most once a frame, and exactly one terminal event. False if the turn
    /// is over so long that only the stored message is left.
    pub fn attach(&self, turn: TurnId, from_seq: u32, reader: TurnReader) -> bool {
        let Some(turn) = self.inner.turns.find(turn) else {
            return false;
        };
        let clock = self.inner.config.clock.clone();
        let tongue = self.inner.tongue();
        let follow = move || forward(&turn, u64::from(from_seq), (&clock, tongue), reader);
        let thread = thread::Builder::new().name(String::from("turn-reader"));
        thread.spawn(follow).is_ok()
    }

    /// Stops the reply that the engine writes, which others or another model wait for.
    pub fn stop_writing(&self) {
        let first = self.inner.turns.written_first();
        let turn =
            first.and_then(|(conversation, _)| self.inner.turns.of_conversation(conversation));
        if let Some(turn) = turn {
            self.stop(turn);
        }
    }

    /// Stops a turn. What it has written stays. A turn that is over, or unknown, is no error.
    pub fn stop(&self, turn: TurnId) {
        if let Some(turn) = self.inner.turns.find(turn) {
            turn.cancel.cancel();
        }
    }
}

fn refuse_nothing_and_too_much(text: &str, cards: &[i64]) -> Result<(), Error> {
    if text.trim().is_empty() && cards.is_empty() {
        let message = phrase!("There is nothing to send.", "Es gibt nichts zu senden.");
        return Err(Error::new(Code::Internal, message));
    }
    if text.len() > QUESTION_BYTES_MAX {
        let message = phrase!(
            "This message is too long for any model; shorten it.",
            "Diese Nachricht ist für jedes Modell zu lang; kürze sie.",
        );
        return Err(Error::new(Code::TooLong, message));
    }
    Ok(())
}

impl Inner {
    pub(crate) fn refuse_if_answered(&self, conversation: ConversationId) -> Result<(), Error> {
        match self.turns.of_conversation(conversation) {
            Some(_) => Err(Error::new(
                Code::Busy,
                phrase!(
                    "This conversation is being answered.",
                    "In diesem Gespräch wird gerade geantwortet.",
                ),
            )),
            None => Ok(()),
        }
    }

    /// A message that is to have another version, once nobody else changes its conversation.
    fn take_up(&self, message: MessageId) -> Result<(MutexGuard<'_, ()>, StoredMessage), Error> {
        self.refuse_if_closed()?;
        let one_at_a_time = self.asking();
        let old = self.store.message(message)?;
        self.refuse_if_answered(old.conversation)?;
        Ok((one_at_a_time, old))
    }

    /// The tokens for a reply, if it is known which model will write it. `begun` is how the reply
    /// begins, if it is gone on with.
    fn prepare(
        &self,
        branch: &[StoredMessage],
        begun: &str,
        settings: &Settings,
    ) -> Result<Option<Prepared>, Error> {
        let chat = {
            let state = self.models.state();
            state.chat().filter(|_| state.load.is_none())
        };
        let Some(chat) = chat else { return Ok(None) };
        let prompt = self.prompt(&chat, branch, begun, settings)?;
        Ok(Some(Prepared { chat, prompt }))
    }

    fn prompt(
        &self,
        chat: &ChatModel,
        branch: &[StoredMessage],
        begun: &str,
        settings: &Settings,
    ) -> Result<Prompt, Error> {
        self.prompt_at(chat, branch, begun, settings, self.now_ms())
    }

    /// The same as it was, or will be, at another time.
    pub(crate) fn prompt_at(
        &self,
        chat: &ChatModel,
        branch: &[StoredMessage],
        begun: &str,
        settings: &Settings,
        now_ms: i64,
    ) -> Result<Prompt, Error> {
        let format = chat_settings::format(chat, settings);
        let reader = Reader {
            tokenizer: &chat.loaded.tokenizer,
            format: &format,
            is_chats_own: !settings.template.is_empty(),
            extra: chat_settings::extra(settings.thinking),
            context: chat.loaded.ctx_len,
            reply: settings.sampling.max_tokens as usize,
        };
        let said = branch
            .iter()
            .map(|message| Ok(prompt::said(message, &self.enclosed(message)?)));
        let last = branch
            .iter()
            .rev()
            .find_map(|message| message.record.as_ref());
        let talk = Talk {
            system: &settings.system_prompt,
            said: said.collect::<Result<_, Error>>()?,
            begun,
            left_out: last.map_or(0, |record| record.left_out as usize),
        };
        let prompt = prompt::prompt(&reader, &talk, now_ms)?;
        let notice = prompt::told_once(prompt.notice, branch);
        Ok(Prompt { notice, ..prompt })
    }

    /// The long texts of a message.
    pub(crate) fn enclosed(&self, message: &StoredMessage) -> Result<Vec<Enclosed>, Error> {
        let cards = message.cards.iter().map(|card| {
            Ok(Enclosed {
                name: card.name.clone(),
                text: self.store.card_text(card.id)?,
            })
        });
        cards.collect()
    }

    /// What a reply goes on from.
    pub(crate) fn prompt_of_reply(&self, chat: &ChatModel, job: &Job) -> Result<Prompt, Error> {
        let mut branch = self.store.branch_to(job.turn.id)?;
        branch.pop();
        self.prompt(chat, &branch, &job.begun, &job.settings)
    }

    fn start_turn(
        self: &Arc<Self>,
        begun: Begun,
        settings: Settings,
        prepared: Option<Prepared>,
    ) -> Result<Sent, Error> {
        let text = self.store.message(begun.reply)?.text;
        let turn = Arc::new(Turn::new(begun.reply, begun.conversation));
        self.turns.begin(&turn);
        self.stir();
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
            begun: text.clone(),
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
                text: &text,
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
