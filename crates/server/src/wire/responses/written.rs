//! A response and its items, as they are written.

use candor_app::service::{Part, ToolCall};
use serde_json::{Value, json};

use crate::ask::Answering;
use crate::course::{End, Finish};
use crate::routes::computed;
use crate::stream::Whole;

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

pub(super) fn head(answering: &Answering, id: &str, asked: Value) -> Value {
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
pub(super) fn status(end: &End) -> &'static str {
    match end.finish {
        Finish::Length => "incomplete",
        Finish::Stop | Finish::StopString(_) => "completed",
    }
}

/// The response once its reply has ended.
pub(super) fn ended(
    mut response: Value,
    output: Vec<Value>,
    end: &End,
    answering: &Answering,
) -> Value {
    response["status"] = json!(status(end));
    if end.finish == Finish::Length {
        response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    }
    response["output"] = json!(output);
    response["usage"] = usage(end);
    response["candor"] = computed::answer_json(answering, std::iter::once(end));
    response
}

/// The response whose reply has failed, with what was written of it before.
pub(super) fn failed(mut response: Value, output: Vec<Value>, error: &Value) -> Value {
    response["status"] = json!("failed");
    response["error"] = json!({
        "code": error["code"].as_str().unwrap_or("server_error"),
        "message": error["message"],
    });
    response["output"] = json!(output);
    response
}

pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

pub(super) fn message_item(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.into_iter().map(text_part).collect();
    json!({
        "type": "message", "id": id, "status": status, "role": "assistant", "content": content,
    })
}

pub(super) fn thoughts_item(id: &str, text: Option<&str>) -> Value {
    let summary = text.into_iter();
    let summary = summary.map(|text| json!({ "type": "summary_text", "text": text }));
    json!({ "type": "reasoning", "id": id, "summary": summary.collect::<Vec<_>>() })
}

pub(super) fn call_item(id: &str, call_id: &str, call: &ToolCall) -> Value {
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
