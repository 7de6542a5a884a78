//! The line that says what computes and why, in the words of the design: a pure function.

use std::time::Duration;

use candor_backend::{DeviceInfo, DeviceKind};
use candor_engine::{PassedOver, Proof};

use crate::compose::CudaDevice;
use crate::upkeep::Audits;
use crate::wire::{Banner, BannerAction, BannerKind, DeviceChoice, Starter, Tone};
use crate::words::{self, Bytes, Count, Phrase, Tongue, phrase};

mod details;
mod gpu;
mod reasons;

pub(crate) use gpu::proof;
pub(crate) use reasons::{chosen_by_user, unavailable, why_cpu, why_not};

/// What there is to say.
pub(crate) enum Scene<'a> {
    /// No model is open.
    NoModel {
        /// Whether there is one to begin with.
        starter: &'a Starter,
    },
    /// A file was refused.
    Refused {
        /// Its name.
        file: &'a str,
        /// What is wrong.
        message: &'a Phrase,
        /// What the user can do.
        advice: Option<&'a Phrase>,
        /// The model that stays open.
        kept: Option<&'a str>,
    },
    /// A model is being loaded.
    Loading {
        /// Its name.
        model: &'a str,
        /// What is being done.
        phase: &'a Phase,
    },
    /// Something has to wait for a reply.
    Waiting {
        /// The title of the conversation.
        conversation: &'a str,
        /// What ends the wait.
        action: BannerAction,
    },
    /// The engine broke down.
    Restarting {
        /// What it said.
        reason: &'a Phrase,
    },
    /// A model is open.
    Open {
        /// The model.
        model: &'a ModelFacts,
        /// What the user wants to compute.
        wish: DeviceChoice,
    },
}

/// What is being done for a model on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// It is read, or made ready for the processor.
    Loading {
        /// From 0 to 1, once it can be said.
        progress: Option<f64>,
        /// How long it will take, once it can be said.
        left: Option<Duration>,
    },
    /// It is copied to a card.
    Moving {
        /// The card.
        card: String,
        /// From 0 to 1, once it can be said.
        progress: Option<f64>,
    },
    /// The card is held against the processor.
    Checking {
        /// The card.
        card: String,
        /// Positions that were compared.
        done: u64,
        /// Positions to compare; 0 while that is not known.
        total: u64,
    },
}

/// Why a context is smaller than it was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextLimit {
    /// The usual one does not fit in memory.
    Memory {
        /// Tokens of the usual one.
        wanted: usize,
    },
    /// The usual one did not fit on the card on which the model was opened.
    Card {
        /// Tokens of the usual one.
        wanted: usize,
    },
    /// The model was trained for no more.
    Trained {
        /// Tokens that the settings say.
        asked: usize,
    },
}

/// What is said of an open model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelFacts {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) architecture: String,
    pub(crate) quantization: String,
    pub(crate) context: u64,
    /// What the model was trained for.
    pub(crate) trained: u64,
    /// Why it is less than was wanted, if so.
    pub(crate) context_limit: Option<ContextLimit>,
    /// Why the model's own chat template is not used, if so.
    pub(crate) template_fallback: Option<Phrase>,
    pub(crate) device: DeviceInfo,
    /// By what right that computes.
    pub(crate) proof: Proof,
    /// What audits have shown of it, where it is a card.
    pub(crate) audits: Audits,
    /// Why no card computes, where none does.
    pub(crate) why: Option<PassedOver>,
    /// The card that was looked at, whether it computes or not.
    pub(crate) card: Option<CudaDevice>,
    /// The day on which a card was judged; empty where none was.
    pub(crate) day: String,
    pub(crate) memory_bytes: u64,
    /// How keys and values are kept.
    pub(crate) kv: Phrase,
}

