//! Conversations, tools and formats as OpenAI's and Ollama's clients write them, made into what
//! chat templates read.

use candor_app::headless::Constraint;
use serde_json::{Map, Value, json};

use super::fields::Fields;
use crate::ask::{Ask, Chat, Form, Input};
use crate::fault::Fault;

/// Most messages of a conversation. The context ends it long before.
const MESSAGES_MAX: usize = 10_000;

/// Most tools that are offered.
const TOOLS_MAX: usize = 256;

/// The roles that there are.
const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// The messages of a request.
pub(crate) fn messages(fields: &Fields<'_>) -> Result<Vec<Value>, Fault> {
    let Some(list) = fields.list("messages")? else {
        return Err(fields.wrong("messages", "is missing"));
    };
    if list.is_empty() || list.len() > MESSAGES_MAX {
        let what = format!("has to have 1 to {MESSAGES_MAX} messages");
        return Err(fields.wrong("messages", &what));
    }
    let numbered = list.iter().enumerate();
    numbered
        .map(|(i, value)| message(&Fields::of(value, format!("messages[{i}]"))?))
        .collect()
}

/// One message as chat templates read it.
pub(crate) fn message(fields: &Fields<'_>) -> Result<Value, Fault> {
    let role = fields.text("role")?;
    let Some(role) = role.filter(|role| ROLES.contains(role)) else {
        return Err(fields.wrong("role", &format!("has to be one of {}", ROLES.join(", "))));
    };
    // Templates know the older names.
    let role = match role {
        "developer" => "system",
        "function" => "tool",
        other => other,
    };
    let calls = calls(fields)?;
    let content = match fields.raw("content") {
        None if role == "assistant" => None,
        None => return Err(fields.wrong("content", "is missing")),
        Some(_) => Some(text(fields, "content")?),
    };
    let mut message = Map::new();
    message.insert(String::from("role"), json!(role));
    message.insert(String::from("content"), json!(content.unwrap_or_default()));
    let thoughts = fields
        .text("reasoning_content")?
        .or(fields.text("thinking")?);
    if let Some(thoughts) = thoughts {
        message.insert(String::from("reasoning_content"), json!(thoughts));
    }
    if !calls.is_empty() {
        message.insert(String::from("tool_calls"), json!(calls));
    }
    for name in ["tool_call_id", "name", "tool_name"] {
        if let Some(value) = fields.text(name)? {
            message.insert(name.to_owned(), json!(value));
        }
    }
    Ok(Value::Object(message))
}

/// A text, or a list of parts that are all text.
pub(crate) fn text(fields: &Fields<'_>, name: &str) -> Result<String, Fault> {
    match fields.raw(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut all = String::new();
            for (i, part) in parts.iter().enumerate() {
                let part = Fields::of(part, format!("{}[{i}]", fields.place(name)))?;
                match part.text("type")? {
                    Some("text" | "input_text" | "output_text") => {
                        let Some(text) = part.text("text")? else {
                            return Err(part.wrong("text", "is missing"));
                        };
                        all.push_str(text);
                    }
                    Some("refusal") => all.push_str(part.text("refusal")?.unwrap_or_default()),
                    Some(other) => {
                        let what = format!("is {other:?}; only text is read here");
                        return Err(Fault::unsupported(&part.place("type"), &what));
                    }
                    None => return Err(part.wrong("type", "is missing")),
                }
            }
            Ok(all)
        }
        _ => Err(fields.wrong(name, "has to be a string or a list of parts")),
    }
}

/// The calls that a message made. Templates read arguments as an object, clients write a string.
fn calls(fields: &Fields<'_>) -> Result<Vec<Value>, Fault> {
    let list = fields.list("tool_calls")?.unwrap_or_default();
    let call = |(i, value): (usize, &Value)| {
        let call = Fields::of(value, format!("{}[{i}]", fields.place("tool_calls")))?;
        let Some(function) = call.object("function")? else {
            return Err(call.wrong("function", "is missing"));
        };
        let Some(name) = function.text("name")? else {
            return Err(function.wrong("name", "is missing"));
        };
        let arguments = match function.raw("arguments") {
            None => json!({}),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(value @ Value::Object(_)) => value,
                Ok(_) | Err(_) => json!(text),
            },
            Some(value @ Value::Object(_)) => value.clone(),
            Some(_) => return Err(function.wrong("arguments", "has to be a string")),
        };
        let id = call.text("id")?.unwrap_or_default();
        Ok(json!({
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        }))
    };
    list.iter().enumerate().map(call).collect()
}

/// Variables of the chat template that a request may set.
pub(crate) fn variables(fields: &Fields<'_>) -> Result<Map<String, Value>, Fault> {
    let mut variables = Map::new();
    if let Some(given) = fields.object("chat_template_kwargs")? {
        variables = given.map().clone();
        // These have places of their own.
        for name in ["messages", "tools", "add_generation_prompt"] {
            variables.remove(name);
        }
    }
    if let Some(effort) = fields.text("reasoning_effort")? {
        variables.insert(String::from("reasoning_effort"), json!(effort));
        if effort == "none" {
            variables.insert(String::from("enable_thinking"), json!(false));
        }
    }
    Ok(variables)
}

