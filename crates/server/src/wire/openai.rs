//! OpenAI's chat completions and completions, as its clients write and read them.

use candor_app::headless::Stats;
use candor_app::service::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::chat;
use super::fields::Fields;
use super::likely::{logprobs, plain_logprobs};
use crate::ask::{Answering, Ask, Chat, Input, REPLIES_MAX, Wishes};
use crate::course::{End, Finish};
use crate::fault::Fault;
use crate::routes::computed;
use crate::stream::{Likely, Shape, Whole, event};

/// A request, and how its answer is written.
pub(crate) struct Request {
    pub(crate) ask: Ask,
    pub(crate) streams: bool,
    /// Whether a stream ends with the figures.
    pub(crate) tells_usage: bool,
}

/// What chat completions and completions have in common.
fn common(fields: &Fields<'_>, input: Input) -> Result<Request, Fault> {
    let streams = fields.flag("stream")?.unwrap_or(false);
    let options = fields.object("stream_options")?;
    let usage = options.map(|options| options.flag("include_usage"));
    let tells_usage = usage.transpose()?.flatten().unwrap_or(false);
    let at_least_one = 1..=i64::MAX;
    // The older name is read too where the newer one counts: a wrong type is one everywhere.
    let older = fields.whole("max_tokens", at_least_one.clone())?;
    let max_tokens = fields
        .whole("max_completion_tokens", at_least_one)?
        .or(older);
    let count = fields.whole("n", 1..=REPLIES_MAX as i64)?.unwrap_or(1);
    let ask = Ask {
        model: fields
            .text("model")?
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
        input,
        sampling: openai_wishes(fields)?,
        max_tokens: max_tokens.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
        stop: fields.stops("stop")?,
        count: count as usize,
        logit_bias: logit_bias(fields)?,
        ..Ask::default()
    };
    Ok(Request {
        ask,
        streams,
        tells_usage,
    })
}

/// How tokens are chosen, as OpenAI's clients say it.
pub(crate) fn openai_wishes(fields: &Fields<'_>) -> Result<Wishes, Fault> {
    Ok(Wishes {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        top_k: chat::top_k(fields, "top_k")?,
        min_p: fields.number("min_p", 0.0..=1.0)?,
        repeat_penalty: fields.number("repeat_penalty", 0.1..=10.0)?,
        presence_penalty: fields.number("presence_penalty", -2.0..=2.0)?,
        frequency_penalty: fields.number("frequency_penalty", -2.0..=2.0)?,
        seed: fields
            .whole("seed", i64::MIN..=i64::MAX)?
            .map(|seed| seed as u64),
    })
}

fn logit_bias(fields: &Fields<'_>) -> Result<Vec<(u32, f32)>, Fault> {
    let Some(bias) = fields.object("logit_bias")? else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for name in bias.map().keys() {
        let token: u32 = name
            .parse()
            .map_err(|_| bias.wrong(name, "has to be named by the number of a token"))?;
        let value = bias.number(name, -100.0..=100.0)?.unwrap_or(0.0);
        // The interface promises that so much bans a token.
        let value = if value <= -100.0 {
            f32::NEG_INFINITY
        } else {
            value as f32
        };
        all.push((token, value));
    }
    Ok(all)
}

/// A body of `/v1/chat/completions`.
pub(crate) fn chat_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let messages = chat::messages(&fields)?;
    let mut chat = Chat {
        messages,
        variables: chat::variables(&fields)?,
        ..Chat::default()
    };
    let form = chat::tools(&fields, &mut chat)?;
    let mut request = common(&fields, Input::Chat(chat))?;
    request.ask.form = form;
    chat::response_format(&fields, &mut request.ask)?;
    chat::grammar(&fields, &mut request.ask)?;
    let top = fields.whole("top_logprobs", 0..=20)?.unwrap_or(0);
    if fields.flag("logprobs")?.unwrap_or(false) {
        request.ask.top_logprobs = Some(top as usize);
    } else if top > 0 {
        return Err(fields.wrong("top_logprobs", "is told only where `logprobs` is true"));
    }
    if fields.raw("audio").is_some() {
        return Err(Fault::unsupported("audio", "is not written here"));
    }
    Ok(request)
}

/// A body of `/v1/completions`.
pub(crate) fn completion_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let input = prompt(&fields)?;
    let mut request = common(&fields, input)?;
    chat::grammar(&fields, &mut request.ask)?;
    if let Some(top) = fields.whole("logprobs", 0..=20)? {
        request.ask.top_logprobs = Some(top as usize);
    }
    if request.ask.max_tokens.is_none() {
        // The interface's own default.
        request.ask.max_tokens = Some(16);
    }
    for name in ["suffix", "best_of"] {
        if fields
            .raw(name)
            .is_some_and(|value| *value != json!(1) && *value != json!(""))
        {
            return Err(Fault::unsupported(name, "is not supported"));
        }
    }
    if fields.flag("echo")?.unwrap_or(false) {
        return Err(Fault::unsupported("echo", "is not supported"));
    }
    Ok(request)
}

