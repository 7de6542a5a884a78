//! Commands that describe, and how the program ends.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use candor_testkit::TinyModel;
use serde_json::{Value, json};

use crate::support::{Ran, candor, folder, ids, listed, run, run_with_input};
use crate::{args, tiny};

#[test]
fn inspect_says_what_a_file_is() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::qwen2().layers(3).context(777));
    let found = run(args("inspect", &model, "--json")).last(0);
    let bytes = fs::metadata(&model).unwrap().len();
    let expected = [
        ("path", json!(model.to_string_lossy())),
        ("format", json!("gguf")),
        ("architecture", json!("qwen2")),
        ("file_bytes", json!(bytes)),
        ("context_length", json!(777)),
        ("tokenizer", json!("gpt2")),
        ("chat_template", json!("model")),
        ("supported", json!({ "cpu": true, "gpu": true })),
        ("problems", json!([])),
    ];
    for (field, value) in expected {
        assert_eq!(found[field], value, "{field}");
    }
    for field in ["name", "pre_tokenizer"] {
        assert!(found.get(field).is_some(), "{field}");
    }
    for field in ["parameters", "tensors", "vocabulary"] {
        assert!(found[field].as_u64().unwrap() > 0, "{field}");
    }
    let types = found["quantization"].as_object().unwrap();
    let tensors: u64 = types.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(json!(tensors), found["tensors"]);
    // Two of keys and values, three layers, two heads of 16, two bytes each.
    assert_eq!(found["memory"]["kv_bytes_per_token"], 2 * 3 * 2 * 16 * 2);
    assert!(found["memory"]["weights_bytes"].as_u64().unwrap() < bytes);
    // For people in units, and to the byte.
    let text = run(args("inspect", &model, "")).text();
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    for name in ["File size", "Weights", "Memory"] {
        assert!(row(name).contains("B ("), "{name}: {text}");
    }
}

#[test]
fn inspect_names_what_stands_against_a_file_that_can_be_read() {
    let cases = [
        (
            TinyModel::llama().architecture("qwen99"),
            "unsupported_architecture",
            "qwen99",
        ),
        (
            TinyModel::llama().without_tensor("blk.1.ffn_up.weight"),
            "missing_tensor",
            "blk.1.ffn_up.weight",
        ),
    ];
    for (model, code, words) in cases {
        let dir = folder();
        let path = tiny(dir.path(), &model);
        let found = run(args("inspect", &path, "--json")).last(0);
        let problem = &found["problems"][0];
        assert_eq!(problem["code"], code);
        assert!(
            problem["message"].as_str().unwrap().contains(words),
            "{problem}"
        );
        assert_eq!(found["supported"]["cpu"], false);
        // Text needs neither weights nor a known architecture.
        let tokens = run(args("tokenize", &path, "--text Hello --json")).last(0);
        assert!(!ids(&tokens["ids"]).is_empty());
        let error = run(args("generate", &path, "--prompt Hi --json")).last(5);
        assert!(
            error["error"]["message"].as_str().unwrap().contains(words),
            "{error}"
        );
    }
}

#[test]
fn wrong_usage_and_missing_cards_have_their_exit_codes() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let cases = [
        ("generate", "--json", 2),
        ("generate", "--ids 1 --prompt x --json", 2),
        ("generate", "--ids 1,x --json", 2),
        ("generate", "--ids 99999 --json", 2),
        ("generate", "--ids 1 --temperature -1 --json", 2),
        ("generate", "--ids 1 --max-tokens 0 --json", 2),
        ("generate", "--ids 1 --unknown --json", 2),
        ("generate", "--ids 1,2,3 --context 2 --json", 2),
        ("generate", "--ids [] --json", 2),
        ("logits", "--ids 1 --json", 2),
        ("perplexity", "--ids 1 --json", 2),
        ("render", "--messages /nonexistent --json", 1),
        ("logits", "--ids 1 --output /nonexistent/x --json", 1),
        ("generate", "--ids 1 --backend gpu --json", 6),
        ("logits", "--ids 1 --top 1 --backend gpu --json", 6),
        ("bench", "--backend gpu --json", 6),
    ];
    for (command, more, code) in cases {
        let error = run(args(command, &model, more)).last(code);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty(), "{command} {more}");
        assert!(error["error"]["code"].is_string(), "{command} {more}");
    }
    assert_eq!(run(["--version"]).code, Some(0));
    assert_eq!(run(["--help"]).code, Some(0));
    assert_eq!(run(["no-such-command"]).code, Some(2));
    let ran = run(args(
        "generate",
        &model,
        "--ids 1 --backend cpu --max-tokens 1 --json",
    ));
    assert_eq!(ran.last(0)["backend"]["reason"], "chosen by you");
}

