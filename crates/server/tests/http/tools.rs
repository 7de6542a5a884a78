//! Calls of tools in a stream, as the clients of each protocol put them together.

use serde_json::{Value, json};

use super::desk::Desk;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string", "maxLength": 5 } },
        "required": ["city"],
        "additionalProperties": false,
    })
}

/// The arguments as they were put together, and the name.
fn check(name: &Value, arguments: &str) {
    assert_eq!(name, &json!("weather"));
    let read: Value = serde_json::from_str(arguments).unwrap();
    assert!(read["city"].is_string(), "{arguments}");
}

#[test]
fn a_call_for_anthropics_clients_is_a_block_of_its_own() {
    let desk = Desk::new();
    let mut body = json!({
        "model": "tiny", "max_tokens": 200, "temperature": 0,
        "messages": [{ "role": "user", "content": "Hello" }],
        "tools": [{ "name": "weather", "input_schema": schema() }],
        "tool_choice": { "type": "any" },
    });
    let whole = desk.post("/v1/messages", &body).answer().json();
    assert_eq!(whole["stop_reason"], json!("tool_use"), "{whole}");
    let block = &whole["content"][0];
    check(&block["name"], &block["input"].to_string());
    body["stream"] = json!(true);
    let events = desk.post("/v1/messages", &body).answer().events();
    let of = |kind: &str| -> Vec<&Value> {
        let all = events.iter();
        all.filter(|event| event["type"] == json!(kind)).collect()
    };
    let [begun] = of("content_block_start")[..] else {
        panic!("{events:?}");
    };
    assert_eq!(begun["content_block"]["type"], json!("tool_use"));
    let deltas = of("content_block_delta");
    let pieces = deltas
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str());
    let arguments: String = pieces.collect();
    check(&begun["content_block"]["name"], &arguments);
    assert_eq!(of("content_block_stop").len(), 1);
    let [end] = of("message_delta")[..] else {
        panic!("{events:?}");
    };
    assert_eq!(end["delta"]["stop_reason"], json!("tool_use"));
}

#[test]
fn a_call_for_clients_of_responses_is_an_item_of_its_own() {
    let desk = Desk::new();
    let body = json!({
        "model": "tiny", "max_output_tokens": 200, "temperature": 0, "input": "Hello",
        "tools": [{ "type": "function", "name": "weather", "parameters": schema() }],
        "tool_choice": "required", "stream": true,
    });
    let events = desk.post("/v1/responses", &body).answer().events();
    let done = events
        .iter()
        .find(|event| event["type"] == json!("response.function_call_arguments.done"));
    let arguments = done.and_then(|event| event["arguments"].as_str());
    let last = events.last().unwrap();
    assert_eq!(last["type"], json!("response.completed"), "{last}");
    let item = &last["response"]["output"][0];
    assert_eq!(item["type"], json!("function_call"), "{last}");
    assert_eq!(item["arguments"].as_str(), arguments, "{events:?}");
    check(&item["name"], arguments.unwrap());
}
