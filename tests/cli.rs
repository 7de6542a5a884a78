//! The built program by its outside: results, refusals, exit codes, Stop.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use candor_testkit::{Damage, TinyModel};
use serde_json::{Value, json};
use support::{Ran, candor, folder, ids, listed, run, run_with_input};

/// Writes a model into a folder.
fn tiny(dir: &Path, model: &TinyModel) -> PathBuf {
    let path = dir.join("tiny.gguf");
    model.write(&path).unwrap();
    path
}

/// Arguments: a subcommand, its model, and more words.
fn args(command: &str, model: &Path, more: &str) -> Vec<OsString> {
    let mut all = vec![OsString::from(command), model.into()];
    all.extend(more.split_whitespace().map(OsString::from));
    all
}

/// The text of all token lines, and their ids.
fn streamed(lines: &[Value]) -> (String, Vec<u32>) {
    let tokens = &lines[..lines.len() - 1];
    let text = tokens
        .iter()
        .map(|line| line["text"].as_str().expect("a text"))
        .collect();
    let ids = tokens
        .iter()
        .map(|line| line["token"].as_u64().expect("an id") as u32)
        .collect();
    (text, ids)
}

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
        ("supported", json!({ "cpu": true, "gpu": false })),
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

/// B01: what people open by mistake.
#[test]
fn damaged_files_are_refused_in_one_sentence_whatever_is_asked_of_them() {
    let dir = folder();
    let whole = TinyModel::llama();
    for damage in Damage::ALL {
        let path = damage.write(dir.path(), &whole).unwrap();
        let commands = [
            "inspect",
            "tokenize",
            "generate",
            "logits",
            "perplexity",
            "bench",
            "verify",
        ];
        let mut said = Vec::new();
        // Twice in a row, and through every command that opens a file.
        for command in commands.iter().chain(&commands[..2]) {
            let more = match *command {
                "tokenize" => "--text Hello --json",
                "generate" => "--ids 1,2 --json",
                "logits" => "--ids 1,2 --top 1 --json",
                "perplexity" => "--ids 1,2 --json",
                _ => "--json",
            };
            let ran = run(args(command, &path, more));
            assert_eq!(ran.code, Some(5), "{damage:?} {command}: {}", ran.text());
            let lines = ran.lines();
            assert_eq!(lines.len(), 1, "no token comes from {damage:?}");
            said.push(lines[0].clone());
        }
        let error = &said[0]["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            said.iter().all(|other| other == &said[0]),
            "{damage:?}: {said:?}"
        );
        assert!(message.contains(damage.file_name()), "{message}");
        assert!(
            !message.contains('\n') && !message.ends_with('.'),
            "{message}"
        );
        assert_eq!(error["file"], json!(path.to_string_lossy()));
        assert!(error["code"].as_str().is_some_and(|code| !code.is_empty()));
        if damage.is_cut() {
            assert!(
                message.contains("probably an incomplete download"),
                "{message}"
            );
        }
        // For people the same sentence.
        let ran = run(args("inspect", &path, ""));
        assert_eq!((ran.code, ran.text().as_str()), (Some(5), ""));
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

/// B02: names that other programs stumble over.
#[test]
fn files_are_found_under_any_name() {
    let mut names: Vec<OsString> = [
        "qwen tiny 🙂 (final) #1 100%.gguf",
        "Модели é ü 田中\u{3000}.gguf",
        "-leading dash.gguf",
        "new\nline.gguf",
        // The same to the eye: composed and decomposed.
        "caf\u{e9}.gguf",
        "cafe\u{301}.gguf",
    ]
    .map(OsString::from)
    .into();
    names.push(format!("{}.gguf", "n".repeat(245)).into());
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        names.push(OsString::from_vec(b"\xff\xfe bytes.gguf".to_vec()));
    }
    let outer = folder();
    let dir = outer.path().join("Модели  é ü 田中\u{3000} #100%");
    fs::create_dir(&dir).unwrap();
    for (number, name) in names.iter().enumerate() {
        let model = TinyModel::llama().context(600 + number as u32);
        model.write(&dir.join(name)).unwrap();
    }
    for (number, name) in names.iter().enumerate() {
        let path = dir.join(name);
        let found = run(args("inspect", &path, "--json")).last(0);
        assert_eq!(found["path"], json!(path.to_string_lossy()), "{name:?}");
        // Each is the file that it was written as, not its double.
        assert_eq!(found["context_length"], 600 + number, "{name:?}");
        let mut command = candor();
        for variable in ["HOME", "TMPDIR", "CANDOR_DATA_DIR"] {
            command.env(variable, &dir);
        }
        let options = "--ids 1,2 --max-tokens 2 --ignore-eos --json";
        let ran = Ran::of(
            command
                .args(args("generate", &path, options))
                .output()
                .unwrap(),
        );
        assert_eq!(ran.last(0)["stats"]["generated_tokens"], 2, "{name:?}");
    }
}

/// B05: characters cut between tokens, with random tokens of which most are single bytes.
#[test]
fn streamed_text_is_the_reply_and_every_line_is_json() {
    let dir = folder();
    let whole = TinyModel::llama();
    let model = tiny(dir.path(), &whole);
    let control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        .map(|spelling| whole.token_id(spelling).expect("a control token"));
    for seed in 1..=8 {
        let options = "--ids 1,2,3 --temperature 3 --top-k 0 --top-p 1 --ignore-eos --json";
        let options = format!("{options} --max-tokens {} --seed {seed}", 50 + seed);
        let ran = run(args("generate", &model, &options));
        let last = ran.last(0);
        let (text, tokens) = streamed(&ran.lines());
        assert_eq!(
            (last["text"].as_str().unwrap(), ids(&last["ids"])),
            (&*text, tokens.clone())
        );
        assert_eq!(tokens.len(), 50 + seed);
        assert_eq!(
            (&last["finish"], &last["seed"]),
            (&json!("length"), &json!(seed))
        );
        let shown: Vec<u32> = tokens
            .into_iter()
            .filter(|id| !control.contains(id))
            .collect();
        let bytes = run(args(
            "tokenize",
            &model,
            &format!("--ids {}", listed(&shown)),
        ))
        .stdout;
        assert_eq!(text, String::from_utf8_lossy(&bytes), "seed {seed}");
        // The same without JSON, where the text ends with a line end.
        let plain = run(args("generate", &model, &options.replace("--json", "")));
        let plain = plain.text();
        assert!(
            plain == text || plain == format!("{text}\n"),
            "{plain:?} {text:?}"
        );
    }
}

/// A model that needs a few milliseconds for a token, so that a signal comes in the middle.
fn slow_model(dir: &Path) -> PathBuf {
    tiny(
        dir,
        &TinyModel::llama()
            .layers(8)
            .width(512, 2_048)
            .heads(8, 8)
            .context(4_096),
    )
}

/// Starts a long reply and reads its first lines.
fn start_reply(
    model: &Path,
    lines: usize,
) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let options = "--ids 1,2,3 --max-tokens 2000 --ignore-eos --json --threads 2";
    let mut command = candor();
    command.args(args("generate", model, options));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..lines {
        stdout.read_line(&mut text).unwrap();
    }
    (child, stdout, text)
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let kill = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status();
    assert!(kill.unwrap().success());
}

