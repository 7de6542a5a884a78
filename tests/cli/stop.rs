//! Ctrl-C is a Stop, and so is a reader that leaves (field report B07).

use std::io::{BufRead, BufReader, Read};
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
fn interrupt(child: &Child) {
    let kill = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status();
    assert!(kill.unwrap().success());
}

/// Ctrl-C is a Stop.
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
