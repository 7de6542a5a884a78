//! What is noted of a reply, and how the engine's words become the window's.

use std::sync::Arc;

use candor_backend::DeviceKind;
use candor_engine::{
    FinishReason, Proof, Report, Sampling as EngineSampling, Served, Stats, TurnCode,
};

use crate::banner::{self, ModelFacts};
use crate::error::Error;
use crate::models::ChatModel;
use crate::wire::{Code, MessageState, ReplyRecord, Sampling};
use crate::words::{self, Phrase, Tongue, phrase};

/// The record of a reply that has not begun.
pub(crate) fn begun(
    chat: Option<&ChatModel>,
    sampling: &Sampling,
    seed: u32,
    tongue: Tongue,
) -> ReplyRecord {
    let facts = chat.map(|chat| &chat.facts);
    let of = |part: fn(&ModelFacts) -> String| facts.map(part).unwrap_or_default();
    let said = |part: fn(&ModelFacts) -> Phrase| facts.map(|facts| part(facts).to(tongue));
    ReplyRecord {
        model: of(|facts| facts.name.clone()),
        backend: of(|facts| String::from(name(facts.device.kind))),
        backend_reason: said(reason).unwrap_or_default(),
        device: of(|facts| facts.device.name.clone()),
        proof: said(proven).unwrap_or_default(),
        moved: None,
        kv: said(|facts| facts.kv.clone()).unwrap_or_default(),
        generated_tokens: 0,
        prompt_tokens: 0,
        cached_tokens: 0,
        prefill_ms: 0.0,
        decode_ms: 0.0,
        first_token_ms: None,
        seed,
        sampling: sampling.clone(),
        failure: None,
        notice: None,
        left_out: 0,
        continued: false,
        thinking_ms: Vec::new(),
        quantization: of(|facts| facts.quantization.clone()),
        file_sha256: None,
        version: String::new(),
        template_sha256: String::new(),
        context_sha256: String::new(),
        stop: Vec::new(),
        replay: None,
    }
}

pub(crate) fn name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "CPU",
        DeviceKind::Gpu => "GPU",
    }
}

fn reason(facts: &ModelFacts) -> Phrase {
    match (facts.device.kind, &facts.why) {
        (DeviceKind::Cpu, Some(why)) => banner::why_cpu(why),
        (DeviceKind::Cpu, None) | (DeviceKind::Gpu, _) => Phrase::default(),
    }
}

/// Only what was proven is noted as proven.
fn proven(facts: &ModelFacts) -> Phrase {
    match (&facts.proof, facts.device.kind) {
        (Proof::Proven(_), DeviceKind::Gpu) => dated(&facts.proof, &facts.day),
        _ => Phrase::default(),
    }
}

fn dated(proof: &Proof, day: &str) -> Phrase {
    banner::proof(proof).then(&Phrase::same(format!(", {day}")))
}

/// Takes in that a card was proven on this prompt.
pub(crate) fn proven_now(record: &mut ReplyRecord, report: &Arc<Report>, tongue: Tongue) {
    let proof = Proof::Proven(Arc::clone(report));
    record.proof = dated(&proof, &words::day(report.judged_ms)).to(tongue);
}

/// Takes in that the processor writes on.
pub(crate) fn moved(record: &mut ReplyRecord, reason: &str, tongue: Tongue) {
    record.moved = Some(moved_words(reason).to(tongue));
    record.proof.clear();
}

/// What is read in the chat once the processor writes on.
pub(crate) fn moved_words(reason: &str) -> Phrase {
    phrase!(
        "The GPU was given up ({reason}); this reply went on with the CPU.",
        "Die GPU wurde aufgegeben ({reason}); diese Antwort ging mit der CPU weiter.",
        reason,
    )
}

/// Takes the engine's figures in.
pub(crate) fn measured(record: &mut ReplyRecord, stats: &Stats, tongue: Tongue) {
    let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
    record.generated_tokens = count(stats.generated_tokens);
    record.prompt_tokens = count(stats.prompt_tokens);
    record.cached_tokens = count(stats.cached_tokens);
    record.prefill_ms = stats.prefill_ms;
    record.decode_ms = stats.decode_ms;
    let has_token = stats.time_to_first_token_ms > 0.0;
    record.backend = match stats.served {
        // It had not written a token yet.
        Served {
            moved_at: None | Some(0),
            device,
            ..
        } => name(device).to_owned(),
        Served {
            moved_at: Some(_), ..
        } => phrase!("GPU, then CPU", "GPU, dann CPU").to(tongue),
    };
    record.first_token_ms = has_token.then_some(stats.time_to_first_token_ms);
}

/// The settings as the engine takes them.
pub(crate) fn for_engine(sampling: &Sampling, seed: u32) -> EngineSampling {
    EngineSampling {
        temperature: sampling.temperature,
        top_k: sampling.top_k as usize,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repeat_penalty: sampling.repeat_penalty,
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        dry_multiplier: sampling.dry_multiplier,
        dry_base: sampling.dry_base,
        dry_allowed_length: sampling.dry_allowed_length as usize,
        xtc_probability: sampling.xtc_probability,
        xtc_threshold: sampling.xtc_threshold,
        seed: u64::from(seed),
        ..EngineSampling::greedy()
    }
}

pub(crate) fn state_of(reason: FinishReason) -> MessageState {
    match reason {
        FinishReason::Stop | FinishReason::StopString => MessageState::Finished,
        FinishReason::Length => MessageState::Length,
        FinishReason::ContextFull => MessageState::ContextFull,
        FinishReason::Cancelled => MessageState::Stopped,
    }
}

/// A reply that failed, as the person reads it.
pub(crate) fn failure(code: TurnCode, message: &str) -> Error {
    let words = match code {
        TurnCode::Broken => phrase!(
            "The engine broke down over this reply ({message}). What was written is kept; ask again.",
            "Die Engine ist an dieser Antwort zusammengebrochen ({message}). Was geschrieben war, \
             ist aufgehoben; frage noch einmal.",
            message,
        ),
        // The engine's own words are no more than the code's, or say more in brackets.
        _ if message == code.to_string() => Phrase::new(message, words::turn_code(code)).sentence(),
        _ => {
            let german = format!("{} ({message})", words::turn_code(code));
            Phrase::new(message, german).sentence()
        }
    };
    Error::new(code_of(code), words)
}

fn code_of(code: TurnCode) -> Code {
    match code {
        TurnCode::NoModel | TurnCode::Unloaded => Code::NoModel,
        TurnCode::Busy => Code::Busy,
        TurnCode::ModelChanged
        | TurnCode::Closed
        | TurnCode::NotFinite
        | TurnCode::NothingAllowed
        | TurnCode::Stuck
        | TurnCode::NotOffered
        | TurnCode::DeviceLost
        | TurnCode::DeviceRejected
        | TurnCode::DeviceNotJudged
        | TurnCode::Broken
        | TurnCode::Internal => Code::Internal,
    }
}