/// B07: Ctrl-C is a Stop.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_reply_and_keeps_what_was_written() {
    let dir = folder();
    let model = slow_model(dir.path());
    for presses in [1, 2] {
        let (mut child, mut stdout, mut text) = start_reply(&model, 20);
        for _ in 0..presses {
            interrupt(&child);
        }
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let last = lines.last().unwrap();
        let (streamed_text, tokens) = streamed(&lines);
        assert_eq!(last["finish"], "cancelled");
        assert_eq!(
            (last["text"].as_str().unwrap(), ids(&last["ids"])),
            (&*streamed_text, tokens)
        );
        let written = lines.len() - 1;
        assert_eq!(last["stats"]["generated_tokens"], written);
        assert!((20..2_000).contains(&written), "{written} tokens");
    }
}

#[test]
fn a_reader_that_leaves_ends_the_program_without_a_word() {
    let dir = folder();
    let model = slow_model(dir.path());
    let (mut child, stdout, _) = start_reply(&model, 3);
    drop(stdout);
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(
        !stderr.contains("panicked") && !stderr.contains("error"),
        "{stderr}"
    );
}

#[test]
fn generate_says_what_it_did_and_with_what() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let ran = run(args(
        "generate",
        &model,
        "--prompt Hello --max-tokens 5 --json --threads 2",
    ));
    let last = ran.last(0);
    assert!(
        ran.stderr.lines().any(|line| line.starts_with("CPU · ")),
        "{}",
        ran.stderr
    );
    for field in ["prompt_tokens", "cached_tokens", "generated_tokens"] {
        assert!(last["stats"][field].is_u64(), "{field}");
    }
    for field in ["prefill_ms", "decode_ms", "time_to_first_token_ms"] {
        assert!(last["stats"][field].is_number(), "{field}");
    }
    let backend = &last["backend"];
    assert_eq!(
        (&backend["requested"], &backend["served"]),
        (&json!("auto"), &json!("cpu"))
    );
    assert_eq!(backend["f2"]["verdict"], "not_needed");
    assert!(backend["device"].is_string() && backend["reason"].is_string());
    // The seed that it says gives the same reply again.
    let again = format!(
        "--prompt Hello --max-tokens 5 --json --seed {}",
        last["seed"]
    );
    let again = run(args("generate", &model, &again)).last(0);
    assert_eq!(
        (&again["ids"], &again["text"]),
        (&last["ids"], &last["text"])
    );
}

