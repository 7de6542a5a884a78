//! The built program held against data that other programs made (see tests/golden/README.md).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{folder, golden, golden_json, ids, listed, real_model, run, run_with_input};

/// Tiny models of the families that were there first: here the way through the program is tried. The
/// crate that computes holds those of every family.
const TINY: [&str; 16] = [
    "s01-llama-f32",
    "s02-llama-f16-spm",
    "s03-llama-bf16-ropefreqs",
    "s04-llama-q8_0",
    "s05-llama-q4_0",
    "s06-llama-q4_1",
    "s07-llama-f16-yarn",
    "s08-llama-f16-linear",
    "s09-qwen2-q5_0-q5_1",
    "s10-qwen2-q4_k_m",
    "s11-qwen3-q5_k_m",
    "s12-qwen3-q2_k-q3_k",
    "s13-qwen3-iq4",
    "s16-gemma3-q4_0",
    "s17-gemma3-q4_k_m",
    "s18-qwen35-f16",
];

/// Those of experts, and those whose delta nets amplify rounding: on the fast path one position
/// may choose another expert, so the crate that computes holds them by their median.
const TINY_EXACT_ONLY: [&str; 5] = [
    "s14-qwen3moe-q4_k_m",
    "s15-qwen3moe-mxfp4",
    "s19-qwen35-q4_k_m",
    "s20-qwen35moe-q8_0",
    "s21-qwen3next-q8_0",
];

const REAL: [&str; 2] = [
    "smollm2-135m-instruct-q4_1",
    "qwen2.5-coder-0.5b-instruct-q4_k_m",
];

/// Of the exact path, where logits have a standard deviation of about 3.
const EXACT_RMS: f64 = 1e-3;
const EXACT_MAX: f64 = 1e-2;
/// The fast path may be this much farther from the exact result than llama.cpp's own is...
const FAST_FACTOR: f64 = 1.5;
/// ...and needs not be closer than this.
const FAST_RMS: f64 = 0.01;

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

/// RMS and largest difference.
fn distance(a: &[f32], b: &[f32]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let differences = || a.iter().zip(b).map(|(a, b)| f64::from(a - b));
    let squares: f64 = differences().map(|d| d * d).sum();
    let largest = differences().map(f64::abs).fold(0.0, f64::max);
    ((squares / a.len() as f64).sqrt(), largest)
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[track_caller]
fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a count")).expect("a count")
}

/// Every case of one file, with one precision.
fn check_logits(name: &str, precision: &str) {
    let described = golden_json(&format!("logits/{name}.json"));
    let numbers = floats(&fs::read(golden(&format!("logits/{name}.logits.bin"))).unwrap());
    let model = golden(&format!("models/{name}.gguf"));
    let columns = count(&described["n_vocab"]);
    let dir = folder();
    let (list, file) = (dir.path().join("ids"), dir.path().join("logits"));
    for case in described["cases"].as_array().unwrap() {
        let what = format!("{name} {} {precision}", case["name"]);
        let rows = count(&case["n_pos"]);
        fs::write(&list, listed(&ids(&case["tokens"]))).unwrap();
        let at_list = format!("@{}", list.display());
        let rows_text = rows.to_string();
        let ran = run([
            "logits".as_ref(),
            model.as_os_str(),
            "--ids".as_ref(),
            at_list.as_ref(),
            "--output".as_ref(),
            file.as_os_str(),
            "--last".as_ref(),
            rows_text.as_ref(),
            "--precision".as_ref(),
            precision.as_ref(),
            "--threads".as_ref(),
            "2".as_ref(),
            "--json".as_ref(),
        ]);
        let result = ran.last(0);
        assert_eq!(
            (count(&result["rows"]), count(&result["columns"])),
            (rows, columns),
            "{what}"
        );
        let found = floats(&fs::read(&file).unwrap());
        let start = count(&case["logits_f32"]["offset"]);
        let (rms, max) = distance(&found, &numbers[start..start + rows * columns]);
        if precision == "exact" {
            assert!(
                rms < EXACT_RMS && max < EXACT_MAX,
                "{what}: rms {rms:.2e}, max {max:.2e}"
            );
        } else {
            let limit = (FAST_FACTOR * number(&case["diff"]["rms"])).max(FAST_RMS);
            assert!(rms <= limit, "{what}: rms {rms:.4}, allowed {limit:.4}");
        }
    }
}

#[test]
fn exact_logits_are_what_the_file_means() {
    for name in TINY.into_iter().chain(TINY_EXACT_ONLY) {
        check_logits(name, "exact");
    }
}

