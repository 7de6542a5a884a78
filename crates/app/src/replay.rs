//! Replay: the same reply once more, from its record, to see whether it comes out the same.
//!
//! It is a reply of the background that enters no conversation. What it needs is the same model
//! file, the same context (made again and compared by its hash), the same settings and the same
//! seed; whatever of that is not to be had, is said.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_backend::CancelToken;
use candor_engine::{
    EndTokens, Event, FinishReason, GenerateOptions, GenerateRequest, Priority, Reuse, TurnLog,
    TurnState,
};
use candor_text::{Show, Tokenizer};

use crate::app::{App, Inner};
use crate::conversations::StoredMessage;
use crate::error::{Error, Thing};
use crate::file_hash::{FileStamp, HashError, sha256};
use crate::forward::Attached;
use crate::models::{Answerer, ChatModel};
use crate::replay_notes::{EndNote, ReplayNotes};
use crate::wire::{Code, MessageId, ReplayEvent, ReplayOutcome, ReplyRecord, Role};
use crate::words::{Phrase, Tongue, phrase};
use crate::{chat_settings, path_id, record};

/// How long a quiet log is waited for before it is looked at again.
const PATIENCE: Duration = Duration::from_millis(250);

/// Tokens of a reply that are kept for a replay; each takes about five bytes in the store. What is
/// longer is replayed up to there.
pub(crate) const TOKENS_KEPT_MAX: usize = 32_768;

/// Takes what a replay tells, in order, on a thread of its own; dropped after the end.
pub type ReplayReader = Box<dyn FnMut(ReplayEvent) -> Attached + Send>;

/// The replays that run, by the message that they write again.
#[derive(Default)]
pub(crate) struct Replays {
    running: Mutex<BTreeMap<MessageId, CancelToken>>,
}

impl Replays {
    fn running(&self) -> MutexGuard<'_, BTreeMap<MessageId, CancelToken>> {
        // Each change is one insertion or removal.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop_all(&self) {
        for cancel in self.running().values() {
            cancel.cancel();
        }
    }
}

impl App {
    /// Writes a reply once more, in no conversation, and tells the reader whether it is the same.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the message is no reply with a record that tells enough,
    /// [`Code::Busy`] if it is being replayed, [`Code::NoModel`] if no model is open.
    pub fn replay(&self, message: MessageId, mut reader: ReplayReader) -> Result<(), Error> {
        let inner = Arc::clone(&self.inner);
        let job = inner.replay_job(message)?;
        let cancel = CancelToken::new();
        {
            let mut running = inner.replays.running();
            if running.contains_key(&message) {
                let error = phrase!(
                    "This reply is being written again already.",
                    "Diese Antwort wird schon nachgespielt.",
                );
                return Err(Error::new(Code::Busy, error));
            }
            running.insert(message, cancel.clone());
        }
        let shared = Arc::clone(&inner);
        let spawned = inner.spawn("replay", move || {
            let mut tell = |event| {
                if reader(event) == Attached::Gone {
                    cancel.cancel();
                }
            };
            let outcome = match shared.replayed(&job, &cancel, &mut tell) {
                Ok(outcome) => outcome,
                Err(error) => ReplayOutcome::Impossible {
                    why: error.message.to(shared.tongue()),
                },
            };
            shared.replays.running().remove(&message);
            tell(ReplayEvent::Ended { outcome });
        });
        if spawned.is_err() {
            inner.replays.running().remove(&message);
        }
        spawned
    }

    /// Stops a replay. One that is over, or unknown, is no error.
    pub fn stop_replay(&self, message: MessageId) {
        if let Some(cancel) = self.inner.replays.running().get(&message) {
            cancel.cancel();
        }
    }

    /// The SHA-256 of the file of the model that wrote a reply. Reads all of the file, the first
    /// time; then the record has it.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the record does not name the file, or the file is gone or another.
    pub fn reply_file_hash(&self, message: MessageId) -> Result<String, Error> {
        let inner = &self.inner;
        let stored = inner.store.message(message)?;
        let record = stored
            .record
            .ok_or_else(|| Error::not_found(Thing::Record))?;
        match &record.file_sha256 {
            Some(found) => Ok(found.clone()),
            None => inner.complete_hash(message, record, &|| false),
        }
    }
}