#[test]
fn replies_end_for_the_reason_that_is_said() {
    let dir = folder();
    let whole = TinyModel::llama().context(64);
    let model = tiny(dir.path(), &whole);
    let finish = |options: &str| run(args("generate", &model, options)).last(0);
    let greedy = "--ids 1,2,3 --temperature 0 --ignore-eos --json";
    let long = finish(&format!("{greedy} --max-tokens 500"));
    assert_eq!(
        (&long["finish"], &long["stats"]["prompt_tokens"]),
        (&json!("context"), &json!(3))
    );
    let some = finish(&format!("{greedy} --max-tokens 30"));
    assert_eq!(some["finish"], "length");
    let wanted = ids(&long["ids"]);
    assert_eq!(
        ids(&some["ids"]),
        wanted[..30],
        "greedy replies are the same"
    );
    // Its own text as a stop string: nothing of it is shown.
    let text = some["text"].as_str().unwrap();
    let stop: String = text
        .chars()
        .filter(|c| c.is_ascii_alphabetic())
        .take(1)
        .collect();
    let mut stopping = args("generate", &model, &format!("{greedy} --max-tokens 30"));
    stopping.extend(["--stop".into(), OsString::from(&stop)]);
    let stopped = run(stopping).last(0);
    assert_eq!(stopped["finish"], "stop");
    assert_eq!(stopped["text"].as_str(), text.split(&stop).next());
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
fn bench_measures_what_it_says() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let options = "-p 8 -p 16 -n 4 --depth 5 --parallel 2 -r 3 --threads 2 --json";
    let ran = run(args("bench", &model, options));
    let result = ran.last(0);
    assert!(ran.stderr.contains("CPU · "), "{}", ran.stderr);
    let prefill = result["prefill"].as_array().unwrap();
    let tokens: Vec<_> = prefill.iter().map(|row| row["tokens"].clone()).collect();
    assert_eq!(tokens, [8, 16]);
    let row = &result["decode"][0];
    assert_eq!(
        (&row["tokens"], &row["depth"], &row["parallel"]),
        (&4.into(), &5.into(), &2.into())
    );
    for row in prefill.iter().chain([row]) {
        let rate = |which: &str| row["tokens_per_second"][which].as_f64().unwrap();
        assert!(rate("min") > 0.0 && rate("min") <= rate("median"));
        assert!(rate("median") <= rate("max"));
    }
    for field in [
        "load_ms",
        "peak_rss_bytes",
        "bandwidth_bytes_per_second",
        "threads",
    ] {
        assert!(result[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert_eq!(result["threads"], 2);
    assert!(result["isa"].is_string() && result["device"].is_string());
    assert_eq!(result["backend"]["served"], "cpu");
}

#[test]
fn logits_files_and_best_lists_agree() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let file = dir.path().join("logits.bin");
    let mut all = args("logits", &model, "--ids [5,6,7] --last 2 --top 3 --json");
    let result = run(&all).last(0);
    all.truncate(2);
    all.extend(["--ids", "5 6 7", "--json", "--output"].map(OsString::from));
    all.push(file.clone().into());
    let described = run(&all).last(0);
    let columns = described["columns"].as_u64().unwrap() as usize;
    assert_eq!(described["rows"], 3);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(bytes.len(), 3 * columns * 4);
    let positions = result["positions"].as_array().unwrap();
    assert_eq!((positions.len(), &positions[0]["position"]), (2, &json!(1)));
    for best in positions {
        let row = best["position"].as_u64().unwrap() as usize * columns;
        for (id, logit) in ids(&best["ids"])
            .iter()
            .zip(best["logits"].as_array().unwrap())
        {
            let at = (row + *id as usize) * 4;
            let written = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(logit.as_f64().unwrap() as f32, written);
        }
    }
}

#[test]
fn a_conversation_is_held_on_the_terminal() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama().context(512));
    let options = args("chat", &model, "--max-tokens 8 --seed 1");
    for (input, replies) in [
        ("Hello\nAgain\n/exit\n", 2),
        ("Hello\n/clear\n\n", 1),
        ("", 0),
    ] {
        let ran = run_with_input(&options, input.as_bytes());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("CPU · "), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.matches("tokens/s").count(),
            replies,
            "{input:?} {}",
            ran.stderr
        );
    }
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
