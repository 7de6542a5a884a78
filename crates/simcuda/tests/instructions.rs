//! Every instruction against what the PTX ISA says it gives: one instruction a kernel, one line of
//! a golden file a lane. `golden/gen_instructions.py` writes the files.

#[path = "instructions/golden.rs"]
mod golden;
#[path = "instructions/program.rs"]
mod program;

use golden::Section;
use program::Program;
use simcuda::exec::{Launch, Options, run};
use simcuda::memory::Memory;
use simcuda::ptx::{Limits, Module};

/// Sections that there are at least: a file that was not read must not pass for one without faults.
const SECTIONS_MIN: usize = 380;

#[test]
fn every_instruction_gives_what_the_isa_says() {
    let mut faults = Vec::new();
    let mut sections = 0;
    for (file, text) in golden::FILES {
        for section in golden::read(text) {
            sections += 1;
            if let Err(fault) = check(&section) {
                faults.push(format!("{file}: {}: {fault}", section.statements));
            }
        }
    }
    assert!(sections >= SECTIONS_MIN, "{sections} sections");
    assert!(
        faults.is_empty(),
        "{} of {sections}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn a_wrong_value_is_found() {
    let text = "[add.s32 d0, a0, a1;] in=ww out=w\n00000001 00000001 -> 00000003\n";
    let fault = check(&golden::read(text)[0]).unwrap_err();
    assert!(fault.contains("lane 0"), "{fault}");
}

fn check(section: &Section) -> Result<(), String> {
    let program = Program::new(section);
    let limits = Limits {
        version: (8, 0),
        capability: 80,
    };
    let module = Module::parse(&program.text, &limits).map_err(|e| e.to_string())?;
    let kernel = module.kernel(program::NAME).ok_or("no kernel")?;
    let mut memory = Memory::new(1 << 20, 1 << 20);
    let mut place = |bytes: u64| memory.alloc(bytes).map_err(|e| e.to_string());
    let input = place(program.input.len() as u64)?;
    let output = place(program.output_bytes as u64)?;
    let scratch = place(program::SCRATCH_BYTES)?;
    memory
        .write(input, &program.input)
        .map_err(|e| e.to_string())?;
    let params: Vec<u8> = [input, output, scratch]
        .iter()
        .flat_map(|p| p.to_le_bytes())
        .collect();
    let launch = Launch {
        kernel,
        symbols: &[],
        grid: [1; 3],
        block: [32, 1, 1],
        shared_bytes: 0,
        params: &params,
    };
    run(&launch, &memory, &Options::default()).map_err(|fault| fault.to_string())?;
    let mut bytes = vec![0; program.output_bytes];
    memory.read(output, &mut bytes).map_err(|e| e.to_string())?;
    section.compare(&program.outputs(&bytes))
}