/// The banner of a scene.
pub(crate) fn banner(scene: &Scene<'_>, tongue: Tongue) -> Banner {
    let plain = |kind, line| plain(kind, line, tongue);
    match scene {
        Scene::NoModel { starter } => no_model(starter, tongue),
        Scene::Refused {
            file,
            message,
            advice,
            kept,
        } => refused(file, message, (*advice, *kept), tongue),
        Scene::Loading { model, phase } => under_way(model, phase, tongue),
        Scene::Waiting {
            conversation,
            action,
        } => Banner {
            actions: vec![*action],
            ..plain(
                BannerKind::Waiting,
                (
                    phrase!("Waiting", "Wartet"),
                    phrase!(
                        "for the reply in {conversation}",
                        "auf die Antwort in {conversation}",
                        conversation,
                    ),
                ),
            )
        },
        Scene::Restarting { reason } => Banner {
            tone: Tone::Attention,
            ..plain(
                BannerKind::Restarting,
                (
                    phrase!("Restarting", "Neustart"),
                    phrase!(
                        "the engine stopped ({reason}); your text is kept",
                        "die Engine ist stehen geblieben ({reason}); dein Text bleibt erhalten",
                        reason,
                    ),
                ),
            )
        },
        Scene::Open { model, wish } => match model.device.kind {
            DeviceKind::Gpu => gpu::banner(model, tongue),
            DeviceKind::Cpu => cpu(model, *wish, tongue),
        },
    }
}

/// A banner of this state, set in bold, and what follows it.
fn plain(kind: BannerKind, (state, reason): (Phrase, Phrase), tongue: Tongue) -> Banner {
    Banner {
        kind,
        tone: Tone::Neutral,
        state: state.to(tongue),
        reason: reason.to(tongue),
        advice: None,
        progress: None,
        actions: Vec::new(),
        details: Vec::new(),
        report: None,
    }
}

fn no_model(starter: &Starter, tongue: Tongue) -> Banner {
    let open = BannerAction::OpenModel;
    let (reason, actions) = match starter {
        Starter::Ready { size_bytes, .. } => {
            // Ready means that its file is here, from a package or among the user's models:
            // nothing is fetched.
            let reason = phrase!(
                "Open a model file, or the starter model on disk ({size}).",
                "Öffne eine Modelldatei oder das Startmodell, das schon hier ist ({size}).",
                size = Bytes(u64::from(*size_bytes)),
            );
            (reason, vec![open, BannerAction::OpenStarter])
        }
        Starter::Download { size_bytes } => {
            let reason = phrase!(
                "Open a model file, or download the starter model ({size}).",
                "Öffne eine Modelldatei oder lade das Startmodell herunter ({size}).",
                size = Bytes(u64::from(*size_bytes)),
            );
            (reason, vec![open, BannerAction::OpenStarter])
        }
        Starter::Absent { .. } => {
            let reason = phrase!("Open a model file.", "Öffne eine Modelldatei.");
            (reason, vec![open])
        }
    };
    let state = phrase!("No model open.", "Kein Modell geöffnet.");
    Banner {
        actions,
        ..plain(BannerKind::NoModel, (state, reason), tongue)
    }
}

fn refused(
    file: &str,
    message: &Phrase,
    (advice, kept): (Option<&Phrase>, Option<&str>),
    tongue: Tongue,
) -> Banner {
    // Most messages begin with the file's name already.
    let message = message.map(|words| {
        let rest = words.strip_prefix(file);
        let rest = rest.and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or(words).to_owned()
    });
    let kept = kept.map(|kept| phrase!("{kept} stays open", "{kept} bleibt geöffnet", kept));
    let advice = Phrase::joined(advice.cloned().into_iter().chain(kept), "; ");
    let advice = (!advice.is_empty()).then(|| advice.to(tongue));
    Banner {
        tone: Tone::Refusal,
        advice,
        actions: vec![BannerAction::OpenModel],
        ..plain(
            BannerKind::Refused,
            (
                phrase!("Not loaded", "Nicht geladen"),
                Phrase::same(format!("{file}: ")).then(&message),
            ),
            tongue,
        )
    }
}

