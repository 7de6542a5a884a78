//! What is said of a card that computes.

use candor_engine::{Mode, Proof};

use super::{ModelFacts, context_limit, details, plain};
use crate::upkeep::Audits;
use crate::wire::{Banner, BannerAction, BannerKind, Tone};
use crate::words;

/// The banner of a card that computes.
pub(super) fn banner(model: &ModelFacts) -> Banner {
    let (tone, report) = match &model.proof {
        Proof::Proven(report) => (Tone::Proven, Some(report.to_string())),
        // It does not write a token before it is proven, but now there is nothing to show for it.
        Proof::Awaited(_) | Proof::Reference => (Tone::Neutral, None),
        Proof::Skipped { .. } => (Tone::Attention, None),
    };
    let mut proof = proof(&model.proof);
    proof.push_str(&audited(model));
    let parts = [model.device.name.as_str(), &proof, day(model)];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let mut line = parts.collect::<Vec<_>>().join(" · ");
    line.push_str(&context_limit(model));
    let state = match model.proof {
        Proof::Skipped { .. } => "GPU, not checked",
        _ => "GPU",
    };
    Banner {
        tone,
        actions: vec![BannerAction::CheckAgain],
        details: details::of_gpu(model),
        report,
        ..plain(BannerKind::Gpu, state, line)
    }
}

/// When it was proven; nothing where it was not.
fn day(model: &ModelFacts) -> &str {
    match model.proof {
        Proof::Proven(_) => &model.day,
        _ => "",
    }
}

/// What audits have shown of a card that is proven.
fn audited(model: &ModelFacts) -> String {
    let Audits { prompts, position } = model.audits;
    if prompts == 0 || !matches!(model.proof, Proof::Proven(_)) {
        return String::new();
    }
    let prompts = match prompts {
        1 => String::from("one of your prompts"),
        _ => format!("{} of your prompts", words::count(prompts.into())),
    };
    let position = words::count(position.into());
    format!(" and on {prompts}, to position {position}")
}

/// By what right a card computes, in plain words.
pub(crate) fn proof(proof: &Proof) -> String {
    match proof {
        Proof::Proven(report) => format!(
            "proven on {} positions (lowest match {:.4})",
            words::count(report.positions as u64),
            // Never rounded up to a perfect match that it is not.
            (report.min_cosine * 10_000.0).floor() / 10_000.0,
        ),
        Proof::Awaited(Mode::EveryPrompt) => String::from("to be checked on every message"),
        Proof::Awaited(Mode::FirstPrompt | Mode::Probe) => {
            String::from("to be checked on your next message")
        }
        Proof::Skipped { reason } => format!("not checked: {reason}"),
        Proof::Reference => String::new(),
    }
}
