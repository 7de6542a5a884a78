//! Calls of tools: how much of a text is one, and what it says.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::forms::{CallForm, FUNCTION, FUNCTION_END};
use super::json::JsonScan;

/// Longest text that is held back because it may become a call. A file that a model writes through
/// a tool has some tens of kilobytes; what is longer than this is text.
const CALL_BYTES_MAX: usize = 1 << 20;

/// Longest name of a tool; the interfaces that are imitated allow 64 characters.
const NAME_BYTES_MAX: usize = 256;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Of the tool.
    pub name: String,
    /// A JSON object, as text.
    pub arguments: String,
}

/// Whether the model may call tools, and what it knows of them.
#[derive(Debug, Clone, Default)]
pub enum Tools {
    /// It may not: what looks like a call is text.
    #[default]
    None,
    /// It may.
    Offered(Offer),
}

/// What the tools are called, and which of their parameters are text.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    tools: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Tools {
    /// From descriptions as the interfaces that are imitated take them: with `function` around
    /// name and `parameters`, or without it, or with `input_schema`. None of them is none.
    pub fn described(descriptions: &[Value]) -> Self {
        if descriptions.is_empty() {
            return Self::None;
        }
        let mut tools = BTreeMap::new();
        for description in descriptions {
            let function = description.get("function").unwrap_or(description);
            let Some(name) = function.get("name").and_then(Value::as_str) else {
                continue;
            };
            let schema = function.get("parameters").or(function.get("input_schema"));
            let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
            let is_text = |schema: &Value| schema.get("type").is_none_or(|kind| kind == "string");
            let types = properties.into_iter().flatten();
            let types = types.map(|(name, schema)| (name.clone(), is_text(schema)));
            tools.insert(name.to_owned(), types.collect());
        }
        Self::Offered(Offer { tools })
    }
}

impl Offer {
    fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// A parameter that was written without quotes.
    fn value(&self, tool: &str, parameter: &str, text: &str) -> Value {
        let types = self.tools.get(tool);
        let is_text = types.and_then(|types| types.get(parameter)).copied();
        let as_text = || Value::from(text);
        match is_text.unwrap_or(true) {
            true => as_text(),
            false => serde_json::from_str(text).unwrap_or_else(|_| as_text()),
        }
    }
}

/// What a text that began like a call is, so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It may become one.
    More,
    /// Its first bytes are these calls.
    Done { calls: Vec<ToolCall>, bytes: usize },
    /// It is none.
    Broken,
}

/// A text that may become a call.
#[derive(Debug, Clone)]
pub(super) struct CallText {
    pub(super) form: CallForm,
    /// With its mark.
    pub(super) raw: String,
    pub(super) mark_bytes: usize,
    /// Of a JSON value in it, once it has begun.
    json: Option<Json>,
}

#[derive(Debug, Clone)]
struct Json {
    start: usize,
    scanned: usize,
    scan: JsonScan,
}

impl CallText {
    pub(super) fn new(form: CallForm, mark: &str) -> Self {
        Self {
            form,
            raw: mark.to_owned(),
            mark_bytes: mark.len(),
            json: None,
        }
    }

    /// Takes more text and looks how far it is.
    pub(super) fn push(&mut self, text: &str, offer: &Offer) -> Progress {
        self.raw.push_str(text);
        if self.raw.len() > CALL_BYTES_MAX {
            return Progress::Broken;
        }
        let body = &self.raw[self.mark_bytes..];
        match self.form {
            CallForm::Tagged => {
                let words = body.trim_start();
                if FUNCTION.starts_with(words) || words.is_empty() {
                    return Progress::More;
                }
                match words.starts_with(FUNCTION) {
                    true => self.function(self.raw.len() - words.len(), offer),
                    false => self.object(|value| call_of(&value).map(|call| vec![call])),
                }
            }
            CallForm::Function => self.function(self.mark_bytes - FUNCTION.len(), offer),
            CallForm::List => match body.trim_start().chars().next() {
                None => Progress::More,
                Some('[') => self.object(|value| calls_of(&value)),
                Some(_) => self.named(),
            },
            CallForm::PythonTag => self.object(|value| call_of(&value).map(|call| vec![call])),
            CallForm::Bare => {
                if !may_be_bare(body) {
                    return Progress::Broken;
                }
                let offered = |call: &ToolCall| offer.has(&call.name);
                self.object(|value| call_of(&value).filter(offered).map(|call| vec![call]))
            }
        }
    }

    /// A JSON value after white space.
    fn object(&mut self, read: impl FnOnce(Value) -> Option<Vec<ToolCall>>) -> Progress {
        let body = self.raw[self.mark_bytes..].trim_start();
        self.json_from(self.raw.len() - body.len(), read)
    }

    /// The JSON value that begins at a place.
    fn json_from(
        &mut self,
        start: usize,
        read: impl FnOnce(Value) -> Option<Vec<ToolCall>>,
    ) -> Progress {
        match self.raw[start..].chars().next() {
            None => return Progress::More,
            Some('{' | '[') => {}
            Some(_) => return Progress::Broken,
        }
        let json = self.json.get_or_insert_with(|| Json {
            start,
            scanned: start,
            scan: JsonScan::default(),
        });
        let end = json.scan.push(&self.raw[json.scanned..]);
        let Some(end) = end.map(|bytes| json.scanned + bytes) else {
            json.scanned = self.raw.len();
            return Progress::More;
        };
        let value = serde_json::from_str(&self.raw[json.start..end]).ok();
        match value.and_then(read) {
            Some(calls) => Progress::Done { calls, bytes: end },
            None => Progress::Broken,
        }
    }

