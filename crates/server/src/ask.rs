//! One request, from what a protocol made of its body to the logs that its answer is read from.
//!
//! The flag that stops the work is set by dropping [`Answering`]: whoever writes the answer holds
//! it, and a client that leaves makes the server drop whoever writes.

use std::sync::Arc;

use candor_app::headless::{
    CancelToken, Constraint, Ends, GenerateOptions, Generation, Priority, REPLY_TOKENS_MAX,
    RenderOptions, Rendered, Reuse, Sampling, utc,
};
use candor_app::service::{Computed, NotAsked, Opened, Question, Tools};
use serde_json::{Map, Value};

use crate::course::{Course, Held, Reader};
use crate::fault::{Fault, FaultKind};
use crate::gate::Place;
use crate::shared::Shared;
use crate::told;

/// Most replies to one request.
pub(crate) const REPLIES_MAX: usize = 16;

/// What a request asks for, whatever protocol it came by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    /// The model by name; none for the one that answers.
    pub(crate) model: Option<String>,
    pub(crate) input: Input,
    pub(crate) sampling: Wishes,
    /// Most tokens of the reply; none for as many as fit.
    pub(crate) max_tokens: Option<usize>,
    /// Texts that end the reply.
    pub(crate) stop: Vec<String>,
    /// Replies to the same request; 0 counts as one.
    pub(crate) count: usize,
    /// Added to the logits of these tokens.
    pub(crate) logit_bias: Vec<(u32, f32)>,
    /// How many likely tokens are told beside each; none if nothing is told.
    pub(crate) top_logprobs: Option<usize>,
    /// The form that the reply has to have.
    pub(crate) form: Form,
}

/// The form of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Form {
    /// Any.
    #[default]
    Free,
    /// Written within these bounds.
    Bound(Constraint),
    /// One call of a tool, written as a JSON object by which it is bound, whatever form the model
    /// knows.
    Call(Constraint),
    /// Written within these bounds, which leave room for a call of one of these tools.
    BoundOrCall(Constraint, Vec<String>),
}

/// What the model reads.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A conversation, through the chat template.
    Chat(Chat),
    /// Plain text.
    Text(String),
    /// Tokens.
    Ids(Vec<u32>),
}

impl Default for Input {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// A conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chat {
    /// As chat templates read them.
    pub(crate) messages: Vec<Value>,
    /// What may be called, as chat templates read it; what is empty is not offered.
    pub(crate) tools: Vec<Value>,
    /// Variables of the template.
    pub(crate) variables: Map<String, Value>,
    /// What the reply begins with; the model goes on from it.
    pub(crate) begun: String,
}

/// How tokens are chosen, as far as the request says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wishes {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_k: Option<usize>,
    pub(crate) top_p: Option<f64>,
    pub(crate) min_p: Option<f64>,
    pub(crate) repeat_penalty: Option<f64>,
    pub(crate) presence_penalty: Option<f64>,
    pub(crate) frequency_penalty: Option<f64>,
    pub(crate) seed: Option<u64>,
}

/// What is used where a request says nothing: the same as in the window and on the command line.
const TEMPERATURE: f64 = 0.7;
const TOP_K: usize = 40;
const TOP_P: f64 = 0.95;

impl Wishes {
    fn sampling(&self, seed: u64) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(TEMPERATURE) as f32,
            top_k: self.top_k.unwrap_or(TOP_K),
            top_p: self.top_p.unwrap_or(TOP_P) as f32,
            min_p: self.min_p.unwrap_or(0.0) as f32,
            repeat_penalty: self.repeat_penalty.unwrap_or(1.0) as f32,
            presence_penalty: self.presence_penalty.unwrap_or(0.0) as f32,
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0) as f32,
            seed,
            ..Sampling::greedy()
        }
    }
}

/// Stops its request when dropped. After the end that does nothing.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A request from its place in the queue on. Dropped before it is done, it counts as abandoned;
/// in any case it stops what was begun for it.
struct Asked {
    shared: Shared,
    cancel: CancelToken,
    is_done: bool,
    /// Given back last.
    _place: Arc<Place>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.cancel.cancel();
        if !self.is_done {
            self.shared.metrics.abandoned();
        }
        self.shared.used();
    }
}

