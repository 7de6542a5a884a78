//! Replies that are held to a schema, an expression or a grammar, by a session whose logits are
//! noise.

use serde_json::{Value, json};

use super::*;
use crate::constraint::Constraint;

type Holds = fn(&str) -> bool;

/// Everything but the insides of strings.
fn signs(text: &str) -> String {
    let (mut signs, mut inside, mut escaped) = (String::new(), false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ if inside => {}
            _ => signs.push(c),
        }
    }
    signs
}

fn person(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let age = value["age"].as_i64();
    value["name"]
        .as_str()
        .is_some_and(|name| name.chars().count() <= 6)
        && age.is_some_and(|age| (0..=120).contains(&age))
        && value["tags"].as_array().is_some_and(|tags| {
            tags.len() <= 3 && tags.iter().all(|tag| *tag == "red" || *tag == "blue")
        })
        && value.as_object().is_some_and(|fields| fields.len() == 3)
}

fn pair(text: &str) -> bool {
    let value = serde_json::from_str::<Value>(text).unwrap_or_default();
    ["a", "b"].iter().all(|key| value[*key]["on"].is_boolean())
}

fn date(text: &str) -> bool {
    let digit = |place: usize, c: char| match place {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    };
    text.len() == 10 && text.chars().enumerate().all(|(place, c)| digit(place, c))
}

