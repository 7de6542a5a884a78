//! The probe in a process of its own.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use candor_backend::{DriverFault, Unavailable};

use crate::answer::{Answer, CudaDevice};
use crate::driver;

/// The hidden argument by which a program knows that it is the child: it then prints
/// [`probe_child`] and ends.
pub const PROBE_ARGUMENT: &str = "--cuda-probe-child";

/// How long the child may take. A healthy driver answers in well under a second, one that wakes a
/// sleeping card in a few; a person waits ten seconds at most for the banner to say that it hangs.
pub const PROBE_LIMIT: Duration = Duration::from_secs(8);

/// Most that is read from the child. An answer has a few hundred bytes.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// How to start the child: the program itself with [`PROBE_ARGUMENT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeCommand {
    /// What to start.
    pub program: PathBuf,
    /// With which arguments.
    pub args: Vec<OsString>,
}

/// The NVIDIA cards that can be used, or why there is none. Waits for the child, at most `limit`.
///
/// # Errors
/// The reason, to be shown.
pub fn find(command: &ProbeCommand, limit: Duration) -> Result<Vec<CudaDevice>, Unavailable> {
    let child = Command::new(&command.program)
        .args(&command.args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => await_answer(child, limit),
        Err(error) => Err(broken(DriverFault::NotAsked {
            message: error.to_string(),
        })),
    }
}

/// What a line of [`probe_child`] means.
///
/// # Errors
/// The reason why no card can be used.
pub fn understand(line: &str) -> Result<Vec<CudaDevice>, Unavailable> {
    match serde_json::from_str::<Answer>(line.trim()) {
        Ok(answer) => answer.into_devices(),
        Err(_) => Err(broken(DriverFault::NoAnswer)),
    }
}

/// What the child prints: one line.
pub fn probe_child() -> String {
    // An answer holds only strings and numbers, which always become JSON.
    serde_json::to_string(&driver::look()).unwrap_or_default()
}

fn await_answer(mut child: Child, limit: Duration) -> Result<Vec<CudaDevice>, Unavailable> {
    let Some(stdout) = child.stdout.take() else {
        return Err(broken(DriverFault::NoAnswer));
    };
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the child, whose end closes the pipe.
    thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.take(ANSWER_BYTES_MAX).read_to_string(&mut text);
        // Nobody listens any more once the limit has passed.
        let _ = sender.send(read.map(|_| text));
    });
    match receiver.recv_timeout(limit) {
        Err(_) => {
            // A child that has just ended cannot be killed, which is as good.
            let _ = child.kill();
            reap(child);
            Err(broken(DriverFault::Late {
                seconds: limit.as_secs_f32().ceil() as u64,
            }))
        }
        Ok(Err(error)) => {
            reap(child);
            Err(broken(unread(&error)))
        }
        Ok(Ok(text)) => answered(&text, child),
    }
}

/// Lets the system forget the child, without waiting for it here: one that hangs inside the driver
/// ends only once that lets go of it, which may be never.
fn reap(mut child: Child) {
    thread::spawn(move || child.wait());
}

fn answered(text: &str, mut child: Child) -> Result<Vec<CudaDevice>, Unavailable> {
    if let Ok(answer) = serde_json::from_str::<Answer>(text.trim()) {
        reap(child);
        return answer.into_devices();
    }
    // It closed its output without an answer, so it has ended or is about to.
    Err(broken(match child.wait() {
        Ok(status) => DriverFault::Crashed {
            end: end_of(status),
        },
        Err(error) => unread(&error),
    }))
}

/// How a child ended, without the brackets of the system's own words: this stands in brackets.
fn end_of(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    match status.code() {
        Some(code) => format!("code {code}"),
        None => status.to_string(),
    }
}

fn unread(error: &std::io::Error) -> DriverFault {
    DriverFault::Unread {
        message: error.to_string(),
    }
}

fn broken(reason: DriverFault) -> Unavailable {
    Unavailable::DriverBroken { reason }
}