/// A model that is not there is never looked for: the options are held against their bounds first.
#[test]
fn options_outside_their_bounds_are_refused_before_a_model_is_opened() {
    let reply = "--temperature 99 | from 0 to 10
        --temperature -1 | from 0 to 10
        --temperature NaN | from 0 to 10
        --temperature -inf | from 0 to 10
        --temperature warm | from 0 to 10
        --top-k -1 | from 0 to
        --top-k 2.5 | from 0 to
        --top-p 1.5 | from 0 to 1
        --top-p nan | from 0 to 1
        --min-p -0.1 | from 0 to 1
        --repeat-penalty 0 | from 0.1 to 10
        --repeat-penalty 11 | from 0.1 to 10
        --presence-penalty 2.1 | from -2 to 2
        --frequency-penalty -3 | from -2 to 2
        --dry-multiplier -1 | from 0 to 100
        --dry-base 0.9 | from 1 to 10
        --dry-allowed-length 0 | from 1 to 1024
        --dry-window -1 | from 0 to
        --xtc-probability 1.1 | from 0 to 1
        --xtc-threshold nan | from 0 to 1
        --max-tokens 0 | from 1 to 1048576
        --max-tokens -5 | from 1 to 1048576
        --max-tokens 1048577 | from 1 to 1048576
        --seed -1 | from 0 to
        --context 0 | from 1 to 16777216
        --context 16777217 | from 1 to 16777216
        --threads -2 | from 1 to
        --device -1 | from 0 to";
    let bench = "--depth -1 | from 0 to
        --parallel 0 | from 1 to 256
        -p -1 | from 0 to
        -r 0 | from 1 to";
    let logits = "--top 0 | from 1 to
        --last -1 | from 1 to";
    let cases = [
        ("generate --ids 1", reply),
        ("chat", reply),
        ("bench", bench),
        ("logits --ids 1", logits),
    ];
    let missing = Path::new("/nonexistent/model.gguf");
    for (command, options) in cases {
        for line in options.lines() {
            let (option, range) = line.trim().split_once(" | ").unwrap();
            check_refused(command, missing, option.split(' ').map(String::from), range);
        }
    }
    let longest = 256;
    let stops = [
        (String::new(), "1 to 256 bytes"),
        ("é".repeat(longest), "1 to 256 bytes"),
    ];
    for (stop, range) in stops {
        let words = [String::from("--stop"), stop];
        check_refused("generate --ids 1", missing, words, range);
    }
    let many = (0..33).flat_map(|n| [String::from("--stop"), n.to_string()]);
    check_refused("generate --ids 1", missing, many, "32 times");
    // The bounds themselves are allowed: then it is the file that is missing.
    let options =
        "--ids 1 --temperature 10 --top-p 0 --min-p 1 --repeat-penalty 0.1 --max-tokens 1";
    let ran = run(args("generate", missing, &format!("{options} --json")));
    assert_eq!(ran.last(5)["error"]["code"], "not_found");
}

/// Wrong usage in one sentence that names the first of these words, the last and what is allowed;
/// the same for people and for scripts.
#[track_caller]
fn check_refused(
    command: &str,
    model: &Path,
    words: impl IntoIterator<Item = String>,
    allowed: &str,
) {
    let mut all: Vec<OsString> = command.split(' ').map(OsString::from).collect();
    all.insert(1, model.into());
    let words: Vec<String> = words.into_iter().collect();
    all.extend(words.iter().map(OsString::from));
    let (option, value) = (&words[0], &words[words.len() - 1]);
    let people = run(&all);
    assert_eq!(people.code, Some(2), "{words:?}: {}", people.stderr);
    all.push("--json".into());
    let error = run(&all).last(2);
    let message = error["error"]["message"].as_str().unwrap();
    // Of many the number is said, not each.
    let names_value = words.len() > 2 || message.contains(value);
    assert!(
        message.contains(option) && names_value && message.contains(allowed),
        "{words:?}: {message}"
    );
    assert!(people.stderr.contains(message), "{}", people.stderr);
}