fn cases() -> Vec<(&'static str, Constraint, Holds)> {
    let person_schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 3},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": false,
    });
    let pair_schema = json!({
        "$defs": {"switch": {
            "type": "object",
            "properties": {"on": {"type": "boolean"}},
            "required": ["on"],
            "additionalProperties": false,
        }},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/switch"}, "b": {"$ref": "#/$defs/switch"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let either = json!({"oneOf": [{"const": "left"}, {"const": 7}]});
    let lark = "start: \"yes\" | item (\";\" item)~1..2\nitem: /[a-c]{1,3}/";
    vec![
        ("a person", Constraint::JsonSchema(person_schema), person),
        ("references", Constraint::JsonSchema(pair_schema), pair),
        ("one of two", Constraint::JsonSchema(either), |text| {
            text == "\"left\"" || text == "7"
        }),
        (
            "a date",
            Constraint::Regex(String::from("[0-9]{4}-[0-9]{2}-[0-9]{2}")),
            date,
        ),
        ("a grammar", Constraint::Lark(String::from(lark)), |text| {
            let item = |item: &str| {
                (1..=3).contains(&item.len()) && item.bytes().all(|b| (b'a'..=b'c').contains(&b))
            };
            text == "yes" || (text.contains(';') && text.split(';').all(item))
        }),
    ]
}

#[test]
fn every_reply_is_what_it_has_to_be_and_ends_by_itself() {
    for (what, constraint, holds) in cases() {
        for seed in 0..12 {
            let mut bench = Bench::new(2_048, 1);
            let mut options = options(prompt(seed, 9), 1_000);
            options.ends = EndTokens::Heed;
            options.constraint = Some(constraint.clone());
            // The last two take the best token.
            options.sampling.temperature = if seed < 10 { 1.0 } else { 0.0 };
            options.sampling.seed = u64::from(seed);
            let (_, log) = bench.add(options);
            bench.run();
            let written = text(&log);
            assert_eq!(finished(&log).0, FinishReason::Stop, "{what}: {written}");
            assert!(holds(&written), "{what}: {written}");
            if matches!(constraint, Constraint::JsonSchema(_)) {
                assert!(!signs(&written).contains(char::is_whitespace), "{written}");
            }
            let tokenizer = &bench.live.info.tokenizer;
            assert!(
                ids(&log).iter().all(|id| !tokenizer.is_control(*id)),
                "{what}"
            );
        }
    }
}

#[test]
fn any_object_is_one_where_its_signs_are_likely() {
    for seed in 0..6 {
        let mut bench = Bench::new(2_048, 1);
        let mut options = options(prompt(seed, 9), 1_500);
        options.constraint = Some(Constraint::JsonObject);
        options.sampling.temperature = 1.0;
        options.sampling.seed = u64::from(seed);
        options.logit_bias = b"}\"".iter().map(|&byte| (u32::from(byte), 6.0)).collect();
        let (_, log) = bench.add(options);
        bench.run();
        assert_eq!(finished(&log).0, FinishReason::Stop);
        let value: Value = serde_json::from_str(&text(&log)).unwrap();
        assert!(value.is_object(), "{value}");
    }
}

#[test]
fn limits_biases_and_other_replies_hold_beside_a_constraint() {
    let digits = || Some(Constraint::Regex(String::from("[0-9]+")));
    let mut bench = Bench::new(512, 2);
    let free = Bench::new(512, 1).reply(options(prompt(3, 20), 12)).0;
    let mut limited = options(prompt(1, 9), 12);
    limited.constraint = digits();
    let (_, log) = bench.add(limited.clone());
    let (_, beside) = bench.add(options(prompt(3, 20), 12));
    bench.run();
    assert_eq!(ids(&beside), free, "a mask is its own reply's");
    // It could end by itself, but may not write an end where ends are ignored.
    assert!(
        text(&log).bytes().all(|b| b.is_ascii_digit()),
        "{}",
        text(&log)
    );
    // Every digit is forbidden: nothing is left.
    limited.logit_bias = (0u8..10)
        .map(|d| (u32::from(b'0' + d), f32::NEG_INFINITY))
        .collect();
    let (_, log) = bench.add(limited);
    bench.run();
    assert_eq!(failed(&log), TurnCode::NothingAllowed);
    assert_eq!(
        bench.reply(options(prompt(3, 20), 12)).0,
        free,
        "the next one is as ever"
    );
}

#[test]
fn a_reply_tells_how_likely_its_tokens_were_without_the_mask() {
    let mut bench = Bench::new(512, 1);
    let mut options = options(prompt(1, 9), 10);
    options.top_logprobs = Some(3);
    options.constraint = Some(Constraint::Regex(String::from("[0-9]{10}")));
    let (_, log) = bench.add(options);
    bench.run();
    let tokens = crate::testing::events(&log)
        .into_iter()
        .filter_map(|event| match event {
            Event::Token { id, logprobs, .. } => Some((id, logprobs.unwrap())),
            _ => None,
        });
    let tokens: Vec<_> = tokens.collect();
    assert_eq!(tokens.len(), 10);
    for (id, told) in tokens {
        assert_eq!(told.top.len(), 3);
        assert!(told.top.is_sorted_by(|a, b| a.1 >= b.1));
        // The letter that the session favours is no digit, and yet the likeliest.
        assert!(LETTERS.contains(&told.top[0].0) && !LETTERS.contains(&id));
        assert!(told.chosen < told.top[0].1);
    }
}

#[test]
fn what_is_made_to_cost_much_ends_all_the_same() {
    let many: Vec<Value> = (0..400)
        .map(|i| json!({"const": format!("case {i}")}))
        .collect();
    let keys = (0..300).map(|i| (format!("key{i}"), json!({"type": "string"})));
    let cases = [
        Constraint::Regex(String::from("((a|b|c){1,1000}){1,1000}")),
        Constraint::Regex(String::from("(.*a.*b.*c.*){20}d")),
        Constraint::Lark(String::from("start: start start | \"a\"")),
        Constraint::Lark(String::from(
            "start: x x x x x x x x\nx: y*\ny: \"a\" | \"\"",
        )),
        Constraint::Lark(format!("start: {}", "(".repeat(20_000))),
        Constraint::JsonSchema(json!({"type": "string", "minLength": 1_000_000})),
        Constraint::JsonSchema(json!({"type": "array", "items": {"$ref": "#"}})),
        Constraint::JsonSchema(json!({"type": "string", "pattern": "^(a+)+$"})),
        Constraint::JsonSchema(json!({"anyOf": many})),
        Constraint::JsonSchema(
            json!({"type": "object", "properties": Value::Object(keys.collect())}),
        ),
        Constraint::JsonSchema(json!({"$ref": "#"})),
    ];
    for constraint in cases {
        let mut bench = Bench::new(512, 1);
        let what = format!("{constraint:?}");
        let mut options = options(prompt(1, 9), 40);
        options.sampling.temperature = 1.0;
        options.constraint = Some(constraint);
        let (model, cancel) = (&bench.live.info, CancelToken::new());
        let Ok(request) = crate::GenerateRequest::new(model, options, cancel) else {
            continue;
        };
        let log = request.log();
        let tokenizer = Arc::clone(&model.tokenizer);
        bench.sequences.push(Sequence::new(request, tokenizer));
        bench.run();
        let end = end_of(&log);
        let is_bounded = match end {
            Event::Finished { reason, .. } => {
                matches!(reason, FinishReason::Stop | FinishReason::Length)
            }
            Event::Failed { code, .. } => code == TurnCode::Stuck,
            _ => false,
        };
        assert!(is_bounded, "{end:?} of {}", &what[..what.len().min(200)]);
    }
}
