//! What computes, chosen by the user or by what the machine has, and why.

use std::sync::Arc;
use std::time::Duration;

use candor_backend::{DeviceKind, KvType, Unavailable};
use candor_engine::{DeviceWish, LoadedModel, Mode, PassedOver, Proof, Report, WhyNot};

use super::failure::Failure;
use crate::banner::{self, why_cpu};
use crate::compose::{self, CudaDevice, ProbeCommand};
use crate::{service, words};

/// What the user wants to compute on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendWish {
    /// The best that can serve.
    Auto,
    /// The processor; the driver is not asked.
    Cpu,
    /// A graphics card or nothing.
    Gpu,
}

impl BackendWish {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }

    /// As the engine takes it.
    pub(crate) fn of_engine(self) -> DeviceWish {
        match self {
            Self::Auto => DeviceWish::Auto,
            Self::Cpu => DeviceWish::Reference,
            Self::Gpu => DeviceWish::Device,
        }
    }
}

/// What was asked for, and what there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was asked for.
    pub wish: BackendWish,
    /// The card that is asked before the processor, or why there is none.
    pub card: Result<CudaDevice, Unavailable>,
}

/// What the guard said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// The card computes what the processor computes.
    Accepted,
    /// It does not.
    Rejected,
    /// Nobody could tell, or nobody looked.
    NotJudged,
    /// The processor is the reference: there is nothing to hold it against.
    NotNeeded,
}

impl VerdictKind {
    /// As scripts read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::NotJudged => "not_judged",
            Self::NotNeeded => "not_needed",
        }
    }
}

/// What the guard said, and what it saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What it said.
    pub kind: VerdictKind,
    /// When a card is judged; none where none was there to be judged.
    pub mode: Option<Mode>,
    /// What it saw.
    pub report: Option<Arc<Report>>,
}

impl Choice {
    /// Why the processor computes this model, or by what right a card does, in plain words.
    pub fn reason(&self, model: &LoadedModel) -> String {
        service::reason(model, self.why(model).as_ref())
    }

    /// Why no card was tried; nothing if one was.
    pub fn no_card(&self) -> Option<String> {
        let why = self.card.clone().err()?;
        Some(why_cpu(&banner::unavailable(why)).to_string())
    }

    /// The line that says what computes and why, and how keys and values are kept where that is
    /// not the usual way.
    pub fn line(&self, model: &LoadedModel) -> String {
        let device = &model.device;
        let reason = self.reason(model);
        let threads = words::threads(device.threads).to_string();
        let parts = match (device.kind, &model.proof) {
            (DeviceKind::Cpu, _) => ["CPU", &reason, &device.isa, &threads],
            (DeviceKind::Gpu, Proof::Skipped { .. }) => {
                ["GPU, not checked", &device.name, &reason, ""]
            }
            (DeviceKind::Gpu, _) => ["GPU", &device.name, &reason, ""],
        };
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let mut line = parts.collect::<Vec<_>>().join(" · ");
        if model.kv == KvType::Q8_0 {
            line.push_str(&format!(" · keys and values in {}", words::kv(model.kv)));
        }
        line
    }

    /// What the guard said of the card that was tried, if one was.
    pub fn judgement(&self, model: &LoadedModel) -> Judgement {
        service::judgement(model, self.why(model).as_ref())
    }

    pub(crate) fn why(&self, model: &LoadedModel) -> Option<PassedOver> {
        let tried = model.passed_over.last().cloned();
        let none = self.card.clone().err().map(banner::unavailable);
        // What the user chose goes before what the engine makes of it.
        match self.wish {
            BackendWish::Cpu => none,
            BackendWish::Auto | BackendWish::Gpu => tried.or(none),
        }
    }
}

impl Judgement {
    /// Of a card that does not serve.
    pub(crate) fn of(passed: &PassedOver) -> Self {
        let (kind, report) = match &passed.why {
            WhyNot::Rejected(report) => (VerdictKind::Rejected, Some(Arc::clone(report))),
            WhyNot::NotJudged(_) => (VerdictKind::NotJudged, None),
            _ => (VerdictKind::NotNeeded, None),
        };
        let mode = report.as_ref().map(|report| report.mode);
        Self { kind, mode, report }
    }
}

/// Looks what there is. Asks the driver unless the user chose the processor.
pub fn look(wish: BackendWish, card: Option<u32>, probe: &ProbeCommand, limit: Duration) -> Choice {
    let card = match wish {
        BackendWish::Cpu => Err(Unavailable::ChosenByUser),
        BackendWish::Auto | BackendWish::Gpu => {
            compose::find(probe, limit).and_then(|cards| compose::choose_card(&cards, card))
        }
    };
    Choice { wish, card }
}

/// As [`look`], for what has to compute.
///
/// # Errors
/// [`Failure::NoGpu`] if the user wants a card and there is none.
pub fn choose(
    wish: BackendWish,
    card: Option<u32>,
    probe: &ProbeCommand,
    limit: Duration,
) -> Result<Choice, Failure> {
    let choice = look(wish, card, probe, limit);
    match (wish, choice.no_card()) {
        (BackendWish::Gpu, Some(reason)) => Err(Failure::NoGpu { reason }),
        _ => Ok(choice),
    }
}
