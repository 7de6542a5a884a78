//! From a turn to the store: asks the engine, keeps the words on disk as they come, and closes
//! the message with how it ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_engine::{
    Event, FinishReason, GenerateOptions, GenerateRequest, RequestError, Reuse, TurnCode, TurnLog,
};
use candor_text::STOP_STRINGS_MAX;
use candor_text::reply::{Part, ReplyParser};

use crate::app::Inner;
use crate::chat_settings;
use crate::conversations::{Closing, Draft};
use crate::error::Error;
use crate::file_hash::{FileStamp, sha256};
use crate::models::{Answerer, ChatModel};
use crate::prompt::Prompt;
use crate::replay::{TOKENS_KEPT_MAX, hash_of_tokens, packed};
use crate::replay_notes::{EndNote, ReplayNotes};
use crate::turn::Turn;
use crate::wire::{Code, MessageState, ReplyRecord, Settings, TurnEvent, WireError};
use crate::words::{Phrase, Tongue, phrase};
use crate::{parts, path_id, record, wire};

/// How often words are written to disk while a reply runs. A kill loses no more than this.
const APPEND_INTERVAL: Duration = Duration::from_millis(250);

/// How long a quiet log is waited for before it is looked at again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a reply is asked for again because its model was exchanged before it began. A user
/// who changes models faster than that wants something else.
const EXCHANGES_MAX: usize = 4;

/// A prompt, and the model that reads it.
pub(crate) struct Prepared {
    pub(crate) chat: Arc<ChatModel>,
    pub(crate) prompt: Prompt,
}

/// What a turn needs to know.
pub(crate) struct Job {
    pub(crate) turn: Arc<Turn>,
    /// The choices at the moment of the question.
    pub(crate) settings: Settings,
    pub(crate) seed: u32,
    /// How the reply begins, if it is gone on with.
    pub(crate) begun: String,
    /// The prompt, if it is known already.
    pub(crate) prepared: Option<Prepared>,
}

/// How a reply came to its end. Its words are the keeper's.
struct Written {
    state: MessageState,
    record: ReplyRecord,
    error: Option<WireError>,
}

/// How the engine ended a log.
enum Ended {
    Well(MessageState),
    Badly(TurnCode, String),
}

/// Writes a reply from beginning to end, and gives the turn's terminal event.
pub(crate) fn write(inner: &Arc<Inner>, mut job: Job) -> TurnEvent {
    let mut keeper = Keeper::new(inner, &job);
    // A turn that never ends would hold its conversation until the next start.
    let ended = catch_unwind(AssertUnwindSafe(|| reply(inner, &mut job, &mut keeper)));
    let mut written = ended.unwrap_or_else(|_| broke_down(&job, inner.tongue()));
    written.record.thinking_ms = keeper.thoughts.end(inner.instant());
    let (turn, text) = (&job.turn, keeper.text.as_str());
    let closing = Closing {
        text,
        state: written.state,
        record: Some(&written.record),
        now_ms: inner.now_ms(),
    };
    let (message, unsaved) = match inner.store.close_reply(turn.id, &closing) {
        Ok(stored) => (wire::Message::of_stored(stored, None), None),
        Err(error) => {
            let error = error.wire(inner.tongue());
            (unsaved_message(turn, text, &written), Some(error))
        }
    };
    match unsaved.or(written.error) {
        Some(error) => TurnEvent::Failed { message, error },
        None => TurnEvent::Finished { message },
    }
}

/// The panic itself is in the log of panics; the engine need not write on for nobody.
fn broke_down(job: &Job, tongue: Tongue) -> Written {
    job.turn.cancel.cancel();
    let record = record::begun(None, &job.settings.sampling, job.seed, tongue);
    let message = phrase!(
        "Candor broke down over this reply; what it had written is kept.",
        "Candor ist an dieser Antwort zusammengebrochen; was geschrieben war, ist aufgehoben.",
    );
    failed(record, &Error::new(Code::Internal, message), tongue)
}

