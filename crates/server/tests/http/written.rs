//! Calls of tools that the model writes by itself, through every protocol: whole and in a stream,
//! one and several, and what only looks like a call.

use candor_testkit::{CHAT_TEMPLATE, TURN_END, TinyModel};
use serde_json::{Value, json};

use super::desk::{Desk, Plan};

/// What a client puts together of an answer.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    /// Names and arguments.
    calls: Vec<(String, Value)>,
    end: String,
}

/// One protocol.
struct Protocol {
    path: &'static str,
    /// How it says that the reply calls a tool, and that it does not.
    ends: (&'static str, &'static str),
    body: fn() -> Value,
    whole: fn(&Value) -> Told,
    streamed: fn(&[Value]) -> Told,
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        path: "/v1/chat/completions",
        ends: ("tool_calls", "stop"),
        body: || {
            json!({
                "messages": messages(),
                "tools": [{ "type": "function", "function": {
                    "name": "weather", "parameters": schema(),
                } }],
            })
        },
        whole: |json| {
            let message = &json["choices"][0]["message"];
            let mut told = Told {
                text: text(&message["content"]),
                end: text(&json["choices"][0]["finish_reason"]),
                ..Told::default()
            };
            for call in list(&message["tool_calls"]) {
                told.call(&call["function"]["name"], &call["function"]["arguments"]);
            }
            told
        },
        streamed: of_chunks,
    },
    Protocol {
        path: "/v1/messages",
        ends: ("tool_use", "end_turn"),
        body: || {
            json!({
                "max_tokens": 400,
                "messages": messages(),
                "tools": [{ "name": "weather", "input_schema": schema() }],
            })
        },
        whole: |json| {
            let mut told = Told {
                end: text(&json["stop_reason"]),
                ..Told::default()
            };
            for block in list(&json["content"]) {
                match block["type"].as_str() {
                    Some("tool_use") => told.call(&block["name"], &block["input"]),
                    _ => told.text.push_str(&text(&block["text"])),
                }
            }
            told
        },
        streamed: of_blocks,
    },
    Protocol {
        path: "/v1/responses",
        ends: ("completed", "completed"),
        body: || {
            json!({
                "input": "Hello",
                "tools": [{ "type": "function", "name": "weather", "parameters": schema() }],
            })
        },
        whole: of_response,
        streamed: |events| {
            let told = of_response(&events.last().unwrap()["response"]);
            let deltas = events
                .iter()
                .filter(|event| event["type"] == json!("response.output_text.delta"));
            let said: String = deltas.map(|event| text(&event["delta"])).collect();
            assert_eq!(said, told.text, "{events:?}");
            told
        },
    },
    Protocol {
        path: "/api/chat",
        ends: ("stop", "stop"),
        body: || {
            json!({
                "messages": messages(),
                "tools": [{ "type": "function", "function": {
                    "name": "weather", "parameters": schema(),
                } }],
            })
        },
        whole: |json| of_lines(std::slice::from_ref(json)),
        streamed: of_lines,
    },
];

impl Told {
    fn call(&mut self, name: &Value, arguments: &Value) {
        // Some clients get the object as a text.
        let arguments = match arguments.as_str() {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => arguments.clone(),
        };
        self.calls.push((text(name), arguments));
    }
}

fn messages() -> Value {
    json!([{ "role": "user", "content": "Hello" }])
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } } })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn of_chunks(events: &[Value]) -> Told {
    let mut told = Told::default();
    let mut calls: Vec<(String, String)> = Vec::new();
    for choice in events.iter().flat_map(|event| list(&event["choices"])) {
        told.text.push_str(&text(&choice["delta"]["content"]));
        told.end.push_str(&text(&choice["finish_reason"]));
        for call in list(&choice["delta"]["tool_calls"]) {
            let place = call["index"].as_u64().unwrap() as usize;
            assert!(place <= calls.len(), "{call}");
            if place == calls.len() {
                assert!(call["id"].is_string(), "{call}");
                calls.push(Default::default());
            }
            calls[place].0.push_str(&text(&call["function"]["name"]));
            calls[place]
                .1
                .push_str(&text(&call["function"]["arguments"]));
        }
    }
    for (name, arguments) in calls {
        told.call(&json!(name), &json!(arguments));
    }
    told
}

