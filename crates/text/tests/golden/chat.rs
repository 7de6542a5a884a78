//! Rendered conversations equal those of Jinja2 set up as Hugging Face's transformers do.

use std::collections::HashMap;

use crate::support::{golden_files, open_model, tokenizer};
use candor_text::{ChatTemplate, Generation, LocalTime, RenderRequest, TemplateError};
use serde_json::{Map, Value};

/// The time at which the golden data was rendered.
const NOW: LocalTime = LocalTime {
    year: 2026,
    month: 1,
    day: 31,
    hour: 12,
    minute: 0,
    second: 0,
};

#[test]
fn rendered_conversations_equal_the_reference() {
    let mut files: HashMap<String, Value> = golden_files("chat").into_iter().collect();
    let conversations = files.remove("conversations").expect("the conversations");
    for (name, golden) in files {
        let Some(model) = open_model(golden["template"].as_str().unwrap(), "chat template") else {
            continue;
        };
        let template = model
            .index()
            .chat_template
            .as_deref()
            .expect("the model has a template");
        let template = ChatTemplate::compile(template).unwrap();
        let tokenizer = tokenizer(&model);
        let mut messages_and_cases = 0;
        for case in golden["cases"].as_array().unwrap() {
            let conversation = conversations
                .as_array()
                .unwrap()
                .iter()
                .find(|conversation| conversation["name"] == case["name"])
                .expect("a conversation of this name");
            let list = |field: &str| -> &[Value] {
                conversation
                    .get(field)
                    .and_then(Value::as_array)
                    .map_or(&[], Vec::as_slice)
            };
            let mut request = RenderRequest::new(&tokenizer, list("messages"));
            assert_eq!(
                (&*request.bos, &*request.eos),
                (text(&golden["bos_token"]), text(&golden["eos_token"]))
            );
            request.tools = list("tools");
            request.extra = match conversation.get("kwargs") {
                Some(Value::Object(extra)) => extra.clone(),
                _ => Map::new(),
            };
            request.generation = match conversation.get("add_generation_prompt") {
                Some(Value::Bool(true)) => Generation::Prompt,
                _ => Generation::None,
            };
            request.now = Some(NOW);
            check(&name, &template, &request, case);
            messages_and_cases += 1;
        }
        assert_eq!(messages_and_cases, 15, "{name}");
    }
}

fn check(name: &str, template: &ChatTemplate, request: &RenderRequest<'_>, case: &Value) {
    let conversation = text(&case["name"]);
    match (template.render(request), case.get("text")) {
        (Ok(prompt), Some(expected)) => {
            assert_eq!(prompt.text, text(expected), "{name}: {conversation}");
        }
        (Err(TemplateError::Refused { message }), None) => {
            assert_eq!(message, text(&case["message"]), "{name}: {conversation}");
        }
        // Other failures have the name of a Python exception, which is not ours to have.
        (Err(TemplateError::Failed { .. }), None) => {}
        (found, expected) => {
            panic!("{name}: {conversation}: {found:?} instead of {expected:?}");
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