fn unsaved_message(turn: &Turn, text: &str, written: &Written) -> wire::Message {
    wire::Message {
        id: turn.id,
        role: wire::Role::Assistant,
        text: parts::answer(text),
        parts: parts::Parts::of_stored(text, Some(&written.record)).all,
        state: MessageState::Failed,
        turn: None,
        record: Some(written.record.clone()),
        versions: Vec::new(),
        kept: 0,
        cards: Vec::new(),
    }
}

fn reply(inner: &Arc<Inner>, job: &mut Job, keeper: &mut Keeper<'_>) -> Written {
    let tongue = inner.tongue();
    let mut record = record::begun(None, &job.settings.sampling, job.seed, tongue);
    for _ in 0..EXCHANGES_MAX {
        // An engine that has just broken down or ended may not have been noticed yet.
        inner.recover();
        let (chat, engine) = match inner.models.answerer(&job.turn.cancel) {
            Answerer::Model(chat, engine) => (chat, engine),
            Answerer::Lost => continue,
            Answerer::None => return failed(record, &no_model(), tongue),
            Answerer::Stopped => return written(MessageState::Stopped, record, None),
        };
        record = record::begun(Some(&chat), &job.settings.sampling, job.seed, tongue);
        let request = match request(inner, job, &chat) {
            Ok((request, sent)) => {
                record.notice = sent.notice.map(|notice| notice.to(tongue));
                record.left_out = sent.left_out;
                record.continued = !job.begun.is_empty();
                record.stop = sent.stop;
                provenance(inner, &mut record, &chat, sent.replay);
                record.context_sha256 = sent.context_sha256;
                keeper.begin_with(&sent.opening);
                job.turn.begins_with(&keeper.text);
                request
            }
            Err(error) => return failed(record, &error, tongue),
        };
        let log = request.log();
        job.turn.goes_on_in(Arc::clone(&log));
        // A refusal stands in the log too, where every reader finds it.
        engine.generate(request).ok();
        match follow(&log, keeper, &mut record) {
            Ended::Well(state) => return written(state, record, None),
            Ended::Badly(TurnCode::ModelChanged | TurnCode::NoModel | TurnCode::Closed, _)
                if keeper.has_no_more() => {}
            Ended::Badly(code, message) => {
                return failed(record, &record::failure(code, &message), tongue);
            }
        }
    }
    let message = phrase!(
        "The model was exchanged before it could answer.",
        "Das Modell wurde gewechselt, bevor es antworten konnte.",
    );
    failed(record, &Error::new(Code::Busy, message), tongue)
}

fn no_model() -> Error {
    Error::new(
        Code::NoModel,
        phrase!("No model is open.", "Kein Modell ist geöffnet."),
    )
}

fn failed(mut record: ReplyRecord, error: &Error, tongue: Tongue) -> Written {
    record.failure = Some(error.message.to(tongue));
    written(MessageState::Failed, record, Some(error.wire(tongue)))
}

fn written(state: MessageState, record: ReplyRecord, error: Option<WireError>) -> Written {
    Written {
        state,
        record,
        error,
    }
}

/// What is to be noted of a prompt.
struct PromptNotes {
    notice: Option<Phrase>,
    left_out: u32,
    opening: String,
    stop: Vec<String>,
    context_sha256: String,
    replay: ReplayNotes,
}

/// Notes by what the reply is written, as far as it takes no time to know.
fn provenance(inner: &Inner, record: &mut ReplyRecord, chat: &ChatModel, notes: ReplayNotes) {
    let path = &chat.loaded.path;
    record.version.clone_from(&inner.config.version);
    let own = chat.loaded.model.file.index().chat_template.as_deref();
    let own = own.filter(|_| chat.format.fallback().is_none());
    let chosen = Some(notes.chat.template.trim()).filter(|text| !text.is_empty());
    record.template_sha256 = chosen.or(own).map(sha256).unwrap_or_default();
    // A file that is gone meanwhile has no stamp, and later no hash.
    let stamp = FileStamp::of(path).unwrap_or_default();
    record.file_sha256 = inner.hashes.known(path, stamp);
    record.replay = Some(ReplayNotes {
        file: path_id::encode(path),
        file_size_bytes: stamp.size_bytes,
        file_changed_ns: stamp.changed_ns,
        context: u32::try_from(chat.loaded.ctx_len).unwrap_or(u32::MAX),
        ..notes
    });
}

