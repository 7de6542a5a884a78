//! Tests that each need a machine of their own.
//!
//! cudarc keeps the driver it has found for as long as the process lives, and a device that a
//! fault has killed stays dead as long. So each scenario runs in a process of its own: the test
//! starts its own program again for this one test, and the child loads the simulated driver first.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::control::Library;

/// Tells the child which scenario it is.
const WHICH: &str = "CANDOR_SIMCUDA_SCENARIO";

/// What the child prints when its scenario has come to its end. A test program that is asked for a
/// test it does not know runs none and is content.
const ENDED: &str = "simulated scenario ended: ";

/// How long a scenario may take before it counts as hanging. The longest ones need seconds; two
/// busy cores may make that a minute.
pub const HANG_LIMIT: Duration = Duration::from_secs(300);

/// How often the parent looks whether the child has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A test with a simulated machine of its own: its name, the machine as a value or as text
/// ([`Settings`](crate::Settings)), and what runs on it. The body gets the [`Library`].
///
/// ```text
/// simcuda::scenario!(a_small_card_is_full_soon, "memory=1M", |library| {
///     // …
/// });
/// ```
#[macro_export]
macro_rules! scenario {
    ($(#[$attribute:meta])* $name:ident, $settings:expr, $body:expr) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            $crate::scenario::run(path, &::std::string::ToString::to_string(&$settings), $body);
        }
    };
}

/// Has something done when this process ends, as a driver's library does, and says whether it will
/// be.
pub fn at_exit(act: extern "C" fn()) -> bool {
    unsafe extern "C" {
        fn atexit(act: extern "C" fn()) -> std::ffi::c_int;
    }
    // SAFETY: the function is there as long as the program, and takes any function of this kind.
    unsafe { atexit(act) == 0 }
}

/// What [`scenario!`](crate::scenario!) does.
///
/// # Panics
/// When the scenario fails, hangs, or is not there.
#[track_caller]
pub fn run(path: &str, settings: &str, body: impl FnOnce(Library)) {
    // The test program knows its tests without its own name.
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    if std::env::args().any(|argument| argument == format!("--skip={WHICH}={name}")) {
        let library = load_here(settings);
        body(library);
        let mut out = std::io::stdout();
        // A parent that is gone does not read it.
        let _ = writeln!(out, "\n{ENDED}{name}");
        return;
    }
    let child = start(name);
    let (status, output) = match child {
        Ok(child) => await_end(child),
        Err(error) => panic!("{name} does not start: {error}"),
    };
    let ended = output.contains(&format!("{ENDED}{name}"));
    #[expect(
        clippy::print_stdout,
        reason = "the test program shows it if the test fails"
    )]
    {
        println!("{}", quoted(&output));
    }
    match status {
        None => panic!("{name} did not end within {} s", HANG_LIMIT.as_secs()),
        Some(status) if !status.success() => panic!("{name} failed ({status})"),
        Some(_) => assert!(ended, "{name} did not run"),
    }
}

/// Loads the simulated driver into this process, for test programs all of whose tests share one
/// machine. The settings of the first call count.
///
/// # Panics
/// When it cannot be loaded, or the settings are not understood.
#[must_use]
pub fn load_here(settings: &str) -> Library {
    static READY: OnceLock<Library> = OnceLock::new();
    *READY.get_or_init(|| {
        let library = Library::load().unwrap_or_else(|error| panic!("{error}"));
        library
            .apply(settings)
            .unwrap_or_else(|error| panic!("{error}"));
        library
    })
}

/// What a scenario printed, marked, so that whoever counts the results of test programs does not
/// count its own beside its parent's. That it could not test something stays a line of its own.
fn quoted(output: &str) -> String {
    let line = |line: &str| match line.trim_start().starts_with("NOT RUN: ") {
        true => format!("{line}\n"),
        false => format!("| {line}\n"),
    };
    output.lines().map(line).collect()
}

fn start(name: &str) -> std::io::Result<Child> {
    // A filter that skips nothing is how the child is told, so that no variable of the
    // environment has to be read here.
    Command::new(std::env::current_exe()?)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .arg(format!("--skip={WHICH}={name}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn await_end(mut child: Child) -> (Option<ExitStatus>, String) {
    let out = child.stdout.take().map(gather);
    let err = child.stderr.take().map(gather);
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if begun.elapsed() < HANG_LIMIT => thread::sleep(LOOK_EVERY),
            _ => {
                // One that has just ended cannot be killed, which is as good.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let text = |reader: Option<JoinHandle<String>>| {
        reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    };
    (status, text(out) + &text(err))
}

fn gather(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before a pipe broke is worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
