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
    let now = answering.opened.computed();
    let began = &answering.began;
    let mut backend = json(&now);
    for end in ends {
        let kind = end.stats.served.device;
        // What was true while it was written, whatever has happened since. A proof may be newer
        // than the question; a device that is another one now is not what computed this.
        if kind != now.kind && kind == began.kind {
            backend = json(began);
        }
        backend["served"] = json!(served_name(kind));
        if let Some(reason) = &end.moved {
            backend["moved"] = json!({
                "after_tokens": end.stats.served.moved_at,
                "reason": reason,
                "from": json(began),
            });
        }
    }
    json!({
        "backend": backend,
        "seed": answering.seed,
        "template_fallback": answering.fallback,
    })
}