fn of_blocks(events: &[Value]) -> Told {
    let mut told = Told::default();
    let (mut name, mut arguments) = (Value::Null, String::new());
    let mut open = None;
    let mut ended = false;
    for event in events {
        let place = event["index"].as_u64();
        match event["type"].as_str().unwrap() {
            "message_start" | "ping" => {}
            "content_block_start" => {
                assert_eq!(open, None, "one block at a time: {events:?}");
                open = place;
                name = event["content_block"]["name"].clone();
                arguments.clear();
            }
            "content_block_delta" => {
                assert_eq!(open, place, "{events:?}");
                told.text.push_str(&text(&event["delta"]["text"]));
                arguments.push_str(&text(&event["delta"]["partial_json"]));
            }
            "content_block_stop" => {
                assert_eq!(open.take(), place, "{events:?}");
                if name.is_string() {
                    told.call(&name, &json!(arguments));
                }
            }
            "message_delta" => told.end = text(&event["delta"]["stop_reason"]),
            "message_stop" => ended = true,
            other => panic!("{other}"),
        }
    }
    assert!(ended && open.is_none(), "{events:?}");
    told
}

fn of_response(json: &Value) -> Told {
    let mut told = Told {
        end: text(&json["status"]),
        ..Told::default()
    };
    for item in list(&json["output"]) {
        match item["type"].as_str().unwrap() {
            "function_call" => told.call(&item["name"], &item["arguments"]),
            _ => list(&item["content"])
                .iter()
                .for_each(|part| told.text.push_str(&text(&part["text"]))),
        }
    }
    told
}

fn of_lines(lines: &[Value]) -> Told {
    let mut told = Told::default();
    for (i, line) in lines.iter().enumerate() {
        assert_eq!(line["done"], json!(i + 1 == lines.len()), "{lines:?}");
        told.text.push_str(&text(&line["message"]["content"]));
        told.end.push_str(&text(&line["done_reason"]));
        for call in list(&line["message"]["tool_calls"]) {
            told.call(&call["function"]["name"], &call["function"]["arguments"]);
        }
    }
    told
}

/// A server whose model writes its calls as Qwen's and Hermes' do.
fn desk() -> Desk {
    let tools = "{% for tool in tools %}<tool_call>{{ tool | tojson }}\n{% endfor %}";
    let template = format!("{tools}{CHAT_TEMPLATE}");
    Desk::with(Plan {
        model: TinyModel::llama().metadata("tokenizer.chat_template", template.as_str().into()),
        ..Plan::default()
    })
}

/// What clients of every protocol get where the model writes this.
fn check(written: &str, text: &str, cities: &[&str]) {
    for protocol in &PROTOCOLS {
        let desk = desk();
        let end = TinyModel::llama().token_id(TURN_END).unwrap();
        // A byte is a token of this model.
        let tokens = written.bytes().map(u32::from).chain([end]);
        let tokens: Vec<u32> = tokens.collect();
        let want = Told {
            text: text.to_owned(),
            calls: cities
                .iter()
                .map(|city| (String::from("weather"), json!({ "city": city })))
                .collect(),
            end: match cities {
                [] => protocol.ends.1.to_owned(),
                _ => protocol.ends.0.to_owned(),
            },
        };
        let what = format!("{} {written:?}", protocol.path);
        let mut body = (protocol.body)();
        // The one is Ollama's, the other everybody else's.
        body["options"] = json!({ "temperature": 0 });
        body["temperature"] = json!(0);
        body["stream"] = json!(false);
        desk.script.reply(&tokens);
        let answer = desk.post(protocol.path, &body).answer();
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        assert_eq!((protocol.whole)(&answer.json()), want, "{what}");
        body["stream"] = json!(true);
        desk.script.reply(&tokens);
        let answer = desk.post(protocol.path, &body).answer();
        let lines = answer.text().lines().filter(|line| line.starts_with('{'));
        let lines = lines.map(|line| serde_json::from_str(line).unwrap());
        let events: Vec<Value> = lines.chain(answer.events()).collect();
        assert_eq!((protocol.streamed)(&events), want, "{what}, streamed");
    }
}

const OSLO: &str =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
const ROME: &str = "<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"city\\\": \\\"Rome\\\"}\"}</tool_call>";

#[test]
fn a_call_that_the_model_writes_is_a_call_in_every_protocol() {
    check(OSLO, "", &["Oslo"]);
    check(&format!("Let me see. {OSLO}"), "Let me see. ", &["Oslo"]);
    check(&format!("{OSLO}\n{ROME}"), "", &["Oslo", "Rome"]);
}

#[test]
fn what_only_looks_like_a_call_is_text_in_every_protocol() {
    for broken in [
        "No call here.",
        "<tool_call>\nweather(Oslo)\n</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\"",
    ] {
        check(broken, broken, &[]);
    }
    // Only the broken one is text.
    let mixed = format!("<tool_call>oops\n{OSLO}");
    check(&mixed, "<tool_call>oops\n", &["Oslo"]);
}
