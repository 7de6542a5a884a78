//! What the tests of this crate share: a tiny model on a scripted backend.

use std::sync::Arc;
use std::time::Instant;

use candor_backend::{Backend, CancelToken, Step};
use candor_testkit::TinyModel;
use candor_testkit::scripted::{HANG_LIMIT, Script};
use tempfile::TempDir;

use crate::config::EngineConfig;
use crate::direct::Direct;
use crate::load::{Live, LoadFailure, LoadOptions, LoadSpec, LoadedModel};
use crate::request::{EndTokens, GenerateOptions, GenerateRequest};
use crate::sampler::Sampling;
use crate::turn_log::{Event, TurnLog};

/// The ids that stand for the letters a to z in the tiny model's vocabulary.
pub(crate) const LETTERS: std::ops::Range<u32> = 97..123;

/// A folder with a tiny model in it.
pub(crate) struct ModelFolder(TempDir);

impl ModelFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        TinyModel::llama()
            .context(8_192)
            .write(&folder.path().join("tiny.gguf"))
            .unwrap();
        Self(folder)
    }

    /// Loads the tiny model, or what else has the given name in the folder.
    pub(crate) fn spec(&self, name: &str, options: LoadOptions) -> LoadSpec {
        LoadSpec {
            options,
            ..LoadSpec::new(self.0.path().join(name))
        }
    }

    /// A file that is no model.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.path().join(name), bytes).unwrap();
    }
}

/// The tiny model on a scripted session, in this thread.
pub(crate) fn live(script: &Script, ctx_len: usize, slots: usize) -> Live {
    let options = LoadOptions {
        ctx_len: Some(ctx_len),
        slots,
        ..LoadOptions::default()
    };
    let folder = ModelFolder::new();
    live_on(
        Box::new(script.backend()),
        &folder.spec("tiny.gguf", options),
    )
}

/// A model on a backend, in this thread.
pub(crate) fn live_on(backend: Box<dyn Backend>, spec: &LoadSpec) -> Live {
    live_on_all(&mut [backend], spec).unwrap()
}

/// A model on one of these backends, in this thread.
pub(crate) fn live_on_all(
    backends: &mut [Box<dyn Backend>],
    spec: &LoadSpec,
) -> Result<Live, LoadFailure> {
    Ok(Direct::load(backends, spec, &config(), &mut |_, _, _| Step::Go)?.into_live())
}

/// Greedy, to the limit, whatever ends the model would like.
pub(crate) fn options(prompt: Vec<u32>, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        ends: EndTokens::Ignore,
        ..GenerateOptions::new(prompt, Sampling::greedy(), max_tokens)
    }
}

pub(crate) fn request(
    model: &LoadedModel,
    options: GenerateOptions,
) -> (GenerateRequest, CancelToken, Arc<TurnLog>) {
    let cancel = CancelToken::new();
    let request = GenerateRequest::new(model, options, cancel.clone()).unwrap();
    let log = request.log();
    (request, cancel, log)
}

/// `len` letters that depend on `seed`.
pub(crate) fn prompt(seed: u32, len: usize) -> Vec<u32> {
    let letter = |place: u32| LETTERS.start + (seed + place * 7 + place / 5) % 26;
    (0..len as u32).map(letter).collect()
}

/// All events of a log so far.
pub(crate) fn events(log: &TurnLog) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let next = log.read(events.len() as u64);
        if next.is_empty() {
            return events;
        }
        events.extend(next.into_iter().map(|entry| entry.event));
    }
}

/// The ids that were written.
pub(crate) fn ids(log: &TurnLog) -> Vec<u32> {
    let id = |event: Event| match event {
        Event::Token { id, .. } => Some(id),
        _ => None,
    };
    events(log).into_iter().filter_map(id).collect()
}

/// The text that was written.
pub(crate) fn text(log: &TurnLog) -> String {
    events(log).iter().map(Event::text).collect()
}

/// The one terminal event of a log, which is its last.
pub(crate) fn end_of(log: &TurnLog) -> Event {
    assert!(log.wait_for_end(HANG_LIMIT), "the reply did not end");
    let events = events(log);
    let ends = events.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(ends, 1, "{events:?}");
    events
        .last()
        .cloned()
        .filter(Event::is_terminal)
        .expect("the end is last")
}

/// A clock that runs.
pub(crate) fn clock() -> crate::Clock {
    Arc::new(Instant::now)
}

/// The machine's clock, and memory that nobody knows.
pub(crate) fn config() -> EngineConfig {
    EngineConfig {
        clock: clock(),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    }
}
