//! Files that people really have: damaged ones, odd names, odd characters (field reports B01, B02,
//! B05).

use std::ffi::OsString;
use std::fs;

use candor_testkit::{Damage, TinyModel};
use serde_json::json;

use crate::support::{Ran, candor, folder, ids, listed, run};
use crate::{args, streamed, tiny};

/// What people open by mistake.
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

/// Names that other programs stumble over.
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

/// Characters cut between tokens, with random tokens of which most are single bytes.
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