/// A request for this model, with the tokens that were prepared for it or with new ones, and what
/// is to be noted of these.
fn request(
    inner: &Inner,
    job: &mut Job,
    chat: &Arc<ChatModel>,
) -> Result<(GenerateRequest, PromptNotes), Error> {
    let Prompt {
        tokens,
        notice,
        left_out,
        opening,
        made_ms,
    } = match job.prepared.take() {
        Some(prepared) if prepared.chat.loaded.id == chat.loaded.id => prepared.prompt,
        _ => inner.prompt_of_reply(chat, job)?,
    };
    let context_sha256 = hash_of_tokens(&tokens);
    let sampling = &job.settings.sampling;
    let format = chat_settings::format(chat, &job.settings);
    let ends = format.end_strings().iter().chain(&job.settings.stop);
    let stop: Vec<String> = ends.take(STOP_STRINGS_MAX).cloned().collect();
    let options = GenerateOptions {
        stop: stop.clone(),
        constraint: chat_settings::constraint(&job.settings)?,
        // So that a replay gives the same, whatever is in memory then.
        reuse: Reuse::OnlyRead,
        ..GenerateOptions::new(
            tokens,
            record::for_engine(sampling, job.seed),
            sampling.max_tokens as usize,
        )
    };
    let request = GenerateRequest::new(&chat.loaded, options, job.turn.cancel.clone());
    let refused = |source: RequestError| {
        Error::new(Code::Internal, Phrase::of(&source).sentence()).because(source)
    };
    let notes = PromptNotes {
        notice,
        stop,
        left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
        opening,
        context_sha256,
        replay: ReplayNotes {
            asked_ms: made_ms,
            chat: job.settings.chat(),
            ..ReplayNotes::default()
        },
    };
    Ok((request.map_err(refused)?, notes))
}

/// Reads a log to its end.
fn follow(log: &TurnLog, keeper: &mut Keeper<'_>, record: &mut ReplyRecord) -> Ended {
    let tongue = keeper.inner.tongue();
    let mut place = 0;
    loop {
        for entry in log.wait(place, keeper.patience()) {
            place = entry.seq + 1;
            match entry.event {
                Event::Token { id, text, .. } => {
                    keeper.note(id);
                    keeper.take(&text);
                }
                Event::Tail { text } => keeper.take(&text),
                Event::Proven(report) => record::proven_now(record, &report, tongue),
                Event::Moved { reason, .. } => record::moved(record, &reason, tongue),
                Event::State(_) | Event::Repeats(_) | Event::Embedding(_) => {}
                Event::Finished { reason, stats } => {
                    record::measured(record, &stats, tongue);
                    keeper.note_end(record, reason);
                    let tokens = stats.prompt_tokens + stats.generated_tokens;
                    keeper.inner.upkeep.written(tokens, keeper.inner.instant());
                    return Ended::Well(record::state_of(reason));
                }
                Event::Failed { code, message } => return Ended::Badly(code, message),
            }
        }
        keeper.append_if_due();
    }
}

/// Keeps the words of a reply: all of them here, and those so far on disk.
struct Keeper<'a> {
    inner: &'a Inner,
    /// None if the disk takes nothing; the reply goes on, and its end will say so.
    draft: Option<Draft>,
    text: String,
    /// How much of it was there before this turn.
    begun_bytes: usize,
    appended_bytes: usize,
    appended_at: Instant,
    /// As far as they are kept for a replay.
    tokens: Vec<u32>,
    thoughts: Thoughts,
}

