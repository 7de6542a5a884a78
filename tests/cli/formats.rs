//! Files that are split, made for something else, or say less than they should (field reports B03,
//! B04; golden/apr).

use std::fs;
use std::path::Path;

use candor_testkit::golden::{apr_expected, write_apr};
use candor_testkit::{TinyModel, Unfit};
use serde_json::json;

use crate::support::{Ran, folder, ids, listed, run};
use crate::{args, tiny};

/// The file is refused with these words, whatever is asked of it.
fn check_refused(path: &Path, words: &[&str], what: &str) {
    let commands = [
        ("generate", "--ids 1,2 --json"),
        ("generate", "--prompt Hi --json"),
        ("logits", "--ids 1,2 --top 1 --json"),
        ("bench", "--json"),
    ];
    for (command, more) in commands {
        let error = run(args(command, path, more)).last(5);
        let message = error["error"]["message"].as_str().unwrap();
        for words in words {
            assert!(message.contains(words), "{what} {command}: {message}");
        }
        for wrong in ["corrupt", "incomplete", "damaged"] {
            assert!(!message.contains(wrong), "{what} {command}: {message}");
        }
    }
}

#[test]
fn healthy_files_that_do_not_fit_are_named_by_every_command() {
    let dir = folder();
    for unfit in Unfit::ALL {
        let path = unfit.write(dir.path()).unwrap();
        let what = format!("{unfit:?}");
        check_refused(&path, unfit.words(), &what);
        let ran = run(args("inspect", &path, "--json"));
        if !unfit.is_readable() {
            assert_eq!(ran.code, Some(5), "{what}");
            continue;
        }
        let found = ran.last(0);
        assert_eq!(found["supported"]["cpu"], false, "{what}");
        let problem = &found["problems"][0];
        assert_eq!(problem["weight"], "against", "{what}");
        let message = problem["message"].as_str().unwrap();
        for words in unfit.words() {
            assert!(message.contains(words), "{what}: {message}");
        }
        // For people the same sentence.
        let ran = run(args("inspect", &path, ""));
        assert!(ran.text().contains(message), "{what}: {}", ran.text());
        assert!(
            ran.text().contains("cannot be run"),
            "{what}: {}",
            ran.text()
        );
    }
}

#[test]
fn any_part_of_a_split_model_is_the_whole() {
    let dir = folder();
    let model = TinyModel::qwen2().layers(3);
    let whole = tiny(dir.path(), &model);
    let options = "--ids 5,6,7 --temperature 1 --seed 3 --max-tokens 4 --ignore-eos --json";
    let first = |ran: Ran| {
        let last = ran.last(0);
        (last["ids"].clone(), last["text"].clone())
    };
    let want = first(run(args("generate", &whole, options)));
    let bytes = fs::metadata(&whole).unwrap().len();
    let parts = model.write_split(dir.path(), "m", 3).unwrap();
    for part in &parts {
        assert_eq!(first(run(args("generate", part, options))), want);
        let found = run(args("inspect", part, "--json")).last(0);
        // All parts together, each with a header of its own.
        assert!(found["file_bytes"].as_u64().unwrap() > bytes);
        assert_eq!(found["problems"], json!([]));
    }
    // A part of another model in its place.
    let other = folder();
    let strange = TinyModel::qwen2()
        .layers(4)
        .write_split(other.path(), "m", 3);
    let second = fs::read(&parts[1]).unwrap();
    fs::copy(&strange.unwrap()[1], &parts[1]).unwrap();
    check_refused(
        &parts[0],
        &["m-00002-of-00003.gguf", "do not belong together"],
        "strange",
    );
    fs::write(&parts[1], second).unwrap();
    fs::remove_file(&parts[2]).unwrap();
    let error = run(args("inspect", &parts[0], "--json")).last(5);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("m-00003-of-00003.gguf") && message.contains("missing"),
        "{message}"
    );
    assert!(!message.contains("incomplete"), "{message}");
    // Pieces of a file that was cut anywhere.
    let whole = fs::read(&whole).unwrap();
    let piece = dir.path().join("p.gguf.part1of2");
    fs::write(&piece, &whole[..whole.len() / 2]).unwrap();
    let error = run(args("inspect", &piece, "--json")).last(5);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("join") && !message.contains("incomplete"),
        "{message}"
    );
}

/// The ids of a prompt of a golden file, and how many tokens are most likely behind it.
fn best(name: &str) -> (Vec<u32>, Vec<u32>) {
    let case = &apr_expected(name)["cases"][0];
    (ids(&case["tokens"]), ids(&case["argmax"]))
}

