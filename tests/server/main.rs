//! `candor serve` by its outside: the line that says it is ready, the port, the document's examples,
//! Stop.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use candor_testkit::TinyModel;
use serde_json::{Value, json};

use support::{Ran, candor};

/// The name that the document uses for its examples.
const NAME: &str = "smollm2-135m-instruct-q4_1";

/// A server that runs, and its first line.
struct Serving {
    child: Child,
    ready: Value,
    _dir: tempfile::TempDir,
}

impl Serving {
    fn new(words: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = model(dir.path());
        let mut child = serve(&model, words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Self {
            ready: serde_json::from_str(&line).unwrap(),
            child,
            _dir: dir,
        }
    }

    fn address(&self) -> &str {
        self.ready["listening"].as_str().unwrap()
    }

    /// Presses Ctrl-C and waits for the end.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(status.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn model(dir: &Path) -> PathBuf {
    let path = dir.join(format!("{NAME}.gguf"));
    TinyModel::llama().context(2_048).write(&path).unwrap();
    path
}

fn serve(model: &Path, words: &[&str]) -> Command {
    let mut command = candor();
    command.args(["serve", "--json", "--backend", "cpu", "--threads", "1"]);
    command.args(words).arg(model);
    command
}

#[test]
fn it_says_where_it_listens_and_ctrl_c_ends_it() {
    let serving = Serving::new(&["--port", "0"]);
    assert_eq!(serving.ready["model"], json!(NAME));
    let address = serving.address().strip_prefix("http://").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A reply that is being written does not hold the end up.
    let body = json!({ "prompt": "Hello", "max_tokens": 2_000, "stream": true }).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request =
        format!("POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    stream
        .write_all([request.as_bytes(), body.as_bytes()].concat().as_slice())
        .unwrap();
    stream.read_exact(&mut [0; 200]).unwrap();
    assert_eq!(serving.interrupt(), Some(130));
}

#[test]
fn a_taken_port_is_said_and_another_offered() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = ["--port", &port.to_string()];
    let ran = Ran::of(serve(&model(dir.path()), &words).output().unwrap());
    let error = &ran.last(1)["error"];
    assert_eq!(error["code"], json!("listen"));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("port {port} of 127.0.0.1 is taken")),
        "{message}"
    );
    let advice = error["advice"].as_str().unwrap();
    assert!(advice.contains("--port "), "{advice}");
}

#[test]
fn a_damaged_model_is_refused_before_anything_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.gguf");
    fs::write(&path, "<html>").unwrap();
    let ran = Ran::of(serve(&path, &["--port", "0"]).output().unwrap());
    let error = &ran.last(5)["error"];
    assert!(
        error["message"].as_str().unwrap().contains("page.gguf"),
        "{error}"
    );
}

#[test]
fn every_example_of_the_document_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("NOT RUN: the examples of docs/server.md: there is no curl");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/server.md");
    let text = fs::read_to_string(path).unwrap();
    let examples: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    curl "))
        .collect();
    assert!(examples.len() > 20, "{}", examples.len());
    let serving = Serving::new(&["--port", "0"]);
    for example in examples {
        let line = example.replace("http://127.0.0.1:11711", serving.address());
        let line = format!("curl --silent --show-error --fail-with-body --max-time 60 {line}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{example}\n{said}");
        assert!(
            !said.is_empty() && !said.contains("\"error\":{"),
            "{example}\n{said}"
        );
    }
    assert_eq!(serving.interrupt(), Some(130));
}
