//! The thread that looks after the card, and what it asks of the engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use candor_backend::{CancelToken, DeviceKind};
use candor_engine::{EngineHandle, NotJudged, Proof, Recheck, Rechecked};
use candor_modelfile::Assumed;

use super::Audits;
use crate::app::Inner;
use crate::models::{ChatModel, GLANCE};
use crate::verdicts::{Recall, Verdicts};

/// How often somebody looks whether the machine has slept, and whether nobody is there.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// Looks after the card until the app is gone. A system that gives no thread leaves it unaudited.
pub(crate) fn begin(inner: &Arc<Inner>) {
    let inner = Arc::downgrade(inner);
    let thread = thread::Builder::new().name(String::from("upkeep"));
    thread.spawn(move || look_after(&inner)).ok();
}

fn look_after(inner: &Weak<Inner>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        inner.look_after();
        drop(inner);
        thread::sleep(LOOK_INTERVAL);
    }
}

impl Inner {
    /// Somebody is there.
    pub(crate) fn stir(&self) {
        self.upkeep.stir(self.instant());
    }

    /// One look.
    pub(super) fn look_after(&self) {
        let Some(chat) = self.on_card() else { return };
        self.prove_after_sleep();
        self.remember_audits(&chat);
        let is_busy = !self.turns.running().is_empty() || self.models.state().load.is_some();
        let (power, cancel) = ((self.config.machine.power)(), CancelToken::new());
        if is_busy {
            return;
        }
        if let Ok(limit) = self.upkeep.take_up(&cancel, self.instant(), power) {
            self.audit(&chat, &cancel, limit);
        }
    }

    /// Has the card proven again after a sleep while nobody waits for it. The engine does so itself
    /// before the next token, so nothing is lost where it has too much to do to be asked.
    fn prove_after_sleep(&self) {
        if let Some(engine) = self.seated() {
            engine
                .recheck(Recheck::AfterSleep, &CancelToken::new())
                .ok();
        }
    }

    fn seated(&self) -> Option<EngineHandle> {
        let state = self.models.state();
        state.seat.as_ref().map(|seat| seat.engine.clone())
    }

    /// The model that answers, if a card that was proven computes it.
    fn on_card(&self) -> Option<Arc<ChatModel>> {
        let chat = self.models.state().chat()?;
        let is_proven = matches!(chat.loaded.proof, Proof::Proven(_));
        (is_proven && chat.loaded.device.kind == DeviceKind::Gpu).then_some(chat)
    }

    /// Looks what was kept of a card and a model that are new.
    fn remember_audits(&self, chat: &ChatModel) {
        let id = chat.loaded.id;
        let is_known = |known: &(_, _)| known.0 == id;
        if self.upkeep.state().audits.as_ref().is_some_and(is_known) {
            return;
        }
        let kept = self.verdicts(chat).map_or_else(Audits::default, |memory| {
            Audits::recall(&memory, (&chat.loaded, driver(chat)))
        });
        self.upkeep.state().audits = Some((id, kept));
        self.publish_status();
    }

    fn verdicts(&self, chat: &ChatModel) -> Option<candor_engine::VerdictMemory> {
        let config = &self.config;
        let verdicts = Verdicts::new(&self.paths.cache, config.clock.clone(), &config.version);
        verdicts.of(&chat.loaded.path, &Assumed::default(), Recall::Kept)
    }

    fn audit(&self, chat: &ChatModel, cancel: &CancelToken, limit: Duration) {
        let started = self.instant();
        let asked = self
            .seated()
            .map(|engine| engine.recheck(Recheck::Audit, cancel));
        let Some(Ok(mut answer)) = asked else {
            self.upkeep.state().running = None;
            return;
        };
        let rechecked = loop {
            let mut nobody_wakes = Context::from_waker(Waker::noop());
            match Pin::new(&mut answer).poll(&mut nobody_wakes) {
                Poll::Ready(Ok(rechecked)) => break rechecked,
                // The engine broke down over it.
                Poll::Ready(Err(_)) => break Rechecked::NotNeeded,
                Poll::Pending => {}
            }
            if self.instant().saturating_duration_since(started) >= limit {
                cancel.cancel();
            }
            thread::sleep(GLANCE);
        };
        let took = self.instant().saturating_duration_since(started);
        self.note(chat, &rechecked, took);
    }

    fn note(&self, chat: &ChatModel, rechecked: &Rechecked, took: Duration) {
        let now = self.instant();
        let id = chat.loaded.id;
        let audits = {
            let mut state = self.upkeep.state();
            state.running = None;
            state.spent.push_back((now, took));
            // What was stopped is tried again once nobody is there again; all else once there is
            // something new to look at.
            if *rechecked == Rechecked::NotJudged(NotJudged::Stopped) {
                state.stirred = Some(now);
                return;
            }
            state.written = 0;
            let Rechecked::Kept(report) = rechecked else {
                return;
            };
            let known = state.audits.filter(|(of, _)| *of == id);
            let audits = known.map_or_else(Audits::default, |(_, audits)| audits);
            let audits = audits.and(report.reach);
            state.audits = Some((id, audits));
            audits
        };
        if let Some(memory) = self.verdicts(chat) {
            audits.keep(&memory, (&chat.loaded, driver(chat)));
        }
        self.publish_status();
    }
}

fn driver(chat: &ChatModel) -> i32 {
    chat.facts
        .card
        .as_ref()
        .map_or(0, |card| card.driver_version)
}
