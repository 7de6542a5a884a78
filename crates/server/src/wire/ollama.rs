//! Ollama's requests and answers: lines of JSON.

use candor_app::headless::Stats;
use candor_app::service::Part;
use serde_json::{Map, Value, json};

use super::chat;
use super::fields::Fields;
use crate::ask::{Answering, Ask, Chat, Input, Wishes};
use crate::course::{End, Finish};
use crate::fault::{Api, Fault};
use crate::routes::computed;
use crate::stream::{Shape, Whole};

/// Nanoseconds of a millisecond: this protocol counts in them.
const NS_PER_MS: f64 = 1_000_000.0;

/// Which of the two paths it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Generate,
}

/// A request, and how its answer is written.
pub(crate) struct Request {
    /// None where a model is only to be loaded, or to be unloaded.
    pub(crate) ask: Option<Ask>,
    pub(crate) model: Option<String>,
    /// The model's memory is to be given back.
    pub(crate) unloads: bool,
    pub(crate) streams: bool,
}

/// A body of `/api/chat`.
pub(crate) fn chat_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    if fields.list("messages")?.is_none_or(<[Value]>::is_empty) {
        return without_ask(&fields);
    }
    refuse_images(&fields)?;
    let mut wanted = Chat {
        messages: chat::messages(&fields)?,
        variables: thinking(&fields)?,
        ..Chat::default()
    };
    // This protocol has no way to require a call.
    chat::tools(&fields, &mut wanted)?;
    request(&fields, Input::Chat(wanted))
}

/// A body of `/api/generate`.
pub(crate) fn generate_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let Some(prompt) = fields.text("prompt")?.filter(|prompt| !prompt.is_empty()) else {
        return without_ask(&fields);
    };
    for name in ["suffix", "template", "context"] {
        let says_nothing = [json!(""), json!([])];
        if fields
            .raw(name)
            .is_some_and(|value| !says_nothing.contains(value))
        {
            return Err(Fault::unsupported(name, "is not supported"));
        }
    }
    if fields
        .list("images")?
        .is_some_and(|images| !images.is_empty())
    {
        return Err(Fault::unsupported("images", "are not read here"));
    }
    let input = match fields.flag("raw")?.unwrap_or(false) {
        true => Input::Text(prompt.to_owned()),
        false => {
            let system = fields.text("system")?.filter(|system| !system.is_empty());
            let system = system.map(|text| json!({ "role": "system", "content": text }));
            let user = json!({ "role": "user", "content": prompt });
            Input::Chat(Chat {
                messages: system.into_iter().chain([user]).collect(),
                variables: thinking(&fields)?,
                ..Chat::default()
            })
        }
    };
    request(&fields, input)
}

fn refuse_images(fields: &Fields<'_>) -> Result<(), Fault> {
    let messages = fields.list("messages")?.unwrap_or_default();
    let has_images = |message: &Value| match message.get("images") {
        None | Some(Value::Null) => false,
        Some(Value::Array(images)) => !images.is_empty(),
        Some(_) => true,
    };
    match messages.iter().position(has_images) {
        Some(i) => Err(Fault::unsupported(
            &format!("messages[{i}].images"),
            "are not read here",
        )),
        None => Ok(()),
    }
}

/// A request without words loads a model, or unloads it with `keep_alive` 0.
fn without_ask(fields: &Fields<'_>) -> Result<Request, Fault> {
    Ok(Request {
        ask: None,
        model: super::plain::model(fields)?,
        unloads: unloads(fields)?,
        streams: false,
    })
}

