//! The banner and the open model, made of what everybody knows.

use std::sync::{PoisonError, Weak};
use std::thread;
use std::time::Duration;

use candor_backend::Unavailable;
use candor_engine::{EngineHandle, EngineState};

use crate::app::Inner;
use crate::banner::{Scene, banner};
use crate::block_on::block_on;
use crate::models::{ModelState, model_name};
use crate::news::News;
use crate::wire::{DeviceChoice, Status};

/// The status is told at most this often while a load counts up; a person reads no faster.
const STATUS_INTERVAL: Duration = Duration::from_millis(50);

impl Inner {
    /// What the engine is doing.
    pub(crate) fn status(&self) -> Status {
        let writing = self
            .turns
            .written_first()
            .map(|(turn, others)| (self.store.title(turn).unwrap_or_default(), others));
        let why = self.why_cpu();
        let state = self.models.state();
        let chat = state.chat();
        let model = chat.as_ref().map(|chat| chat.wire());
        let kept = model.as_ref().map(|model| model.name.as_str());
        let loading = loading(&state);
        let scene = match (&loading, &state.refusal, &chat, &writing) {
            _ if state.broken.is_some() => Scene::Restarting {
                reason: state.broken.as_deref().unwrap_or_default(),
            },
            (Some((_, None)), _, _, Some((title, _))) => Scene::Waiting {
                conversation: title,
            },
            (Some((name, progress)), ..) => {
                let (progress, left) = progress.unwrap_or_default();
                Scene::Loading {
                    model: name,
                    progress,
                    left,
                }
            }
            (None, Some(refusal), ..) => {
                let (file, message) = (&refusal.file, &refusal.message);
                Scene::Refused {
                    file,
                    message,
                    advice: refusal.advice.as_deref(),
                    kept,
                }
            }
            (None, None, Some(_), Some((title, 1..))) => Scene::Waiting {
                conversation: title,
            },
            (None, None, Some(chat), _) => Scene::Cpu {
                model: &chat.facts,
                why: why.as_ref(),
            },
            (None, None, None, _) => Scene::NoModel {
                starter: &self.starter,
            },
        };
        Status {
            banner: banner(&scene),
            model,
        }
    }

    /// Why no card computes; none while the driver is being asked.
    pub(crate) fn why_cpu(&self) -> Option<Unavailable> {
        if self.settings().device == DeviceChoice::Cpu {
            return Some(Unavailable::ChosenByUser);
        }
        self.probed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .found
            .clone()
    }

    /// Tells the status if it is another than the last one told.
    pub(crate) fn publish_status(&self) {
        // Held while it is told, so that an older status never follows a newer one.
        let mut last = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let status = self.status();
        if last.as_ref() != Some(&status) {
            *last = Some(status.clone());
            self.listeners.tell(&News::Status(status));
        }
    }
}

type Progress = (Option<f64>, Option<Duration>);

/// The name of the model that is being loaded, and how far it has come once it has begun.
fn loading(state: &ModelState) -> Option<(String, Option<Progress>)> {
    let load = state.load.as_ref()?;
    let engine = state.seat.as_ref().map(|seat| seat.engine.state());
    let progress = engine.and_then(|engine| match &*engine.borrow() {
        EngineState::Loading(loading) if loading.path == load.path => {
            let total = loading.total_bytes as f64;
            let part = (loading.total_bytes > 0).then(|| loading.done_bytes as f64 / total);
            Some((part, loading.left))
        }
        _ => None,
    });
    Some((model_name(&load.path), progress))
}

/// Follows an engine until it has ended, and tells what it does. A model that was lost because
/// the engine broke down is loaded again.
pub(crate) fn watch(inner: &Weak<Inner>, engine: &EngineHandle) {
    let mut changes = engine.state();
    loop {
        let is_closed = matches!(*changes.borrow_and_update(), EngineState::Closed);
        let Some(inner) = inner.upgrade() else { return };
        inner.recover();
        inner.publish_status();
        drop(inner);
        if is_closed {
            return;
        }
        thread::sleep(STATUS_INTERVAL);
        if block_on(changes.changed()).is_err() {
            return;
        }
    }
}
