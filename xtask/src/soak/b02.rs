//! Files open under every name that a disk can hold.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use anyhow::Result;
use candor_testkit::TinyModel;

use super::Bench;
use super::figures::Figure;

/// The longest name that common file systems hold, in bytes.
const NAME_BYTES_MAX: usize = 250;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let folder = bench.scratch.join("b02").join("Модели  é ü 田中\u{3000}");
    fs::create_dir_all(&folder)?;
    let mut figure = Figure::new("`generate` from an awkward path, HOME and TMPDIR in it too");
    for name in names() {
        let path = folder.join(&name);
        TinyModel::llama().write(&path)?;
        let ran = bench
            .candor
            .call(&["generate"])
            .word(&path)
            .words(&[
                "--prompt",
                "x",
                "--max-tokens",
                "2",
                "--ignore-eos",
                "--json",
            ])
            .with("HOME", &folder)
            .with("TMPDIR", &folder)
            .run()?;
        figure.timed(ran.wall);
        if ran.exit != Some(0) {
            let name = name.to_string_lossy();
            figure.fault(format!(
                "{name}: exit {:?}: {}",
                ran.exit,
                ran.errors.trim()
            ));
        }
    }
    Ok(vec![figure])
}

fn names() -> Vec<OsString> {
    let ending = ".gguf";
    vec![
        "qwen tiny 🙂 (final) #1 100%.gguf".into(),
        "composed \u{e9}.gguf".into(),
        "decomposed e\u{301}.gguf".into(),
        format!("{}{ending}", "n".repeat(NAME_BYTES_MAX - ending.len())).into(),
        OsString::from_vec(b"not utf-8 \xff\xfe.gguf".to_vec()),
        "-- --json.gguf".into(),
    ]
}
