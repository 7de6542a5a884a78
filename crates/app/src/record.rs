//! What is noted of a reply, and how the engine's words become the window's.

use candor_backend::Unavailable;
use candor_engine::{FinishReason, Sampling as EngineSampling, Stats, TurnCode};

use crate::banner::why_cpu;
use crate::error::Error;
use crate::models::ChatModel;
use crate::wire::{Code, MessageState, ReplyRecord, Sampling};
use crate::words;

/// The record of a reply that has not begun.
pub(crate) fn begun(
    chat: Option<&ChatModel>,
    why: Option<&Unavailable>,
    sampling: &Sampling,
    seed: u32,
) -> ReplyRecord {
    ReplyRecord {
        model: chat.map(|chat| chat.facts.name.clone()).unwrap_or_default(),
        backend: chat.map(|_| String::from("CPU")).unwrap_or_default(),
        device: chat
            .map(|chat| chat.facts.device.name.clone())
            .unwrap_or_default(),
        proof: String::new(),
        moved: None,
        backend_reason: why.map(why_cpu).unwrap_or_default(),
        kv: chat
            .map(|chat| String::from(chat.facts.kv))
            .unwrap_or_default(),
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
    }
}

/// Takes the engine's figures in.
pub(crate) fn measured(record: &mut ReplyRecord, stats: &Stats) {
    let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
    record.generated_tokens = count(stats.generated_tokens);
    record.prompt_tokens = count(stats.prompt_tokens);
    record.cached_tokens = count(stats.cached_tokens);
    record.prefill_ms = stats.prefill_ms;
    record.decode_ms = stats.decode_ms;
    let has_token = stats.time_to_first_token_ms > 0.0;
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
        seed: u64::from(seed),
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
        TurnCode::Broken => format!(
            "The engine broke down over this reply ({message}). What was written is kept; ask again."
        ),
        _ => words::sentence(message),
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
        | TurnCode::DeviceLost
        | TurnCode::Broken
        | TurnCode::Internal => Code::Internal,
    }
}
