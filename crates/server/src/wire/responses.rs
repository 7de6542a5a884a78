//! OpenAI's responses, as far as clients need them for answers and calls. Nothing is stored, so a
//! response that goes on from an earlier one is refused.

use candor_app::service::{Part, ToolCall};
use serde_json::{Value, json};

use super::chat::{self, Choice};
use super::fields::Fields;
use super::openai::openai_wishes;
use crate::ask::{Answering, Ask, Chat, Form, Input};
use crate::course::{End, Finish};
use crate::fault::{Api, Fault};
use crate::routes::computed;
use crate::stream::{Shape, Whole};

/// Most items of a conversation. The context ends it long before.
const ITEMS_MAX: usize = 10_000;

/// A request, and how its answer is written.
pub(crate) struct Request {
    pub(crate) ask: Ask,
    pub(crate) streams: bool,
    /// What the response repeats of it.
    pub(crate) asked: Value,
}

/// A body of `/v1/responses`.
pub(crate) fn request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    for name in ["previous_response_id", "conversation", "prompt"] {
        if fields.raw(name).is_some() {
            return Err(Fault::unsupported(
                name,
                "needs stored responses, which are not kept here",
            ));
        }
    }
    if fields.flag("background")?.unwrap_or(false) {
        return Err(Fault::unsupported("background", "is not supported"));
    }
    let mut wanted = Chat {
        messages: messages(&fields)?,
        tools: Vec::new(),
        variables: chat::variables(&fields)?,
    };
    if let Some(reasoning) = fields.object("reasoning")?
        && let Some(effort) = reasoning.text("effort")?
    {
        wanted
            .variables
            .insert(String::from("reasoning_effort"), json!(effort));
    }
    let form = tools(&fields, &mut wanted)?;
    let max_tokens = fields.whole("max_output_tokens", 1..=i64::MAX)?;
    let mut ask = Ask {
        model: super::plain::model(&fields)?,
        input: Input::Chat(wanted),
        sampling: openai_wishes(&fields)?,
        max_tokens: max_tokens.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
        form,
        ..Ask::default()
    };
    if let Some(text) = fields.object("text")? {
        chat::text_format(&text, "format", &mut ask)?;
    }
    Ok(Request {
        ask,
        asked: asked(&fields),
        streams: fields.flag("stream")?.unwrap_or(false),
    })
}

/// What a response repeats of its request, and what it says where that said nothing.
fn asked(fields: &Fields<'_>) -> Value {
    let mut all = json!({
        "background": false,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "store": false,
        "temperature": null,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "truncation": "disabled",
    });
    // These are as they are, whatever was asked.
    let fixed = ["parallel_tool_calls", "store", "truncation"];
    for (name, value) in all.as_object_mut().into_iter().flatten() {
        if let Some(asked) = fields.raw(name).filter(|_| !fixed.contains(&name.as_str())) {
            *value = asked.clone();
        }
    }
    all
}

fn messages(fields: &Fields<'_>) -> Result<Vec<Value>, Fault> {
    let mut messages = Vec::new();
    if let Some(text) = fields.text("instructions")? {
        messages.push(json!({ "role": "system", "content": text }));
    }
    match fields.raw("input") {
        Some(Value::String(text)) => messages.push(json!({ "role": "user", "content": text })),
        Some(Value::Array(items)) if (1..=ITEMS_MAX).contains(&items.len()) => {
            for (i, value) in items.iter().enumerate() {
                item(&Fields::of(value, format!("input[{i}]"))?, &mut messages)?;
            }
        }
        Some(_) => return Err(fields.wrong("input", "has to be a string or a list of items")),
        None => return Err(fields.wrong("input", "is missing")),
    }
    Ok(messages)
}