/// A reply that is to be written again.
struct ReplayJob {
    message: StoredMessage,
    record: ReplyRecord,
    notes: ReplayNotes,
    tokens: Vec<u32>,
}

impl Inner {
    fn replay_job(&self, message: MessageId) -> Result<ReplayJob, Error> {
        self.refuse_if_closed()?;
        let message = self.store.message(message)?;
        let refuse = |why: Phrase| Err(Error::new(Code::NotFound, why));
        if message.role != Role::Assistant {
            return refuse(phrase!(
                "Only replies can be written again.",
                "Nur Antworten lassen sich nachspielen.",
            ));
        }
        let Some(record) = message.record.clone() else {
            return refuse(phrase!(
                "It is not known how this reply was written.",
                "Es ist nicht bekannt, wie diese Antwort geschrieben wurde.",
            ));
        };
        if record.continued {
            return refuse(phrase!(
                "This reply was written in several parts, which cannot be repeated.",
                "Diese Antwort entstand in mehreren Teilen, das lässt sich nicht wiederholen.",
            ));
        }
        let Some(notes) = record.replay.clone() else {
            return refuse(phrase!(
                "The record of this reply does not tell enough to write it again.",
                "Das Protokoll dieser Antwort sagt nicht genug, um sie nachzuspielen.",
            ));
        };
        let tokens = unpacked(&notes.tokens);
        if tokens.is_empty() {
            return refuse(phrase!(
                "This reply has no tokens to compare.",
                "Diese Antwort hat keine Tokens zum Vergleichen.",
            ));
        }
        Ok(ReplayJob {
            message,
            record,
            notes,
            tokens,
        })
    }

    /// Notes the hash of the file that wrote a reply, if that is still the file it was.
    fn complete_hash(
        &self,
        message: MessageId,
        mut record: ReplyRecord,
        stopped: &dyn Fn() -> bool,
    ) -> Result<String, Error> {
        let nameless = || {
            let why = phrase!(
                "The record does not name the file.",
                "Das Protokoll nennt die Datei nicht.",
            );
            Error::new(Code::NotFound, why)
        };
        let notes = record.replay.as_ref().ok_or_else(nameless)?;
        let path = path_id::decode(&notes.file).ok_or_else(nameless)?;
        let hashed = self.hashes.of(&path, stopped);
        let (stamp, found) = hashed.map_err(|source| no_hash(Code::NotFound, source))?;
        if stamp != stamp_of(notes) {
            let why = phrase!(
                "The file has changed since it wrote this reply, so its hash of then is not known.",
                "Die Datei hat sich seit dieser Antwort geändert, deshalb ist ihr Hash von damals \
                 nicht bekannt.",
            );
            return Err(Error::new(Code::NotFound, why));
        }
        record.file_sha256 = Some(found.clone());
        self.store.set_record(message, &record)?;
        Ok(found)
    }

    fn replayed(
        self: &Arc<Self>,
        job: &ReplayJob,
        cancel: &CancelToken,
        tell: &mut dyn FnMut(ReplayEvent),
    ) -> Result<ReplayOutcome, Error> {
        let (chat, engine) = match self.models.answerer(cancel) {
            Answerer::Model(chat, engine) => (chat, engine),
            Answerer::Stopped => return Ok(ReplayOutcome::Stopped),
            Answerer::None | Answerer::Lost => {
                let message = phrase!(
                    "Open {model} to write this reply again.",
                    "Öffne {model}, um diese Antwort nachzuspielen.",
                    model = &job.record.model,
                );
                return Err(Error::new(Code::NoModel, message));
            }
        };
        tell(ReplayEvent::Hashing);
        if let Err(error) = self.refuse_another_file(job, &chat, cancel) {
            return match cancel.is_cancelled() {
                true => Ok(ReplayOutcome::Stopped),
                false => Err(error),
            };
        }
        let request = self.replay_request(job, &chat, cancel)?;
        let log = request.log();
        engine.generate(request).ok();
        let mut compare = Compare {
            tokenizer: &chat.loaded.tokenizer,
            then: &job.tokens,
            note: note(&job.record, &chat).map(|note| note.to(self.tongue())),
            tongue: self.tongue(),
            done: 0,
        };
        Ok(compare.follow(&log, cancel, tell))
    }

