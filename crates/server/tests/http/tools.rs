//! Calls of tools in a stream, as the clients of each protocol put them together.

use serde_json::{Value, json};

use super::desk::{Desk, chat, reply};

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
    // What was asked is repeated as it was asked.
    for name in ["tools", "tool_choice", "max_output_tokens", "temperature"] {
        assert_eq!(last["response"][name], body[name], "{name}");
    }
    check(&item["name"], arguments.unwrap());
}

/// What a model that is bound writes, and what a client is told of it.
fn check_bound(format: &Value, written: &str, is_call: bool) {
    for streams in [false, true] {
        let desk = Desk::new();
        reply(&desk, written.as_bytes());
        let mut body = chat("Hello", 200);
        body["stream"] = json!(streams);
        body["response_format"] = format.clone();
        body["tools"] = json!([{ "type": "function", "function": {
            "name": "weather", "parameters": schema(),
        } }]);
        let answer = desk.post("/v1/chat/completions", &body).answer();
        let what = format!("{format} {written} {streams}: {}", answer.text());
        assert_eq!(answer.status, 200, "{what}");
        let (message, events) = match streams {
            true => ("delta", answer.events()),
            false => ("message", vec![answer.json()]),
        };
        let choices: Vec<&Value> = events.iter().map(|event| &event["choices"][0]).collect();
        let said = choices
            .iter()
            .filter_map(|choice| choice[message]["content"].as_str());
        let said: String = said.collect();
        let mut calls = choices
            .iter()
            .map(|choice| &choice[message]["tool_calls"][0]["function"])
            .filter(|call| call.is_object());
        let end = choices
            .iter()
            .find_map(|choice| choice["finish_reason"].as_str());
        if is_call {
            assert_eq!((said.as_str(), end), ("", Some("tool_calls")), "{what}");
            let call = calls.next().unwrap_or_else(|| panic!("{what}"));
            check(&call["name"], call["arguments"].as_str().unwrap());
        } else {
            assert_eq!((said.as_str(), end), (written, Some("stop")), "{what}");
            assert!(calls.next().is_none(), "{what}");
        }
    }
}

#[test]
fn a_form_of_what_is_said_leaves_room_for_a_call() {
    let object = json!({ "type": "json_object" });
    // With a reference into itself, as generators of schemas write them.
    let bird = json!({ "type": "json_schema", "json_schema": { "name": "b", "schema": {
        "type": "object",
        "properties": { "name": { "$ref": "#/$defs/Name" } },
        "required": ["name"],
        "$defs": { "Name": { "type": "string", "maxLength": 9 } },
    } } });
    let call = r#"{"name":"weather","arguments":{"city":"Oslo"}}"#;
    for format in [&object, &bird] {
        check_bound(format, call, true);
        check_bound(format, r#"{"name":"owl"}"#, false);
        check_bound(format, r#"{"name":"weather"}"#, false);
    }
    check_bound(&object, r#"{"name":"weathers","arguments":{}}"#, false);
    check_bound(&object, r#"{"bird":1}"#, false);
    // A call has no place for more.
    let more = r#"{"name":"weather","arguments":{"city":"Oslo"},"why":"asked"}"#;
    check_bound(&object, more, false);
}

#[test]
fn references_of_a_tools_schema_hold_where_a_call_is_required() {
    let tool = |name: &str| {
        json!({ "type": "function", "function": { "name": name, "parameters": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "city": { "$ref": "#/$defs/City" } },
            "required": ["city"],
            "$defs": { "City": { "type": "string", "maxLength": 5 } },
        } } })
    };
    // Names of anybody's choice may be those of keywords.
    let named = |name: &str| {
        json!({ "type": "function", "function": { "name": name, "parameters": {
            "type": "object",
            "properties": { "city": { "$ref": "#/$defs/default" } },
            "required": ["city"],
            "$defs": {
                "default": { "type": "string", "maxLength": 5 },
                "enum": { "properties": { "const": { "$ref": "#/$defs/default" } } },
            },
        } } })
    };
    for tools in [
        vec![tool("weather")],
        vec![tool("weather"), tool("time")],
        vec![named("weather"), named("time")],
    ] {
        let desk = Desk::new();
        reply(&desk, br#"{"name":"weather","arguments":{"city":"Oslo"}}"#);
        let mut body = chat("Hello", 200);
        body["tools"] = json!(tools);
        body["tool_choice"] = json!("required");
        let answer = desk.post("/v1/chat/completions", &body).answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let call = &json["choices"][0]["message"]["tool_calls"][0]["function"];
        check(&call["name"], call["arguments"].as_str().unwrap());
    }
}

#[test]
fn a_response_that_was_cut_says_so_of_its_item_too() {
    for (tokens, status) in [(3, "incomplete"), (20, "completed")] {
        for streams in [false, true] {
            let desk = Desk::new();
            reply(&desk, b"hello");
            let body = json!({
                "model": "tiny", "max_output_tokens": tokens, "temperature": 0, "input": "Hello",
                "instructions": "Be brief.", "store": true, "stream": streams,
            });
            let answer = desk.post("/v1/responses", &body).answer();
            let response = match streams {
                true => answer.events().pop().unwrap()["response"].clone(),
                false => answer.json(),
            };
            assert_eq!(response["status"], json!(status), "{response}");
            assert_eq!(response["output"][0]["status"], json!(status), "{response}");
            assert_eq!(response["instructions"], json!("Be brief."));
            // Nothing is stored, whatever was asked.
            assert_eq!(response["store"], json!(false));
        }
    }
}
