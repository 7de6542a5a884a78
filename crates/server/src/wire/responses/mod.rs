//! OpenAI's responses, as far as clients need them for answers and calls. Nothing is stored, so a
//! response that goes on from an earlier one is refused.

mod events;
mod written;

use serde_json::{Value, json};

use super::chat::{self, Choice};
use super::fields::Fields;
use super::openai::openai_wishes;
use crate::ask::{Ask, Chat, Form, Input};
use crate::fault::Fault;

pub(crate) use events::Events;
pub(crate) use written::answer;

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
        variables: chat::variables(&fields)?,
        ..Chat::default()
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
