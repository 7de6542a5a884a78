//! The line that says what computes and why, in the words of the design: a pure function.

use std::time::Duration;

use candor_backend::{DeviceInfo, Unavailable};

use crate::wire::{Banner, BannerAction, BannerKind, Detail, Starter, Tone};
use crate::words;

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
        /// From 0 to 1, once it can be said.
        progress: Option<f64>,
        /// How long it will take, once it can be said.
        left: Option<Duration>,
    },
    /// Something has to wait for a reply.
    Waiting {
        /// The title of the conversation.
        conversation: &'a str,
    },
    /// The engine broke down.
    Restarting {
        /// What it said.
        reason: &'a str,
    },
    /// The processor computes.
    Cpu {
        /// The model.
        model: &'a ModelFacts,
        /// Why not a card; none while it is being asked for.
        why: Option<&'a Unavailable>,
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
        Scene::Loading {
            model,
            progress,
            left,
        } => loading(model, *progress, *left),
        Scene::Waiting { conversation } => plain(
            BannerKind::Waiting,
            "Waiting",
            format!("for the reply in {conversation}"),
        ),
        Scene::Restarting { reason } => Banner {
            tone: Tone::Attention,
            ..plain(
                BannerKind::Restarting,
                "Restarting",
                format!("the engine stopped ({reason}); your text is kept"),
            )
        },
        Scene::Cpu { model, why } => cpu(model, *why),
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

fn loading(model: &str, progress: Option<f64>, left: Option<Duration>) -> Banner {
    let progress = progress.map(|part| part.clamp(0.0, 1.0));
    let mut reason = String::from(model);
    if let Some(part) = progress {
        reason.push_str(&format!(" · {} %", (part * 100.0).floor()));
    }
    if let Some(left) = left {
        reason.push_str(&format!(" · {} s left", left.as_secs_f64().ceil()));
    }
    Banner {
        progress,
        actions: vec![BannerAction::StopLoading],
        ..plain(BannerKind::Loading, "Loading", reason)
    }
}

fn cpu(model: &ModelFacts, why: Option<&Unavailable>) -> Banner {
    let reason = match why {
        Some(why) => why_cpu(why),
        None => String::from("looking for an NVIDIA driver"),
    };
    let device = &model.device;
    let threads = words::threads(device.threads);
    let mut line = [reason.as_str(), short_isa(&device.isa), &threads].join(" · ");
    if let Some(limit) = model.context_limit {
        let why = match limit {
            ContextLimit::Memory { .. } => "more does not fit in memory",
            ContextLimit::Trained { .. } => "the model was trained for no more",
        };
        let tokens = words::count(model.context);
        line.push_str(&format!(" · context {tokens} ({why})"));
    }
    let tone = match why {
        Some(Unavailable::DriverTooOld { .. } | Unavailable::DriverBroken { .. }) => {
            Tone::Attention
        }
        _ => Tone::Neutral,
    };
    let details = details(model, &reason);
    let advice = why.and_then(advice);
    Banner {
        tone,
        advice,
        details,
        ..plain(BannerKind::Cpu, "CPU", line)
    }
}

/// Why the processor computes, in plain words.
pub(crate) fn why_cpu(why: &Unavailable) -> String {
    match why {
        Unavailable::NoDriver => String::from("no NVIDIA driver found"),
        Unavailable::DriverTooOld { found, needed } => {
            format!("the NVIDIA driver is too old ({found}; {needed} or newer is needed)")
        }
        Unavailable::DriverBroken { reason } => {
            format!("the NVIDIA driver does not answer ({reason})")
        }
        Unavailable::NoDevice => String::from("the driver sees no NVIDIA card"),
        Unavailable::DeviceTooOld {
            device,
            found,
            needed,
        } => format!("{device} is too old (compute capability {found}; {needed} is needed)"),
        Unavailable::NotUsedYet { .. } => String::from("this version does not use the GPU yet"),
        Unavailable::ChosenByUser => String::from("chosen by you"),
    }
}

fn advice(why: &Unavailable) -> Option<String> {
    let advice = match why {
        Unavailable::NoDriver => "fine if there is no NVIDIA card; otherwise install the driver",
        Unavailable::DriverTooOld { .. } => "update it",
        Unavailable::DriverBroken { .. } => "restart the computer; reinstall the driver",
        Unavailable::NoDevice
        | Unavailable::DeviceTooOld { .. }
        | Unavailable::NotUsedYet { .. }
        | Unavailable::ChosenByUser => return None,
    };
    Some(String::from(advice))
}

/// "AVX-512" of "AVX-512 VNNI": the line has room for the family only.
fn short_isa(isa: &str) -> &str {
    isa.split([' ', ':']).next().unwrap_or(isa)
}

fn details(model: &ModelFacts, reason: &str) -> Vec<Detail> {
    let device = &model.device;
    let tokens = words::count(model.context);
    let why = match model.context_limit {
        Some(ContextLimit::Memory { wanted }) => {
            format!("{} do not fit in memory", words::count(wanted as u64))
        }
        Some(ContextLimit::Trained { asked }) => format!(
            "you chose {}; the model was trained for {}",
            words::count(asked as u64),
            words::count(model.trained),
        ),
        None => format!("trained for {}", words::count(model.trained)),
    };
    let context = format!("{tokens} tokens ({why})");
    let template = model
        .template_fallback
        .as_deref()
        .unwrap_or("the model's own");
    let rows = [
        ("Device", device.name.as_str()),
        ("Why", reason),
        ("Instruction set", &device.isa),
        ("Threads", &device.threads.to_string()),
        ("Memory used", &words::size(model.memory_bytes)),
        ("Context", &context),
        ("Keys and values", model.kv),
        ("File", &model.file),
        ("Architecture", &model.architecture),
        ("Quantisation", &model.quantization),
        ("Template", template),
    ];
    rows.map(|(name, value)| Detail {
        name: String::from(name),
        value: String::from(value),
    })
    .into()
}

#[cfg(test)]
mod tests;