/// Whether the model is kept no longer than for this request; other times are the server's own.
pub(crate) fn unloads(fields: &Fields<'_>) -> Result<bool, Fault> {
    let is_time = |text: &str| {
        text.trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    match fields.raw("keep_alive") {
        None => Ok(false),
        Some(Value::Number(number)) => Ok(number.as_f64() == Some(0.0)),
        Some(Value::String(text)) if is_time(text) => Ok(text
            .chars()
            .all(|c| matches!(c, '0' | '.' | 'h' | 'm' | 's'))),
        Some(_) => Err(fields.wrong("keep_alive", "has to be a time, such as \"5m\", or seconds")),
    }
}

fn thinking(fields: &Fields<'_>) -> Result<Map<String, Value>, Fault> {
    let mut variables = Map::new();
    match fields.raw("think") {
        None => {}
        Some(Value::Bool(thinks)) => {
            variables.insert(String::from("enable_thinking"), json!(thinks));
        }
        Some(Value::String(effort)) => {
            variables.insert(String::from("reasoning_effort"), json!(effort));
        }
        Some(_) => return Err(fields.wrong("think", "has to be true, false or a string")),
    }
    Ok(variables)
}

fn request(fields: &Fields<'_>, input: Input) -> Result<Request, Fault> {
    let empty = Value::Object(Map::new());
    let options = fields.raw("options").unwrap_or(&empty);
    let options = Fields::of(options, "options")?;
    // The context is the server's own, but a wrong type is one everywhere.
    options.whole("num_ctx", 0..=i64::MAX)?;
    let predict = options.whole("num_predict", i64::MIN..=i64::MAX)?;
    let mut ask = Ask {
        model: super::plain::model(fields)?,
        input,
        sampling: wishes(&options)?,
        // Less than one stands for as many as fit.
        max_tokens: predict.and_then(|max| usize::try_from(max).ok().filter(|max| *max > 0)),
        stop: options.stops("stop")?,
        ..Ask::default()
    };
    chat::format(fields, "format", &mut ask)?;
    Ok(Request {
        model: ask.model.clone(),
        ask: Some(ask),
        unloads: unloads(fields)?,
        streams: fields.flag("stream")?.unwrap_or(true),
    })
}

fn wishes(options: &Fields<'_>) -> Result<Wishes, Fault> {
    Ok(Wishes {
        temperature: options.number("temperature", 0.0..=2.0)?,
        top_k: chat::top_k(options, "top_k")?,
        top_p: options.number("top_p", 0.0..=1.0)?,
        min_p: options.number("min_p", 0.0..=1.0)?,
        repeat_penalty: options.number("repeat_penalty", 0.1..=10.0)?,
        presence_penalty: options.number("presence_penalty", -2.0..=2.0)?,
        frequency_penalty: options.number("frequency_penalty", -2.0..=2.0)?,
        seed: options
            .whole("seed", i64::MIN..=i64::MAX)?
            .map(|seed| seed as u64),
    })
}

/// The time as this protocol writes it.
pub(crate) fn time(ms: i64) -> String {
    let at = candor_app::headless::utc(ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year,
        at.month,
        at.day,
        at.hour,
        at.minute,
        at.second,
        ms.rem_euclid(1_000)
    )
}

fn head(answering: &Answering) -> Value {
    json!({
        "model": answering.opened.id,
        "created_at": time(answering.shared.now_ms()),
    })
}

/// The place of the words.
fn put(json: &mut Value, kind: Kind, text: &str, thoughts: Option<&str>) {
    match kind {
        Kind::Chat => {
            json["message"] = json!({ "role": "assistant", "content": text });
            if let Some(thoughts) = thoughts {
                json["message"]["thinking"] = json!(thoughts);
            }
        }
        Kind::Generate => {
            json["response"] = json!(text);
            if let Some(thoughts) = thoughts {
                json["thinking"] = json!(thoughts);
            }
        }
    }
}

/// Calls have their arguments as an object here.
fn calls(parts: &[Part]) -> Vec<Value> {
    let calls = parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    let json = calls.map(|call| {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({ "function": { "name": call.name, "arguments": arguments } })
    });
    json.collect()
}

fn figures(json: &mut Value, end: &End, answering: &Answering) {
    let Stats {
        prompt_tokens,
        prefill_ms,
        generated_tokens,
        decode_ms,
        time_to_first_token_ms,
        ..
    } = end.stats;
    let ns = |ms: f64| (ms * NS_PER_MS) as u64;
    json["done"] = json!(true);
    json["done_reason"] = json!(match end.finish {
        Finish::Stop | Finish::StopString(_) => "stop",
        Finish::Length => "length",
    });
    json["total_duration"] = json!(ns(time_to_first_token_ms + decode_ms));
    json["load_duration"] = json!(0);
    json["prompt_eval_count"] = json!(prompt_tokens);
    json["prompt_eval_duration"] = json!(ns(prefill_ms));
    json["eval_count"] = json!(generated_tokens);
    json["eval_duration"] = json!(ns(decode_ms));
    json["candor"] = computed::answer_json(answering, std::iter::once(end));
}

/// A whole answer.
pub(crate) fn answer(answering: &Answering, kind: Kind, reply: &Whole) -> Value {
    let mut json = head(answering);
    put(&mut json, kind, &reply.text(), reply.thoughts().as_deref());
    let calls = calls(&reply.parts);
    if kind == Kind::Chat && !calls.is_empty() {
        json["message"]["tool_calls"] = json!(calls);
    }
    figures(&mut json, &reply.end, answering);
    json
}

/// What is answered where a model was only loaded or unloaded.
pub(crate) fn without_words(kind: Kind, model: &str, now_ms: i64, unloaded: bool) -> Value {
    let mut json = json!({ "model": model, "created_at": time(now_ms) });
    put(&mut json, kind, "", None);
    json["done"] = json!(true);
    json["done_reason"] = json!(if unloaded { "unload" } else { "load" });
    json
}

/// A stream of lines.
pub(crate) struct Lines {
    kind: Kind,
    /// For the times of its lines.
    head: Box<dyn Fn() -> Value + Send>,
}

impl Lines {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            head: Box::new(|| Value::Null),
        }
    }

    fn line(&self, text: &str, thoughts: Option<&str>) -> Value {
        let mut json = (self.head)();
        put(&mut json, self.kind, text, thoughts);
        json["done"] = json!(false);
        json
    }
}

fn written(json: &Value) -> String {
    format!("{json}\n")
}

impl Shape for Lines {
    const CONTENT_TYPE: &'static str = "application/x-ndjson";

    fn begin(&mut self, answering: &Answering) -> String {
        let shared = answering.shared.clone();
        let model = answering.opened.id.clone();
        self.head =
            Box::new(move || json!({ "model": model, "created_at": time(shared.now_ms()) }));
        String::new()
    }

    fn part(&mut self, _reply: usize, part: Part) -> String {
        match part {
            Part::Text(text) => written(&self.line(&text, None)),
            Part::Thinking(text) => written(&self.line("", Some(&text))),
            call @ Part::ToolCall(_) if self.kind == Kind::Chat => {
                let mut json = self.line("", None);
                json["message"]["tool_calls"] = json!(calls(&[call]));
                written(&json)
            }
            // What was sent cannot be taken back.
            Part::ToolCall(_) | Part::TextWasThinking => String::new(),
        }
    }

    fn end(&mut self, _reply: usize, end: &End, answering: &Answering) -> String {
        let mut json = self.line("", None);
        figures(&mut json, end, answering);
        written(&json)
    }

    fn close(&mut self, _answering: &Answering) -> String {
        String::new()
    }

    fn failed(&mut self, fault: &Fault) -> String {
        written(&fault.json(Api::Ollama))
    }

    /// Lines of JSON have no comments; one without words says the same.
    fn pause(&mut self) -> String {
        written(&self.line("", None))
    }
}
