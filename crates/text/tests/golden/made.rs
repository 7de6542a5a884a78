//! One small vocabulary under every pre-tokenizer name, and the ends of made vocabularies.

use crate::support::{golden, ids};
use candor_modelfile::{TokenType, TokenizerSpec};
use candor_text::{Ends, Prompt, Show, Tokenizer};
use serde_json::Value;

#[test]
fn every_pre_tokenizer_gives_the_ids_of_the_reference() {
    let golden = read("schemes");
    let vocabulary = vocabulary(&golden);
    let mut names = 0;
    for (place, scheme) in list(&golden["schemes"]).iter().enumerate() {
        for name in list(&scheme["names"]).iter().map(text) {
            let spec = TokenizerSpec {
                pre: Some(name.to_owned()),
                ..vocabulary.clone()
            };
            let tokenizer = Tokenizer::from_spec(&spec).unwrap();
            let add_bos = scheme["add_bos"].as_bool().unwrap();
            assert_eq!(tokenizer.adds_bos(), add_bos, "{name}");
            for case in list(&golden["strings"]) {
                let by = case["by"][place].as_u64().unwrap();
                check(
                    name,
                    &tokenizer,
                    text(&case["text"]),
                    &case["ids"][by as usize],
                );
            }
            names += 1;
        }
    }
    assert!(names > 60, "only {names} names");
}

fn check(name: &str, tokenizer: &Tokenizer, text: &str, expected: &Value) {
    let found = tokenizer.encode(&Prompt::typed(text), Ends::None).unwrap();
    assert_eq!(found, ids(expected), "{name}: {text:?}");
    let pieces = found.iter().map(|&id| tokenizer.piece(id, Show::Text));
    let back: Vec<u8> = pieces.flatten().copied().collect();
    assert_eq!(back, text.as_bytes(), "{name}");
}

#[test]
fn the_tokens_that_end_a_reply_are_those_of_the_reference() {
    let letters = letters(&read("schemes"));
    for case in list(&read("ends")) {
        let names = |field: &str| list(&case[field]).iter().map(text).map(str::to_owned);
        let tokens: Vec<String> = letters.iter().cloned().chain(names("markers")).collect();
        let id = |token: &str| {
            let place = tokens.iter().position(|one| one == token).unwrap();
            u32::try_from(place).unwrap()
        };
        let kind = match case["control"].as_bool().unwrap() {
            true => TokenType::Control,
            false => TokenType::Normal,
        };
        let mut types = vec![TokenType::Normal; letters.len()];
        types.resize(tokens.len(), kind);
        let spec = TokenizerSpec {
            model: "gpt2".to_owned(),
            pre: Some("gpt-2".to_owned()),
            eos: case["stated"].as_str().map(id),
            types,
            tokens: tokens.clone(),
            ..TokenizerSpec::default()
        };
        let expected: Vec<u32> = names("ends").map(|name| id(&name)).collect();
        let tokenizer = Tokenizer::from_spec(&spec).unwrap();
        assert_eq!(tokenizer.end_ids(), expected, "{case}");
    }
}

/// The vocabulary of `schemes.json`: bytes, results of the merges, words that no merge gives, and
/// the begin token.
fn vocabulary(golden: &Value) -> TokenizerSpec {
    let mut tokens = letters(golden);
    let mut merges = Vec::new();
    for pair in list(&golden["merges"]).iter().map(ids) {
        let [left, right] = [pair[0], pair[1]].map(|id| tokens[id as usize].clone());
        merges.push(format!("{left} {right}"));
        tokens.push(left + &right);
    }
    tokens.extend(list(&golden["whole"]).iter().map(text).map(str::to_owned));
    let mut types = vec![TokenType::Normal; tokens.len()];
    types.push(TokenType::Control);
    tokens.push(text(&golden["begin"]).to_owned());
    TokenizerSpec {
        model: "gpt2".to_owned(),
        bos: u32::try_from(tokens.len() - 1).ok(),
        tokens,
        types,
        merges,
        ..TokenizerSpec::default()
    }
}

/// What stands for each byte.
fn letters(golden: &Value) -> Vec<String> {
    text(&golden["letters"]).chars().map(String::from).collect()
}

fn read(name: &str) -> Value {
    let path = golden().join(format!("tokenizer/made/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