#[test]
fn models_whose_text_cannot_be_read_work_with_ids_and_refuse_text_with_the_reason() {
    let dir = folder();
    let files = [
        (
            "a13-llama-f32-convert-none",
            "(not named in this file)",
            "unsupported_tokenizer",
        ),
        (
            "a18-llama-f16-safetensors-import-none",
            "no tokenizer",
            "no_tokenizer",
        ),
    ];
    for (name, reason, code) in files {
        let path = write_apr(name, dir.path());
        let (prompt, want) = best(name);
        let given = format!("--ids {} --precision exact --json", listed(&prompt));
        let logits = run(args("logits", &path, &format!("{given} --top 1"))).last(0);
        let positions = logits["positions"].as_array().unwrap();
        let found: Vec<u32> = positions.iter().flat_map(|at| ids(&at["ids"])).collect();
        assert_eq!(found, want, "{name}");
        let options = format!("{given} --temperature 0 --max-tokens 1 --ignore-eos");
        let ran = run(args("generate", &path, &options));
        assert_eq!(ids(&ran.last(0)["ids"]), want[want.len() - 1..], "{name}");
        assert!(ran.stderr.contains(reason), "{name}: {}", ran.stderr);
        for (command, more) in [
            ("generate", "--prompt Hi --json"),
            ("logits", "--text Hi --top 1 --json"),
            ("tokenize", "--text Hi --json"),
        ] {
            let error = &run(args(command, &path, more)).last(5)["error"];
            assert_eq!(error["code"], code, "{name} {command}");
            assert!(
                error["message"].as_str().unwrap().contains(reason),
                "{name} {error}"
            );
        }
        let found = run(args("inspect", &path, "--json")).last(0);
        assert_eq!(found["problems"][0]["weight"], "no_text", "{name}");
        assert_eq!(found["supported"]["cpu"], true, "{name}");
    }
}

#[test]
fn a_fact_that_a_file_lacks_can_be_stated_and_is_shown() {
    let dir = folder();
    let name = "a15-qwen3moe-q4_k_m-preserve";
    let path = write_apr(name, dir.path());
    let (prompt, want) = best(name);
    let given = format!("--ids {} --precision exact --json", listed(&prompt));
    let lacks = "does not state its num_experts_per_tok";
    check_refused(&path, &[lacks], name);
    let fact = "--assume expert_used_count=2";
    let ran = run(args("logits", &path, &format!("{given} --top 1 {fact}")));
    let logits = ran.last(0);
    let positions = logits["positions"].as_array().unwrap();
    let found: Vec<u32> = positions.iter().flat_map(|at| ids(&at["ids"])).collect();
    assert_eq!(found, want);
    let told = "expert_used_count is 2, told by you";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let options = format!("{given} --temperature 0 --max-tokens 1 --ignore-eos {fact}");
    let ran = run(args("generate", &path, &options));
    assert_eq!(ids(&ran.last(0)["ids"]), want[want.len() - 1..]);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let notes = &run(args("inspect", &path, &format!("--json {fact}"))).last(0)["notes"];
    assert!(notes.to_string().contains(told), "{notes}");
    // A false one is held against the file, an unknown one and a wild one are wrong usage.
    let cases = [
        ("expert_used_count=9", 5),
        ("expert_used_count=0", 2),
        ("num_experts=2", 2),
        ("expert_used_count", 2),
    ];
    for (fact, code) in cases {
        let ran = run(args("inspect", &path, &format!("--json --assume {fact}")));
        assert_eq!(
            ran.code,
            Some(code),
            "{fact}: {} {}",
            ran.text(),
            ran.stderr
        );
    }
}

#[test]
fn what_is_laid_out_anew_is_counted() {
    let dir = folder();
    let path = write_apr("a06-qwen2-q5_0-import-int8", dir.path());
    let found = run(args("inspect", &path, "--json")).last(0);
    let bytes = |field: &str| found["memory"][field].as_u64().unwrap();
    // All matrices become float32, four bytes for each that the file has.
    let file = found["file_bytes"].as_u64().unwrap();
    assert!(bytes("unpacked_bytes") > 3 * file, "{found}");
    let parts = [
        "weights_bytes",
        "unpacked_bytes",
        "kv_bytes",
        "scratch_bytes",
    ];
    let sum: u64 = parts.iter().map(|part| bytes(part)).sum();
    assert_eq!(bytes("total_bytes"), sum, "{found}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("laid out anew"), "{notes}");
}

#[test]
fn the_memory_is_counted_for_the_context_that_is_asked_for() {
    let dir = folder();
    let path = tiny(dir.path(), &TinyModel::llama().context(4_096));
    let memory = |more: &str| run(args("inspect", &path, more)).last(0)["memory"].clone();
    let (short, long) = (
        memory("--json --context 256"),
        memory("--json --context 4096"),
    );
    assert_eq!(
        (&short["context_tokens"], &long["context_tokens"]),
        (&json!(256), &json!(4_096))
    );
    let bytes = |memory: &serde_json::Value, field: &str| memory[field].as_u64().unwrap();
    assert_eq!(bytes(&long, "kv_bytes"), 16 * bytes(&short, "kv_bytes"));
    assert!(bytes(&long, "total_bytes") > bytes(&short, "total_bytes"));
    // More than any machine has.
    let model = TinyModel::llama().layers(32).width(256, 256).heads(8, 8);
    let path = tiny(dir.path(), &model);
    let found = run(args("inspect", &path, "--json --context 16777216")).last(0);
    let codes = found["problems"].as_array().unwrap().iter();
    let codes: Vec<_> = codes
        .map(|problem| problem["code"].as_str().unwrap())
        .collect();
    assert!(
        codes.contains(&"memory") && codes.contains(&"context"),
        "{found}"
    );
}
