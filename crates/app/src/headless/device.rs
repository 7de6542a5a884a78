//! What computes, chosen by the user or by what the machine has, and why.

use std::time::Duration;

use candor_backend::{KvType, Unavailable};
use candor_engine::LoadedModel;

use super::failure::Failure;
use crate::banner::why_cpu;
use crate::compose::{self, ProbeCommand};
use crate::words;

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
}

/// The processor computes, and this is why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What was asked for.
    pub wish: BackendWish,
    /// Why no card computes.
    pub why: Unavailable,
}

impl Choice {
    /// The reason in plain words.
    pub fn reason(&self) -> String {
        why_cpu(&self.why)
    }

    /// The line that says what computes and why, and how keys and values are kept where that is
    /// not the usual way.
    pub fn line(&self, model: &LoadedModel) -> String {
        let device = &model.device;
        let threads = words::threads(device.threads);
        let mut line = ["CPU", &self.reason(), &device.isa, &threads].join(" · ");
        if model.kv == KvType::Q8_0 {
            line.push_str(&format!(" · keys and values in {}", words::kv(model.kv)));
        }
        line
    }
}

/// Decides what computes. Asks the driver unless the user chose the processor.
///
/// # Errors
/// [`Failure::NoGpu`] if the user wants a card and none serves.
pub fn choose(wish: BackendWish, probe: &ProbeCommand, limit: Duration) -> Result<Choice, Failure> {
    let why = match wish {
        BackendWish::Cpu => Unavailable::ChosenByUser,
        BackendWish::Auto | BackendWish::Gpu => compose::probe(probe, limit),
    };
    let choice = Choice { wish, why };
    match wish {
        BackendWish::Gpu => Err(Failure::NoGpu {
            reason: choice.reason(),
        }),
        BackendWish::Auto | BackendWish::Cpu => Ok(choice),
    }
}
