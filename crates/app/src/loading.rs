//! Loads as the app runs them: each on a thread of its own. The engine stays where it is; only one
//! that has ended is replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use candor_backend::Precision;
use candor_engine::{Engine, EngineConfig, EngineHandle, LoadFailure};

use crate::app::Inner;
use crate::compose::BackendChoice;
use crate::models::{self, ChatModel, Destination, RunningLoad, Seat, Wish};
use crate::status;

impl Inner {
    /// Begins a load on a thread of its own.
    pub(crate) fn start_load(self: &Arc<Self>, path: &Path) {
        let wish = Wish::of(&self.settings(), self.config.threads);
        let load = self.models.begin(path, wish);
        self.run(load);
    }

    /// Loads the model again that answered last, if it was lost: because the engine broke down, or
    /// because it gave way to a load that came to nothing.
    pub(crate) fn recover(self: &Arc<Self>) {
        if self.refuse_if_closed().is_ok()
            && let Some(load) = self.models.begin_again()
        {
            self.run(load);
        }
    }

    fn run(self: &Arc<Self>, load: RunningLoad) {
        self.publish_status();
        let (inner, running) = (Arc::clone(self), load.clone());
        let spawned = self.spawn("load", move || inner.load(&running));
        if spawned.is_err() {
            let again = self.models.end(&load, Err(LoadFailure::Closed));
            self.publish_status();
            // Comes to nothing as well, and is then given up.
            if let Some(load) = again {
                self.run(load);
            }
        }
    }

    fn load(self: &Arc<Self>, load: &RunningLoad) {
        // A load that never ends would keep every question waiting.
        let result = catch_unwind(AssertUnwindSafe(|| self.try_load(load)));
        let result = result.unwrap_or_else(|_| {
            Err(LoadFailure::Broken {
                reason: String::from("Candor broke down over this file"),
            })
        });
        let is_loaded = result.is_ok();
        let again = self.models.end(load, result);
        if is_loaded && self.store.model_used(&load.path, self.now_ms()).is_ok() {
            self.publish_models();
        }
        match again {
            Some(load) => self.run(load),
            None => self.publish_status(),
        }
    }

    fn try_load(self: &Arc<Self>, load: &RunningLoad) -> Result<ChatModel, LoadFailure> {
        if load.cancel.is_cancelled() {
            return Err(LoadFailure::Stopped);
        }
        let destination = self.destination(load.wish.threads)?;
        models::load(&destination, load)
    }

    /// The engine, and what is to compute if that is something else than until now.
    fn destination(self: &Arc<Self>, threads: usize) -> Result<Destination, LoadFailure> {
        let choice = BackendChoice {
            threads,
            precision: Precision::Fast,
        };
        let mut state = self.models.state();
        if let Some(seat) = state.seat.as_ref().filter(|seat| !seat.engine.has_ended()) {
            let backends = Arc::clone(&self.config.backends);
            let others = (seat.threads != threads).then_some((backends, choice));
            let engine = seat.engine.clone();
            return Ok(Destination { engine, others });
        }
        let engine = self.spawn_engine(choice)?;
        state.seat = Some(Seat {
            engine: engine.clone(),
            threads,
        });
        let others = None;
        Ok(Destination { engine, others })
    }

    fn spawn_engine(self: &Arc<Self>, choice: BackendChoice) -> Result<EngineHandle, LoadFailure> {
        let no_thread = |source| LoadFailure::Broken {
            reason: format!("the system gives no thread: {source}"),
        };
        let config = EngineConfig {
            clock: Arc::clone(&self.config.clock.instant),
            available_memory: Arc::clone(&self.config.free_memory),
        };
        let backends = (self.config.backends)(choice);
        let engine = Engine::spawn(config, backends).map_err(no_thread)?;
        let (inner, watched) = (Arc::downgrade(self), engine.clone());
        let watch = move || status::watch(&inner, &watched);
        let status = thread::Builder::new().name(String::from("status"));
        status.spawn(watch).map_err(no_thread)?;
        Ok(engine)
    }
}

#[cfg(test)]
mod tests;
