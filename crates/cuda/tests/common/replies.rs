//! An engine with the simulated card before the processor, and replies of a small model.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_backend::{Backend, CancelToken};
use candor_cpu::{CpuBackend, CpuConfig};
use candor_cuda::CudaBackend;
use candor_engine::{
    EndTokens, Engine, EngineConfig, EngineHandle, Event, GenerateOptions, GenerateRequest,
    LoadOptions, LoadSpec, LoadedModel, Sampling, TextSide, TurnLog,
};

/// A small model of the usual form.
pub(crate) const MODEL: &str = "s04-llama-q8_0.gguf";

/// Tokens that every golden model has.
pub(crate) const PROMPT: [u32; 12] = [5, 9, 2, 33, 7, 7, 1, 40, 21, 3, 8, 4];

/// Tokens of a reply.
pub(crate) const TOKENS: usize = 300;

/// An engine, and a model that the card serves.
pub(crate) struct Running {
    pub(crate) handle: EngineHandle,
    model: Arc<LoadedModel>,
}

impl Running {
    pub(crate) fn new(handle: EngineHandle) -> Self {
        let model = handle.load(spec()).expect("it is taken").wait();
        let model = model.expect("it loads");
        assert!(model.passed_over.is_empty(), "{:?}", model.passed_over);
        Self { handle, model }
    }

    pub(crate) fn reply(&self) -> (CancelToken, Arc<TurnLog>) {
        let cancel = CancelToken::new();
        let log = self.reply_to(&PROMPT, &cancel);
        (cancel, log)
    }

    pub(crate) fn reply_to(&self, prompt: &[u32], cancel: &CancelToken) -> Arc<TurnLog> {
        let options = GenerateOptions {
            ends: EndTokens::Ignore,
            ..GenerateOptions::new(prompt.to_vec(), Sampling::greedy(), TOKENS)
        };
        let request = GenerateRequest::new(&self.model, options, cancel.clone());
        let log = self.handle.generate(request.expect("it is one"));
        log.expect("it is taken")
    }
}

/// An engine with this card before the processor.
pub(crate) fn engine(card: CudaBackend) -> EngineHandle {
    let config = EngineConfig {
        clock: Arc::new(Instant::now),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let cpu = CpuBackend::new(CpuConfig::new(1));
    let backends: Vec<Box<dyn Backend>> = vec![Box::new(card), Box::new(cpu)];
    Engine::spawn(config, backends).expect("there is a thread for it")
}

pub(crate) fn spec() -> LoadSpec {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    LoadSpec {
        options: LoadOptions {
            ctx_len: Some(512),
            text: TextSide::IdsOnly,
            ..LoadOptions::default()
        },
        probe: Some(PROMPT.to_vec()),
        ..LoadSpec::new(folder.join(MODEL))
    }
}

/// Waits until so many tokens are written.
pub(crate) fn await_tokens(log: &TurnLog, count: usize) {
    while tokens(log) < count {
        assert!(!log.has_ended(), "it ended too soon: {:?}", log.read(0));
        log.wait(log.len(), Duration::from_millis(5));
    }
}

pub(crate) fn events(log: &TurnLog) -> Vec<Event> {
    let mut all = Vec::new();
    while let more @ [_, ..] = &log.read(all.len() as u64)[..] {
        all.extend(more.iter().map(|entry| entry.event.clone()));
    }
    all
}

pub(crate) fn tokens(log: &TurnLog) -> usize {
    let is_token = |event: &&Event| matches!(event, Event::Token { .. });
    events(log).iter().filter(is_token).count()
}
