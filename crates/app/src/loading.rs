//! Loads as the app runs them: each on a thread of its own. The engine stays where it is; only one
//! that has ended is replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use candor_backend::{Precision, Unavailable};
use candor_engine::{Engine, EngineConfig, EngineHandle, LoadFailure};
use candor_modelfile::Assumed;

use crate::app::Inner;
use crate::compose::{BackendChoice, Backends};
use crate::models::{self, ChatModel, Destination, RunningLoad, Seat, Wish};
use crate::verdicts::{Recall, Verdicts};
use crate::{banner, path_id, status};

impl Inner {
    /// Begins a load on a thread of its own.
    pub(crate) fn start_load(self: &Arc<Self>, path: &Path) {
        self.begin_load(path, Recall::Kept);
    }

    /// Loads the model that answers again, for what was chosen or found out since.
    pub(crate) fn load_again(self: &Arc<Self>, recall: Recall) {
        let open = self.models.state().chat();
        if let Some(chat) = open {
            self.begin_load(&chat.loaded.path, recall);
        }
    }

    fn begin_load(self: &Arc<Self>, path: &Path, recall: Recall) {
        let model = path_id::encode(path);
        let wish = Wish::of(&self.settings(), &model, self.config.threads);
        let load = self.models.begin(path, wish, recall);
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
        let destination = self.destination(load)?;
        models::load(&destination, load)
    }

    /// The engine, and what is to compute.
    fn destination(self: &Arc<Self>, load: &RunningLoad) -> Result<Destination, LoadFailure> {
        let gives_up = || load.cancel.is_cancelled() || load.use_reference.is_cancelled();
        let (card, why) = match self.card(&load.wish, &gives_up) {
            Some(Ok(card)) => (Some(card), None),
            Some(Err(why)) => (None, Some(banner::unavailable(why))),
            None if load.cancel.is_cancelled() => return Err(LoadFailure::Stopped),
            None => (None, Some(banner::unavailable(Unavailable::ChosenByUser))),
        };
        let memory = card.as_ref().and_then(|_| {
            let verdicts = Verdicts::new(
                &self.paths.cache,
                self.config.clock.clone(),
                &self.config.version,
            );
            verdicts.of(&load.path, &Assumed::default(), load.recall)
        });
        let choice = BackendChoice {
            threads: load.wish.threads,
            precision: Precision::Fast,
            card,
        };
        let (engine, others) = self.engine(&choice, load.recall)?;
        Ok(Destination {
            engine,
            choice,
            others,
            why,
            memory,
        })
    }

    /// The engine, and who makes what is to compute, if that is something else than until now.
    fn engine(
        self: &Arc<Self>,
        choice: &BackendChoice,
        recall: Recall,
    ) -> Result<(EngineHandle, Option<Backends>), LoadFailure> {
        let mut state = self.models.state();
        if let Some(seat) = state.seat.as_ref().filter(|seat| !seat.engine.has_ended()) {
            // A card that has stopped working is not of use again as it is.
            let is_other = seat.choice != *choice || recall == Recall::Nothing;
            let others = is_other.then(|| Arc::clone(&self.config.backends));
            return Ok((seat.engine.clone(), others));
        }
        let engine = self.spawn_engine(choice)?;
        state.seat = Some(Seat {
            engine: engine.clone(),
            choice: choice.clone(),
        });
        Ok((engine, None))
    }

    fn spawn_engine(self: &Arc<Self>, choice: &BackendChoice) -> Result<EngineHandle, LoadFailure> {
        let no_thread = |source| LoadFailure::Broken {
            reason: format!("the system gives no thread: {source}"),
        };
        let config = EngineConfig {
            clock: Arc::clone(&self.config.clock.instant),
            available_memory: Arc::clone(&self.config.free_memory),
            with_sleep: Arc::clone(&self.config.machine.with_sleep),
            today: Arc::clone(&self.config.clock.now_ms),
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