#[test]
fn fast_logits_are_about_as_close_as_those_of_llama_cpp() {
    for name in TINY {
        check_logits(name, "fast");
    }
}

/// How far llama.cpp's quantised run is from its float32 run, over the best logits of a prompt.
fn own_difference(case: &Value) -> f64 {
    let mut largest = 0.0f64;
    let (top, exact) = (&case["top"], &case["top_f32"]);
    for (row, found) in top["ids"].as_array().unwrap().iter().enumerate() {
        let exact_ids = ids(&exact["ids"][row]);
        for (place, id) in ids(found).iter().enumerate() {
            if let Some(other) = exact_ids.iter().position(|exact| exact == id) {
                let logit = number(&top["logits"][row][place]);
                largest = largest.max((logit - number(&exact["logits"][row][other])).abs());
            }
        }
    }
    largest
}

/// Greedy replies part at a near-tie only: where the margin is below what two logits may differ.
fn check_greedy(model: &Path, case: &Value, precision: &str) -> usize {
    let (wanted, margins, allowed) = match precision {
        "exact" => ("greedy_f32", "greedy_margin_f32", 2.0 * EXACT_MAX),
        _ => ("greedy", "greedy_margin", own_difference(case)),
    };
    let wanted = ids(&case[wanted]);
    let prompt = listed(&ids(&case["tokens"]));
    let ran = run([
        "generate".as_ref(),
        model.as_os_str(),
        "--ids".as_ref(),
        prompt.as_ref(),
        "--temperature".as_ref(),
        "0".as_ref(),
        "--max-tokens".as_ref(),
        "32".as_ref(),
        "--ignore-eos".as_ref(),
        "--precision".as_ref(),
        precision.as_ref(),
        "--threads".as_ref(),
        "2".as_ref(),
        "--json".as_ref(),
    ]);
    let found = ids(&ran.last(0)["ids"]);
    assert_eq!(found.len(), wanted.len());
    let parted = found
        .iter()
        .zip(&wanted)
        .position(|(found, wanted)| found != wanted);
    if let Some(step) = parted {
        let margin = number(&case[margins][step]);
        assert!(
            margin < allowed,
            "{} {} {precision}: another token at step {step}, where the margin is {margin:.3} \
             and {allowed:.3} is allowed",
            model.display(),
            case["name"],
        );
    }
    parted.unwrap_or(wanted.len())
}

#[test]
fn greedy_replies_of_real_models_are_those_of_llama_cpp_up_to_a_near_tie() {
    for name in REAL {
        let Some(model) = real_model(name) else {
            continue;
        };
        let described = golden_json(&format!("real/{name}.json"));
        let cases = described["cases"].as_array().unwrap();
        for case in cases.iter().filter(|case| case["greedy"].is_array()) {
            for precision in ["exact", "fast"] {
                let steps = check_greedy(&model, case, precision);
                println!("{name} {} {precision}: {steps} steps alike", case["name"]);
            }
        }
    }
}

/// Of the mean over about a thousand tokens: 8-bit activations move it by a few thousandths.
const NLL_TOLERANCE: f64 = 0.02;

#[test]
fn long_texts_are_predicted_as_well_as_llama_cpp_predicts_them() {
    for name in REAL {
        let Some(model) = real_model(name) else {
            continue;
        };
        let described = golden_json(&format!("real/{name}.json"));
        let cases = described["cases"].as_array().unwrap();
        let case = cases
            .iter()
            .find(|case| case["nll_f32"].is_array())
            .unwrap();
        let prompt = listed(&ids(&case["tokens"]));
        let ran = run([
            "perplexity".as_ref(),
            model.as_os_str(),
            "--ids".as_ref(),
            prompt.as_ref(),
            "--threads".as_ref(),
            "2".as_ref(),
            "--json".as_ref(),
        ]);
        let result = ran.last(0);
        let (found, wanted) = (number(&result["mean_nll"]), number(&case["mean_nll_f32"]));
        assert!(
            (found - wanted).abs() < NLL_TOLERANCE,
            "{name}: {found:.4}, wanted {wanted:.4}"
        );
        assert!((number(&result["ppl"]) - found.exp()).abs() < 1e-6);
        assert_eq!(count(&result["tokens"]), ids(&case["tokens"]).len());
    }
}

/// Of the 78 texts: the crate that tokenizes runs all; here the way through the program is tried.
const TEXT_STEP: usize = 13;

