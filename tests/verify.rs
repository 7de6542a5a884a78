//! `candor verify` by its outside. This version has no path on a graphics card.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use candor_testkit::{Damage, TinyModel};
use serde_json::Value;
use support::{folder, run};

const JUDGED: [&str; 7] = [
    "min_cosine",
    "max_kl",
    "argmax_agreement",
    "first_bad",
    "reference_ms",
    "candidate_ms",
    "mode",
];

#[track_caller]
fn check(backend: &str, reason: Option<&str>) {
    let dir = folder();
    let model = dir.path().join("tiny.gguf");
    TinyModel::llama().write(&model).unwrap();
    let args = [
        "verify".as_ref(),
        model.as_os_str(),
        "--json".as_ref(),
        "--backend".as_ref(),
    ];
    let result = run(args.into_iter().chain([backend.as_ref()])).last(4);
    assert_eq!(result["verdict"], "not_judged");
    assert_eq!(result["positions"], 0);
    for field in JUDGED {
        assert_eq!(result.get(field), Some(&Value::Null), "{field}");
    }
    let said = result["reason"].as_str().unwrap();
    assert!(!said.is_empty());
    if let Some(reason) = reason {
        assert_eq!(said, reason);
    }
}

#[test]
fn without_a_path_on_a_card_nothing_is_judged_and_the_reason_is_said() {
    check("auto", None);
    check("gpu", None);
    check("cpu", Some("chosen by you"));
}

#[test]
fn a_file_that_cannot_be_used_is_refused_first() {
    let dir = folder();
    let model = Damage::OneByteShort
        .write(dir.path(), &TinyModel::llama())
        .unwrap();
    let result = run(["verify".as_ref(), model.as_os_str(), "--json".as_ref()]).last(5);
    assert_eq!(result["error"]["code"], "incomplete");
}
