//! Damaged and false files are refused in under 2 s, by name and with the reason.

use std::fs;

use anyhow::Result;
use candor_testkit::{Damage, TinyModel};

use super::Bench;
use super::figures::{Figure, all_within};

/// The exit code for a file that was refused.
const REFUSED: i32 = 5;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let folder = bench.scratch.join("b01");
    fs::create_dir_all(&folder)?;
    let model = TinyModel::llama();
    let mut files = Vec::new();
    for damage in Damage::ALL {
        files.push((damage, damage.write(&folder, &model)?));
    }
    let mut figures = Vec::new();
    for verb in ["inspect", "generate"] {
        let what = format!("`{verb}` on each damaged file, the whole process");
        let mut figure = Figure::new(what).limit(all_within(2_000));
        for (damage, path) in &files {
            let call = bench.candor.call(&[verb]).word(path).word("--json");
            let ran = match verb {
                "generate" => call.words(&["--prompt", "x"]).run()?,
                _ => call.run()?,
            };
            figure.timed(ran.wall);
            let name = damage.file_name();
            let said = ran.last()?["error"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if ran.exit != Some(REFUSED) {
                figure.fault(format!("{verb} {name}: exit {:?}", ran.exit));
            }
            if !said.contains(name) {
                figure.fault(format!(
                    "{verb} {name}: the reason does not name it: {said}"
                ));
            }
            if damage.is_cut() && !said.contains("incomplete") {
                figure.fault(format!(
                    "{verb} {name}: it is not called incomplete: {said}"
                ));
            }
        }
        figures.push(figure);
    }
    Ok(figures)
}
