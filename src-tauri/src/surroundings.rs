//! Everything that this program asks of its surroundings: the environment, the clock, the
//! machine. Nothing below the composition root reads any of it.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the place where it is read"
)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use candor_app::headless::size;
use candor_app::{Power, machine};

use crate::graphics::{self, Display, Machine};

/// There exactly while NVIDIA's own kernel driver is loaded.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";

/// Where Linux lists what draws: a card that programs may use has an entry `renderD` and a number.
const CARDS: &str = "/dev/dri";

/// A variable that says something; an empty one says nothing.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Where windows are shown, as the desktop names it; none where there is no desktop. Systems that
/// always have one do not name it.
pub(crate) fn display() -> Option<OsString> {
    if !cfg!(target_os = "linux") {
        return Some(OsString::from("of this system"));
    }
    ["WAYLAND_DISPLAY", "DISPLAY"]
        .into_iter()
        .find_map(variable)
}

/// Milliseconds since 1970; 0 on a machine whose clock stands before that.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What the choice of the drawing switch depends on.
pub(crate) fn machine() -> Machine {
    let wayland = variable("WAYLAND_DISPLAY").is_some()
        && variable("GDK_BACKEND").is_none_or(|backend| backend != "x11");
    Machine {
        nvidia_driver: Path::new(NVIDIA_DRIVER).exists(),
        draws_on_a_card: draws_on_a_card(),
        display: if wayland {
            Display::Wayland
        } else {
            Display::X11
        },
        user_has_chosen: graphics::SWITCHES
            .iter()
            .any(|switch| env::var_os(switch).is_some()),
    }
}

/// Whether Linux has a card that programs may draw with; of another system it is taken for granted.
fn draws_on_a_card() -> bool {
    let entries = fs::read_dir(CARDS).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    let has_one = names.any(|name| name.as_encoded_bytes().starts_with(b"renderD"));
    has_one || !cfg!(target_os = "linux")
}

/// What a report says of the machine, and of how the window is drawn and why.
pub(crate) fn rows(why_drawn: Option<&str>) -> Vec<(&'static str, String)> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = ["MemAvailable:", "MemTotal:"].map(|name| bytes_of(&meminfo, name));
    let memory = match memory {
        [Some(free), Some(total)] => format!("{} free of {}", size(free), size(total)),
        _ => String::from("the system does not say"),
    };
    let displays = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter();
    let shown = displays.filter_map(|name| Some((name, variable(name)?)));
    let shown = shown.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
    let switches = graphics::SWITCHES.into_iter();
    let set = switches
        .filter_map(|name| Some(format!("{name}={}", env::var_os(name)?.to_string_lossy())));
    let set: Vec<String> = set.collect();
    let drawing = match (set.is_empty(), why_drawn) {
        (true, _) => String::from("as the web view does by itself"),
        (false, None) => format!("{}: chosen by you", set.join(" ")),
        (false, Some(why)) => format!("{}: {why}", set.join(" ")),
    };
    let driver = match Path::new(NVIDIA_DRIVER).exists() {
        true => "loaded",
        false => "not loaded",
    };
    vec![
        ("memory", memory),
        ("display", shown.collect::<Vec<_>>().join(" ")),
        ("drawing", drawing),
        ("NVIDIA driver", driver.to_owned()),
    ]
}

/// The person's home, whose name is left out of what is passed on.
pub(crate) fn home() -> Option<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    home.filter(|home| home.components().count() > 1)
}

/// The proxy that requests have to go through, as programs on Unix are told it.
pub(crate) fn proxy() -> Option<String> {
    let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    names
        .into_iter()
        .find_map(variable)
        .and_then(|address| address.into_string().ok())
}

/// Bytes of memory that the machine can give without swapping, where it says so.
pub(crate) fn free_memory() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Time since the machine was started, sleep included, where the system says so.
pub(crate) fn with_sleep() -> Option<Duration> {
    machine::uptime(&fs::read_to_string(machine::UPTIME).ok()?)
}

/// Where the power comes from.
pub(crate) fn power() -> Power {
    let read = |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).ok();
    let folders = fs::read_dir(machine::SUPPLIES).into_iter().flatten();
    let supplies = folders.flatten().filter_map(|entry| {
        let folder = entry.path();
        Some((read(&folder, "type")?, read(&folder, "online")))
    });
    let supplies: Vec<(String, Option<String>)> = supplies.collect();
    machine::power(
        supplies
            .iter()
            .map(|(kind, online)| (kind.as_str(), online.as_deref())),
    )
}

/// This program's own file; its bare name where the system does not say more.
pub(crate) fn own_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| PathBuf::from("candor-desktop"))
}

/// The folder that relative paths on the command line start from.
pub(crate) fn current_folder() -> PathBuf {
    env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

fn bytes_of(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read_from_the_kernels_own_words() {
        let cases = [
            ("MemTotal: 1 kB\nMemAvailable:   2048 kB\n", Some(2_097_152)),
            ("MemTotal: 1 kB\n", None),
            ("MemAvailable: many kB", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes_of(text, "MemAvailable:"), expected, "{text}");
        }
    }
}
