//! The guard and the choice of what computes, by the outside of the built program: over drivers
//! that are absent, old or broken, and over a simulated card.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(target_os = "linux")]
mod card;
#[cfg(target_os = "linux")]
mod drivers;
#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "../support/mod.rs"]
mod support;

use candor_testkit::{Damage, TinyModel};
use serde_json::Value;
use support::{folder, run};

/// What is none where nothing was judged.
const JUDGED: [&str; 10] = [
    "date",
    "min_cosine",
    "max_kl",
    "mean_kl",
    "argmax_agreement",
    "near_ties",
    "first_bad",
    "reference_ms",
    "candidate_ms",
    "mode",
];

/// What `verify` says where nothing was judged.
#[track_caller]
fn assert_not_judged(result: &Value) {
    assert_eq!(result["verdict"], "not_judged");
    assert_eq!(result["positions"], 0);
    for field in JUDGED {
        assert_eq!(result.get(field), Some(&Value::Null), "{field}");
    }
}

#[test]
fn who_chose_the_processor_is_told_so() {
    let dir = folder();
    let model = dir.path().join("tiny.gguf");
    TinyModel::llama().write(&model).unwrap();
    let args = ["verify", "--json", "--backend", "cpu"].map(AsRef::as_ref);
    let result = run(args.into_iter().chain([model.as_os_str()])).last(4);
    assert_not_judged(&result);
    assert_eq!(result["reason"], "chosen by you");
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