/// What is missing stands in the message, not only that something is.
#[test]
fn wrong_usage_is_told_whole_to_scripts_too() {
    let cases = [
        (&["inspect", "--json"][..], "<MODEL>"),
        (&["generate", "m.gguf", "--json"], "--prompt"),
        (&["--json"], "subcommand"),
        (&["insepct", "m.gguf", "--json"], "insepct"),
        (&["inspect", "m.gguf", "--jsn", "--json"], "--jsn"),
    ];
    for (words, told) in cases {
        let error = run(words).last(2);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{words:?}: {message}");
        assert!(!message.contains('\n'), "{words:?}: {message}");
    }
}

#[test]
fn text_goes_in_byte_for_byte_and_stays_text() {
    let dir = folder();
    let whole = TinyModel::llama();
    let model = tiny(dir.path(), &whole);
    for text in ["", "\n", " a\r\n", "🙂\u{0}é", "<|im_end|>", "  "] {
        let result = run_with_input(args("tokenize", &model, "--json"), text.as_bytes()).last(0);
        let tokens = ids(&result["ids"]);
        assert!(
            !tokens.contains(&whole.token_id("<|im_end|>").unwrap()),
            "{text:?}"
        );
        assert_eq!(result["pieces_hex"].as_array().unwrap().len(), tokens.len());
        if !tokens.is_empty() {
            let back = run(args(
                "tokenize",
                &model,
                &format!("--ids {}", listed(&tokens)),
            ));
            assert_eq!(back.stdout, text.as_bytes());
        }
    }
    let special = args("tokenize", &model, "--parse-special --json");
    let result = run_with_input(special, b"<|im_end|>").last(0);
    assert_eq!(ids(&result["ids"]), [whole.token_id("<|im_end|>").unwrap()]);
    let ran = run_with_input(args("tokenize", &model, "--json"), b"\xff");
    assert_eq!(ran.last(2)["error"]["code"], "usage");
}

#[test]
fn variables_templates_and_fallbacks_reach_the_prompt() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let messages = file("m.json", r#"[{"role":"user","content":"Hi","extra":7}]"#);
    let template = file(
        "t",
        "{{ bos_token }}{{ x }}{{ messages[0].extra }}{{ strftime_now('%Y') }}",
    );
    let refuses = file("r", "{{ raise_exception('never') }}");
    let render = |template: Option<&Path>, variables: &str| {
        let mut all = args("render", &model, "--json --now 2026-01-31T12:00 --messages");
        all.push(messages.clone().into());
        if let Some(template) = template {
            all.extend(["--template".into(), OsString::from(template)]);
        }
        all.extend(["--variables".into(), OsString::from(variables)]);
        run(all).last(0)
    };
    let own = render(None, "{}");
    assert_eq!(
        own["prompt"],
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(own["fallback"], Value::Null);
    let other = render(Some(&template), r#"{"x":"é","bos_token":"B"}"#);
    assert_eq!(other["prompt"], "Bé72026");
    let refused = render(Some(&refuses), "{}");
    assert!(
        refused["fallback"].as_str().unwrap().contains("never"),
        "{refused}"
    );
    assert_eq!(refused["prompt"], own["prompt"]);
}

#[test]
fn doctor_looks_at_the_machine_and_its_bundle_names_nobody() {
    let dir = folder();
    let home = dir.path().join("anna-secret");
    fs::create_dir(&home).unwrap();
    let bundle = dir.path().join("bundle.json");
    let mut command = candor();
    command
        .env("HOME", &home)
        .env("CANDOR_DATA_DIR", home.join("data"));
    let ran = command
        .args(["doctor", "--json", "--bundle"])
        .arg(&bundle)
        .output()
        .unwrap();
    let result = Ran::of(ran).last(0);
    let checks = result["checks"].as_array().unwrap();
    for name in ["processor", "memory", "driver", "renderer", "data folder"] {
        let check = checks
            .iter()
            .find(|check| check["name"] == name)
            .expect(name);
        assert!(check["state"].is_string() && check["message"].is_string());
    }
    let text = fs::read_to_string(bundle).unwrap();
    assert!(
        !text.contains("anna-secret") && text.contains("~/data"),
        "{text}"
    );
    assert!(!home.join("data").exists(), "looking creates nothing");
}
