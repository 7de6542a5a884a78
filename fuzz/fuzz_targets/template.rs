//! Any text as a chat template: rendering must answer, with a prompt or a short reason.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/text/tests/promises/mod.rs"]
mod promises;

fuzz_target!(|bytes: &[u8]| {
    let template = String::from_utf8_lossy(bytes);
    promises::check(&template, &promises::conversations());
});
