//! What the program finds around it: clocks, memory, folders, chance. The only file here that asks
//! the system.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the composition root of the command line: below it nobody asks the system"
)]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use candor_app::{AppPaths, Clock, PROBE_ARGUMENT, PathRequest, ProbeCommand, System, machine};

/// The clocks of the machine.
pub(crate) fn clock() -> Clock {
    Clock {
        now_ms: Arc::new(now_ms),
        instant: Arc::new(Instant::now),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A seed that nobody chose. 32 bits, so that it survives programs that keep numbers as float64.
pub(crate) fn fresh_seed() -> u64 {
    // The standard library seeds its hashers from the system's randomness.
    u64::from(RandomState::new().build_hasher().finish() as u32)
}

/// The key that programs have to carry to be answered, if one is set.
pub(crate) fn api_key() -> Option<String> {
    env::var("CANDOR_API_KEY")
        .ok()
        .filter(|key| !key.is_empty())
}

/// How this program asks for the driver: in a child of its own.
pub(crate) fn probe_command() -> io::Result<ProbeCommand> {
    Ok(ProbeCommand {
        program: env::current_exe()?,
        args: vec![PROBE_ARGUMENT.into()],
    })
}

/// Bytes of memory that the machine can still give, if it says so.
pub(crate) fn free_memory() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemAvailable:")
}

/// Time since the machine was started, sleep included, where the system says so.
pub(crate) fn with_sleep() -> Option<Duration> {
    machine::uptime(&fs::read_to_string(machine::UPTIME).ok()?)
}

/// Bytes of memory of the machine, if it says so.
pub(crate) fn total_memory() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemTotal:")
}

/// The most bytes of memory that this process had at any time, if the system says so.
pub(crate) fn peak_rss() -> Option<u64> {
    kibibytes("/proc/self/status", "VmHWM:")
}

fn kibibytes(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let count: u64 = line.split_whitespace().next()?.parse().ok()?;
    count.checked_mul(1024)
}

/// The program's folders.
pub(crate) fn paths(data_dir: Option<PathBuf>) -> Result<AppPaths, candor_app::Error> {
    let chosen = data_dir.or_else(|| env::var_os("CANDOR_DATA_DIR").map(PathBuf::from));
    AppPaths::resolve(&PathRequest {
        system: System::of_this_build(),
        variable: &|name| env::var_os(name),
        data_dir: chosen.filter(|dir| !dir.as_os_str().is_empty()),
    })
}

/// The user's home, to be left out of what is passed on.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.components().count() > 1)
}

/// Whether a display is there for a window.
pub(crate) fn display() -> Option<String> {
    ["WAYLAND_DISPLAY", "DISPLAY"].iter().find_map(|name| {
        let value = env::var_os(name)?;
        (!value.is_empty()).then(|| format!("{name}={}", value.to_string_lossy()))
    })
}
