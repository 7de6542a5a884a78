//! Runs every instruction of the golden files on the first card of this machine, through its own
//! driver, and writes the files again with what the card gave:
//!
//! `cargo run -p candor-simcuda --example record_instructions -- FOLDER`
//!
//! The files in FOLDER are those of `tests/golden` with ` | NAME OUTPUTS` behind each line, and take
//! their place once somebody has looked at the differences. Ends with 1 if the card and the ISA
//! differ in more than the approximate instructions may.
#![expect(clippy::print_stdout, reason = "a program that says what it measured")]

#[path = "../tests/instructions/golden.rs"]
mod golden;
#[path = "../tests/instructions/program.rs"]
mod program;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use golden::Section;
use program::Program;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        println!("where to? record_instructions FOLDER");
        return ExitCode::FAILURE;
    };
    match record(Path::new(&folder)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("not recorded: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes all files and gives the number of sections in which the card and the ISA differ.
fn record(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let card = CudaContext::new(0)?;
    let (major, minor) = card.compute_capability()?;
    let name = format!("sm_{major}{minor}");
    println!("{} ({name})", card.name()?);
    fs::create_dir_all(folder)?;
    let (mut sections, mut different) = (0, 0);
    for (file, text) in golden::FILES {
        let mut outputs = Vec::new();
        for mut section in golden::read(text) {
            let found = run(&card, &section)?;
            // Against the ISA, not against what another card gave.
            section.lanes.iter_mut().for_each(|lane| lane.card = None);
            sections += 1;
            if let Err(faults) = section.compare(&found) {
                different += 1;
                println!("{file}: {}:{faults}", section.statements);
            }
            outputs.push(found);
        }
        let path = folder.join(format!("instructions_{file}.txt"));
        fs::write(path, with_outputs(text, &name, &outputs))?;
    }
    println!(
        "{sections} programs, {different} differ; files in {}",
        folder.display()
    );
    Ok(different)
}

fn run(card: &Arc<CudaContext>, section: &Section) -> Result<Vec<Vec<u64>>, Box<dyn Error>> {
    let program = Program::new(section);
    let module = card.load_module(Ptx::from_src(&program.text))?;
    let kernel = module.load_function(program::NAME)?;
    let stream = card.default_stream();
    let input = stream.clone_htod(&program.input)?;
    let mut output = stream.alloc_zeros::<u8>(program.output_bytes)?;
    let mut scratch = stream.alloc_zeros::<u8>(program::SCRATCH_BYTES as usize)?;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&input).arg(&mut output).arg(&mut scratch);
    let one_warp = LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (golden::LANES as u32, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the kernel takes three addresses, and its lanes stay within these allocations, whose
    // sizes the program has from the same section as its text.
    unsafe { launch.launch(one_warp) }?;
    let bytes = stream.clone_dtoh(&output)?;
    Ok(program.outputs(&bytes))
}

/// A file's text with a card's outputs behind its lines.
fn with_outputs(text: &str, name: &str, outputs: &[Vec<Vec<u64>>]) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut section = 0;
    let mut lane = 0;
    for line in text.lines() {
        if line.starts_with('[') {
            section += 1;
            lane = 0;
        } else if !line.is_empty() {
            let values = line.split_once(" | ").map_or(line, |(values, _)| values);
            // As wide as what the ISA gives.
            let widths = values
                .rsplit_once(" -> ")
                .map_or("", |(_, outputs)| outputs)
                .split(' ');
            let _ = write!(out, "{values} | {name}");
            for (value, width) in outputs[section - 1][lane].iter().zip(widths) {
                let _ = write!(out, " {value:0width$x}", width = width.len());
            }
            out.push('\n');
            lane += 1;
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}