    /// The open model has to be the file that wrote the reply.
    fn refuse_another_file(
        &self,
        job: &ReplayJob,
        chat: &ChatModel,
        cancel: &CancelToken,
    ) -> Result<(), Error> {
        let stopped = || cancel.is_cancelled();
        let path = &chat.loaded.path;
        let another = || {
            let (now, then) = (&chat.facts.name, &job.record.model);
            let why = match now == then {
                true => phrase!(
                    "{now} is another file than the one that wrote this reply.",
                    "{now} ist eine andere Datei als die, die diese Antwort geschrieben hat.",
                    now,
                ),
                false => phrase!(
                    "Open {then} to write this reply again; {now} is open.",
                    "Öffne {then}, um diese Antwort nachzuspielen; geöffnet ist {now}.",
                    then,
                    now,
                ),
            };
            Error::new(Code::NotFound, why)
        };
        let is_where_it_was = path_id::encode(path) == job.notes.file
            && FileStamp::of(path).is_ok_and(|stamp| stamp == stamp_of(&job.notes));
        let then = match &job.record.file_sha256 {
            Some(sha256) => sha256.clone(),
            None if is_where_it_was => {
                self.complete_hash(job.message.id, job.record.clone(), &stopped)?
            }
            None => return Err(another()),
        };
        let hashed = self.hashes.of(path, &stopped);
        let (_, now) = hashed.map_err(|source| no_hash(Code::Internal, source))?;
        match now == then {
            true => Ok(()),
            false => Err(another()),
        }
    }

    fn replay_request(
        &self,
        job: &ReplayJob,
        chat: &Arc<ChatModel>,
        cancel: &CancelToken,
    ) -> Result<GenerateRequest, Error> {
        let settings = self.settings().with_chat(job.notes.chat.clone());
        let branch = match job.message.parent {
            Some(question) => self.store.branch_to(question)?,
            None => Vec::new(),
        };
        let prompt = self.prompt_at(chat, &branch, "", &settings, job.notes.asked_ms)?;
        if hash_of_tokens(&prompt.tokens) != job.record.context_sha256 {
            let changed = match chat.loaded.ctx_len as u32 == job.notes.context {
                true => phrase!(
                    "the settings or the chat template have changed since",
                    "Die Einstellungen oder die Gesprächsvorlage haben sich seither geändert",
                ),
                false => phrase!(
                    "the length of the context has changed since",
                    "Die Länge des Kontexts hat sich seither geändert",
                ),
            };
            let why = phrase!(
                "The model would not read the same text as then: {changed}.",
                "Das Modell würde nicht denselben Text lesen wie damals: {changed}.",
                changed,
            );
            return Err(Error::new(Code::NotFound, why));
        }
        // One more, to see whether the reply ends where it ended.
        let more = usize::from(job.notes.ended == EndNote::ByItself);
        let sampling = record::for_engine(&job.record.sampling, job.record.seed);
        let options = GenerateOptions {
            stop: job.record.stop.clone(),
            constraint: chat_settings::constraint(&settings)?,
            ends: EndTokens::Heed,
            priority: Priority::Background,
            reuse: Reuse::OnlyRead,
            ..GenerateOptions::new(prompt.tokens, sampling, job.tokens.len() + more)
        };
        GenerateRequest::new(&chat.loaded, options, cancel.clone()).map_err(|source| {
            Error::new(Code::Internal, Phrase::of(&source).sentence()).because(source)
        })
    }
}

fn no_hash(code: Code, source: HashError) -> Error {
    Error::new(code, Phrase::of(&source).sentence()).because(source)
}

fn stamp_of(notes: &ReplayNotes) -> FileStamp {
    FileStamp {
        size_bytes: notes.file_size_bytes,
        changed_ns: notes.file_changed_ns,
    }
}

/// That something else computes now, if so.
fn note(record: &ReplyRecord, chat: &ChatModel) -> Option<Phrase> {
    let now = record::name(chat.facts.device.kind);
    let device = &chat.facts.device.name;
    let same = record.backend == now && (record.device.is_empty() || record.device == *device);
    let (then, then_device) = (&record.backend, &record.device);
    (!same).then(|| {
        phrase!(
            "Written by the {then} ({then_device}) then, by the {now} ({device}) now.",
            "Damals von {then} ({then_device}) geschrieben, jetzt von {now} ({device}).",
            then,
            then_device,
            now,
            device,
        )
    })
}

