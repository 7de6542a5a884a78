//! Anthropic's messages.

use candor_app::service::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::chat;
use super::fields::Fields;
use crate::ask::{Answering, Ask, Chat, Form, Input, Wishes};
use crate::course::{End, Finish};
use crate::fault::{Api, Fault};
use crate::routes::computed;
use crate::stream::{Shape, Whole};

/// Most messages of a conversation. The context ends it long before.
const MESSAGES_MAX: usize = 10_000;

/// A request, and how its answer is written.
pub(crate) struct Request {
    pub(crate) ask: Ask,
    pub(crate) streams: bool,
}

/// A body of `/v1/messages`.
pub(crate) fn request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let Some(max_tokens) = fields.whole("max_tokens", 1..=i64::MAX)? else {
        return Err(fields.wrong("max_tokens", "is missing"));
    };
    let mut ask = conversation(&fields)?;
    ask.sampling = Wishes {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        top_k: chat::top_k(&fields, "top_k")?,
        ..Wishes::default()
    };
    ask.max_tokens = Some(usize::try_from(max_tokens).unwrap_or(usize::MAX));
    ask.stop = fields.stops("stop_sequences")?;
    Ok(Request {
        ask,
        streams: fields.flag("stream")?.unwrap_or(false),
    })
}

/// What counting tokens and answering have in common.
pub(crate) fn conversation(fields: &Fields<'_>) -> Result<Ask, Fault> {
    let mut wanted = Chat::default();
    if fields.raw("system").is_some() {
        let text = chat::text(fields, "system")?;
        wanted
            .messages
            .push(json!({ "role": "system", "content": text }));
    }
    let list = fields.list("messages")?.unwrap_or_default();
    if list.is_empty() || list.len() > MESSAGES_MAX {
        let what = format!("has to have 1 to {MESSAGES_MAX} messages");
        return Err(fields.wrong("messages", &what));
    }
    for (i, value) in list.iter().enumerate() {
        let fields = Fields::of(value, format!("messages[{i}]"))?;
        message(&fields, &mut wanted.messages)?;
    }
    wanted.begun = begun(&mut wanted.messages);
    let mut thinks = (!wanted.begun.is_empty()).then_some(false);
    if let Some(thinking) = fields.object("thinking")? {
        let on = thinking
            .text("type")?
            .is_some_and(|kind| kind != "disabled");
        if on && !wanted.begun.is_empty() {
            let what = "cannot be on where the last message begins the reply";
            return Err(fields.wrong("thinking", what));
        }
        thinks = Some(on);
    }
    if let Some(on) = thinks {
        wanted
            .variables
            .insert(String::from("enable_thinking"), json!(on));
    }
    let form = tools(fields, &mut wanted)?;
    Ok(Ask {
        form,
        model: super::plain::model(fields)?,
        input: Input::Chat(wanted),
        ..Ask::default()
    })
}

/// Takes a reply that is begun off the end of a conversation: words of the assistant, and no call.
fn begun(messages: &mut Vec<Value>) -> String {
    let is_begun = |last: &Value| last["role"] == "assistant" && last.get("tool_calls").is_none();
    let last = messages.pop_if(|last| is_begun(last));
    let text = last.and_then(|last| Some(last["content"].as_str()?.to_owned()));
    text.unwrap_or_default()
}

