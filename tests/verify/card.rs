//! A card that works, as far as a simulated one does: proven, rejected, without room.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use candor_app::AppPaths;
use serde_json::Value;
use simcuda::{Driver, Folder};

use crate::support::{Ran, candor, folder, golden};

/// A kernel that gives other values than it should.
const WRONG: &str = "kernel=attention*:scaled";

fn model() -> PathBuf {
    golden("models/s10-qwen2-q4_k_m.gguf")
}

/// Runs the program where this card is found; what it keeps is kept in `data`.
#[track_caller]
fn ran(settings: &str, data: &Path, words: &str) -> Ran {
    let driver = Folder::new(Driver::Simulated, settings).unwrap();
    let mut command = candor();
    driver.give_to(&mut command);
    command.env("CANDOR_DATA_DIR", data);
    command
        .args(words.split_whitespace())
        .arg("--json")
        .arg(model());
    Ran::of(command.output().expect("the program starts"))
}

const REPLY: &str = "generate --ids 1,2,3,4 --max-tokens 4 --temperature 0";

#[track_caller]
fn assert_proven(report: &Value) {
    assert_eq!(report["verdict"], "accepted");
    assert_eq!(report["mode"], "probe");
    assert_eq!(report["first_bad"], Value::Null);
    assert_eq!(report["near_ties"], 0);
    // Of this century: "2026-12-01".
    let date = report["date"].as_str().unwrap();
    assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    assert!(report["positions"].as_u64().unwrap() >= 8, "{report}");
    assert!(report["min_cosine"].as_f64().unwrap() > 0.99, "{report}");
    assert!(report["max_kl"].as_f64().unwrap() < 0.1, "{report}");
    assert!(
        report["argmax_agreement"].as_f64().unwrap() > 0.9,
        "{report}"
    );
}

#[test]
fn a_card_that_computes_the_same_is_accepted() {
    let data = folder();
    let result = ran("", data.path(), "verify --prompt Hello").last(0);
    assert_proven(&result);
    assert_eq!(result["device"], "Simulated GPU");
    assert_eq!(result["driver"], "550");
    for time in ["reference_ms", "candidate_ms"] {
        assert!(result[time].as_f64().unwrap() > 0.0, "{time}");
    }
    assert!(result["reason"].as_str().unwrap().starts_with("proven on "));
}

#[test]
fn a_proven_card_serves_and_the_second_time_the_processor_is_not_asked() {
    let data = folder();
    let ids = |line: &Value| line["ids"].clone();
    let first = ran("", data.path(), REPLY).last(0);
    let backend = &first["backend"];
    assert_eq!(
        (&backend["requested"], &backend["served"]),
        (&"auto".into(), &"gpu".into())
    );
    assert_eq!(backend["device"], "Simulated GPU");
    assert_proven(&backend["f2"]);
    assert!(backend["f2"]["reference_ms"].as_f64().unwrap() > 0.0);

    let again = ran("", data.path(), &format!("{REPLY} --backend gpu")).last(0);
    assert_proven(&again["backend"]["f2"]);
    assert_eq!(again["backend"]["f2"]["reference_ms"], 0.0);
    assert_eq!(ids(&again), ids(&first));

    let cpu = ran("", data.path(), &format!("{REPLY} --backend cpu")).last(0);
    assert_eq!(cpu["backend"]["served"], "cpu");
    assert_eq!(cpu["backend"]["reason"], "chosen by you");
    assert_eq!(ids(&cpu), ids(&first), "the same words");
}

#[test]
fn a_card_is_checked_when_the_command_or_the_settings_say() {
    let data = folder();
    let judged = |words: &str| {
        let line = ran("", data.path(), &format!("{REPLY} {words}")).last(0);
        let f2 = line["backend"]["f2"].clone();
        assert_eq!(line["backend"]["served"], "gpu", "{words}");
        assert_eq!(f2["verdict"], "accepted", "{words}");
        f2["mode"].as_str().unwrap().to_owned()
    };
    assert_eq!(judged("--check every-prompt"), "every-prompt");
    let settings = AppPaths::below(data.path()).settings_file();
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, r#"{"gpuCheck":"first-prompt"}"#).unwrap();
    assert_eq!(judged(""), "first-prompt");
    // The command goes before.
    assert_eq!(judged("--check probe"), "probe");

    let served = |words: &str| {
        let line = ran("", data.path(), &format!("{REPLY} {words}")).last(0);
        line["backend"]["served"].as_str().unwrap().to_owned()
    };
    fs::write(&settings, r#"{"device":"cpu"}"#).unwrap();
    assert_eq!(served(""), "cpu");
    assert_eq!(served("--backend auto"), "gpu");

    // What a prompt shows to be wrong writes nothing either.
    let words = format!("{REPLY} --check first-prompt --backend auto");
    let line = ran(WRONG, data.path(), &words).last(0);
    assert_eq!(line["backend"]["served"], "cpu");
    assert_eq!(line["backend"]["f2"]["verdict"], "rejected");
    assert_eq!(line["ids"].as_array().unwrap().len(), 4);
}

#[test]
fn a_card_that_computes_something_else_writes_nothing() {
    let data = folder();
    let verified = ran(WRONG, data.path(), "verify").last(3);
    assert_eq!(verified["verdict"], "rejected");
    assert!(verified["first_bad"]["position"].is_u64(), "{verified}");
    let bad = &verified["first_bad"];
    let named = bad["nodes"].as_array().unwrap().len();
    assert_eq!(bad["distances"].as_array().unwrap().len(), named, "{bad}");
    assert!(named > 0 || bad["not_located"].is_string(), "{bad}");
    for words in ["rule", "found"] {
        assert!(!bad[words].as_str().unwrap().is_empty(), "{bad}");
    }
    let want = "GPU found (Simulated GPU), but its answers differed";
    assert!(
        verified["reason"].as_str().unwrap().starts_with(want),
        "{verified}"
    );

    let refused = ran(WRONG, data.path(), &format!("{REPLY} --backend gpu")).last(3);
    assert_eq!(refused["error"]["code"], "f2_rejected");
    assert!(refused["error"]["message"].as_str().unwrap().contains(want));

    // The same where a prompt has to show it.
    for check in ["first-prompt", "every-prompt"] {
        let words = format!("{REPLY} --backend gpu --check {check}");
        let refused = ran(WRONG, data.path(), &words).last(3);
        assert_eq!(refused["error"]["code"], "f2_rejected", "{check}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("Simulated GPU: "), "{message}");
    }

    let served = ran(WRONG, data.path(), REPLY).last(0);
    let backend = &served["backend"];
    assert_eq!(backend["served"], "cpu");
    assert_eq!(backend["f2"]["verdict"], "rejected");
    let reason = backend["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(want) && reason.ends_with("so the CPU is used"),
        "{reason}"
    );
}

#[test]
fn a_conversation_says_what_its_first_prompt_has_shown_of_the_card() {
    let data = folder();
    for (settings, device, code, said) in [
        ("", "gpu", 0, "proven on "),
        (WRONG, "auto", 0, "its answers differed"),
        (WRONG, "gpu", 3, "Simulated GPU: "),
    ] {
        let driver = Folder::new(Driver::Simulated, settings).unwrap();
        let mut command = candor();
        driver.give_to(&mut command);
        let words = format!("chat --backend {device} --check first-prompt --max-tokens 2");
        command
            .env("CANDOR_DATA_DIR", data.path())
            .args(words.split_whitespace())
            .arg(model())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"Hello\n").unwrap();
        drop(stdin);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(code), "{device}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{device}: {}", ran.stderr);
    }
}