fn item(fields: &Fields<'_>, messages: &mut Vec<Value>) -> Result<(), Fault> {
    match fields.text("type")? {
        None | Some("message") => messages.push(chat::message(fields)?),
        Some("function_call") => {
            let Some(name) = fields.text("name")? else {
                return Err(fields.wrong("name", "is missing"));
            };
            let text = fields.text("arguments")?.unwrap_or("{}");
            let arguments = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            let call = json!({
                "id": fields.text("call_id")?.unwrap_or_default(),
                "type": "function",
                "function": { "name": name, "arguments": arguments },
            });
            // Calls that were made together are one message.
            match messages
                .last_mut()
                .filter(|last| last["role"] == "assistant")
            {
                Some(last) => match last["tool_calls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => last["tool_calls"] = json!([call]),
                },
                None => messages.push(json!({
                    "role": "assistant", "content": "", "tool_calls": [call],
                })),
            }
        }
        Some("function_call_output") => messages.push(json!({
            "role": "tool",
            "tool_call_id": fields.text("call_id")?.unwrap_or_default(),
            "content": chat::text(fields, "output")?,
        })),
        // Thoughts of before are not read again.
        Some("reasoning") => {}
        Some(other) => {
            let what = format!("is {other:?}, which is not read here");
            return Err(Fault::unsupported(&fields.place("type"), &what));
        }
    }
    Ok(())
}

/// Tools stand here without `function` around them.
fn tools(fields: &Fields<'_>, wanted: &mut Chat) -> Result<Form, Fault> {
    let mut tools = Vec::new();
    for (i, value) in fields.list("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = Fields::of(value, format!("tools[{i}]"))?;
        if tool.text("type")? != Some("function") {
            let what = "has to be \"function\"; no other tools are offered here";
            return Err(Fault::unsupported(&tool.place("type"), what));
        }
        let Some(name) = tool.text("name")?.filter(|name| !name.is_empty()) else {
            return Err(tool.wrong("name", "is missing"));
        };
        let mut function = json!({ "name": name });
        for field in ["description", "parameters"] {
            if let Some(value) = tool.raw(field) {
                function[field] = value.clone();
            }
        }
        tools.push(json!({ "type": "function", "function": function }));
    }
    let choice = match fields.raw("tool_choice") {
        Some(value @ Value::Object(_)) => {
            let choice = Fields::of(value, "tool_choice")?;
            let Some(name) = choice.text("name")? else {
                return Err(choice.wrong("name", "is missing"));
            };
            Choice::Named(name.to_owned())
        }
        other => chat::choice_of(fields, other)?,
    };
    chat::choose(wanted, tools, choice, "tool_choice")
}

fn usage(end: &End) -> Value {
    let stats = &end.stats;
    json!({
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": { "cached_tokens": stats.cached_tokens },
        "output_tokens": stats.generated_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": stats.prompt_tokens + stats.generated_tokens,
    })
}

fn head(answering: &Answering, id: &str, asked: Value) -> Value {
    let mut response = asked;
    response["id"] = json!(id);
    response["object"] = json!("response");
    response["created_at"] = json!(answering.created_s);
    response["status"] = json!("in_progress");
    response["error"] = Value::Null;
    response["incomplete_details"] = Value::Null;
    response["model"] = json!(answering.opened.id);
    response["output"] = json!([]);
    response["usage"] = Value::Null;
    response
}

/// How far an item came whose reply has ended.
fn status(end: &End) -> &'static str {
    match end.finish {
        Finish::Length => "incomplete",
        Finish::Stop | Finish::StopString(_) => "completed",
    }
}