/// A request that the engine has.
pub(crate) struct Answering {
    pub(crate) shared: Shared,
    pub(crate) opened: Arc<Opened>,
    /// One for each reply.
    pub(crate) courses: Vec<Course>,
    /// The first reply's; the others count on from it.
    pub(crate) seed: u64,
    pub(crate) created_s: i64,
    /// Tokens that the model reads before it writes.
    pub(crate) prompt_tokens: usize,
    /// What computed when the question was asked.
    pub(crate) began: Computed,
    /// Why the template was not used as it is, if so.
    pub(crate) fallback: Option<String>,
    asked: Asked,
}

impl Answering {
    /// Another end that stops it, for whoever is dropped first.
    pub(crate) fn also_stopped_by(&self) -> CancelOnDrop {
        CancelOnDrop(self.asked.cancel.clone())
    }

    /// Waits until a reply goes on.
    pub(crate) async fn grown(&self) {
        let open = self.courses.iter().filter(|course| !course.has_ended());
        let mut waits: Vec<_> = open.map(|course| Box::pin(course.grown())).collect();
        std::future::poll_fn(|context| {
            let mut ready = waits.is_empty();
            for wait in &mut waits {
                ready |= wait.as_mut().poll(context).is_ready();
            }
            match ready {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.asked.is_done = self.courses.iter().all(Course::is_complete);
    }
}

/// Gives the engine a request.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn ask(shared: &Shared, ask: Ask) -> Result<Answering, Fault> {
    let place = Arc::new(enter(shared, ask.count.max(1))?);
    let mut asked = Asked {
        shared: shared.clone(),
        cancel: CancelToken::new(),
        is_done: false,
        _place: Arc::clone(&place),
    };
    let (shared, cancel) = (shared.clone(), asked.cancel.clone());
    // Loading, rendering and encoding may take long; the flag ends them if nobody waits any more.
    // The place is taken until they have ended.
    let work = tokio::task::spawn_blocking(move || {
        let _place = place;
        begin(&shared, ask, &cancel)
    });
    let begun = work.await.unwrap_or_else(|_| {
        let message = "the request broke down before it reached the engine";
        Err(Fault::new(FaultKind::Internal, message))
    });
    let begun = begun.inspect_err(|_| asked.is_done = true)?;
    Ok(Answering {
        shared: asked.shared.clone(),
        began: begun.computed,
        opened: begun.opened,
        courses: begun.courses,
        seed: begun.seed,
        created_s: asked.shared.now_s(),
        prompt_tokens: begun.prompt_tokens,
        fallback: begun.fallback,
        asked,
    })
}

/// Takes places in the queue.
///
/// # Errors
/// It is full.
pub(crate) fn enter(shared: &Shared, count: usize) -> Result<Place, Fault> {
    shared.used();
    shared.keeps_model();
    let max = shared.gate.max();
    if count > max {
        let what = format!("asks for {count} replies; {max} at once are taken here");
        return Err(Fault::field("n", &what));
    }
    shared.gate.enter(count).ok_or_else(|| {
        let message = format!("{max} requests are waiting or under way; try again soon");
        Fault::new(FaultKind::QueueFull, message)
    })
}

struct Begun {
    opened: Arc<Opened>,
    computed: Computed,
    prompt_tokens: usize,
    courses: Vec<Course>,
    seed: u64,
    fallback: Option<String>,
}

/// What the model reads, and how its reply is read.
struct Prompt {
    ids: Vec<u32>,
    stop: Vec<String>,
    fallback: Option<String>,
    reading: Reading,
}

/// How a reply is read.
enum Reading {
    Plain,
    Split { begins: String, tools: Tools },
    Call,
    CallOr(Vec<String>),
}

impl Reading {
    fn reader(&self, opened: &Opened) -> Reader {
        match self {
            Self::Plain => Reader::Plain,
            Self::Call => Reader::Call(String::new()),
            Self::CallOr(names) => Reader::CallOr(Held::new(names.clone())),
            Self::Split { begins, tools } => {
                let mut parser = opened.parser(tools.clone());
                parser.push(begins);
                Reader::Split(Box::new(parser))
            }
        }
    }
}

fn begin(shared: &Shared, ask: Ask, cancel: &CancelToken) -> Result<Begun, Fault> {
    let opened = shared.source.open(ask.model.as_deref(), cancel)?;
    let prompt = read(shared, &opened, ask.input)?;
    let seed = ask
        .sampling
        .seed
        .unwrap_or_else(|| (shared.config.fresh_seed)());
    let stop: Vec<String> = prompt.stop.iter().cloned().chain(ask.stop).collect();
    let max_tokens = ask.max_tokens.unwrap_or(REPLY_TOKENS_MAX);
    let (constraint, reading) = match ask.form {
        Form::Free => (None, prompt.reading),
        // What is bound from its first character on has no thoughts and no marks.
        Form::Bound(constraint) => (Some(constraint), Reading::Plain),
        Form::Call(constraint) => (Some(constraint), Reading::Call),
        Form::BoundOrCall(constraint, names) => (Some(constraint), Reading::CallOr(names)),
    };
    // Who names a seed wants the same again, and only what was read is the same by every way.
    let reuse = match ask.sampling.seed {
        Some(_) => Reuse::OnlyRead,
        None => Reuse::All,
    };
    let computed = opened.computed();
    let mut courses = Vec::new();
    for i in 0..ask.count.max(1) {
        let sampling = ask.sampling.sampling(seed.wrapping_add(i as u64));
        let max_tokens = max_tokens.clamp(1, REPLY_TOKENS_MAX);
        let options = GenerateOptions {
            stop: stop.clone(),
            priority: Priority::Background,
            logit_bias: ask.logit_bias.clone(),
            top_logprobs: ask.top_logprobs,
            constraint: constraint.clone(),
            reuse,
            ..GenerateOptions::new(prompt.ids.clone(), sampling, max_tokens)
        };
        let log = opened.ask(Question {
            options,
            cancel: cancel.clone(),
        });
        // Those that were asked before end with the flag.
        let log = log.inspect_err(|_| cancel.cancel())?;
        courses.push(Course::new(log, reading.reader(&opened), prompt.stop.len()));
    }
    Ok(Begun {
        opened,
        computed,
        prompt_tokens: prompt.ids.len(),
        courses,
        seed,
        fallback: prompt.fallback,
    })
}

fn read(shared: &Shared, opened: &Opened, input: Input) -> Result<Prompt, Fault> {
    let plain = |ids| Prompt {
        ids,
        stop: Vec::new(),
        fallback: None,
        reading: Reading::Plain,
    };
    let unreadable = |error| Fault::from(NotAsked::Text(error));
    match input {
        Input::Ids(ids) => Ok(plain(ids)),
        Input::Text(text) => Ok(plain(opened.encode(&text, Ends::Chat).map_err(unreadable)?)),
        Input::Chat(mut chat) => {
            let options = options(shared, &chat);
            let rendered = conversation(opened, &mut chat, &options)?;
            Ok(Prompt {
                reading: Reading::Split {
                    begins: match chat.begun.is_empty() {
                        true => Opened::begun_by(&rendered.prompt).to_owned(),
                        false => chat.begun,
                    },
                    tools: Tools::described(&chat.tools),
                },
                ids: rendered.ids,
                stop: rendered.end_strings,
                fallback: rendered.fallback,
            })
        }
    }
}

/// A conversation as the model reads it, to the last word from which it goes on.
///
/// # Errors
/// The text is too long or cannot be expressed, or it begins a reply where the template has the model
/// think first.
pub(crate) fn conversation(
    opened: &Opened,
    chat: &mut Chat,
    options: &RenderOptions,
) -> Result<Rendered, Fault> {
    let unreadable = |error| Fault::from(NotAsked::Text(error));
    let mut rendered = told::render(opened, chat, options).map_err(unreadable)?;
    if chat.begun.is_empty() {
        return Ok(rendered);
    }
    if !Opened::begun_by(&rendered.prompt).is_empty() {
        let what =
            "end with a beginning of the reply, but this model's template has it think first";
        return Err(Fault::unsupported("messages", what));
    }
    let begun = opened.encode(&chat.begun, Ends::None).map_err(unreadable)?;
    rendered.ids.extend(begun);
    Ok(rendered)
}

/// How a conversation is rendered.
pub(crate) fn options(shared: &Shared, chat: &Chat) -> RenderOptions {
    let mut variables = chat.variables.clone();
    if !chat.tools.is_empty() {
        variables.insert(String::from("tools"), Value::from(chat.tools.clone()));
    }
    RenderOptions {
        variables,
        template: None,
        generation: Generation::Prompt,
        now: Some(utc(shared.now_ms())),
    }
}