#[test]
fn a_card_without_room_is_passed_over_with_both_numbers() {
    let data = folder();
    let full = "memory=200M,used=199M";
    let served = ran(full, data.path(), REPLY).last(0);
    let reason = served["backend"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the model needs "), "{reason}");
    assert!(
        reason.contains(" on the card, ") && reason.ends_with(" are free"),
        "{reason}"
    );
    assert_eq!(served["backend"]["served"], "cpu");
    let refused = ran(full, data.path(), &format!("{REPLY} --backend gpu")).last(6);
    assert_eq!(refused["error"]["code"], "no_gpu");
    let judged = ran(full, data.path(), "verify").last(4);
    assert_eq!(
        (&judged["verdict"], &judged["reason"]),
        (&"not_judged".into(), &reason.into())
    );
}

/// The check takes some hundreds of launches; how many is nobody's business, so a launch that falls
/// into the reply is looked for.
#[test]
fn a_card_that_stops_working_in_a_reply_leaves_it_to_the_processor_at_the_same_token() {
    let data = folder();
    let words = "generate --ids 1,2,3,4 --max-tokens 30 --temperature 0 --ignore-eos";
    let cpu = ran("", data.path(), &format!("{words} --backend cpu")).last(0);
    let moved = (200..3_000).step_by(200).find_map(|launch| {
        let line = ran(&format!("launch={launch}:719"), data.path(), words).last(0);
        line["backend"].get("moved").is_some().then_some(line)
    });
    let moved = moved.expect("a launch of the reply");
    let backend = &moved["backend"];
    assert_eq!(
        (&backend["served"], &backend["device"]),
        (&"cpu".into(), &Value::Null)
    );
    assert!(backend["moved"]["after_tokens"].is_u64(), "{backend}");
    let reason = backend["reason"].as_str().unwrap();
    assert!(reason.starts_with("the GPU was given up ("), "{reason}");
    assert_eq!(moved["ids"], cpu["ids"]);
}

#[test]
fn only_a_measurement_goes_without_a_check_and_it_says_so() {
    let data = folder();
    let words = "bench -p 4 -n 2 -r 1 --backend gpu";
    let checked = ran("", data.path(), words).last(0);
    assert_proven(&checked["backend"]["f2"]);
    let skipped = ran(WRONG, data.path(), &format!("{words} --unproven")).last(0);
    let backend = &skipped["backend"];
    assert_eq!(backend["served"], "gpu");
    assert_eq!(backend["f2"]["verdict"], "not_judged");
    let reason = backend["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("not checked: measured without a check"),
        "{reason}"
    );
    ran(WRONG, data.path(), words).last(3);
}

#[test]
fn the_machine_is_described_with_its_card_and_what_is_kept_of_it() {
    let data = folder();
    ran("", data.path(), REPLY).last(0);
    let driver = Folder::new(Driver::Simulated, "").unwrap();
    let mut command = candor();
    driver.give_to(&mut command);
    command
        .env("CANDOR_DATA_DIR", data.path())
        .args(["doctor", "--json"]);
    let all = Ran::of(command.output().unwrap()).last(0);
    let message = |name: &str| {
        let checks = all["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap()["message"].as_str().unwrap().to_owned()
    };
    let card = message("GPU");
    assert!(
        card.starts_with("0: Simulated GPU · 8.6 GB free of 8.6 GB"),
        "{card}"
    );
    assert!(card.ends_with("driver 550"), "{card}");
    assert!(
        message("verdicts").starts_with("1 kept, "),
        "{}",
        message("verdicts")
    );
}
