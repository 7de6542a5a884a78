//! Tools for a model whose chat template does not speak of them: it is told in words what may be
//! called and how, and what was called before is written out.

use candor_app::headless::{RenderOptions, Rendered, TokenizerError};
use candor_app::service::Opened;
use serde_json::{Value, json};

use crate::ask::Chat;

/// What is said to the client of it.
pub(crate) const TOLD: &str =
    "the chat template does not speak of tools; the model was told of them in words";

/// Before the descriptions.
const MAY: &str = "You may call these tools, described one a line:";

/// After them. The form is one that every model's replies are searched for.
const HOW: &str = "To call one, write nothing but\n<tool_call>\n\
{\"name\": \"its name\", \"arguments\": {\"its\": \"arguments\"}}\n</tool_call>\n\
What it gives is told between <tool_response> and </tool_response>.";

/// A conversation as the model reads it, with no tool and no call left out: where the template does
/// not write them, or cannot be used for them, they are told in words, and the result says so.
///
/// # Errors
/// The text is too long, or cannot be expressed.
pub(crate) fn render(
    opened: &Opened,
    chat: &mut Chat,
    options: &RenderOptions,
) -> Result<Rendered, TokenizerError> {
    let refused = if speaks(opened.template(), chat) {
        let rendered = opened.render(&chat.messages, options)?;
        if !rendered.is_built_in || chat.is_without_tools() {
            return Ok(rendered);
        }
        rendered.fallback
    } else {
        None
    };
    tell(chat);
    let mut rendered = opened.render(&chat.messages, options)?;
    let why = rendered.fallback.take().or(refused);
    rendered.fallback = Some(match why {
        Some(why) => format!("{why}; {TOLD}"),
        None => TOLD.to_owned(),
    });
    Ok(rendered)
}

impl Chat {
    fn is_without_tools(&self) -> bool {
        self.tools.is_empty() && !self.calls() && !self.has_results()
    }

    fn calls(&self) -> bool {
        let calls = |message: &Value| message.get("tool_calls").is_some();
        self.messages.iter().any(calls)
    }

    fn has_results(&self) -> bool {
        self.messages.iter().any(is_result)
    }
}

fn is_result(message: &Value) -> bool {
    message["role"] == json!("tool")
}

/// Whether a template writes by itself all that this conversation has of tools.
fn speaks(template: Option<&str>, chat: &Chat) -> bool {
    let wants = [
        (!chat.tools.is_empty(), "tools"),
        (chat.calls(), "tool_calls"),
        (chat.has_results(), "tool"),
    ];
    let names = |name| template.is_some_and(|template| template.contains(name));
    wants.into_iter().all(|(wants, name)| !wants || names(name))
}

/// Writes tools and calls into the messages as words.
fn tell(chat: &mut Chat) {
    chat.messages.iter_mut().for_each(spell_out);
    if chat.tools.is_empty() {
        return;
    }
    let described: Vec<String> = chat.tools.iter().map(Value::to_string).collect();
    let words = format!("{MAY}\n{}\n{HOW}", described.join("\n"));
    let first = chat.messages.first_mut();
    match first.filter(|first| first["role"] == json!("system")) {
        Some(system) => {
            let said = system["content"].as_str().unwrap_or_default();
            system["content"] = json!(format!("{said}\n\n{words}"));
        }
        None => {
            let system = json!({ "role": "system", "content": words });
            chat.messages.insert(0, system);
        }
    }
}

/// A call, or what one gave, as words.
fn spell_out(message: &mut Value) {
    let said = message["content"].as_str().unwrap_or_default().to_owned();
    if is_result(message) {
        let words = format!("<tool_response>\n{said}\n</tool_response>");
        *message = json!({ "role": "user", "content": words });
    }
    let calls = message.as_object_mut();
    let calls = calls.and_then(|message| message.remove("tool_calls"));
    let Some(Value::Array(calls)) = calls else {
        return;
    };
    let words = calls.iter().map(|call| {
        let function = &call["function"];
        // The name first, as the model is told to write it.
        let (name, arguments) = (&function["name"], &function["arguments"]);
        format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {arguments}}}\n</tool_call>")
    });
    let before = (!said.is_empty()).then_some(said);
    let all: Vec<String> = before.into_iter().chain(words).collect();
    message["content"] = json!(all.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a template writes by itself, by what the conversation has of tools.
    #[test]
    fn a_template_speaks_of_what_it_names() {
        let plain = Chat {
            messages: vec![json!({ "role": "user", "content": "Hello" })],
            ..Chat::default()
        };
        let offered = Chat {
            tools: asked().tools,
            ..plain.clone()
        };
        let called = Chat {
            tools: Vec::new(),
            ..asked()
        };
        let cases = [
            (None, [true, false, false, false]),
            (Some("{{ messages }}"), [true, false, false, false]),
            (Some("{{ tools }}"), [true, true, false, false]),
            (Some("{{ message.tool_calls }}"), [true, false, true, false]),
            (Some("{{ tools }}{{ message.tool_calls }}"), [true; 4]),
        ];
        for (template, expected) in cases {
            let found = [&plain, &offered, &called, &asked()].map(|chat| speaks(template, chat));
            assert_eq!(found, expected, "{template:?}");
        }
    }

    #[test]
    fn a_model_is_told_of_tools_and_of_what_was_called() {
        for offers in [true, false] {
            let mut chat = asked();
            if !offers {
                chat.tools.clear();
            }
            tell(&mut chat);
            let said: Vec<(&str, &str)> = chat
                .messages
                .iter()
                .map(|message| {
                    let text = |name: &str| message[name].as_str().unwrap();
                    (text("role"), text("content"))
                })
                .collect();
            let described = said[0].0 == "system" && said[0].1.contains("\"weather\"");
            assert_eq!(described, offers, "{said:?}");
            let said = &said[usize::from(offers)..];
            let call =
                "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"n\":1}}\n</tool_call>";
            assert_eq!(said[0], ("user", "Hello"));
            assert_eq!(said[1].1, format!("So:\n{call}"));
            assert_eq!(said[2], ("user", "<tool_response>\nwarm\n</tool_response>"));
        }
        // What was said to the model before stays first.
        let mut chat = asked();
        let system = json!({ "role": "system", "content": "Be brief." });
        chat.messages.insert(0, system);
        tell(&mut chat);
        assert_eq!(chat.messages.len(), 4);
        let first = chat.messages[0]["content"].as_str().unwrap();
        assert!(first.starts_with("Be brief.\n\nYou may call"), "{first}");
    }

    fn asked() -> Chat {
        let call = json!({ "function": { "name": "weather", "arguments": { "n": 1 } } });
        Chat {
            messages: vec![
                json!({ "role": "user", "content": "Hello" }),
                json!({ "role": "assistant", "content": "So:", "tool_calls": [call] }),
                json!({ "role": "tool", "content": "warm", "tool_call_id": "a" }),
            ],
            tools: vec![json!({ "function": { "name": "weather" } })],
            ..Chat::default()
        }
    }
}
