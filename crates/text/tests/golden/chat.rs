//! Rendered conversations equal those of Jinja2 set up as Hugging Face's transformers do.

use std::collections::HashMap;

use crate::support::{Template, golden_files, template};
use candor_text::{ChatTemplate, ControlSpellings, Generation, LocalTime, RenderRequest};
use candor_text::{Prompt, TemplateError};
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

/// What templates are checked with whose vocabulary is not here: what they write must not depend
/// on it.
const SPELLINGS: [&str; 8] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|end|>",
    "[INST]",
    "</s>",
    "<end_of_turn>",
    "<turn|>",
    "<|eot_id|>",
];

#[test]
fn rendered_conversations_equal_the_reference() {
    let mut files: HashMap<String, Value> = golden_files("chat").into_iter().collect();
    let conversations = files.remove("conversations").expect("the conversations");
    assert_eq!(files.len(), 18, "17 templates, one of them in two files");
    for (name, golden) in files {
        let Some(found) = template(text(&golden["template"])) else {
            continue;
        };
        let compiled = ChatTemplate::compile(found.text()).unwrap();
        for controls in [found.controls(), spellings()] {
            let mut cases = 0;
            for case in golden["cases"].as_array().unwrap() {
                let all = conversations.as_array().unwrap();
                let conversation = all.iter().find(|one| one["name"] == case["name"]);
                let conversation = conversation.expect("a conversation of this name");
                let request = request(&golden, conversation, &controls);
                check(&name, &compiled, &request, case);
                cases += 1;
            }
            assert_eq!(cases, 15, "{name}");
        }
        check_ends(&name, &golden, &found);
    }
}

fn spellings() -> ControlSpellings {
    ControlSpellings::new(SPELLINGS.map(String::from)).unwrap()
}

/// What the vocabulary calls its ends is what the reference was given.
fn check_ends(name: &str, golden: &Value, found: &Template) {
    if let Some(tokenizer) = found.tokenizer() {
        let request = RenderRequest::new(&tokenizer, &[]);
        let expected = (text(&golden["bos_token"]), text(&golden["eos_token"]));
        assert_eq!((&*request.bos, &*request.eos), expected, "{name}");
    }
}

fn request<'r>(
    golden: &Value,
    conversation: &'r Value,
    controls: &'r ControlSpellings,
) -> RenderRequest<'r> {
    let list = |field: &str| -> &'r [Value] {
        conversation
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    };
    RenderRequest {
        messages: list("messages"),
        tools: list("tools"),
        extra: match conversation.get("kwargs") {
            Some(Value::Object(extra)) => extra.clone(),
            _ => Map::new(),
        },
        generation: match conversation.get("add_generation_prompt") {
            Some(Value::Bool(true)) => Generation::Prompt,
            _ => Generation::None,
        },
        bos: text(&golden["bos_token"]).to_owned(),
        eos: text(&golden["eos_token"]).to_owned(),
        now: Some(NOW),
        controls,
    }
}

fn check(name: &str, template: &ChatTemplate, request: &RenderRequest<'_>, case: &Value) {
    let conversation = text(&case["name"]);
    match (template.render(request), case.get("text")) {
        (Ok(Prompt { text: found, .. }), Some(expected)) => {
            assert_eq!(found, text(expected), "{name}: {conversation}");
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
