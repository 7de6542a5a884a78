//! How keys and values are kept, by the options of the commands that compute.

use candor_testkit::TinyModel;
use serde_json::json;

use crate::support::{folder, run};
use crate::{args, tiny};

#[test]
fn keys_and_values_are_kept_as_asked_and_the_result_says_how() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    // Options, what the result says, and whether the line of the device does.
    let cases = [
        ("", "f16", false),
        ("--kv f16", "f16", false),
        ("--kv q8_0", "q8_0", true),
        ("--precision exact", "f32", false),
        ("--precision exact --kv q8_0", "q8_0", true),
    ];
    for (options, kv, in_line) in cases {
        let options = format!("--ids 1,2,3 --max-tokens 3 --temperature 0 --json {options}");
        let ran = run(args("generate", &model, &options));
        assert_eq!(ran.last(0)["backend"]["kv"], kv, "{options}");
        let said = ran.stderr.contains("keys and values in 8 bits");
        assert_eq!(said, in_line, "{options}: {}", ran.stderr);
    }
}

#[test]
fn eight_bits_take_little_more_than_half_the_memory() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let memory = |options: &str| {
        let options = format!("--context 512 --json {options}");
        run(args("inspect", &model, &options)).last(0)["memory"].clone()
    };
    let (half, eight) = (memory(""), memory("--kv q8_0"));
    assert_eq!((&half["kv"], &eight["kv"]), (&json!("f16"), &json!("q8_0")));
    // Two layers, two heads of 16, keys and values; 8 bits have a scale of two bytes for each head.
    assert_eq!(half["kv_bytes_per_token"], 2 * 2 * 2 * 16 * 2);
    assert_eq!(eight["kv_bytes_per_token"], 2 * 2 * 2 * (16 + 2));
    assert_eq!(eight["kv_bytes"], 512 * 2 * 2 * 2 * (16 + 2));
}

#[test]
fn another_form_is_refused_by_name() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let ran = run(args("generate", &model, "--ids 1 --kv q4_0 --json"));
    let error = ran.last(2)["error"].clone();
    assert_eq!(error["code"], "usage");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("q4_0")),
        "{error}"
    );
}
