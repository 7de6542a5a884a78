//! Runs the built program and reads what it says.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program, away from the user's own folders.
pub(crate) fn candor() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candor"));
    // Nothing here writes there; a folder that cannot exist would show it.
    command
        .env("CANDOR_DATA_DIR", "/dev/null/candor")
        .stdin(Stdio::null());
    command
}

/// How a run ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self {
            code: status.code(),
            stdout,
            stderr,
        }
    }

    /// Every line of the output as JSON; checks that it is ASCII with plain line ends.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        assert!(
            self.stdout.is_ascii() && !self.stdout.contains(&b'\r'),
            "not ASCII"
        );
        let text = String::from_utf8_lossy(&self.stdout);
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        text.lines().map(parse).collect()
    }

    /// The last line of a run that ended with this code.
    #[track_caller]
    pub(crate) fn last(&self, code: i32) -> Value {
        assert_eq!(self.code, Some(code), "{} {}", self.text(), self.stderr);
        self.lines().pop().expect("there is a result")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Runs the program with these arguments.
pub(crate) fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    Ran::of(candor().args(args).output().expect("the program starts"))
}

/// Runs the program with this standard input.
pub(crate) fn run_with_input<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Ran {
    let mut command = candor();
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // A program that refuses its arguments does not read.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ran::of(child.wait_with_output().expect("the program ends"))
}

/// A folder that is removed with the value.
pub(crate) fn folder() -> TempDir {
    TempDir::new().expect("there is a place for files")
}

/// A file of the golden data.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// A JSON file of the golden data.
#[track_caller]
pub(crate) fn golden_json(name: &str) -> Value {
    let text = fs::read_to_string(golden(name)).expect("the golden file is there");
    serde_json::from_str(&text).expect("the golden file is JSON")
}

/// A real model, if this machine has it; says so if not.
#[expect(
    clippy::print_stderr,
    reason = "what was not run is said where the test's output stands"
)]
pub(crate) fn real_model(name: &str) -> Option<PathBuf> {
    // A test is a composition root of its own.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test chooses where its models are"
    )]
    let folder = std::env::var_os("CANDOR_TEST_MODELS");
    let folder = folder.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/models"),
        PathBuf::from,
    );
    let path = folder.join(format!("{name}.gguf"));
    if path.is_file() {
        return Some(path);
    }
    eprintln!("NOT RUN: {name} is missing in {}", folder.display());
    None
}

/// The ids in a JSON list.
#[track_caller]
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().expect("a list of ids");
    list.iter()
        .map(|id| u32::try_from(id.as_u64().expect("an id")).expect("an id"))
        .collect()
}

/// Ids as an argument.
pub(crate) fn listed(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
