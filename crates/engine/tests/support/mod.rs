//! What tests over whole models share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use candor_cpu::{CpuBackend, CpuConfig};
use candor_engine::{Engine, EngineConfig, EngineHandle, LoadOptions, LoadSpec, LoadedModel};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where a model is, of the golden data or a real one. Says so if it is nowhere.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let real = std::env::var_os("CANDOR_TEST_MODELS");
    let real = real.map_or_else(|| repository().join("target/models"), PathBuf::from);
    let found = [repository().join("tests/golden/models"), real]
        .iter()
        .map(|folder| folder.join(format!("{name}.gguf")))
        .find(|path| path.exists());
    if found.is_none() {
        eprintln!("NOT RUN: {name} is neither in CANDOR_TEST_MODELS nor in target/models");
    }
    found
}

/// An engine on the processor with this model in two slots.
pub(crate) fn load(path: PathBuf) -> (EngineHandle, Arc<LoadedModel>) {
    let config = EngineConfig {
        clock: Arc::new(Instant::now),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let engine = Engine::spawn(config, vec![Box::new(CpuBackend::new(CpuConfig::new(2)))]).unwrap();
    let spec = LoadSpec {
        options: LoadOptions {
            ctx_len: Some(512),
            slots: 2,
            ..LoadOptions::default()
        },
        ..LoadSpec::new(path)
    };
    let model = engine.load(spec).unwrap().wait().unwrap();
    (engine, model)
}
