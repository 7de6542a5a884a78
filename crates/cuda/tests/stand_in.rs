//! The probe against a stand-in for the driver's library, compiled here: each way in which a
//! driver can be absent, old or broken gives an answer of its own, and none harms the caller.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "this is a test")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use candor_backend::Unavailable;
use candor_cuda::{ProbeCommand, probe};

/// Enough for a child on a busy machine; only the case that hangs uses a shorter one.
const LIMIT: Duration = Duration::from_secs(10);

/// The driver, with each behaviour chosen by a macro.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef VERSION
#define VERSION 12040
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef FIRST
#define FIRST
#endif
int cuDriverGetVersion(int *v) { FIRST; *v = VERSION; return 0; }
#ifndef WITHOUT_INIT
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
#endif
int cuDeviceGetCount(int *n) { *n = COUNT; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *name, int len, int d) { strncpy(name, "NVIDIA Stand-in 1", len); return d; }
"#;

fn compile(dir: &Path, defines: &[&str]) -> Option<PathBuf> {
    let source = dir.join("driver.c");
    fs::write(&source, SOURCE).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(dir.join("libcuda.so.1"))
        .arg(&source);
    cc.args(defines.iter().map(|define| format!("-D{define}")));
    match cc.status() {
        Ok(status) => {
            assert!(status.success(), "cc could not compile the stand-in");
            Some(dir.to_owned())
        }
        Err(error) => {
            eprintln!("NOT RUN: the probe against a stand-in driver: no C compiler ({error})");
            None
        }
    }
}

/// The child as the programs start it, with `dir` first where libraries are searched.
fn command(dir: &Path) -> ProbeCommand {
    let mut path = OsString::from("LD_LIBRARY_PATH=");
    path.push(dir);
    ProbeCommand {
        program: PathBuf::from("/usr/bin/env"),
        args: vec![
            path,
            OsString::from(env!("CARGO_BIN_EXE_candor-cuda-probe")),
        ],
    }
}

fn answer(defines: &[&str], limit: Duration) -> Option<Unavailable> {
    let dir = tempfile::tempdir().unwrap();
    let dir = compile(dir.path(), defines).map(|_| dir)?;
    Some(probe(&command(dir.path()), limit))
}

#[track_caller]
fn check(defines: &[&str], want: &Unavailable) {
    if let Some(found) = answer(defines, LIMIT) {
        assert_eq!(&found, want, "stand-in with {defines:?}");
    }
}

fn broken(reason: &str) -> Unavailable {
    Unavailable::DriverBroken {
        reason: String::from(reason),
    }
}

#[test]
fn every_fault_has_its_own_answer() {
    check(
        &["INIT=999"],
        &broken("it could not start and gives no reason; cuInit failed with code 999"),
    );
    check(
        &["INIT=803"],
        &broken(
            "its parts are of different versions, as after an update without a restart; \
             cuInit failed with code 803",
        ),
    );
    check(
        &["VERSION=11040"],
        &Unavailable::DriverTooOld {
            found: String::from("470"),
            needed: String::from("525"),
        },
    );
    check(&["INIT=100"], &Unavailable::NoDevice);
    check(&["COUNT=0"], &Unavailable::NoDevice);
    check(&["WITHOUT_INIT"], &broken("its library lacks cuInit"));
}

#[test]
fn a_card_is_named() {
    check(
        &[],
        &Unavailable::NotUsedYet {
            device: String::from("NVIDIA Stand-in 1"),
        },
    );
}

#[test]
fn a_driver_that_hangs_is_given_up() {
    let started = Instant::now();
    let found = answer(&["FIRST=sleep(60)"], Duration::from_secs(1));
    if let Some(found) = found {
        assert_eq!(found, broken("it did not answer within 1 seconds"));
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the child was not killed"
        );
    }
}

#[test]
fn a_driver_that_crashes_takes_only_the_child_down() {
    let found = answer(&["FIRST=abort()"], LIMIT);
    if let Some(found) = found {
        let Unavailable::DriverBroken { reason } = found else {
            panic!("{found:?}")
        };
        assert!(
            reason.starts_with("it crashed when it was asked"),
            "{reason}"
        );
    }
}

#[test]
fn a_library_that_is_no_library_is_a_broken_driver() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("libcuda.so.1"), "not a library").unwrap();
    let found = probe(&command(dir.path()), LIMIT);
    let Unavailable::DriverBroken { reason } = found else {
        panic!("{found:?}")
    };
    assert!(reason.starts_with("its library does not load"), "{reason}");
}

#[test]
fn a_program_that_cannot_be_started_is_a_reason() {
    let command = ProbeCommand {
        program: PathBuf::from("/nowhere/candor"),
        args: Vec::new(),
    };
    let Unavailable::DriverBroken { reason } = probe(&command, LIMIT) else {
        panic!()
    };
    assert!(
        reason.starts_with("the check of it could not be started"),
        "{reason}"
    );
}
