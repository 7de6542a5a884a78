//! Tools for models whose template does not write them: nothing of them is left out unsaid.

use candor_backend::Feed;
use candor_testkit::gguf::Value as Entry;
use candor_testkit::{CHAT_TEMPLATE, TinyModel};
use serde_json::{Value, json};

use super::desk::{Desk, Plan, chat, reply};

#[test]
fn a_template_that_does_not_speak_of_tools_is_told_and_the_client_hears_of_it() {
    let desk = Desk::new();
    let mut body = json!({
        "model": "tiny", "max_tokens": 2, "temperature": 0,
        "messages": [{ "role": "user", "content": "Hello" }],
    });
    let prompt = |body: &Value| {
        let json = desk.post("/v1/messages", body).answer().json();
        let usage = &json["usage"];
        let read = |name: &str| usage[name].as_u64().unwrap();
        let tokens = read("input_tokens") + read("cache_read_input_tokens");
        (tokens, json["candor"]["template_fallback"].clone())
    };
    let (without, told) = prompt(&body);
    assert_eq!(told, Value::Null);
    body["tools"] = json!([{ "name": "weather", "input_schema": json!({ "type": "object" }) }]);
    let (with, told) = prompt(&body);
    assert!(with > without + 40, "{with} {without}");
    assert!(told.as_str().unwrap().contains("tools"), "{told}");
    let counted = desk.post("/v1/messages/count_tokens", &body).answer();
    assert_eq!(counted.json()["input_tokens"], json!(with));
}

/// A conversation in which a tool was called, with tools offered or without.
fn after_a_call(offers: bool) -> Value {
    let mut body = chat("QUERY?", 2);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(
        json!({ "role": "assistant", "content": null, "tool_calls": [{
        "id": "call_1", "type": "function",
        "function": { "name": "weather", "arguments": "{\"city\":\"Oslo\"}" },
    }] }),
    );
    messages.push(json!({ "role": "tool", "tool_call_id": "call_1", "content": "ten degrees" }));
    messages.push(json!({ "role": "user", "content": "So?" }));
    if offers {
        body["tools"] = json!([{ "type": "function", "function": {
            "name": "weather", "parameters": { "type": "object" },
        } }]);
    }
    body
}

/// All letters that the model was given, without blanks.
fn read_by(desk: &Desk) -> String {
    let seen = desk.script.batches();
    let rows = seen.iter().flat_map(|batch| batch.rows.iter());
    let letters = rows.filter_map(|row| {
        let Feed::Token(token) = row.feed;
        u8::try_from(token).ok().filter(u8::is_ascii_graphic)
    });
    letters.map(char::from).collect()
}

/// What a model with this template reads of a conversation with a call, and what the client is told.
fn check(template: Option<&str>, says: &[&str], told: &[&str]) {
    const TEMPLATE: &str = "tokenizer.chat_template";
    for offers in [false, true] {
        let model = match template {
            Some(template) => TinyModel::llama().metadata(TEMPLATE, Entry::from(template)),
            None => TinyModel::llama().without_metadata(TEMPLATE),
        };
        let desk = Desk::with(Plan {
            model,
            ..Plan::default()
        });
        let answer = desk
            .post("/v1/chat/completions", &after_a_call(offers))
            .answer();
        assert_eq!(answer.status, 200, "{template:?}: {}", answer.text());
        let read = read_by(&desk);
        let fallback = answer.json()["candor"]["template_fallback"].clone();
        for words in says {
            let words = words.replace(' ', "");
            assert!(
                read.contains(&words),
                "{template:?} {offers}: {words} in {read}"
            );
        }
        for words in told {
            let said = fallback.as_str().unwrap_or_default();
            assert!(
                said.contains(words),
                "{template:?} {offers}: {words} in {fallback}"
            );
        }
        assert_eq!(
            fallback.is_null(),
            told.is_empty(),
            "{template:?} {offers}: {fallback}"
        );
    }
}

#[test]
fn calls_of_earlier_turns_are_read_whatever_the_template_can() {
    let call = r#"{"name": "weather", "arguments": {"city":"Oslo"}}"#;
    let says = [call, "ten degrees", "So?", "QUERY?"];
    const WORDS: &str = "told of them in words";
    check(None, &says, &["brings no chat template", WORDS]);
    check(Some(CHAT_TEMPLATE), &says, &[WORDS]);
    check(Some("{% if %}"), &says, &["template", WORDS]);
    // It names tools, but fails for every conversation.
    let failing = "{{ tools }}{{ tool_calls }}{{ raise_exception('no') }}";
    check(Some(failing), &says, &["no", WORDS]);
    // It refuses those with tools alone, and is used where they are told in words.
    let refusing = format!(
        "{{% for message in messages %}}{{% if message.tool_calls or tools or message.role == 'tool' %}}\
         {{{{ raise_exception('no tools') }}}}{{% endif %}}{{% endfor %}}{CHAT_TEMPLATE}"
    );
    check(Some(&refusing), &says, &["no tools"]);
    // It writes them by itself.
    let speaking = "{{ tools }}{% for message in messages %}{{ message.content }}\
        {% if message.tool_calls %}CALLED {{ message.tool_calls[0].function.name }}{% endif %}\
        {% endfor %}";
    check(Some(speaking), &["CALLED", "ten degrees", "So?"], &[]);
}

#[test]
fn what_a_model_that_was_told_in_words_calls_is_a_call() {
    let desk = Desk::new();
    let written = "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \
        \"Oslo\"}}\n</tool_call>";
    reply(&desk, written.as_bytes());
    let mut body = after_a_call(true);
    body["max_tokens"] = json!(200);
    let json = desk.post("/v1/chat/completions", &body).answer().json();
    let choice = &json["choices"][0];
    assert_eq!(choice["finish_reason"], json!("tool_calls"), "{json}");
    let call = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], json!("weather"), "{json}");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "city": "Oslo" }));
}