/// The response once its reply has ended.
fn ended(mut response: Value, output: Vec<Value>, end: &End, answering: &Answering) -> Value {
    response["status"] = json!(status(end));
    if end.finish == Finish::Length {
        response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    }
    response["output"] = json!(output);
    response["usage"] = usage(end);
    response["candor"] = computed::answer_json(answering, std::iter::once(end));
    response
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn message_item(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.into_iter().map(text_part).collect();
    json!({
        "type": "message", "id": id, "status": status, "role": "assistant", "content": content,
    })
}

fn thoughts_item(id: &str, text: Option<&str>) -> Value {
    let summary = text.into_iter();
    let summary = summary.map(|text| json!({ "type": "summary_text", "text": text }));
    json!({ "type": "reasoning", "id": id, "summary": summary.collect::<Vec<_>>() })
}

fn call_item(id: &str, call_id: &str, call: &ToolCall) -> Value {
    json!({
        "type": "function_call", "id": id, "call_id": call_id, "status": "completed",
        "name": call.name, "arguments": call.arguments,
    })
}

/// A whole response.
pub(crate) fn answer(answering: &Answering, reply: &Whole, asked: Value) -> Value {
    let id = |prefix: &str| answering.shared.fresh_id(prefix);
    let item = |part: &Part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(message_item(&id("msg_"), status(&reply.end), Some(text))),
        Part::Thinking(text) => Some(thoughts_item(&id("rs_"), Some(text))),
        Part::ToolCall(call) => Some(call_item(&id("fc_"), &id("call_"), call)),
        Part::TextWasThinking => None,
    };
    let output = reply.parts.iter().filter_map(item).collect();
    ended(
        head(answering, &id("resp_"), asked),
        output,
        &reply.end,
        answering,
    )
}

/// What kind of item is open in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Thoughts,
}

/// An item that is being written.
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

/// A stream of events.
pub(crate) struct Events {
    /// What was asked, and then the response.
    response: Value,
    /// Of an item that is closed now.
    status: &'static str,
    output: Vec<Value>,
    open: Option<Open>,
    /// Events so far.
    number: u64,
    fresh_id: Box<dyn Fn(&str) -> String + Send>,
}

impl Events {
    pub(crate) fn new(asked: Value) -> Self {
        Self {
            response: asked,
            status: "completed",
            output: Vec::new(),
            open: None,
            number: 0,
            fresh_id: Box::new(str::to_owned),
        }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.number);
        self.number += 1;
        format!("event: {name}\ndata: {data}\n\n")
    }

    fn place(&self) -> usize {
        self.output.len()
    }

    /// Has an item of this kind open.
    fn within(&mut self, kind: Kind) -> String {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return String::new();
        }
        let mut events = self.without();
        let (id, item) = match kind {
            Kind::Message => {
                let id = (self.fresh_id)("msg_");
                let item = message_item(&id, "in_progress", None);
                (id, item)
            }
            Kind::Thoughts => {
                let id = (self.fresh_id)("rs_");
                let item = thoughts_item(&id, None);
                (id, item)
            }
        };
        let place = self.place();
        let added = json!({ "output_index": place, "item": item });
        events.push_str(&self.event("response.output_item.added", added));
        let (name, mut part) = match kind {
            Kind::Message => (
                "response.content_part.added",
                json!({ "content_index": 0, "part": text_part("") }),
            ),
            Kind::Thoughts => (
                "response.reasoning_summary_part.added",
                json!({ "summary_index": 0, "part": { "type": "summary_text", "text": "" } }),
            ),
        };
        part["item_id"] = json!(id);
        part["output_index"] = json!(place);
        events.push_str(&self.event(name, part));
        self.open = Some(Open {
            kind,
            id,
            text: String::new(),
        });
        events
    }

    fn words(&mut self, kind: Kind, text: &str) -> String {
        let mut events = self.within(kind);
        let place = self.place();
        let Some(open) = &mut self.open else {
            return events;
        };
        open.text.push_str(text);
        let mut data = json!({ "item_id": open.id, "output_index": place, "delta": text });
        let name = match kind {
            Kind::Message => {
                data["content_index"] = json!(0);
                data["logprobs"] = json!([]);
                "response.output_text.delta"
            }
            Kind::Thoughts => {
                data["summary_index"] = json!(0);
                "response.reasoning_summary_text.delta"
            }
        };
        events.push_str(&self.event(name, data));
        events
    }

    /// Has no item open.
    fn without(&mut self) -> String {
        let Some(Open { kind, id, text }) = self.open.take() else {
            return String::new();
        };
        let place = self.place();
        let at = |mut data: Value| {
            data["item_id"] = json!(id);
            data["output_index"] = json!(place);
            data
        };
        let mut events = String::new();
        let item = match kind {
            Kind::Message => {
                let done = at(json!({ "content_index": 0, "text": text, "logprobs": [] }));
                events.push_str(&self.event("response.output_text.done", done));
                let done = at(json!({ "content_index": 0, "part": text_part(&text) }));
                events.push_str(&self.event("response.content_part.done", done));
                message_item(&id, self.status, Some(&text))
            }
            Kind::Thoughts => {
                let done = at(json!({ "summary_index": 0, "text": text }));
                events.push_str(&self.event("response.reasoning_summary_text.done", done));
                let part = json!({ "type": "summary_text", "text": text });
                let done = at(json!({ "summary_index": 0, "part": part }));
                events.push_str(&self.event("response.reasoning_summary_part.done", done));
                thoughts_item(&id, Some(&text))
            }
        };
        events.push_str(&self.done(item));
        events
    }

    fn done(&mut self, item: Value) -> String {
        let data = json!({ "output_index": self.place(), "item": item });
        self.output.push(item);
        self.event("response.output_item.done", data)
    }

    fn call(&mut self, call: &ToolCall) -> String {
        let mut events = self.without();
        let (id, call_id) = ((self.fresh_id)("fc_"), (self.fresh_id)("call_"));
        let item = call_item(&id, &call_id, call);
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun["arguments"] = json!("");
        let place = self.place();
        let added = json!({ "output_index": place, "item": begun });
        events.push_str(&self.event("response.output_item.added", added));
        let delta = json!({ "item_id": id, "output_index": place, "delta": call.arguments });
        events.push_str(&self.event("response.function_call_arguments.delta", delta));
        let done = json!({
            "item_id": id, "output_index": place, "name": call.name, "arguments": call.arguments,
        });
        events.push_str(&self.event("response.function_call_arguments.done", done));
        events.push_str(&self.done(item));
        events
    }
}