/// A text, or tokens; a list of one of them is the same.
fn prompt(fields: &Fields<'_>) -> Result<Input, Fault> {
    let wrong = || fields.wrong("prompt", "has to be one text or one list of tokens");
    let token = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let tokens = |ids: &[Value]| {
        let ids: Option<Vec<u32>> = ids.iter().map(token).collect();
        ids.map(Input::Ids).ok_or_else(wrong)
    };
    match fields.raw("prompt") {
        Some(Value::String(text)) => Ok(Input::Text(text.clone())),
        Some(Value::Array(items)) => match items.as_slice() {
            [Value::String(text)] => Ok(Input::Text(text.clone())),
            [] => Err(wrong()),
            [Value::Array(ids)] => tokens(ids),
            ids => tokens(ids),
        },
        Some(_) => Err(wrong()),
        None => Err(fields.wrong("prompt", "is missing")),
    }
}

/// The figures of all replies to a request.
pub(crate) fn usage<'a>(ends: impl Iterator<Item = &'a Stats>) -> Value {
    let (mut prompt, mut cached, mut written) = (0, 0, 0);
    for stats in ends {
        // Every reply has read the same prompt; it counts once.
        prompt = stats.prompt_tokens;
        cached = cached.max(stats.cached_tokens);
        written += stats.generated_tokens;
    }
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}

pub(crate) fn finish(end: &End) -> &'static str {
    match end.finish {
        _ if end.has_calls => "tool_calls",
        Finish::Stop | Finish::StopString(_) => "stop",
        Finish::Length => "length",
    }
}

/// A call as its clients read it. `index` is there in streams only.
fn call_json(call: &ToolCall, id: String, index: Option<usize>) -> Value {
    let mut json = Map::new();
    if let Some(index) = index {
        json.insert(String::from("index"), json!(index));
    }
    json.insert(String::from("id"), json!(id));
    json.insert(String::from("type"), json!("function"));
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json.insert(String::from("function"), function);
    Value::Object(json)
}

/// What all objects of one answer begin with.
fn head(answering: &Answering, id: &str, object: &str) -> Value {
    json!({
        "id": id,
        "object": object,
        "created": answering.created_s,
        "model": answering.opened.id,
        "system_fingerprint": format!("candor-{}", answering.shared.config.version),
    })
}

/// A whole chat completion.
pub(crate) fn chat_answer(answering: &Answering, replies: &[Whole]) -> Value {
    let choices = replies.iter().enumerate().map(|(index, reply)| {
        let calls = reply.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        });
        let id = || answering.shared.fresh_id("call_");
        let calls: Vec<_> = calls.map(|call| call_json(call, id(), None)).collect();
        let text = reply.text();
        let mut message = json!({ "role": "assistant", "content": text, "refusal": null });
        if let Some(thoughts) = reply.thoughts() {
            message["reasoning_content"] = json!(thoughts);
        }
        if !calls.is_empty() {
            if text.trim().is_empty() {
                message["content"] = Value::Null;
            }
            message["tool_calls"] = json!(calls);
        }
        json!({
            "index": index,
            "message": message,
            "logprobs": (!reply.likely.is_empty()).then(|| logprobs(&reply.likely)),
            "finish_reason": finish(&reply.end),
        })
    });
    let choices: Vec<_> = choices.collect();
    answer(
        answering,
        ("chatcmpl-", "chat.completion"),
        replies,
        choices,
    )
}

/// A whole completion.
pub(crate) fn completion_answer(answering: &Answering, replies: &[Whole]) -> Value {
    let choices = replies.iter().enumerate().map(|(index, reply)| {
        json!({
            "index": index,
            "text": reply.text(),
            "logprobs": (!reply.likely.is_empty()).then(|| plain_logprobs(&reply.likely)),
            "finish_reason": finish(&reply.end),
        })
    });
    let choices: Vec<_> = choices.collect();
    answer(answering, ("cmpl-", "text_completion"), replies, choices)
}

fn answer(
    answering: &Answering,
    (prefix, object): (&str, &str),
    replies: &[Whole],
    choices: Vec<Value>,
) -> Value {
    let mut json = head(answering, &answering.shared.fresh_id(prefix), object);
    json["choices"] = json!(choices);
    json["usage"] = usage(replies.iter().map(|reply| &reply.end.stats));
    json["candor"] = computed::answer_json(answering, replies.iter().map(|reply| &reply.end));
    json
}

/// Which of the two streams it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Completion,
}

