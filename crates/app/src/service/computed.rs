//! What computes, and by what right, as every answer to a program says it.

use candor_backend::DeviceKind;
use candor_engine::{LoadedModel, PassedOver, Proof};
use serde_json::Value;

use crate::banner::{self, why_cpu};
use crate::headless::{Judgement, VerdictKind, memory_json};

/// What computes a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// Where.
    pub kind: DeviceKind,
    /// The device's name.
    pub device: String,
    /// Why the processor computes, or by what right a card does, in plain words; empty where there
    /// is nothing to say.
    pub reason: String,
    /// What the guard said.
    pub judgement: Judgement,
    /// Bytes of the device, and what the model takes of them.
    pub memory: Value,
}

impl Computed {
    /// Of a model; `why` is why no card computes it.
    pub fn of(model: &LoadedModel, why: Option<&PassedOver>) -> Self {
        Self {
            kind: model.device.kind,
            device: model.device.name.clone(),
            reason: reason(model, why),
            judgement: judgement(model, why),
            memory: memory_json(model),
        }
    }

    /// Where, in one word.
    pub fn served(&self) -> &'static str {
        served_name(self.kind)
    }
}

/// Where something is computed, as scripts read it.
pub fn served_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
    }
}

/// Why the processor computes a model, or by what right a card does.
pub(crate) fn reason(model: &LoadedModel, why: Option<&PassedOver>) -> String {
    match model.device.kind {
        DeviceKind::Gpu => banner::proof(&model.proof).to_string(),
        DeviceKind::Cpu => why.map(why_cpu).unwrap_or_default().to_string(),
    }
}

/// What the guard said of the card that was tried, if one was.
pub(crate) fn judgement(model: &LoadedModel, why: Option<&PassedOver>) -> Judgement {
    let judged = |kind, mode, report| Judgement { kind, mode, report };
    match &model.proof {
        Proof::Proven(report) => judged(
            VerdictKind::Accepted,
            Some(report.mode),
            Some(report.clone()),
        ),
        Proof::Awaited(mode) => judged(VerdictKind::NotJudged, Some(*mode), None),
        Proof::Skipped { .. } => judged(VerdictKind::NotJudged, None, None),
        Proof::Reference => match why {
            Some(passed) => Judgement::of(passed),
            None => judged(VerdictKind::NotNeeded, None, None),
        },
    }
}
