//! A grammar, as clients of llama.cpp ask for one.

use serde_json::{Value, json};

use super::desk::{Desk, chat};

const LARK: &str = "%llguidance {}\nstart: \"yes\" | \"no\"";
const GBNF: &str = "root ::= \"yes\" | \"no\"";

/// Every path that takes a grammar, and where its text stands.
fn paths() -> [(&'static str, Value, &'static str); 3] {
    let plain = json!({ "model": "tiny", "prompt": "Hello", "temperature": 0, "max_tokens": 20 });
    [
        ("/generate", plain.clone(), "/text"),
        ("/v1/completions", plain, "/choices/0/text"),
        (
            "/v1/chat/completions",
            chat("Hello", 20),
            "/choices/0/message/content",
        ),
    ]
}

#[test]
fn a_reply_keeps_to_a_grammar_or_is_refused() {
    let desk = Desk::new();
    for (path, mut body, text) in paths() {
        body["grammar"] = json!(LARK);
        let answer = desk.post(path, &body).answer();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let json = answer.json();
        let said = json.pointer(text).and_then(Value::as_str);
        assert!(matches!(said, Some("yes" | "no")), "{path}: {json}");

        for wrong in [
            json!(GBNF),
            json!(7),
            json!("%llguidance {}\nstart: nowhere"),
        ] {
            let before = desk.script.counts().submitted;
            body["grammar"] = wrong;
            let answer = desk.post(path, &body).answer();
            assert_eq!(answer.status, 400, "{path}: {}", answer.text());
            assert!(answer.text().contains("grammar"), "{}", answer.text());
            assert_eq!(desk.script.counts().submitted, before, "{path}");
        }
        for none in [Value::Null, json!("")] {
            body["grammar"] = none;
            assert_eq!(desk.post(path, &body).answer().status, 200, "{path}");
        }
    }
}

#[test]
fn two_forms_of_one_reply_are_refused() {
    let desk = Desk::new();
    let schema = json!({ "type": "object" });
    let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
    let cases = [
        json!({ "grammar": LARK, "json_schema": schema }),
        json!({ "grammar": LARK, "response_format": { "type": "json_object" } }),
        json!({ "json_schema": schema, "response_format": { "type": "json_object" } }),
        json!({ "grammar": LARK, "tools": tools, "tool_choice": "required" }),
    ];
    for case in cases {
        let mut body = chat("Hello", 20);
        for (name, value) in case.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = desk.post("/v1/chat/completions", &body).answer();
        assert_eq!(answer.status, 400, "{case}: {}", answer.text());
        let said = answer.text();
        assert!(
            said.contains("json_schema") && said.contains("grammar"),
            "{case}: {said}"
        );
    }
    assert_eq!(desk.script.counts().submitted, 0);
}

#[test]
fn a_schema_is_kept_to_wherever_a_grammar_is() {
    let desk = Desk::new();
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer", "minimum": 1, "maximum": 9 } },
        "required": ["n"],
    });
    for (path, mut body, text) in paths() {
        body["json_schema"] = schema.clone();
        let json = desk.post(path, &body).answer().json();
        let said = json.pointer(text).and_then(Value::as_str);
        let said = said.unwrap_or_else(|| panic!("{path}: {json}"));
        let found: Value = serde_json::from_str(said).unwrap();
        assert!(
            (1..=9).contains(&found["n"].as_i64().unwrap()),
            "{path}: {said}"
        );
        assert_eq!(found.as_object().unwrap().len(), 1, "{path}: {said}");
        body["json_schema"] = json!("integer");
        assert_eq!(desk.post(path, &body).answer().status, 400, "{path}");
    }
}