fn under_way(model: &str, phase: &Phase, tongue: Tongue) -> Banner {
    let part = |part: &Option<f64>| part.map(|part| part.clamp(0.0, 1.0));
    let plain = |kind, line| plain(kind, line, tongue);
    match phase {
        Phase::Loading { progress, left } => Banner {
            progress: part(progress),
            actions: vec![BannerAction::StopLoading],
            ..plain(
                BannerKind::Loading,
                (
                    phrase!("Loading", "Lädt"),
                    counted(Phrase::same(model), part(progress), *left),
                ),
            )
        },
        Phase::Moving { card, progress } => Banner {
            progress: part(progress),
            actions: vec![BannerAction::StopLoading, BannerAction::UseCpu],
            ..plain(
                BannerKind::Moving,
                (
                    phrase!("Moving the model", "Das Modell zieht um"),
                    counted(
                        phrase!("to {card}", "auf {card}", card),
                        part(progress),
                        None,
                    ),
                ),
            )
        },
        Phase::Checking { card, done, total } => {
            let mut reason = phrase!("{card} against the CPU", "{card} gegen die CPU", card,);
            if *total > 0 {
                reason = reason.then(&phrase!(
                    " · {done} of {total}",
                    " · {done} von {total}",
                    done = Count(*done),
                    total = Count(*total),
                ));
            }
            Banner {
                progress: part(&(*total > 0).then(|| *done as f64 / *total as f64)),
                actions: vec![BannerAction::StopLoading, BannerAction::UseCpu],
                ..plain(BannerKind::Proving, (phrase!("Checking", "Prüft"), reason))
            }
        }
    }
}

fn counted(mut line: Phrase, part: Option<f64>, left: Option<Duration>) -> Phrase {
    if let Some(part) = part {
        line = line.then(&Phrase::same(format!(" · {} %", (part * 100.0).floor())));
    }
    if let Some(left) = left {
        let seconds = left.as_secs_f64().ceil() as u64;
        line = line.then(&phrase!(
            " · {seconds} s left",
            " · noch {seconds} s",
            seconds
        ));
    }
    line
}

fn cpu(model: &ModelFacts, wish: DeviceChoice, tongue: Tongue) -> Banner {
    let why = model.why.as_ref();
    let reason = why.map(why_cpu).unwrap_or_default();
    let device = &model.device;
    let parts = [
        reason.clone(),
        Phrase::same(short_isa(&device.isa)),
        words::threads(device.threads),
    ];
    let line = Phrase::joined(parts, " · ").then(&context_limit(model));
    let is_fault = why.is_some_and(reasons::is_fault);
    let tone = match wish {
        // Who asks for a card is told that another computes.
        _ if is_fault => Tone::Attention,
        DeviceChoice::Gpu if !why.is_some_and(chosen_by_user) => Tone::Attention,
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Gpu => Tone::Neutral,
    };
    Banner {
        tone,
        advice: why
            .and_then(reasons::advice)
            .map(|advice| advice.to(tongue)),
        actions: why.and_then(reasons::action).into_iter().collect(),
        details: details::of_cpu(model, reason, tongue),
        report: why.and_then(reasons::report),
        ..plain(BannerKind::Cpu, (Phrase::same("CPU"), line), tongue)
    }
}

fn context_limit(model: &ModelFacts) -> Phrase {
    let Some(limit) = model.context_limit else {
        return Phrase::default();
    };
    let why = match limit {
        ContextLimit::Memory { .. } => phrase!(
            "more does not fit in memory",
            "mehr passt nicht in den Speicher",
        ),
        ContextLimit::Card { .. } => phrase!(
            "the graphics card had no room for more",
            "auf der Grafikkarte war nicht mehr Platz",
        ),
        ContextLimit::Trained { .. } => phrase!(
            "the model was trained for no more",
            "für mehr wurde das Modell nicht trainiert",
        ),
    };
    phrase!(
        " · context {tokens} ({why})",
        " · Kontext {tokens} ({why})",
        tokens = Count(model.context),
        why,
    )
}

/// "AVX-512" of "AVX-512 VNNI": the line has room for the family only.
fn short_isa(isa: &str) -> &str {
    isa.split([' ', ':']).next().unwrap_or(isa)
}

#[cfg(test)]
mod tests;