impl<'a> Keeper<'a> {
    fn new(inner: &'a Inner, job: &Job) -> Self {
        let (draft, appended_at) = (inner.store.draft(job.turn.id).ok(), inner.instant());
        Self {
            inner,
            draft,
            text: job.begun.clone(),
            begun_bytes: job.begun.len(),
            appended_bytes: job.begun.len(),
            appended_at,
            tokens: Vec::new(),
            thoughts: Thoughts::new(Arc::clone(&job.turn), &job.begun, appended_at),
        }
    }

    /// Takes the mark by which the template has begun the reply: without it the words could not be
    /// told from an answer.
    fn begin_with(&mut self, opening: &str) {
        if self.text.is_empty() {
            self.take(opening);
            self.begun_bytes = self.text.len();
        }
    }

    fn note(&mut self, token: u32) {
        if self.tokens.len() < TOKENS_KEPT_MAX {
            self.tokens.push(token);
        }
    }

    fn note_end(&mut self, record: &mut ReplyRecord, reason: FinishReason) {
        if let Some(notes) = &mut record.replay {
            let is_whole = record.generated_tokens as usize == self.tokens.len();
            notes.tokens = packed(&self.tokens);
            notes.ended = match reason {
                FinishReason::Stop | FinishReason::StopString if is_whole => EndNote::ByItself,
                _ => EndNote::Cut,
            };
        }
    }

    fn take(&mut self, text: &str) {
        self.text.push_str(text);
        self.thoughts.take(text, self.inner.instant());
        self.append_if_due();
    }

    /// Whether this turn has not written a word.
    fn has_no_more(&self) -> bool {
        self.text.len() == self.begun_bytes
    }

    fn is_behind(&self) -> bool {
        self.appended_bytes < self.text.len()
    }

    /// How long to wait for more words: until those that are here have to be written.
    fn patience(&self) -> Duration {
        if !self.is_behind() {
            return PATIENCE;
        }
        let since = self
            .inner
            .instant()
            .saturating_duration_since(self.appended_at);
        APPEND_INTERVAL.saturating_sub(since)
    }

    fn append_if_due(&mut self) {
        let now = self.inner.instant();
        let since = now.saturating_duration_since(self.appended_at);
        if !self.is_behind() || since < APPEND_INTERVAL {
            return;
        }
        let new = &self.text[self.appended_bytes..];
        if self
            .draft
            .as_mut()
            .is_some_and(|draft| draft.append(new).is_err())
        {
            self.draft = None;
        }
        self.appended_bytes = self.text.len();
        self.appended_at = now;
    }
}

/// Measures how long a reply thinks.
struct Thoughts {
    turn: Arc<Turn>,
    parser: ReplyParser,
    /// When the thoughts that run began.
    began: Option<Instant>,
    /// Whether they have words.
    has_words: bool,
    ms: Vec<f64>,
}

impl Thoughts {
    /// Of a reply that begins like this, at this time; how long was thought there is not known.
    fn new(turn: Arc<Turn>, begun: &str, now: Instant) -> Self {
        let mut thoughts = Self {
            turn,
            parser: parts::parser(),
            began: None,
            has_words: false,
            ms: Vec::new(),
        };
        thoughts.take(begun, now);
        thoughts
    }

    fn take(&mut self, text: &str, now: Instant) {
        for piece in self.parser.push(text) {
            match piece.part {
                Part::Thinking(words) => {
                    self.began.get_or_insert(now);
                    self.has_words |= !words.is_empty();
                }
                Part::Text(_) | Part::ToolCall(_) => self.end_thought(now),
                Part::TextWasThinking => self.note(0.0),
            }
        }
    }

    fn end_thought(&mut self, now: Instant) {
        let began = self.began.take();
        if let (Some(began), true) = (began, std::mem::take(&mut self.has_words)) {
            self.note(now.saturating_duration_since(began).as_secs_f64() * 1e3);
        }
    }

    fn note(&mut self, ms: f64) {
        self.ms.push(ms);
        self.turn.thought_for(ms);
    }

    /// All durations, that of a thought which had no end among them.
    fn end(&mut self, now: Instant) -> Vec<f64> {
        self.end_thought(now);
        std::mem::take(&mut self.ms)
    }
}
