//! Ctrl-C is a Stop, and so are SIGTERM and a reader that leaves (field reports B07, B14).

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use candor_testkit::TinyModel;
use serde_json::Value;

use crate::support::{candor, folder, ids};
use crate::{args, streamed, tiny};

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
fn signal(child: &Child, names: &[&str]) {
    // One shell for all: after the first signal the program may have ended before another starts.
    let kills = names
        .iter()
        .map(|name| format!("kill -{name} {}", child.id()));
    let kill = Command::new("sh")
        .args(["-c", &kills.collect::<Vec<_>>().join(" && ")])
        .status();
    assert!(kill.unwrap().success());
}

/// Ctrl-C is a Stop, and so is being asked to end by the system.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_reply_and_keeps_what_was_written() {
    let dir = folder();
    let model = slow_model(dir.path());
    for (signals, code) in [
        (&["INT"][..], 130),
        (&["INT", "INT"], 130),
        (&["TERM"], 143),
        (&["TERM", "TERM"], 143),
        (&["INT", "TERM"], 143),
    ] {
        let (mut child, mut stdout, mut text) = start_reply(&model, 20);
        signal(&child, signals);
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signals:?}");
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

/// Whatever it is doing, what measures ends in the same way.
#[cfg(unix)]
#[test]
fn a_measurement_ends_when_the_system_asks() {
    let dir = folder();
    let model = slow_model(dir.path());
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = candor();
        command.args(args("bench", &model, "-p 0 -n 2000 -r 1000 --json"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        // What computes is said when the model is loaded.
        stderr.read_line(&mut String::new()).unwrap();
        signal(&child, &[name]);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}");
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(error["error"]["code"], "stopped", "{name}");
    }
}

/// A conversation is left at once when the system asks; Ctrl-C only stops the reply.
#[cfg(unix)]
#[test]
fn a_conversation_is_left_when_the_system_asks() {
    let dir = folder();
    let model = slow_model(dir.path());
    let options = args(
        "chat",
        &model,
        "--max-tokens 2000 --temperature 0 --threads 2",
    );
    // (typed, bytes that are waited for, signals, code, replies that were stopped): the prompt
    // has two bytes, and what the third one is, is the model's affair.
    let cases = [
        ("", 2, &["INT"][..], 130, 0),
        ("", 2, &["TERM"], 143, 0),
        ("Hello\n", 3, &["TERM"], 143, 1),
        ("Hello\n", 3, &["INT", "INT"], 130, 1),
    ];
    for (typed, bytes, signals, code, stopped) in cases {
        let mut command = candor();
        command.args(&options);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(typed.as_bytes()).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut vec![0; bytes]).unwrap();
        let mut rest = Vec::new();
        for (sent, name) in signals.iter().enumerate() {
            // Two of one kind at once are one to the system: the second comes at the prompt.
            while sent > 0 && !rest.ends_with(b"\n> ") {
                let mut byte = [0];
                stdout.read_exact(&mut byte).unwrap();
                rest.extend(byte);
            }
            signal(&child, &[name]);
        }
        stdout.read_to_end(&mut rest).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{signals:?}: {said}");
        assert_eq!(
            said.matches("stopped · ").count(),
            stopped,
            "{signals:?}: {said}"
        );
        assert!(
            rest.ends_with(b"\n"),
            "the shell's line begins at its beginning"
        );
        drop(stdin);
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
