//! What is said of a card that computes.

use candor_engine::{Mode, Proof};

use super::{ModelFacts, context_limit, details, plain};
use crate::upkeep::Audits;
use crate::wire::{Banner, BannerAction, BannerKind, Tone};
use crate::words::{Count, Digits, Phrase, Tongue, phrase};

/// The banner of a card that computes.
pub(super) fn banner(model: &ModelFacts, tongue: Tongue) -> Banner {
    let (tone, report) = match &model.proof {
        Proof::Proven(report) => (Tone::Proven, Some(report.to_string())),
        // It does not write a token before it is proven, but now there is nothing to show for it.
        Proof::Awaited(_) | Proof::Reference => (Tone::Neutral, None),
        Proof::Skipped { .. } => (Tone::Attention, None),
    };
    let parts = [
        Phrase::same(model.device.name.as_str()),
        proof(&model.proof).then(&audited(model)),
        Phrase::same(day(model)),
    ];
    let line = Phrase::joined(parts, " · ").then(&context_limit(model));
    let state = match model.proof {
        Proof::Skipped { .. } => phrase!("GPU, not checked", "GPU, nicht geprüft"),
        _ => Phrase::same("GPU"),
    };
    Banner {
        tone,
        actions: vec![BannerAction::CheckAgain],
        details: details::of_gpu(model, tongue),
        report,
        ..plain(BannerKind::Gpu, (state, line), tongue)
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
fn audited(model: &ModelFacts) -> Phrase {
    let Audits { prompts, position } = model.audits;
    if prompts == 0 || !matches!(model.proof, Proof::Proven(_)) {
        return Phrase::default();
    }
    let prompts = match prompts {
        1 => phrase!("one of your prompts", "an einer deiner Fragen"),
        _ => phrase!(
            "{count} of your prompts",
            "an {count} deiner Fragen",
            count = Count(prompts.into()),
        ),
    };
    phrase!(
        " and on {prompts}, to position {position}",
        " und {prompts}, bis zur Stelle {position}",
        prompts,
        position = Count(position.into()),
    )
}

/// By what right a card computes, in plain words.
pub(crate) fn proof(proof: &Proof) -> Phrase {
    match proof {
        Proof::Proven(report) => {
            // Never rounded up to a perfect match that it is not.
            let lowest = (report.min_cosine * 10_000.0).floor() / 10_000.0;
            phrase!(
                "proven on {positions} positions (lowest match {lowest})",
                "nachgewiesen an {positions} Stellen (geringste Übereinstimmung {lowest})",
                positions = Count::of(report.positions),
                lowest = Digits(format!("{lowest:.4}")),
            )
        }
        Proof::Awaited(Mode::EveryPrompt) => phrase!(
            "to be checked on every message",
            "wird an jeder Nachricht geprüft",
        ),
        Proof::Awaited(Mode::FirstPrompt | Mode::Probe) => phrase!(
            "to be checked on your next message",
            "wird an deiner nächsten Nachricht geprüft",
        ),
        Proof::Skipped { reason } => {
            let reason = *reason;
            phrase!("not checked: {reason}", "nicht geprüft ({reason})", reason)
        }
        Proof::Reference => Phrase::default(),
    }
}