/// Holds the tokens of now against those of then.
struct Compare<'a> {
    tokenizer: &'a Tokenizer,
    then: &'a [u32],
    note: Option<String>,
    tongue: Tongue,
    done: usize,
}

impl Compare<'_> {
    fn follow(
        &mut self,
        log: &TurnLog,
        cancel: &CancelToken,
        tell: &mut dyn FnMut(ReplayEvent),
    ) -> ReplayOutcome {
        let mut place = 0;
        let mut differs = None;
        loop {
            let before = self.done;
            for entry in log.wait(place, PATIENCE) {
                place = entry.seq + 1;
                match entry.event {
                    Event::Token { id, .. } if differs.is_none() => {
                        differs = self.take(id);
                        if differs.is_some() {
                            // Nothing after it is of interest.
                            cancel.cancel();
                        }
                    }
                    Event::State(TurnState::Prefill { done, total }) => {
                        let (done, total) = (count(done), count(total));
                        tell(ReplayEvent::Reading { done, total });
                    }
                    Event::Finished { reason, .. } => {
                        return differs.unwrap_or_else(|| self.ended(reason));
                    }
                    Event::Failed { code, message } => {
                        let why = record::failure(code, &message).message.to(self.tongue);
                        return differs.unwrap_or(ReplayOutcome::Impossible { why });
                    }
                    _ => {}
                }
            }
            if self.done > before {
                let (done, total) = (count(self.done), count(self.then.len()));
                tell(ReplayEvent::Writing { done, total });
            }
        }
    }

    /// The next token; says if it is another.
    fn take(&mut self, id: u32) -> Option<ReplayOutcome> {
        let then = self.then.get(self.done).copied();
        if then == Some(id) {
            self.done += 1;
            return None;
        }
        Some(self.differs(then, Some(id)))
    }

    fn ended(&self, reason: FinishReason) -> ReplayOutcome {
        if reason == FinishReason::Cancelled {
            return ReplayOutcome::Stopped;
        }
        match self.then.get(self.done) {
            Some(&then) => self.differs(Some(then), None),
            // A reply that was cut may end there by itself.
            None => ReplayOutcome::Same {
                tokens: count(self.done),
                note: self.note.clone(),
            },
        }
    }

    fn differs(&self, then: Option<u32>, now: Option<u32>) -> ReplayOutcome {
        let text = |id: u32| {
            let bytes = self.tokenizer.piece(id, Show::Control);
            String::from_utf8_lossy(bytes).into_owned()
        };
        ReplayOutcome::Differs {
            token: count(self.done + 1),
            then: then.map(text),
            now: now.map(text),
            note: self.note.clone(),
        }
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// The hash of a context.
pub(crate) fn hash_of_tokens(tokens: &[u32]) -> String {
    let bytes: Vec<u8> = tokens.iter().flat_map(|id| id.to_le_bytes()).collect();
    sha256(bytes)
}

/// Tokens as a short text.
pub(crate) fn packed(tokens: &[u32]) -> String {
    let mut text = String::new();
    for &token in &tokens[..tokens.len().min(TOKENS_KEPT_MAX)] {
        let mut rest = token;
        loop {
            let more = if rest > 0x7f { 0x80 } else { 0 };
            text.push_str(&format!("{:02x}", (rest & 0x7f) | more));
            rest >>= 7;
            if rest == 0 {
                break;
            }
        }
    }
    text
}

/// The tokens of that text; those before what is no such text.
fn unpacked(text: &str) -> Vec<u32> {
    let digits = text.as_bytes().chunks(2);
    let bytes = digits.map_while(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u32::from_str_radix(pair, 16).ok()
    });
    let (mut tokens, mut token, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        token |= (byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte & 0x80 == 0 {
            tokens.push(std::mem::take(&mut token));
            shift = 0;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_from_their_text() {
        for tokens in [&[][..], &[0, 1, 127, 128, 151_643, u32::MAX]] {
            assert_eq!(unpacked(&packed(tokens)), tokens);
        }
        assert_eq!(packed(&[5, 300]), "05ac02");
        assert_eq!(unpacked("05zz"), [5]);
        let many = vec![1; TOKENS_KEPT_MAX + 1];
        assert_eq!(unpacked(&packed(&many)).len(), TOKENS_KEPT_MAX);
    }
}