fn check_tokens(model: &Path, case: &Value) {
    let text = case["text"].as_str().unwrap();
    let what = format!("{}: {text:?}", model.display());
    let model = model.as_os_str();
    let with_specials = ids(&case["ids"]);
    let plain = case
        .get("ids_plain")
        .map_or_else(|| with_specials.clone(), ids);
    let bare = [
        "tokenize".as_ref(),
        model,
        "--no-bos".as_ref(),
        "--json".as_ref(),
    ];
    let result = run_with_input(bare, text.as_bytes()).last(0);
    assert_eq!(ids(&result["ids"]), plain, "{what}");
    let special = bare.into_iter().chain(["--parse-special".as_ref()]);
    let result = run_with_input(special, text.as_bytes()).last(0);
    assert_eq!(
        ids(&result["ids"]),
        with_specials,
        "{what} with special tokens"
    );
    if with_specials.is_empty() {
        return;
    }
    let whole = case.get("ids_full").map_or_else(
        || {
            let around = |name: &str| case.get(name).map(ids).unwrap_or_default();
            [around("prefix"), with_specials.clone(), around("suffix")].concat()
        },
        ids,
    );
    let ends = [
        "tokenize".as_ref(),
        model,
        "--parse-special".as_ref(),
        "--json".as_ref(),
    ];
    let result = run_with_input(ends, text.as_bytes()).last(0);
    assert_eq!(
        ids(&result["ids"]),
        whole,
        "{what} with what goes around it"
    );
    let list = listed(&with_specials);
    let back = run(["tokenize".as_ref(), model, "--ids".as_ref(), list.as_ref()]);
    assert_eq!(
        back.stdout,
        base64(case["text_back"].as_str().unwrap()),
        "{what} and back"
    );
}

/// Decodes base64 (RFC 4648).
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut out) = (0u32, 0, Vec::new());
    for letter in text.bytes().filter(|&letter| letter != b'=') {
        let value = LETTERS
            .iter()
            .position(|&known| known == letter)
            .expect("base64");
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    out
}

#[test]
fn texts_become_the_tokens_that_llama_cpp_makes_of_them() {
    let tiny = golden("models/s02-llama-f16-spm.gguf");
    let real = REAL.iter().map(|name| (*name, real_model(name)));
    for (name, model) in real.chain([("s02-llama-f16-spm", Some(tiny))]) {
        let Some(model) = model else { continue };
        let described = golden_json(&format!("tokenizer/{name}.json"));
        let cases = described["cases"].as_array().unwrap();
        let special = cases.iter().filter(|case| case.get("ids_plain").is_some());
        for case in cases.iter().step_by(TEXT_STEP).chain(special) {
            check_tokens(&model, case);
        }
    }
}

#[test]
fn conversations_are_rendered_as_jinja2_does() {
    let conversations = golden_json("chat/conversations.json");
    let dir = folder();
    for name in REAL {
        let Some(model) = real_model(name) else {
            continue;
        };
        let described = golden_json(&format!("chat/{name}.json"));
        for case in described["cases"].as_array().unwrap() {
            let all = conversations.as_array().unwrap();
            let talk = all
                .iter()
                .find(|talk| talk["name"] == case["name"])
                .unwrap();
            let file = dir.path().join("messages.json");
            fs::write(&file, talk["messages"].to_string()).unwrap();
            let mut variables = talk["kwargs"].as_object().cloned().unwrap_or_default();
            for (name, value) in [
                ("tools", &talk["tools"]),
                ("bos_token", &described["bos_token"]),
                ("eos_token", &described["eos_token"]),
            ] {
                if !value.is_null() {
                    variables.insert(name.to_owned(), value.clone());
                }
            }
            let variables = Value::from(variables).to_string();
            let mut args = vec![
                "render".as_ref(),
                model.as_os_str(),
                "--messages".as_ref(),
                file.as_os_str(),
                "--now".as_ref(),
                "2026-01-31T12:00".as_ref(),
                "--variables".as_ref(),
                variables.as_ref(),
                "--json".as_ref(),
            ];
            if !talk["add_generation_prompt"].as_bool().unwrap_or(false) {
                args.push("--no-generation-prompt".as_ref());
            }
            let result = run(args).last(0);
            let what = format!("{name} {}", case["name"]);
            if case["error"] == true {
                assert!(result["fallback"].is_string(), "{what}: {result}");
            } else {
                assert_eq!(result["prompt"], case["text"], "{what}");
                assert_eq!(result["fallback"], Value::Null, "{what}");
            }
        }
    }
}