    /// `name[ARGS]{…}`, perhaps with `[CALL_ID]…` between.
    fn named(&mut self) -> Progress {
        let body = &self.raw[self.mark_bytes..];
        let Some(brace) = body.find('{') else {
            return match body.len() > 2 * NAME_BYTES_MAX || body.trim_start().contains('\n') {
                true => Progress::Broken,
                false => Progress::More,
            };
        };
        let before = &body[..brace];
        let before = before.strip_suffix("[ARGS]").unwrap_or(before);
        let name = before.split("[CALL_ID]").next().unwrap_or_default();
        let Some(name) = good_name(name) else {
            return Progress::Broken;
        };
        self.json_from(self.mark_bytes + brace, |value| {
            let arguments = value.to_string();
            Some(vec![ToolCall { name, arguments }])
        })
    }

    /// `<function=name>` at a place, and its parameters.
    fn function(&mut self, start: usize, offer: &Offer) -> Progress {
        let text = &self.raw[start..];
        let Some((name, body)) = text[FUNCTION.len()..].split_once('>') else {
            return match text.len() > NAME_BYTES_MAX + FUNCTION.len() {
                true => Progress::Broken,
                false => Progress::More,
            };
        };
        let Some(name) = good_name(name) else {
            return Progress::Broken;
        };
        let words = body.trim_start();
        if words.is_empty() {
            return Progress::More;
        }
        if words.starts_with('{') {
            return self.json_from(self.raw.len() - words.len(), |value| {
                let arguments = value.to_string();
                Some(vec![ToolCall { name, arguments }])
            });
        }
        let Some(end) = body.find(FUNCTION_END) else {
            let may_go_on = PARAMETER.starts_with(words) || words.starts_with(PARAMETER);
            return match may_go_on || FUNCTION_END.starts_with(words) {
                true => Progress::More,
                false => Progress::Broken,
            };
        };
        let bytes = self.raw.len() - body.len() + end;
        match parameters(&body[..end], |key, text| offer.value(&name, key, text)) {
            Some(map) => {
                let arguments = Value::Object(map).to_string();
                Progress::Done {
                    calls: vec![ToolCall { name, arguments }],
                    bytes,
                }
            }
            None => Progress::Broken,
        }
    }
}

const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

/// `<parameter=name>` and its value, one after the other. A forgotten end is where the next one
/// begins.
fn parameters(mut text: &str, value: impl Fn(&str, &str) -> Value) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Some(map);
        }
        let (key, rest) = text.strip_prefix(PARAMETER)?.split_once('>')?;
        let next = rest.find(&format!("\n{PARAMETER}")).unwrap_or(rest.len());
        let (written, after) = match rest.find(PARAMETER_END).filter(|end| *end <= next) {
            Some(end) => (&rest[..end], &rest[end + PARAMETER_END.len()..]),
            None => rest.split_at(next),
        };
        // The line breaks after the one mark and before the other are the form's.
        let written = written.strip_prefix('\n').unwrap_or(written);
        let written = written.strip_suffix('\n').unwrap_or(written);
        map.insert(key.trim().to_owned(), value(key.trim(), written));
        text = after;
    }
}

/// Whether a text at the start of a reply may be a call: an object whose first key is the name.
fn may_be_bare(text: &str) -> bool {
    let Some(inside) = text.trim_start().strip_prefix('{') else {
        return text.trim_start().is_empty();
    };
    let key = inside.trim_start();
    ["\"name\"", "\"type\"", "\"function\""]
        .iter()
        .any(|known| key.starts_with(known) || known.starts_with(key))
}

fn calls_of(list: &Value) -> Option<Vec<ToolCall>> {
    let calls: Option<Vec<ToolCall>> = list.as_array()?.iter().map(call_of).collect();
    calls.filter(|calls| !calls.is_empty())
}

fn call_of(value: &Value) -> Option<ToolCall> {
    let inner = value.get("function").filter(|inner| inner.is_object());
    let value = inner.unwrap_or(value);
    let name = value.get("name").or(value.get("function"))?.as_str()?;
    let name = good_name(name)?;
    let arguments = ["arguments", "parameters", "args"];
    let arguments = arguments.iter().find_map(|key| value.get(key));
    let arguments = match arguments {
        None | Some(Value::Null) => String::from("{}"),
        // Some models write the object as a string. What is none cannot be handed on as a call.
        Some(Value::String(text)) if text.trim().is_empty() => String::from("{}"),
        Some(Value::String(text)) => {
            let written: Map<String, Value> = serde_json::from_str(text).ok()?;
            Value::Object(written).to_string()
        }
        Some(value @ Value::Object(_)) => value.to_string(),
        Some(_) => return None,
    };
    Some(ToolCall { name, arguments })
}

fn good_name(name: &str) -> Option<String> {
    let name = name.trim();
    let is_good = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(|c: char| c.is_whitespace() || c.is_control() || "<>{}".contains(c));
    is_good.then(|| name.to_owned())
}
