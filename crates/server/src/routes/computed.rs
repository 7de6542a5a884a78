//! What computes, as a field of every answer.

use candor_app::headless::judgement_json;
use candor_app::service::{Computed, served_name};
use serde_json::{Value, json};

use crate::ask::Answering;
use crate::course::End;

/// What computes a model now.
pub(crate) fn json(computed: &Computed) -> Value {
    json!({
        "served": computed.served(),
        "device": computed.device,
        "memory": computed.memory,
        "reason": computed.reason,
        "f2": judgement_json(&computed.judgement),
    })
}

/// What computed an answer, and the seed that gives it again.
pub(crate) fn answer_json<'a>(answering: &Answering, ends: impl Iterator<Item = &'a End>) -> Value {
    let mut backend = json(&answering.opened.computed());
    for end in ends {
        // What was true while it was written, whatever has happened since.
        backend["served"] = json!(served_name(end.stats.served.device));
        if let Some(reason) = &end.moved {
            let after = end.stats.served.moved_at;
            backend["moved"] = json!({ "after_tokens": after, "reason": reason });
        }
    }
    json!({
        "backend": backend,
        "seed": answering.seed,
        "template_fallback": answering.fallback,
    })
}
