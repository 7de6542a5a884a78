//! The probe against drivers that are absent, old or broken: each gives an answer of its own, and
//! none harms the caller. All but the ones that are no driver are the simulated one, told to fail.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "this is a test")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use candor_backend::{DriverFault, Unavailable};
use candor_cuda::{CudaDevice, ProbeCommand, find};
use simcuda::{Driver, Folder};

/// Enough for a child on a busy machine; only the case that hangs uses a shorter one.
const LIMIT: Duration = Duration::from_secs(30);

type Found = Result<Vec<CudaDevice>, Unavailable>;

/// What the child finds, as the programs start it, with this driver alone where libraries are
/// searched.
fn answer(driver: Driver, settings: &str, limit: Duration) -> Found {
    let folder = Folder::new(driver, settings).unwrap();
    let set = folder.environment().map(|(name, value)| {
        let mut set = OsString::from(format!("{name}="));
        set.push(value);
        set
    });
    let program = OsString::from(env!("CARGO_BIN_EXE_candor-cuda-probe"));
    let command = ProbeCommand {
        program: PathBuf::from("/usr/bin/env"),
        args: set.into_iter().chain([program]).collect(),
    };
    find(&command, limit)
}

#[track_caller]
fn check(driver: Driver, settings: &str, want: &Found) {
    let found = as_said(answer(driver, settings, LIMIT));
    assert_eq!(&found, want, "{driver:?} with {settings:?}");
}

fn broken(reason: &str) -> Found {
    Err(Unavailable::DriverBroken {
        reason: DriverFault::Lost {
            reason: String::from(reason),
        },
    })
}

/// With a broken driver's fault in the words that are read.
fn as_said(found: Found) -> Found {
    match found {
        Err(Unavailable::DriverBroken { reason }) => broken(&reason.to_string()),
        other => other,
    }
}

#[track_caller]
fn reason(found: Found) -> String {
    match found {
        Err(Unavailable::DriverBroken { reason }) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_fault_has_its_own_answer() {
    let failed = |settings, reason| check(Driver::Simulated, settings, &broken(reason));
    failed(
        "init=999",
        "it failed and gives no reason; cuInit failed with code 999",
    );
    failed(
        "init=803",
        "its parts are of different versions, as after an update without a restart; \
         cuInit failed with code 803",
    );
    failed(
        "fail=cuDevicePrimaryCtxRetain:1:46",
        "the card is in use by another program alone; \
         cuDevicePrimaryCtxRetain failed with code 46",
    );
    let old = |found: &str| {
        Err(Unavailable::DriverTooOld {
            found: String::from(found),
            needed: String::from("525"),
        })
    };
    check(Driver::Simulated, "driver=11040", &old("470"));
    check(Driver::Simulated, "driver=10000", &old("410"));
    check(Driver::Simulated, "devices=0", &Err(Unavailable::NoDevice));
    check(Driver::Simulated, "init=100", &Err(Unavailable::NoDevice));
}

#[test]
fn a_library_that_is_no_driver_is_told_apart() {
    if simcuda::driver_is_installed() {
        eprintln!("NOT RUN: a machine without a driver: this one has a driver");
    } else {
        check(Driver::None, "", &Err(Unavailable::NoDriver));
    }
    check(
        Driver::Empty,
        "",
        &broken("its library lacks cuDriverGetVersion"),
    );
    check(
        Driver::Without("cuInit"),
        "",
        &broken("its library lacks cuInit"),
    );
    check(
        Driver::Without("cuStreamBeginCapture_v2"),
        "",
        &broken("its library lacks cuStreamBeginCapture_v2"),
    );
    let said = reason(answer(Driver::NoLibrary, "", LIMIT));
    assert!(said.starts_with("its library does not load"), "{said}");
}

#[test]
fn cards_are_named_with_what_is_free() {
    let card = |ordinal| CudaDevice {
        ordinal,
        name: String::from("GeForce RTX 4090"),
        capability: (8, 9),
        total_bytes: 24 << 30,
        free_bytes: 200 << 20,
        driver_version: 12_040,
    };
    let settings = "name=GeForce RTX 4090,capability=8.9,memory=24G,used=24376M";
    check(Driver::Simulated, settings, &Ok(vec![card(0)]));
    let two = format!("{settings},devices=2");
    check(Driver::Simulated, &two, &Ok(vec![card(0), card(1)]));
}

#[test]
fn a_driver_that_hangs_is_given_up() {
    for settings in ["hang=any", "hang=cuInit"] {
        let started = Instant::now();
        let found = answer(Driver::Simulated, settings, Duration::from_secs(1));
        assert_eq!(as_said(found), broken("it did not answer within 1 seconds"));
        assert!(started.elapsed() < LIMIT, "the child was not killed");
    }
}

#[test]
fn a_driver_that_crashes_takes_only_the_child_down() {
    for settings in ["crash=any", "crash=cuInit"] {
        let said = reason(answer(Driver::Simulated, settings, LIMIT));
        assert_eq!(said, "it crashed when it was asked: signal 6");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_a_reason() {
    let command = ProbeCommand {
        program: PathBuf::from("/nowhere/candor"),
        args: Vec::new(),
    };
    let said = reason(find(&command, LIMIT));
    assert!(
        said.starts_with("the check of it could not be started"),
        "{said}"
    );
}
