//! What a real model takes of the memory, against what was said before.

use std::time::Duration;

use candor_app::compose;

use crate::desk::{Desk, ask, until};
use crate::real::model;

/// The smallest of the real models.
const SMALL: &str = "smollm2-135m-instruct-q4_1.gguf";

/// Bytes of this process that are in memory, the pages of mapped files included.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024.0
}

/// What a model is said to take is what it then takes, a tenth more or less. Other tests of this
/// binary use memory as well, so it is looked at in a process of its own.
#[test]
fn a_model_takes_as_much_memory_as_was_said() {
    const ALONE: &str = "CANDOR_TEST_ALONE";
    let Some(path) = model(SMALL) else { return };
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let is_alone = std::env::var_os(ALONE).is_some();
    if !is_alone {
        let program = std::env::current_exe().unwrap();
        let test = "room::a_model_takes_as_much_memory_as_was_said";
        let mut again = std::process::Command::new(program);
        again.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
        let ended = again.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        return;
    }
    let desk = Desk::new();
    let mut config = desk.config();
    (config.backends, config.threads) = (compose::backends(), 2);
    let app = desk.open_with(config);
    let mut settings = app.settings();
    settings.context = Some(2_048);
    settings.sampling.max_tokens = 8;
    app.save_settings(settings).unwrap();
    let entry = app.add_model(&path).unwrap();
    let fit = app
        .model_fits(std::slice::from_ref(&entry.id))
        .unwrap()
        .remove(0)
        .fit
        .unwrap();
    let before = resident();
    app.load_model(&entry.id).unwrap();
    until("the model is loaded", || {
        std::thread::sleep(Duration::from_millis(20));
        app.status().model.is_some()
    });
    // Nearly all of the context is used, so that all of its memory is touched.
    let words = "the sea and the sky ".repeat(350);
    ask(&app, None, &words);
    let grown = resident() - before;
    let share = fit.needed_bytes / grown;
    eprintln!(
        "said {:.0} MB, took {:.0} MB",
        fit.needed_bytes / 1e6,
        grown / 1e6
    );
    assert!(
        (0.9..=1.1).contains(&share),
        "said {} took {grown}",
        fit.needed_bytes
    );
}
