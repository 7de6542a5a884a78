//! The same on a processor that has no AVX2, made up by QEMU's user mode (Debian: `qemu-user`).

use std::process::{Command, Stdio};

use candor_backend::Backend;
use candor_cpu::{CpuBackend, CpuConfig, Isa};

use crate::synthetic;

/// Runs programs of this machine on other processors.
#[cfg(target_arch = "x86_64")]
const QEMU: &str = "qemu-x86_64";

/// A processor of 2008: SSE 4.2 is the most it has.
#[cfg(target_arch = "x86_64")]
const PROCESSOR: &str = "Nehalem";

/// Quantised weights and float ones, against the other program's logits.
#[test]
fn tiny_models_are_right_by_what_the_processor_has() {
    synthetic::llama_f32();
    synthetic::qwen2_q4_k();
    synthetic::llama_q4_1_tied();
    let found = CpuBackend::new(CpuConfig::new(1)).probe().expect("the CPU");
    eprintln!("kernels: {}", found.isa);
    // Asked for what is not there, it says so and takes what is.
    let wanted = CpuConfig {
        isa: Some(Isa::Avx512),
        ..CpuConfig::new(1)
    };
    let asked = CpuBackend::new(wanted).probe().expect("the CPU").isa;
    assert!(
        asked == "AVX-512" || asked.starts_with("portable: "),
        "{asked}"
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_processor_without_avx2_computes_too() {
    let there = Command::new(QEMU)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if there.is_err() {
        eprintln!("NOT RUN: {QEMU} is not installed, which shows a processor without AVX2");
        return;
    }
    let test = "old_processor::tiny_models_are_right_by_what_the_processor_has";
    let ran = Command::new(QEMU)
        .args(["-cpu", PROCESSOR])
        .arg(std::env::current_exe().expect("a test has a path"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .output()
        .expect("QEMU starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (output, errors) = (said(&ran.stdout), said(&ran.stderr));
    assert!(ran.status.success(), "{output}\n{errors}");
    assert!(output.contains("1 passed"), "{output}");
    assert!(errors.contains("kernels: portable"), "{errors}");
}
