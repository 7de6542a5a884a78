//! The line that says what computes and why, in the words of the design: a pure function.

use std::time::Duration;

use candor_backend::{DeviceInfo, DeviceKind};
use candor_engine::{PassedOver, Proof};

use crate::compose::CudaDevice;
use crate::upkeep::Audits;
use crate::wire::{Banner, BannerAction, BannerKind, DeviceChoice, Starter, Tone};
use crate::words;

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
        message: &'a str,
        /// What the user can do.
        advice: Option<&'a str>,
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
        reason: &'a str,
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
    pub(crate) template_fallback: Option<String>,
    pub(crate) device: DeviceInfo,
    /// By what right that computes.
    pub(crate) proof: Proof,
    /// What audits have shown of it, where it is a card.
    pub(crate) audits: Audits,
    /// Why no card computes, where none does.
    pub(crate) why: Option<PassedOver>,
    /// The card that was looked at, whether it computes or not.
    pub(crate) card: Option<CudaDevice>,
    /// The day on which it was loaded, and a card proven.
    pub(crate) day: String,
    pub(crate) memory_bytes: u64,
    /// How keys and values are kept.
    pub(crate) kv: &'static str,
}

/// The banner of a scene.
pub(crate) fn banner(scene: &Scene<'_>) -> Banner {
    match scene {
        Scene::NoModel { starter } => no_model(starter),
        Scene::Refused {
            file,
            message,
            advice,
            kept,
        } => refused(file, message, *advice, *kept),
        Scene::Loading { model, phase } => under_way(model, phase),
        Scene::Waiting {
            conversation,
            action,
        } => Banner {
            actions: vec![*action],
            ..plain(
                BannerKind::Waiting,
                "Waiting",
                format!("for the reply in {conversation}"),
            )
        },
        Scene::Restarting { reason } => Banner {
            tone: Tone::Attention,
            ..plain(
                BannerKind::Restarting,
                "Restarting",
                format!("the engine stopped ({reason}); your text is kept"),
            )
        },
        Scene::Open { model, wish } => match model.device.kind {
            DeviceKind::Gpu => gpu::banner(model),
            DeviceKind::Cpu => cpu(model, *wish),
        },
    }
}

fn plain(kind: BannerKind, state: &str, reason: String) -> Banner {
    Banner {
        kind,
        tone: Tone::Neutral,
        state: String::from(state),
        reason,
        advice: None,
        progress: None,
        actions: Vec::new(),
        details: Vec::new(),
        report: None,
    }
}

fn no_model(starter: &Starter) -> Banner {
    let open = BannerAction::OpenModel;
    let (reason, actions) = match starter {
        Starter::Ready { size_bytes, .. } => {
            let size = words::size(u64::from(*size_bytes));
            // Ready means that its file is here, from a package or among the user's models:
            // nothing is fetched.
            let reason = format!("Open a model file, or the starter model on disk ({size}).");
            (reason, vec![open, BannerAction::OpenStarter])
        }
        Starter::Download { size_bytes } => {
            let size = words::size(u64::from(*size_bytes));
            let reason = format!("Open a model file, or download the starter model ({size}).");
            (reason, vec![open, BannerAction::OpenStarter])
        }
        Starter::Absent { .. } => (String::from("Open a model file."), vec![open]),
    };
    Banner {
        actions,
        ..plain(BannerKind::NoModel, "No model open.", reason)
    }
}

fn refused(file: &str, message: &str, advice: Option<&str>, kept: Option<&str>) -> Banner {
    // Most messages begin with the file's name already.
    let message = message
        .strip_prefix(file)
        .map_or(message, |rest| rest.strip_prefix(": ").unwrap_or(message));
    let kept = kept.map(|kept| format!("{kept} stays open"));
    let advice: Vec<String> = advice.map(String::from).into_iter().chain(kept).collect();
    let advice = (!advice.is_empty()).then(|| advice.join("; "));
    Banner {
        tone: Tone::Refusal,
        advice,
        actions: vec![BannerAction::OpenModel],
        ..plain(
            BannerKind::Refused,
            "Not loaded",
            format!("{file}: {message}"),
        )
    }
}

fn under_way(model: &str, phase: &Phase) -> Banner {
    let part = |part: &Option<f64>| part.map(|part| part.clamp(0.0, 1.0));
    match phase {
        Phase::Loading { progress, left } => Banner {
            progress: part(progress),
            actions: vec![BannerAction::StopLoading],
            ..plain(
                BannerKind::Loading,
                "Loading",
                counted(model, part(progress), *left),
            )
        },
        Phase::Moving { card, progress } => Banner {
            progress: part(progress),
            actions: vec![BannerAction::StopLoading, BannerAction::UseCpu],
            ..plain(
                BannerKind::Moving,
                "Moving the model",
                counted(&format!("to {card}"), part(progress), None),
            )
        },
        Phase::Checking { card, done, total } => {
            let mut reason = format!("{card} against the CPU");
            if *total > 0 {
                let (done, total) = (words::count(*done), words::count(*total));
                reason.push_str(&format!(" · {done} of {total}"));
            }
            Banner {
                progress: part(&(*total > 0).then(|| *done as f64 / *total as f64)),
                actions: vec![BannerAction::StopLoading, BannerAction::UseCpu],
                ..plain(BannerKind::Proving, "Checking", reason)
            }
        }
    }
}

fn counted(what: &str, part: Option<f64>, left: Option<Duration>) -> String {
    let mut line = String::from(what);
    if let Some(part) = part {
        line.push_str(&format!(" · {} %", (part * 100.0).floor()));
    }
    if let Some(left) = left {
        line.push_str(&format!(" · {} s left", left.as_secs_f64().ceil()));
    }
    line
}

fn cpu(model: &ModelFacts, wish: DeviceChoice) -> Banner {
    let why = model.why.as_ref();
    let reason = why.map_or_else(String::new, why_cpu);
    let device = &model.device;
    let threads = words::threads(device.threads);
    let parts = [reason.as_str(), short_isa(&device.isa), &threads];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let mut line = parts.collect::<Vec<_>>().join(" · ");
    line.push_str(&context_limit(model));
    let is_fault = why.is_some_and(reasons::is_fault);
    let tone = match wish {
        // Who asks for a card is told that another computes.
        _ if is_fault => Tone::Attention,
        DeviceChoice::Gpu if !why.is_some_and(chosen_by_user) => Tone::Attention,
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Gpu => Tone::Neutral,
    };
    Banner {
        tone,
        advice: why.and_then(reasons::advice).map(String::from),
        actions: why.and_then(reasons::action).into_iter().collect(),
        details: details::of_cpu(model, &reason),
        report: why.and_then(reasons::report),
        ..plain(BannerKind::Cpu, "CPU", line)
    }
}

fn context_limit(model: &ModelFacts) -> String {
    let Some(limit) = model.context_limit else {
        return String::new();
    };
    let why = match limit {
        ContextLimit::Memory { .. } => "more does not fit in memory",
        ContextLimit::Card { .. } => "the graphics card had no room for more",
        ContextLimit::Trained { .. } => "the model was trained for no more",
    };
    format!(" · context {} ({why})", words::count(model.context))
}

/// "AVX-512" of "AVX-512 VNNI": the line has room for the family only.
fn short_isa(isa: &str) -> &str {
    isa.split([' ', ':']).next().unwrap_or(isa)
}

#[cfg(test)]
mod tests;
