//! Token ids equal llama.cpp's, for every string and vocabulary of the golden data.

use crate::support::{golden_files, ids, open_model, tokenizer};
use candor_text::{Ends, Prompt, Show, Tokenizer};
use serde_json::Value;

#[test]
fn ids_pieces_and_ends_equal_the_reference() {
    let mut strings = 0;
    let files = golden_files("tokenizer");
    assert_eq!(files.len(), 20);
    for (name, golden) in files {
        let Some(model) = open_model(golden["model"].as_str().unwrap(), "token ids") else {
            continue;
        };
        let tokenizer = tokenizer(&model);
        check_facts(&name, &tokenizer, &golden);
        for case in golden["cases"].as_array().unwrap() {
            check_case(&name, &tokenizer, case);
            strings += 1;
        }
        for piece in golden["pieces"].as_array().unwrap() {
            let id = u32::try_from(piece[0].as_u64().unwrap()).unwrap();
            let shown = [Show::Control, Show::Text].map(|show| hex(tokenizer.piece(id, show)));
            assert_eq!(
                shown,
                [text(&piece[1]), text(&piece[2])],
                "{name}: piece of {id}"
            );
        }
    }
    assert!(
        strings >= 7 * 78,
        "only {strings} strings: the synthetic models are part of the sources"
    );
}

fn check_facts(name: &str, tokenizer: &Tokenizer, golden: &Value) {
    assert_eq!(
        tokenizer.vocab_len() as u64,
        golden["n_vocab"].as_u64().unwrap(),
        "{name}"
    );
    assert_eq!(
        tokenizer.end_ids(),
        ids(&golden["eog"]),
        "{name}: tokens that end a reply"
    );
    let id = |id: Option<u32>| id.map_or(-1, i64::from);
    assert_eq!(
        id(tokenizer.bos()),
        golden["bos"].as_i64().unwrap(),
        "{name}: bos"
    );
    assert_eq!(
        id(tokenizer.eos()),
        golden["eos"].as_i64().unwrap(),
        "{name}: eos"
    );
    assert_eq!(
        tokenizer.adds_bos(),
        golden["add_bos"].as_bool().unwrap(),
        "{name}: add_bos"
    );
}

fn check_case(name: &str, tokenizer: &Tokenizer, case: &Value) {
    let text = case["text"].as_str().unwrap();
    let encode = |prompt: Prompt, ends| tokenizer.encode(&prompt, ends).unwrap();
    let expected = ids(&case["ids"]);
    let found = encode(Prompt::markup(text), Ends::None);
    assert_eq!(found, expected, "{name}: {text:?}");

    let plain = case.get("ids_plain").map_or_else(|| expected.clone(), ids);
    assert_eq!(
        encode(Prompt::typed(text), Ends::None),
        plain,
        "{name}: {text:?} typed"
    );
    assert!(
        !plain.iter().any(|&id| tokenizer.is_control(id)),
        "{name}: {text:?} typed"
    );

    let part = |field: &str| case.get(field).map(ids).unwrap_or_default();
    let full = match case.get("ids_full") {
        Some(full) => ids(full),
        None => [part("prefix"), expected, part("suffix")].concat(),
    };
    assert_eq!(
        encode(Prompt::markup(text), Ends::Model),
        full,
        "{name}: {text:?} with its ends"
    );

    let pieces = found.iter().map(|&id| tokenizer.piece(id, Show::Control));
    let back: Vec<u8> = pieces.flatten().copied().collect();
    assert_eq!(
        back,
        base64(case["text_back"].as_str().unwrap()),
        "{name}: {text:?} back"
    );
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes standard base64.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|&letter| letter != b'=') {
        let six = LETTERS
            .iter()
            .position(|&known| known == letter)
            .expect("base64");
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