/// A message as chat templates read it: results of tools are messages of their own there.
fn message(fields: &Fields<'_>, messages: &mut Vec<Value>) -> Result<(), Fault> {
    let role = match fields.text("role")? {
        Some(role @ ("user" | "assistant")) => role,
        _ => return Err(fields.wrong("role", "has to be \"user\" or \"assistant\"")),
    };
    let blocks = match fields.raw("content") {
        Some(Value::String(text)) => {
            messages.push(json!({ "role": role, "content": text }));
            return Ok(());
        }
        Some(Value::Array(blocks)) => blocks,
        _ => return Err(fields.wrong("content", "has to be a string or a list of blocks")),
    };
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for (i, value) in blocks.iter().enumerate() {
        let block = Fields::of(value, format!("{}[{i}]", fields.place("content")))?;
        match block.text("type")? {
            Some("text") => text.push_str(block.text("text")?.unwrap_or_default()),
            Some("thinking") => thoughts.push_str(block.text("thinking")?.unwrap_or_default()),
            Some("redacted_thinking") => {}
            Some("tool_use") => calls.push(call(&block)?),
            Some("tool_result") => messages.push(result(&block)?),
            Some(other) => {
                let what = format!("is {other:?}; only text and tools are read here");
                return Err(Fault::unsupported(&block.place("type"), &what));
            }
            None => return Err(block.wrong("type", "is missing")),
        }
    }
    let mut message = json!({ "role": role, "content": text });
    if !thoughts.is_empty() {
        message["reasoning_content"] = json!(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let says_something = !text.is_empty() || message.as_object().is_some_and(|all| all.len() > 2);
    if says_something || blocks.is_empty() {
        messages.push(message);
    }
    Ok(())
}

fn call(block: &Fields<'_>) -> Result<Value, Fault> {
    let Some(name) = block.text("name")? else {
        return Err(block.wrong("name", "is missing"));
    };
    let input = block.object("input")?.map(|input| input.map().clone());
    Ok(json!({
        "id": block.text("id")?.unwrap_or_default(),
        "type": "function",
        "function": { "name": name, "arguments": input.unwrap_or_default() },
    }))
}

fn result(block: &Fields<'_>) -> Result<Value, Fault> {
    let content = match block.raw("content") {
        None => String::new(),
        Some(_) => chat::text(block, "content")?,
    };
    Ok(json!({
        "role": "tool",
        "tool_call_id": block.text("tool_use_id")?.unwrap_or_default(),
        "content": content,
    }))
}

fn tools(fields: &Fields<'_>, wanted: &mut Chat) -> Result<Form, Fault> {
    let mut tools = Vec::new();
    for (i, value) in fields.list("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = Fields::of(value, format!("tools[{i}]"))?;
        let Some(name) = tool.text("name")?.filter(|name| !name.is_empty()) else {
            return Err(tool.wrong("name", "is missing"));
        };
        let Some(schema) = tool.object("input_schema")? else {
            let what = "is missing; only tools with a schema are offered here";
            return Err(tool.wrong("input_schema", what));
        };
        let mut function = Map::new();
        function.insert(String::from("name"), json!(name));
        if let Some(text) = tool.text("description")? {
            function.insert(String::from("description"), json!(text));
        }
        function.insert(String::from("parameters"), json!(schema.map()));
        tools.push(json!({ "type": "function", "function": function }));
    }
    let choice = fields.object("tool_choice")?;
    let wanted_choice = match &choice {
        None => chat::Choice::Auto,
        Some(choice) => match choice.text("type")? {
            Some("auto") => chat::Choice::Auto,
            Some("none") => chat::Choice::None,
            Some("any") => chat::Choice::Required,
            Some("tool") => {
                chat::Choice::Named(choice.text("name")?.unwrap_or_default().to_owned())
            }
            _ => {
                let what = "has to be \"auto\", \"any\", \"tool\" or \"none\"";
                return Err(choice.wrong("type", what));
            }
        },
    };
    chat::choose(wanted, tools, wanted_choice, "tool_choice")
}

/// Why it ended.
fn stop_reason(end: &End) -> &'static str {
    match end.finish {
        _ if end.has_calls => "tool_use",
        Finish::StopString(_) => "stop_sequence",
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
    }
}

fn stop_sequence<'a>(end: &End, named: &'a [String]) -> Option<&'a str> {
    match end.finish {
        Finish::StopString(at) if !end.has_calls => named.get(at).map(String::as_str),
        _ => None,
    }
}