/// A stream of chunks.
pub(crate) struct Chunks {
    kind: Kind,
    tells_usage: bool,
    head: Value,
    /// Of each reply: tokens that no chunk has told yet.
    likely: Vec<Vec<Likely>>,
    /// Calls of each reply so far.
    calls: Vec<usize>,
    ends: Vec<End>,
    /// For the names of calls.
    next_id: Box<dyn Fn() -> String + Send>,
}

impl Chunks {
    pub(crate) fn new(kind: Kind, tells_usage: bool) -> Self {
        Self {
            kind,
            tells_usage,
            head: Value::Null,
            likely: Vec::new(),
            calls: Vec::new(),
            ends: Vec::new(),
            next_id: Box::new(String::new),
        }
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = self.head.clone();
        chunk["choices"] = choices;
        if self.tells_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn untold(&mut self, reply: usize) -> Vec<Likely> {
        self.likely
            .get_mut(reply)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    fn delta(&mut self, reply: usize, delta: Value) -> String {
        let likely = self.untold(reply);
        let told = (!likely.is_empty()).then(|| logprobs(&likely));
        event(&self.chunk(json!([{
            "index": reply,
            "delta": delta,
            "logprobs": told,
            "finish_reason": null,
        }])))
    }

    fn text(&mut self, reply: usize, text: &str) -> String {
        let likely = self.untold(reply);
        let told = (!likely.is_empty()).then(|| plain_logprobs(&likely));
        event(&self.chunk(json!([{
            "index": reply,
            "text": text,
            "logprobs": told,
            "finish_reason": null,
        }])))
    }
}

impl Shape for Chunks {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    fn begin(&mut self, answering: &Answering) -> String {
        let (prefix, object) = match self.kind {
            Kind::Chat => ("chatcmpl-", "chat.completion.chunk"),
            Kind::Completion => ("cmpl-", "text_completion"),
        };
        self.head = head(answering, &answering.shared.fresh_id(prefix), object);
        self.calls = vec![0; answering.courses.len()];
        self.likely = vec![Vec::new(); answering.courses.len()];
        let shared = answering.shared.clone();
        self.next_id = Box::new(move || shared.fresh_id("call_"));
        if self.kind == Kind::Completion {
            return String::new();
        }
        let first = json!({ "role": "assistant", "content": "" });
        let replies = 0..answering.courses.len();
        replies
            .map(|reply| self.delta(reply, first.clone()))
            .collect()
    }

    fn part(&mut self, reply: usize, part: Part) -> String {
        match (self.kind, part) {
            (Kind::Chat, Part::Text(text)) => self.delta(reply, json!({ "content": text })),
            (Kind::Chat, Part::Thinking(text)) => {
                self.delta(reply, json!({ "reasoning_content": text }))
            }
            (Kind::Chat, Part::ToolCall(call)) => {
                let index = self.calls[reply];
                self.calls[reply] += 1;
                let call = call_json(&call, (self.next_id)(), Some(index));
                self.delta(reply, json!({ "tool_calls": [call] }))
            }
            (Kind::Completion, Part::Text(text)) => self.text(reply, &text),
            // What was sent cannot be taken back; completions have neither thoughts nor calls.
            (_, Part::TextWasThinking) | (Kind::Completion, _) => String::new(),
        }
    }

    fn likely(&mut self, reply: usize, token: Likely) {
        if let Some(untold) = self.likely.get_mut(reply) {
            untold.push(token);
        }
    }

    fn end(&mut self, reply: usize, end: &End, answering: &Answering) -> String {
        let mut text = String::new();
        let has_untold = |likely: &Vec<Likely>| !likely.is_empty();
        if self.likely.get(reply).is_some_and(has_untold) {
            // Tokens without text of their own, such as those before a stop string.
            text = match self.kind {
                Kind::Chat => self.delta(reply, json!({ "content": "" })),
                Kind::Completion => self.text(reply, ""),
            };
        }
        self.ends.push(end.clone());
        let mut choice = json!({ "index": reply, "finish_reason": finish(end), "logprobs": null });
        match self.kind {
            Kind::Chat => choice["delta"] = json!({}),
            Kind::Completion => choice["text"] = json!(""),
        }
        let mut chunk = self.chunk(json!([choice]));
        chunk["candor"] = computed::answer_json(answering, std::iter::once(end));
        text.push_str(&event(&chunk));
        text
    }

    fn close(&mut self, _answering: &Answering) -> String {
        let mut text = String::new();
        if self.tells_usage {
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = usage(self.ends.iter().map(|end| &end.stats));
            text.push_str(&event(&chunk));
        }
        text.push_str("data: [DONE]\n\n");
        text
    }

    fn failed(&mut self, fault: &Fault) -> String {
        event(&fault.json(crate::fault::Api::OpenAi))
    }

    fn pause(&mut self) -> String {
        String::from(": still here\n\n")
    }
}
