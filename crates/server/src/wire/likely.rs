//! How likely tokens were, as OpenAI's clients read it.

use serde_json::{Value, json};

use crate::stream::Likely;

/// As chat completions tell them.
pub(super) fn logprobs(likely: &[Likely]) -> Value {
    let one = |bytes: &[u8], logprob: f32| {
        json!({
            "token": String::from_utf8_lossy(bytes),
            "logprob": finite(logprob),
            "bytes": bytes,
        })
    };
    let token = |token: &Likely| {
        let mut json = one(&token.bytes, token.logprob);
        let top = token
            .top
            .iter()
            .map(|(bytes, logprob)| one(bytes, *logprob));
        json["top_logprobs"] = top.collect();
        json
    };
    json!({ "content": likely.iter().map(token).collect::<Vec<_>>(), "refusal": null })
}

/// JSON has no infinity; the interface says this for what cannot happen.
fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() {
        logprob
    } else {
        -9_999.0
    }
}

/// The older form of completions.
pub(super) fn plain_logprobs(likely: &[Likely]) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let top = likely.iter().map(|token| {
        let pairs = token
            .top
            .iter()
            .map(|(bytes, p)| (text(bytes), json!(finite(*p))));
        Value::Object(pairs.collect())
    });
    let mut offset = 0;
    let offsets = likely.iter().map(|token| {
        let at = offset;
        offset += text(&token.bytes).chars().count();
        at
    });
    json!({
        "text_offset": offsets.collect::<Vec<_>>(),
        "tokens": likely.iter().map(|token| text(&token.bytes)).collect::<Vec<_>>(),
        "token_logprobs": likely.iter().map(|token| finite(token.logprob)).collect::<Vec<_>>(),
        "top_logprobs": top.collect::<Vec<_>>(),
    })
}