fn usage(end: &End) -> Value {
    let stats = &end.stats;
    json!({
        "input_tokens": stats.prompt_tokens - stats.cached_tokens.min(stats.prompt_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.cached_tokens,
        "output_tokens": stats.generated_tokens,
    })
}

fn head(answering: &Answering) -> Value {
    json!({
        "id": answering.shared.fresh_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answering.opened.id,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn call_block(call: &ToolCall, id: String, input: Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
}

/// A whole message.
pub(crate) fn answer(answering: &Answering, reply: &Whole, named: &[String]) -> Value {
    let block = |part: &Part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(json!({ "type": "text", "text": text })),
        Part::Thinking(text) => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": "" }))
        }
        Part::ToolCall(call) => {
            let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            Some(call_block(call, answering.shared.fresh_id("toolu_"), input))
        }
        Part::TextWasThinking => None,
    };
    let mut json = head(answering);
    json["content"] = reply.parts.iter().filter_map(block).collect();
    json["stop_reason"] = json!(stop_reason(&reply.end));
    json["stop_sequence"] = json!(stop_sequence(&reply.end, named));
    json["usage"] = usage(&reply.end);
    json["candor"] = computed::answer_json(answering, std::iter::once(&reply.end));
    json
}

/// What kind of block is open in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
}

/// A stream of events.
pub(crate) struct Events {
    named: Vec<String>,
    open: Option<Block>,
    /// Blocks that were begun.
    blocks: usize,
    next_id: Box<dyn Fn() -> String + Send>,
}

impl Events {
    pub(crate) fn new(named: Vec<String>) -> Self {
        Self {
            named,
            open: None,
            blocks: 0,
            next_id: Box::new(String::new),
        }
    }

    fn begin_block(&mut self, block: Value) -> String {
        let index = self.blocks;
        self.blocks += 1;
        let data = json!({
            "type": "content_block_start", "index": index, "content_block": block,
        });
        named("content_block_start", &data)
    }

    fn delta(&self, delta: Value) -> String {
        let index = self.blocks.saturating_sub(1);
        let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
        named("content_block_delta", &data)
    }

    fn end_block(&mut self) -> String {
        self.open = None;
        let index = self.blocks.saturating_sub(1);
        let data = json!({ "type": "content_block_stop", "index": index });
        named("content_block_stop", &data)
    }

    /// Has a block of this kind open.
    fn within(&mut self, block: Block) -> String {
        if self.open == Some(block) {
            return String::new();
        }
        let mut text = self.without();
        text.push_str(&self.begin_block(match block {
            Block::Text => json!({ "type": "text", "text": "" }),
            Block::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        }));
        self.open = Some(block);
        text
    }

    /// Has no block open.
    fn without(&mut self) -> String {
        match self.open {
            Some(_) => self.end_block(),
            None => String::new(),
        }
    }
}

fn named(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

impl Shape for Events {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    fn begin(&mut self, answering: &Answering) -> String {
        let shared = answering.shared.clone();
        self.next_id = Box::new(move || shared.fresh_id("toolu_"));
        let mut message = head(answering);
        // Which of them were read before is known at the end.
        message["usage"] = json!({ "input_tokens": answering.prompt_tokens, "output_tokens": 0 });
        named(
            "message_start",
            &json!({ "type": "message_start", "message": message }),
        )
    }

    fn part(&mut self, _reply: usize, part: Part) -> String {
        match part {
            Part::Text(text) => {
                let mut events = self.within(Block::Text);
                events.push_str(&self.delta(json!({ "type": "text_delta", "text": text })));
                events
            }
            Part::Thinking(text) => {
                let mut events = self.within(Block::Thinking);
                let delta = json!({ "type": "thinking_delta", "thinking": text });
                events.push_str(&self.delta(delta));
                events
            }
            Part::ToolCall(call) => {
                let mut events = self.without();
                let block = call_block(&call, (self.next_id)(), json!({}));
                events.push_str(&self.begin_block(block));
                let delta = json!({ "type": "input_json_delta", "partial_json": call.arguments });
                events.push_str(&self.delta(delta));
                events.push_str(&self.end_block());
                events
            }
            // What was sent cannot be taken back.
            Part::TextWasThinking => String::new(),
        }
    }

    fn end(&mut self, _reply: usize, end: &End, answering: &Answering) -> String {
        let mut events = self.without();
        let data = json!({
            "type": "message_delta",
            "delta": {
                "stop_reason": stop_reason(end),
                "stop_sequence": stop_sequence(end, &self.named),
            },
            "usage": usage(end),
            "candor": computed::answer_json(answering, std::iter::once(end)),
        });
        events.push_str(&named("message_delta", &data));
        events
    }

    fn close(&mut self, _answering: &Answering) -> String {
        named("message_stop", &json!({ "type": "message_stop" }))
    }

    fn failed(&mut self, fault: &Fault) -> String {
        named("error", &fault.json(Api::Anthropic))
    }

    fn pause(&mut self) -> String {
        named("ping", &json!({ "type": "ping" }))
    }
}
