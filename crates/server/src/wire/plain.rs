//! The plain routes: a text goes on, texts become tokens, tokens become text.

use candor_app::service::Part;
use serde_json::{Value, json};

use super::chat;
use super::fields::Fields;
use crate::ask::{Answering, Ask, Input, Wishes};
use crate::course::{End, Finish};
use crate::fault::{Api, Fault};
use crate::routes::computed;
use crate::stream::{Shape, Whole, event};

/// Most tokens that one request turns into text.
const IDS_MAX: usize = 1 << 20;

/// A body of `/generate`: the request, and whether it streams.
pub(crate) fn generate_request(body: &Value) -> Result<(Ask, bool), Fault> {
    let fields = Fields::of_body(body)?;
    let input = match (fields.text("prompt")?, fields.list("ids")?) {
        (Some(text), None) => Input::Text(text.to_owned()),
        (None, Some(_)) => Input::Ids(ids(&fields)?),
        (Some(_), Some(_)) => return Err(fields.wrong("ids", "stands beside `prompt`")),
        (None, None) => return Err(fields.wrong("prompt", "is missing")),
    };
    let mut ask = Ask {
        model: model(&fields)?,
        input,
        sampling: wishes(&fields)?,
        max_tokens: fields
            .whole("max_tokens", 1..=i64::MAX)?
            .map(|max| max as usize),
        stop: fields.stops("stop")?,
        ..Ask::default()
    };
    chat::grammar(&fields, &mut ask)?;
    Ok((ask, fields.flag("stream")?.unwrap_or(false)))
}

fn wishes(fields: &Fields<'_>) -> Result<Wishes, Fault> {
    Ok(Wishes {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_k: chat::top_k(fields, "top_k")?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        min_p: fields.number("min_p", 0.0..=1.0)?,
        repeat_penalty: fields.number("repeat_penalty", 0.1..=10.0)?,
        seed: fields
            .whole("seed", i64::MIN..=i64::MAX)?
            .map(|seed| seed as u64),
        ..Wishes::default()
    })
}

/// The name of the model, if one is given.
pub(crate) fn model(fields: &Fields<'_>) -> Result<Option<String>, Fault> {
    let name = fields.text("model")?.filter(|name| !name.is_empty());
    Ok(name.map(str::to_owned))
}

fn ids(fields: &Fields<'_>) -> Result<Vec<u32>, Fault> {
    let list = fields.list("ids")?.unwrap_or_default();
    if list.len() > IDS_MAX {
        return Err(fields.wrong("ids", &format!("may have {IDS_MAX} tokens")));
    }
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids: Option<Vec<u32>> = list.iter().map(id).collect();
    ids.ok_or_else(|| fields.wrong("ids", "has to be a list of tokens"))
}

/// A body of `/tokenize`: the model, the text, and whether begin and end tokens are added.
pub(crate) fn tokenize_request(body: &Value) -> Result<(Option<String>, String, bool), Fault> {
    let fields = Fields::of_body(body)?;
    let Some(text) = fields.text("text")? else {
        return Err(fields.wrong("text", "is missing"));
    };
    let adds = fields.flag("add_special")?.unwrap_or(false);
    Ok((model(&fields)?, text.to_owned(), adds))
}

/// A body of `/detokenize`.
pub(crate) fn detokenize_request(body: &Value) -> Result<(Option<String>, Vec<u32>), Fault> {
    let fields = Fields::of_body(body)?;
    if fields.raw("ids").is_none() {
        return Err(fields.wrong("ids", "is missing"));
    }
    Ok((model(&fields)?, ids(&fields)?))
}

/// Why it ended, as the command line says it.
fn finish(end: &End) -> &'static str {
    match end.finish {
        Finish::Stop | Finish::StopString(_) => "stop",
        Finish::Length => "length",
    }
}

/// The last object of `/generate`, or its only one.
fn last(answering: &Answering, end: &End) -> Value {
    let stats = &end.stats;
    json!({
        "finish": finish(end),
        "model": answering.opened.id,
        "stats": {
            "prompt_tokens": stats.prompt_tokens,
            "cached_tokens": stats.cached_tokens,
            "prefill_ms": stats.prefill_ms,
            "generated_tokens": stats.generated_tokens,
            "decode_ms": stats.decode_ms,
            "time_to_first_token_ms": stats.time_to_first_token_ms,
        },
        "candor": computed::answer_json(answering, std::iter::once(end)),
    })
}

/// A whole answer of `/generate`.
pub(crate) fn answer(answering: &Answering, reply: &Whole) -> Value {
    let mut json = last(answering, &reply.end);
    json["text"] = json!(reply.text());
    json
}

/// A stream of `/generate`.
pub(crate) struct Texts;

impl Shape for Texts {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    fn begin(&mut self, _answering: &Answering) -> String {
        String::new()
    }

    fn part(&mut self, _reply: usize, part: Part) -> String {
        match part {
            Part::Text(text) => event(&json!({ "text": text })),
            _ => String::new(),
        }
    }

    fn end(&mut self, _reply: usize, end: &End, answering: &Answering) -> String {
        event(&last(answering, end))
    }

    fn close(&mut self, _answering: &Answering) -> String {
        String::new()
    }

    fn failed(&mut self, fault: &Fault) -> String {
        event(&fault.json(Api::OpenAi))
    }

    fn pause(&mut self) -> String {
        String::from(": still here\n\n")
    }
}
