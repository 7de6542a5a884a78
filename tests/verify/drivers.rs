//! No driver, and drivers that do not work: each has its own reason, and none stops the processor.

use candor_testkit::TinyModel;
use serde_json::Value;
use simcuda::{Driver, Folder};

use crate::assert_not_judged;
use crate::support::{Ran, candor, folder};

/// Runs the program where only this driver is found.
#[track_caller]
fn ran(driver: &Folder, words: &[&str]) -> Ran {
    let dir = folder();
    let model = dir.path().join("tiny.gguf");
    TinyModel::llama().write(&model).unwrap();
    let mut command = candor();
    driver.give_to(&mut command);
    command.args(words).arg("--json").arg(&model);
    Ran::of(command.output().expect("the program starts"))
}

/// What `generate` is asked for.
const REPLY: [&str; 5] = ["generate", "--ids", "1", "--max-tokens", "1"];

/// What is said of a driver, the same to all commands.
#[track_caller]
fn check(driver: Driver, settings: &str, want: &str) {
    let what = format!("{driver:?} with {settings:?}");
    let driver = Folder::new(driver, settings).unwrap();
    let judged = ran(&driver, &["verify"]).last(4);
    assert_not_judged(&judged);
    let reason = judged["reason"].as_str().unwrap();
    assert!(reason.contains(want), "{what}: {reason}");

    let served = ran(&driver, &REPLY).last(0);
    let backend = &served["backend"];
    assert_eq!(backend["requested"], "auto");
    assert_eq!(backend["served"], "cpu");
    assert_eq!(backend["reason"], reason, "{what}");
    assert_eq!(backend["f2"]["verdict"], "not_needed");

    let refused = ran(&driver, &[&REPLY[..], &["--backend", "gpu"]].concat()).last(6);
    assert_eq!(refused["error"]["code"], "no_gpu");
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, format!("the GPU cannot serve: {reason}"));

    let chosen = ran(&driver, &[&REPLY[..], &["--backend", "cpu"]].concat()).last(0);
    assert_eq!(chosen["backend"]["reason"], "chosen by you", "{what}");
}

#[test]
fn without_a_driver_the_processor_serves() {
    if simcuda::driver_is_installed() {
        eprintln!("NOT RUN: no driver at all: this machine has one");
        return;
    }
    check(Driver::None, "", "no NVIDIA driver found");
}

#[test]
fn each_driver_that_does_not_work_has_its_own_reason() {
    let answers = "the NVIDIA driver does not answer";
    let of = |reason: &str| format!("{answers} ({reason}");
    check(Driver::NoLibrary, "", &of("its library does not load"));
    check(Driver::Empty, "", &of("its library lacks "));
    check(
        Driver::Simulated,
        "init=999",
        &of("it failed and gives no reason"),
    );
    check(
        Driver::Simulated,
        "init=803",
        &of("its parts are of different versions"),
    );
    check(
        Driver::Simulated,
        "crash=any",
        &of("it crashed when it was asked"),
    );
    let old = "the NVIDIA driver is too old (470; 525 or newer is needed)";
    check(Driver::Simulated, "driver=11040", old);
    check(
        Driver::Simulated,
        "devices=0",
        "the driver sees no NVIDIA card",
    );
    let old = "is too old (compute capability 6.1; 7.5 is needed)";
    check(Driver::Simulated, "capability=6.1", old);
}

/// Each command waits for it once, so this asks as little as it can.
#[test]
fn a_driver_that_hangs_is_given_up_and_one_that_is_not_asked_does_not_matter() {
    let driver = Folder::new(Driver::Simulated, "hang=any").unwrap();
    let served = ran(&driver, &REPLY).last(0);
    let reason = served["backend"]["reason"].as_str().unwrap();
    assert!(reason.contains("it did not answer within "), "{reason}");
    let chosen = ran(&driver, &[&REPLY[..], &["--backend", "cpu"]].concat()).last(0);
    assert_eq!(chosen["backend"]["reason"], "chosen by you");
}

#[test]
fn a_number_that_no_card_has_is_said() {
    let driver = Folder::new(Driver::Simulated, "").unwrap();
    let words = [&REPLY[..], &["--device", "3"]].concat();
    let want = "there is no card number 3; there is 1 card, counted from 0";
    let served: Value = ran(&driver, &words).last(0);
    assert_eq!(served["backend"]["reason"], want);
    let refused = ran(&driver, &[&words[..], &["--backend", "gpu"]].concat()).last(6);
    assert_eq!(
        refused["error"]["message"],
        format!("the GPU cannot serve: {want}")
    );
}
