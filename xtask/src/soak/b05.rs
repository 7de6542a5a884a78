//! Characters that are cut between tokens come out whole, and only once.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Bench;
use super::counted;
use super::figures::Figure;

/// Emoji, joined families, flags, marks, scripts.
const TEXTS: [&str; 8] = [
    "🙂",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "🇩🇪🇯🇵",
    "हिन्दी में क्षेत्र",
    "漢字かな交じり文",
    "Ελληνικά, кириллица, עברית, العربية",
    "e\u{301} é ﷽ Z̷̢a̷l̷g̷o̷",
    "naïve façade — “quoted” … 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = counted::count(counted::B05)?;
    for (name, model) in [("SmolLM2", &bench.small), ("Qwen2.5 Coder", &bench.coder)] {
        let mut figure = Figure::new(format!("text to tokens and back, byte for byte, {name}"));
        for text in TEXTS {
            figure.counted();
            let call = bench.candor.call(&["tokenize"]).word(model);
            let there = call
                .words(&["--json", "--no-bos", "--text", text])
                .run()?
                .last()?;
            let joined: String = strings(&there["pieces_hex"])?.concat();
            let wanted: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            if joined != wanted {
                figure.fault(format!("{name}: the pieces of {text} are {joined}"));
            }
            let ids: Vec<String> = there["ids"]
                .as_array()
                .context("ids")?
                .iter()
                .map(Value::to_string)
                .collect();
            let call = bench.candor.call(&["tokenize"]).word(model);
            let back = call
                .words(&["--json", "--ids", &ids.join(",")])
                .run()?
                .last()?;
            if back["text"] != text {
                figure.fault(format!("{name}: {text} came back as {}", back["text"]));
            }
        }
        figures.push(figure);
    }
    Ok(figures)
}

fn strings(value: &Value) -> Result<Vec<&str>> {
    let list = value.as_array().context("a list")?;
    list.iter()
        .map(|item| item.as_str().context("a text"))
        .collect()
}
