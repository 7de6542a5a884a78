//! Commands that compute: replies, logits, measurements, conversations.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use candor_testkit::TinyModel;
use serde_json::json;

use crate::support::{candor, folder, ids, run, run_with_input};
use crate::{args, tiny};

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
fn replies_are_held_to_what_is_asked_for() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama());
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": false,
    });
    let schema = file("schema.json", &schema.to_string());
    let grammar = file("grammar.lark", "start: \"yes\" | \"no\"");
    type Holds = fn(&str) -> bool;
    let cases: [(String, Holds); 3] = [
        (format!("--json-schema {schema}"), |text| {
            text == "{\"ok\":true}" || text == "{\"ok\":false}"
        }),
        (format!("--grammar {grammar}"), |text| {
            text == "yes" || text == "no"
        }),
        (String::from("--regex [0-9]{4}"), |text| {
            text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit())
        }),
    ];
    for (options, holds) in cases {
        let options = format!("--prompt Hi --max-tokens 40 --json {options}");
        let last = run(args("generate", &model, &options)).last(0);
        assert_eq!(last["finish"], "stop", "{options}");
        assert!(holds(last["text"].as_str().unwrap()), "{options}: {last}");
    }
    for wrong in [
        "--regex (",
        "--grammar /nonexistent",
        "--regex a --grammar b",
    ] {
        let ran = run(args(
            "generate",
            &model,
            &format!("--prompt Hi --json {wrong}"),
        ));
        assert!(matches!(ran.code, Some(1 | 2)), "{wrong}: {:?}", ran.code);
    }
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
        ("/help\n/cleer\nHello\n", 1),
        ("/usr/bin\n", 1),
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

/// What helps against a full context depends on what fills it.
#[test]
fn a_message_that_does_not_fit_is_told_what_helps() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama().context(512));
    let options = args("chat", &model, "--context 64 --max-tokens 8 --seed 1");
    let long = "word ".repeat(200);
    for (input, said, replies) in [
        (format!("{long}\nHi\n"), "write a shorter message", 1),
        (format!("Hi\n{long}\n"), "/clear starts anew", 1),
    ] {
        let ran = run_with_input(&options, input.as_bytes());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let refused = ran
            .stderr
            .lines()
            .find(|line| line.contains("the context holds 64"));
        assert!(
            refused.is_some_and(|line| line.contains(said)),
            "{}",
            ran.stderr
        );
        assert_eq!(
            ran.stderr.matches("tokens/s").count(),
            replies,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn in_a_conversation_the_figures_stand_on_a_line_of_their_own() {
    let dir = folder();
    let model = tiny(dir.path(), &TinyModel::llama().context(512));
    let (mut read, write) = std::io::pipe().unwrap();
    let mut command = candor();
    command
        .args(args("chat", &model, "--max-tokens 8 --seed 1"))
        .stdin(Stdio::piped())
        .stdout(write.try_clone().unwrap())
        .stderr(write);
    let mut child = command.spawn().unwrap();
    // It holds the end of the pipe that the program writes to.
    drop(command);
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(b"Hello\n/helpp\n").unwrap();
    drop(typed);
    let mut said = Vec::new();
    read.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let said = String::from_utf8_lossy(&said);
    let figures = said.lines().find(|line| line.contains("tokens/s"));
    let begins =
        |line: &str| line.starts_with("finished · ") || line.starts_with("limit reached · ");
    assert!(figures.is_some_and(begins), "{said}");
    assert!(said.contains("/helpp is not a command. Ctrl-C"), "{said}");
}
