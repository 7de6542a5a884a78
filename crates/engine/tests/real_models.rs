//! The guard over real models, where this machine has them: the processor's 8-bit path is the
//! device, its exact path the reference. Run with `--nocapture` to see what the limits come from.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what it measured and what it could not run"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use candor_backend::Backend;
use candor_cpu::{CpuBackend, CpuConfig};
use candor_engine::{Engine, EngineConfig, LoadOptions, LoadSpec, Proof};

#[test]
fn eight_bit_activations_are_accepted_on_real_models() {
    let from_target = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models");
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let folder = std::env::var_os("CANDOR_TEST_MODELS").map_or_else(from_target, PathBuf::from);
    for name in ["smollm2-135m-instruct-q4_1", "gemma3-270m-q4_k_m"] {
        let path = folder.join(format!("{name}.gguf"));
        if !path.exists() {
            eprintln!("NOT RUN: {name} is neither in CANDOR_TEST_MODELS nor in target/models");
            continue;
        }
        check(name, path);
    }
}

fn check(name: &str, path: PathBuf) {
    let config = EngineConfig {
        clock: Arc::new(Instant::now),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let processor = || -> Box<dyn Backend> { Box::new(CpuBackend::new(CpuConfig::new(2))) };
    let engine = Engine::spawn(config, vec![processor(), processor()]).unwrap();
    let spec = LoadSpec {
        options: LoadOptions {
            ctx_len: Some(512),
            ..LoadOptions::default()
        },
        ..LoadSpec::new(path)
    };
    let model = engine.load(spec).unwrap().wait().unwrap();
    let Proof::Proven(report) = &model.proof else {
        panic!("{name}: {:?}", model.passed_over);
    };
    eprintln!("{name}: {report}");
    assert_eq!(report.positions, 289, "{name}");
    assert!(
        report.min_cosine > 0.99 && report.mean_kl < 0.01,
        "{name}: {report}"
    );
    engine.shutdown();
}
