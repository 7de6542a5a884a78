//! The engine thread by its outside, over a scripted backend.

mod devices;
mod ends;
mod load;
mod measure;
mod moves;
mod panics;
mod proofs;
mod queue;
mod request;
mod sleep;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candor_backend::{Backend, CancelToken};
use candor_testkit::scripted::{Fault, HANG_LIMIT, Script};

use crate::testing::{LETTERS, ModelFolder, clock, config, request};
use crate::*;

/// An engine on a scripted backend, with a folder of models.
struct Running {
    folder: ModelFolder,
    script: Script,
    handle: EngineHandle,
}

impl Running {
    fn new() -> Self {
        Self::with_memory(|| None)
    }

    fn with_memory(available: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self::with(EngineConfig {
            available_memory: Arc::new(available),
            ..config()
        })
    }

    fn with(config: EngineConfig) -> Self {
        let script = Script::new(LETTERS);
        let handle = Engine::spawn(config, vec![Box::new(script.backend())]).unwrap();
        Self {
            folder: ModelFolder::new(),
            script,
            handle,
        }
    }

    /// An engine whose model is loaded.
    fn loaded(slots: usize) -> (Self, Arc<LoadedModel>) {
        let running = Self::new();
        let model = running.load(slots).unwrap();
        (running, model)
    }

    fn spec(&self, slots: usize) -> LoadSpec {
        let options = LoadOptions {
            ctx_len: Some(4_096),
            slots,
            ..LoadOptions::default()
        };
        self.folder.spec("tiny.gguf", options)
    }

    fn load(&self, slots: usize) -> Result<Arc<LoadedModel>, LoadFailure> {
        self.handle.load(self.spec(slots)).unwrap().wait()
    }

    fn generate(
        &self,
        model: &LoadedModel,
        options: GenerateOptions,
    ) -> (CancelToken, Arc<TurnLog>) {
        let (request, cancel, log) = request(model, options);
        let same = self.handle.generate(request).unwrap();
        assert!(Arc::ptr_eq(&log, &same));
        (cancel, log)
    }

    fn state(&self) -> EngineState {
        self.handle.state().borrow().clone()
    }

    /// Waits until the state is as `wanted` says.
    fn wait_for(&self, wanted: impl Fn(&EngineState) -> bool) -> EngineState {
        let deadline = Instant::now() + HANG_LIMIT;
        loop {
            let state = self.state();
            if wanted(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "the state stayed {state:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    /// No test leaves a thread behind, and none leaves memory behind.
    fn drop(&mut self) {
        self.script.release();
        self.handle.shutdown();
        if !thread::panicking() {
            let counts = self.script.counts();
            assert_eq!((counts.weights_alive, counts.sessions_alive), (0, 0));
        }
    }
}

#[test]
fn a_handle_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<EngineHandle>();
}

/// An engine with a scripted card before the scripted reference, both of which give the same
/// logits unless they are told otherwise.
struct TwoDevices {
    folder: ModelFolder,
    card: Script,
    reference: Script,
    /// Seconds that the machine has slept.
    slept: Arc<AtomicU64>,
    handle: EngineHandle,
}

impl TwoDevices {
    fn new() -> Self {
        Self::with(config())
    }

    fn with(config: EngineConfig) -> Self {
        let (card, reference) = (Script::new(LETTERS), Script::new(LETTERS));
        card.on_a_card();
        let backends: Vec<Box<dyn Backend>> =
            vec![Box::new(card.backend()), Box::new(reference.backend())];
        let slept = Arc::new(AtomicU64::new(0));
        let (begun, asleep) = (Instant::now(), Arc::clone(&slept));
        let asleep = move || Duration::from_secs(asleep.load(Ordering::SeqCst));
        let config = EngineConfig {
            with_sleep: Arc::new(move || Some(begun.elapsed() + asleep())),
            ..config
        };
        let handle = Engine::spawn(config, backends);
        Self {
            folder: ModelFolder::new(),
            card,
            reference,
            slept,
            handle: handle.unwrap(),
        }
    }

    /// The machine sleeps for a night.
    fn sleep(&self) {
        self.slept.fetch_add(8 * 3_600, Ordering::SeqCst);
    }

    fn spec(&self, f2: Mode, slots: usize) -> LoadSpec {
        let options = LoadOptions {
            ctx_len: Some(4_096),
            slots,
            f2,
            ..LoadOptions::default()
        };
        self.folder.spec("tiny.gguf", options)
    }

    fn load(&self, spec: LoadSpec) -> Arc<LoadedModel> {
        self.handle.load(spec).unwrap().wait().unwrap()
    }

    fn generate(&self, model: &LoadedModel, options: GenerateOptions) -> Arc<TurnLog> {
        let (request, _, log) = request(model, options);
        self.handle.generate(request).unwrap();
        log
    }

    /// The model that is ready now.
    fn ready(&self) -> Arc<LoadedModel> {
        match &*self.handle.state().borrow() {
            EngineState::Ready { model, .. } => Arc::clone(model),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for TwoDevices {
    /// No test leaves a thread behind, and none leaves memory behind.
    fn drop(&mut self) {
        for script in [&self.card, &self.reference] {
            script.release();
        }
        self.handle.shutdown();
        if !thread::panicking() {
            for script in [&self.card, &self.reference] {
                let counts = script.counts();
                assert_eq!((counts.weights_alive, counts.sessions_alive), (0, 0));
            }
        }
    }
}

/// The end of a reply that ended well.
fn stats_of(log: &TurnLog) -> Stats {
    match crate::testing::end_of(log) {
        Event::Finished { stats, .. } => stats,
        other => panic!("{other:?}"),
    }
}
