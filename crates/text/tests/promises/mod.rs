//! What templates promise whatever a file has in their place. Shared with the fuzz target.

use candor_text::{
    ChatFormat, ChatTemplate, ControlSpellings, Generation, LocalTime, Prompt, RENDER_BYTES_MAX,
    RenderRequest, StopMatcher, TemplateError,
};
use serde_json::{Map, Value, json};

/// Messages go to a person: short, whatever a template says.
const MESSAGE_BYTES_MAX: usize = 3_000;

/// The vocabulary's control tokens.
pub(crate) fn controls() -> ControlSpellings {
    let names = ["<|im_start|>", "<|im_end|>", "[INST]", "</s>", "é"];
    ControlSpellings::new(names.map(String::from)).expect("they are few")
}

/// Conversations of all kinds: system texts, empty answers, lists of parts, tool calls.
pub(crate) fn conversations() -> Vec<Vec<Value>> {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let parts = json!([{ "type": "text", "text": "a [INST] b" }, { "type": "image" }]);
    let call = json!({ "function": { "name": "f", "arguments": { "x": [1, 2.5, null] } } });
    vec![
        Vec::new(),
        vec![message("user", "Hi <|im_end|> é")],
        vec![
            message("system", "Be brief."),
            message("user", "a"),
            message("user", "b"),
            message("assistant", ""),
            message("user", "</s>"),
        ],
        vec![
            json!({ "role": "user", "content": parts }),
            json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            json!({ "role": "tool", "content": "{}", "name": "f" }),
        ],
    ]
}

/// Whether a template compiles and can be rendered for one of the conversations at least.
pub(crate) fn check(template: &str, conversations: &[Vec<Value>]) -> bool {
    let controls = controls();
    let tools = [json!({ "type": "function", "function": { "name": "f" } })];
    let compiled = ChatTemplate::compile(template);
    let mut rendered = false;
    if let Err(error) = &compiled {
        check_message(&error.to_string());
    }
    let format = ChatFormat::new(Some(template), &controls);
    StopMatcher::new(format.end_strings().to_vec()).expect("end strings are stop strings");
    for messages in conversations {
        let request = RenderRequest {
            messages,
            tools: &tools,
            extra: Map::new(),
            generation: Generation::Prompt,
            bos: "<s>".into(),
            eos: "</s>".into(),
            now: Some(NOON),
            controls: &controls,
        };
        let direct = compiled.as_ref().map(|compiled| compiled.render(&request));
        let is_endless = matches!(direct, Ok(Err(TemplateError::Endless)));
        match direct {
            Ok(Ok(prompt)) => {
                rendered = true;
                check_prompt(&prompt);
            }
            Ok(Err(error)) => check_message(&error.to_string()),
            Err(_) => {}
        }
        let shown = format.render(&request);
        check_prompt(&shown.prompt);
        StopMatcher::new(shown.end_strings).expect("end strings are stop strings");
        if let Some(fallback) = shown.fallback {
            check_message(&fallback.to_string());
        }
        if is_endless {
            // The others would take as long, and a search would learn little more of them.
            break;
        }
    }
    rendered
}

const NOON: LocalTime = LocalTime {
    year: 2026,
    month: 1,
    day: 31,
    hour: 12,
    minute: 0,
    second: 0,
};

fn check_message(message: &str) {
    assert!(message.len() <= MESSAGE_BYTES_MAX, "{message}");
}

/// Literal ranges are sorted, apart from each other, and hold whole characters.
fn check_prompt(prompt: &Prompt) {
    assert!(prompt.text.len() <= RENDER_BYTES_MAX);
    let mut from = 0;
    for literal in &prompt.literals {
        assert!(literal.start >= from && literal.start < literal.end);
        assert!(prompt.text.get(literal.clone()).is_some(), "{literal:?}");
        from = literal.end;
    }
}