/// The tools that are offered, by `tools` and `tool_choice`.
pub(crate) fn tools(fields: &Fields<'_>, chat: &mut Chat) -> Result<Form, Fault> {
    let list = fields.list("tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    if list.len() > TOOLS_MAX {
        return Err(fields.wrong("tools", &format!("may have {TOOLS_MAX} tools")));
    }
    for (i, value) in list.iter().enumerate() {
        let tool = Fields::of(value, format!("tools[{i}]"))?;
        match tool.text("type")? {
            Some("function") | None => {}
            Some(other) => {
                let what = format!("is {other:?}; only functions are offered here");
                return Err(Fault::unsupported(&tool.place("type"), &what));
            }
        }
        let Some(function) = tool.object("function")? else {
            return Err(tool.wrong("function", "is missing"));
        };
        if function.text("name")?.is_none_or(str::is_empty) {
            return Err(function.wrong("name", "is missing"));
        }
        function.object("parameters")?;
        tools.push(value.clone());
    }
    let choice = match fields.raw("tool_choice") {
        Some(value @ Value::Object(_)) => {
            let choice = Fields::of(value, "tool_choice")?;
            let function = choice.object("function")?;
            let name = function.map(|function| function.text("name"));
            let Some(name) = name.transpose()?.flatten() else {
                return Err(choice.wrong("function", "has to have a name"));
            };
            Choice::Named(name.to_owned())
        }
        other => choice_of(fields, other)?,
    };
    choose(chat, tools, choice, "tool_choice")
}

/// A choice that names no tool.
pub(crate) fn choice_of(fields: &Fields<'_>, choice: Option<&Value>) -> Result<Choice, Fault> {
    match choice.map(Value::as_str) {
        None | Some(Some("auto")) => Ok(Choice::Auto),
        Some(Some("none")) => Ok(Choice::None),
        Some(Some("required")) => Ok(Choice::Required),
        Some(_) => {
            let what = "has to be \"auto\", \"none\", \"required\" or an object";
            Err(fields.wrong("tool_choice", what))
        }
    }
}

/// Which tools the model may or has to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    None,
    Required,
    Named(String),
}

/// Offers the tools that were chosen, and gives the form of the reply; `field` is where the choice
/// stands.
pub(crate) fn choose(
    chat: &mut Chat,
    tools: Vec<Value>,
    choice: Choice,
    field: &str,
) -> Result<Form, Fault> {
    match choice {
        Choice::None => Ok(Form::Free),
        Choice::Auto => {
            chat.tools = tools;
            Ok(Form::Free)
        }
        Choice::Required | Choice::Named(_) => {
            let is_meant = |tool: &&Value| match &choice {
                Choice::Named(name) => tool["function"]["name"] == json!(name),
                _ => true,
            };
            let calls: Vec<Value> = tools.iter().filter(is_meant).map(call_schema).collect();
            if calls.is_empty() {
                return Err(Fault::field(
                    field,
                    "asks for a call of a tool that is not there",
                ));
            }
            chat.tools = tools;
            Ok(Form::Call(Constraint::JsonSchema(any_of(calls))))
        }
    }
}

/// A schema that one of these fits.
fn any_of(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 {
        return schemas.remove(0);
    }
    for (i, schema) in schemas.iter_mut().enumerate() {
        place_at(schema, &format!("/anyOf/{i}"));
    }
    json!({ "anyOf": schemas })
}

/// Makes a schema one for its place in a larger one.
fn place_at(schema: &mut Value, place: &str) {
    if let Value::Object(fields) = schema {
        // It is no document of its own any more.
        fields.remove("$schema");
        fields.remove("$id");
    }
    rebase(schema, place);
}

/// Keywords whose values are schemas by names of anybody's choice (JSON Schema 2020-12, core, 10.3.2
/// and 8.2.4, and validation of draft 7).
const NAMED_SCHEMAS: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];

/// References of a schema into itself.
fn rebase(schema: &mut Value, place: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, place)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("$ref", Value::String(to)) => {
                        if let Some(path) = to.strip_prefix('#') {
                            *to = format!("#{place}{path}");
                        }
                    }
                    // Names that are no keywords, whatever they are.
                    (keyword, Value::Object(named)) if NAMED_SCHEMAS.contains(&keyword) => {
                        named.values_mut().for_each(|schema| rebase(schema, place));
                    }
                    // What stands there is no schema.
                    ("enum" | "const" | "default" | "examples", _) => {}
                    (_, value) => rebase(value, place),
                }
            }
        }
        _ => {}
    }
}

