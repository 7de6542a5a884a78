//! Tools for a model whose chat template does not speak of them: it is told in words what may be
//! called and how, and what was called before is written out.

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

/// Whether a template writes tools by itself.
fn speaks(template: Option<&str>) -> bool {
    template.is_some_and(|template| template.contains("tools"))
}

/// Writes tools and calls into the messages where the template would leave them out; whether it did.
pub(crate) fn tell(template: Option<&str>, chat: &mut Chat) -> bool {
    if speaks(template) || chat.tools.is_empty() {
        return false;
    }
    let described: Vec<String> = chat.tools.iter().map(Value::to_string).collect();
    let words = format!("{MAY}\n{}\n{HOW}", described.join("\n"));
    chat.messages.iter_mut().for_each(spell_out);
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
    true
}

/// A call, or what one gave, as words.
fn spell_out(message: &mut Value) {
    let said = message["content"].as_str().unwrap_or_default().to_owned();
    if message["role"] == json!("tool") {
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

    #[test]
    fn a_template_that_speaks_of_tools_is_left_alone() {
        let mut chat = asked();
        assert!(!tell(Some("{{ tools }}"), &mut chat));
        assert_eq!(chat.messages, asked().messages);
        chat.tools.clear();
        assert!(!tell(None, &mut chat));
        assert_eq!(chat.messages, asked().messages);
    }

    #[test]
    fn another_is_told_of_tools_and_of_what_was_called() {
        for template in [None, Some("{{ messages }}")] {
            let mut chat = asked();
            assert!(tell(template, &mut chat));
            let said: Vec<(&str, &str)> = chat
                .messages
                .iter()
                .map(|message| {
                    let text = |name: &str| message[name].as_str().unwrap();
                    (text("role"), text("content"))
                })
                .collect();
            assert!(
                said[0].0 == "system" && said[0].1.contains("\"weather\""),
                "{said:?}"
            );
            let call =
                "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"n\":1}}\n</tool_call>";
            assert_eq!(said[1], ("user", "Hello"));
            assert_eq!(said[2].1, format!("So:\n{call}"));
            assert_eq!(said[3], ("user", "<tool_response>\nwarm\n</tool_response>"));
            // What was said to the model before stays first.
            let mut chat = asked();
            let system = json!({ "role": "system", "content": "Be brief." });
            chat.messages.insert(0, system);
            tell(template, &mut chat);
            assert_eq!(chat.messages.len(), 4);
            let first = chat.messages[0]["content"].as_str().unwrap();
            assert!(first.starts_with("Be brief.\n\nYou may call"), "{first}");
        }
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