impl Shape for Events {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    fn begin(&mut self, answering: &Answering) -> String {
        let shared = answering.shared.clone();
        self.fresh_id = Box::new(move |prefix| shared.fresh_id(prefix));
        self.response = head(answering, &(self.fresh_id)("resp_"), self.response.take());
        let data = json!({ "response": self.response });
        let mut events = self.event("response.created", data.clone());
        events.push_str(&self.event("response.in_progress", data));
        events
    }

    fn part(&mut self, _reply: usize, part: Part) -> String {
        match part {
            Part::Text(text) => self.words(Kind::Message, &text),
            Part::Thinking(text) => self.words(Kind::Thoughts, &text),
            Part::ToolCall(call) => self.call(&call),
            // What was sent cannot be taken back.
            Part::TextWasThinking => String::new(),
        }
    }

    fn end(&mut self, _reply: usize, end: &End, answering: &Answering) -> String {
        self.status = status(end);
        let mut events = self.without();
        let (response, output) = (self.response.take(), std::mem::take(&mut self.output));
        let response = ended(response, output, end, answering);
        let name = match end.finish {
            Finish::Length => "response.incomplete",
            Finish::Stop | Finish::StopString(_) => "response.completed",
        };
        events.push_str(&self.event(name, json!({ "response": response })));
        events
    }

    fn close(&mut self, _answering: &Answering) -> String {
        String::new()
    }

    fn failed(&mut self, fault: &Fault) -> String {
        let error = fault.json(Api::OpenAi)["error"].clone();
        let data = json!({
            "code": error["code"], "message": error["message"], "param": error["param"],
        });
        self.event("error", data)
    }

    fn pause(&mut self) -> String {
        String::from(": still here\n\n")
    }
}