/// What a call of a tool looks like as a JSON object.
fn call_schema(tool: &Value) -> Value {
    let function = &tool["function"];
    let parameters = function
        .get("parameters")
        .filter(|schema| schema.is_object());
    let mut parameters = parameters
        .cloned()
        .unwrap_or_else(|| json!({ "type": "object" }));
    place_at(&mut parameters, "/properties/arguments");
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "enum": [function["name"]] },
            "arguments": parameters,
        },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

/// The form that the reply has to have, by `response_format`. A call that is required goes first.
pub(crate) fn response_format(fields: &Fields<'_>, ask: &mut Ask) -> Result<(), Fault> {
    text_format(fields, "response_format", ask)
}

/// The same under another name; there the schema may stand beside its type.
pub(crate) fn text_format(fields: &Fields<'_>, name: &str, ask: &mut Ask) -> Result<(), Fault> {
    let Some(format) = fields.object(name)? else {
        return Ok(());
    };
    let constraint = match format.text("type")? {
        Some("text") => return Ok(()),
        Some("json_object") => Constraint::JsonObject,
        Some("json_schema") => {
            let named = format
                .object("json_schema")?
                .unwrap_or_else(|| format.clone());
            let Some(schema) = named.object("schema")? else {
                return Err(named.wrong("schema", "is missing"));
            };
            Constraint::JsonSchema(json!(schema.map()))
        }
        _ => {
            let what = "has to be \"text\", \"json_object\" or \"json_schema\"";
            return Err(format.wrong("type", what));
        }
    };
    bind(ask, constraint);
    Ok(())
}

/// The same as Ollama asks for it: `"json"`, or a schema.
pub(crate) fn format(fields: &Fields<'_>, name: &str, ask: &mut Ask) -> Result<(), Fault> {
    let constraint = match fields.raw(name) {
        None => return Ok(()),
        Some(Value::String(text)) if text.is_empty() => return Ok(()),
        Some(Value::String(text)) if text == "json" => Constraint::JsonObject,
        Some(schema @ Value::Object(_)) => Constraint::JsonSchema(schema.clone()),
        Some(_) => return Err(fields.wrong(name, "has to be \"json\" or a schema")),
    };
    bind(ask, constraint);
    Ok(())
}

/// Begins a grammar that is Lark's rather than GBNF.
const LARK_MARK: &str = "%llguidance";

/// A grammar, or a schema, as clients of llama.cpp give it. The form that begins with `%llguidance` is followed;
/// GBNF is refused: a reply that keeps to nothing would be worse than none.
pub(crate) fn grammar(fields: &Fields<'_>, ask: &mut Ask) -> Result<(), Fault> {
    let schema = fields.object("json_schema")?;
    let grammar = fields.text("grammar")?.filter(|text| !text.is_empty());
    // One reply keeps to one form; which of two was meant is not ours to guess.
    for (name, is_there) in [
        ("json_schema", schema.is_some()),
        ("grammar", grammar.is_some()),
    ] {
        if is_there && (ask.form != Form::Free || schema.is_some() && grammar.is_some()) {
            let what = "cannot be kept beside another form of the reply: `json_schema`, `grammar`, \
                        `response_format` or a required call";
            return Err(fields.wrong(name, what));
        }
    }
    if let Some(schema) = schema {
        bind(ask, Constraint::JsonSchema(json!(schema.map())));
    }
    match grammar {
        None => Ok(()),
        Some(text) if text.trim_start().starts_with(LARK_MARK) => {
            bind(ask, Constraint::Lark(text.to_owned()));
            Ok(())
        }
        Some(_) => Err(Fault::unsupported(
            "grammar",
            "in GBNF is not followed here; write it in Lark after a first line `%llguidance {}`, or give a JSON schema",
        )),
    }
}

fn bind(ask: &mut Ask, constraint: Constraint) {
    if ask.form != Form::Free {
        return;
    }
    let tools = match &ask.input {
        Input::Chat(chat) => chat.tools.as_slice(),
        Input::Text(_) | Input::Ids(_) => &[],
    };
    // Who offers tools wants the form of what is said, not that nothing can be called.
    let constraint = match constraint {
        Constraint::JsonSchema(schema) if !tools.is_empty() => {
            let calls = tools.iter().map(call_schema);
            Constraint::JsonSchema(any_of(std::iter::once(schema).chain(calls).collect()))
        }
        other => other,
    };
    let name = |tool: &Value| Some(tool["function"]["name"].as_str()?.to_owned());
    let names: Vec<String> = tools.iter().filter_map(name).collect();
    ask.form = match (names.is_empty(), &constraint) {
        (false, Constraint::JsonSchema(_) | Constraint::JsonObject) => {
            Form::BoundOrCall(constraint, names)
        }
        _ => Form::Bound(constraint),
    };
}

/// How many of the best tokens are kept; 0 and less keep all.
pub(crate) fn top_k(fields: &Fields<'_>, name: &str) -> Result<Option<usize>, Fault> {
    let found = fields.whole(name, -1..=i64::from(u32::MAX))?;
    Ok(found.map(|k| usize::try_from(k).unwrap_or(0)))
}
