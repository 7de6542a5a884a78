//! The banner and the open model, made of what everybody knows.

use std::sync::{PoisonError, Weak};
use std::thread;
use std::time::Duration;

use candor_backend::DeviceKind;
use candor_engine::{EngineHandle, EngineState, LoadStage, Loading};

use crate::app::Inner;
use crate::banner::{Phase, Scene, banner};
use crate::block_on::block_on;
use crate::models::{ModelState, model_name};
use crate::news::News;
use crate::wire::{BannerAction, Status};
use crate::words::Phrase;

/// The status is told at most this often while a load counts up; a person reads no faster.
const STATUS_INTERVAL: Duration = Duration::from_millis(50);

impl Inner {
    /// What the engine is doing.
    pub(crate) fn status(&self) -> Status {
        let writing = self
            .turns
            .written_first()
            .map(|(turn, others)| (self.store.title(turn).unwrap_or_default(), others));
        let wish = self.settings().device;
        let starter = self.starter();
        let state = self.models.state();
        let chat = state.chat();
        let tongue = self.tongue();
        let model = chat.as_ref().map(|chat| chat.wire(tongue));
        let kept = model.as_ref().map(|model| model.name.as_str());
        let facts = chat.as_ref().map(|chat| chat.facts_with(&self.upkeep));
        let loading = loading(&state);
        let nothing = Phrase::default();
        let scene = match (&loading, &state.refusal, &facts, &writing) {
            _ if state.broken.is_some() => Scene::Restarting {
                reason: state.broken.as_ref().unwrap_or(&nothing),
            },
            (Some((_, None)), _, _, Some((title, _))) => Scene::Waiting {
                conversation: title,
                action: BannerAction::SwitchNow,
            },
            (Some((name, phase)), ..) => Scene::Loading {
                model: name,
                phase: phase.as_ref().unwrap_or(&NOT_BEGUN),
            },
            (None, Some(refusal), ..) => {
                let (file, message) = (&refusal.file, &refusal.message);
                let advice = refusal.advice.as_ref();
                Scene::Refused {
                    file,
                    message,
                    advice,
                    kept,
                }
            }
            (None, None, Some(_), Some((title, 1..))) => Scene::Waiting {
                conversation: title,
                action: BannerAction::StopOther,
            },
            (None, None, Some(model), _) => Scene::Open { model, wish },
            (None, None, None, _) => Scene::NoModel { starter: &starter },
        };
        Status {
            banner: banner(&scene, tongue),
            model,
        }
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

/// A load of which the engine has not heard.
const NOT_BEGUN: Phase = Phase::Loading {
    progress: None,
    left: None,
};

/// The name of the model that is being loaded, and how far it has come once it has begun.
fn loading(state: &ModelState) -> Option<(String, Option<Phase>)> {
    let load = state.load.as_ref()?;
    let engine = state.seat.as_ref().map(|seat| seat.engine.state());
    let phase = engine.and_then(|engine| match &*engine.borrow() {
        EngineState::Loading(loading) if loading.path == load.path => Some(phase(loading)),
        _ => None,
    });
    Some((model_name(&load.path), phase))
}

fn phase(loading: &Loading) -> Phase {
    let Loading {
        done_bytes: done,
        total_bytes: total,
        ..
    } = *loading;
    let progress = (total > 0).then(|| done as f64 / total as f64);
    let device = loading.device.as_ref();
    let card = device.filter(|device| device.kind == DeviceKind::Gpu);
    match (card.map(|card| card.name.clone()), loading.stage) {
        (Some(card), LoadStage::Checking) => Phase::Checking { card, done, total },
        (Some(card), LoadStage::Weights) => Phase::Moving { card, progress },
        _ => Phase::Loading {
            progress,
            left: loading.left,
        },
    }
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
