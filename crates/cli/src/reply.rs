//! Follows one reply from its first token to its end.

use std::time::Duration;

use candor_app::headless::{
    CancelToken, EngineHandle, Event, FinishReason, GenerateRequest, Repeated, Show, Stats,
    Tokenizer, TurnCode,
};
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Report};
use crate::output::{Form, Output, notice};

/// How long a quiet reply is waited for before it is looked at again.
const PATIENCE: Duration = Duration::from_secs(1);

/// A reply that came to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) finish: FinishReason,
    pub(crate) text: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) stats: Stats,
    /// Why another device wrote it on, if so.
    pub(crate) moved: Option<String>,
}

/// Gives the engine a request and shows the reply as it comes, as text or as lines of JSON.
pub(crate) fn follow(
    engine: &EngineHandle,
    request: GenerateRequest,
    tokenizer: &Tokenizer,
    output: &mut Output,
) -> Result<Reply, Failure> {
    let cancel = request.cancel_token().clone();
    let log = engine
        .generate(request)
        .map_err(candor_app::headless::Failure::from)?;
    let mut shown = Shown {
        tokenizer,
        output,
        held: None,
        text: String::new(),
        ids: Vec::new(),
        moved: None,
    };
    let mut next = 0;
    loop {
        for entry in log.wait(next, PATIENCE) {
            next = entry.seq + 1;
            if let Some((finish, stats)) = shown.take(entry.event, &cancel)? {
                let Shown {
                    text, ids, moved, ..
                } = shown;
                return Ok(Reply {
                    finish,
                    text,
                    ids,
                    stats,
                    moved,
                });
            }
        }
    }
}

/// What was shown of a reply so far.
struct Shown<'a> {
    tokenizer: &'a Tokenizer,
    output: &'a mut Output,
    /// A token whose line waits because text of it may still come: JSON has one line for each
    /// token, and joined they have to be the reply.
    held: Option<(u32, String)>,
    text: String,
    ids: Vec<u32>,
    moved: Option<String>,
}

impl Shown<'_> {
    fn take(
        &mut self,
        event: Event,
        cancel: &CancelToken,
    ) -> Result<Option<(FinishReason, Stats)>, Failure> {
        let written = match event {
            Event::Token { id, text, .. } => self.token(id, text),
            Event::Tail { text } => self.tail(text),
            Event::State(_) | Event::Proven(_) | Event::Embedding(_) => Ok(()),
            Event::Moved { reason, .. } => {
                notice(&format!(
                    "The GPU was given up ({reason}); the CPU writes on."
                ));
                self.moved = Some(reason);
                Ok(())
            }
            Event::Repeats(Repeated {
                block_tokens,
                copies,
            }) => {
                notice(&format!(
                    "The reply repeats itself: {block_tokens} tokens for {copies} times more. Ctrl-C \
                     stops it."
                ));
                Ok(())
            }
            Event::Finished { reason, stats } => {
                self.flush_held()?;
                return Ok(Some((reason, stats)));
            }
            Event::Failed { code, message } => {
                self.flush_held()?;
                let (exit, code) = match code {
                    TurnCode::DeviceRejected => (Exit::Rejected, "f2_rejected"),
                    TurnCode::DeviceNotJudged => (Exit::NotJudged, "f2_not_judged"),
                    _ => (Exit::Failed, "computation"),
                };
                return Err(Report::new(exit, code, message).into());
            }
        };
        // Nobody reads any more, so nothing has to be computed any more.
        written.inspect_err(|_| cancel.cancel())?;
        Ok(None)
    }

    fn token(&mut self, id: u32, text: String) -> Result<(), Failure> {
        self.text.push_str(&text);
        self.ids.push(id);
        if self.output.form() == Form::Text {
            return Ok(self.output.model_text(&text)?);
        }
        let piece = self.tokenizer.piece(id, Show::Text);
        // A token without text of its own leaves what is held back as it was.
        let complete = if piece.is_empty() {
            self.held.is_none()
        } else {
            text.as_bytes().ends_with(piece)
        };
        self.flush_held()?;
        if complete {
            return self.print(id, &text);
        }
        self.held = Some((id, text));
        Ok(())
    }

    fn tail(&mut self, text: String) -> Result<(), Failure> {
        self.text.push_str(&text);
        if self.output.form() == Form::Text {
            return Ok(self.output.model_text(&text)?);
        }
        match &mut self.held {
            Some((_, held)) => held.push_str(&text),
            None => self.output.json(&json!({ "token": null, "text": text }))?,
        }
        Ok(())
    }

    fn flush_held(&mut self) -> Result<(), Failure> {
        match self.held.take() {
            Some((id, text)) => self.print(id, &text),
            None => Ok(()),
        }
    }

    fn print(&mut self, id: u32, text: &str) -> Result<(), Failure> {
        Ok(self.output.json(&json!({ "token": id, "text": text }))?)
    }
}

/// As the JSON says it.
pub(crate) fn finish_name(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop | FinishReason::StopString => "stop",
        FinishReason::Length => "length",
        FinishReason::ContextFull => "context",
        FinishReason::Cancelled => "cancelled",
    }
}

/// The figures of a reply.
pub(crate) fn stats_json(stats: &Stats) -> Value {
    json!({
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "prefill_ms": stats.prefill_ms,
        "generated_tokens": stats.generated_tokens,
        "decode_ms": stats.decode_ms,
        "time_to_first_token_ms": stats.time_to_first_token_ms,
    })
}

/// The figures of a reply for people.
pub(crate) fn stats_line(reply: &Reply) -> String {
    let Stats {
        prompt_tokens,
        generated_tokens,
        decode_ms,
        time_to_first_token_ms,
        ..
    } = reply.stats;
    // The first token belongs to the reading of the prompt.
    let steps = generated_tokens.saturating_sub(1) as f64;
    let speed = if decode_ms > 0.0 && steps > 0.0 {
        format!(", {:.1} tokens/s", steps / decode_ms * 1_000.0)
    } else {
        String::new()
    };
    let words = match reply.finish {
        FinishReason::Stop | FinishReason::StopString => "finished",
        FinishReason::Length => "limit reached",
        FinishReason::ContextFull => "context full",
        FinishReason::Cancelled => "stopped",
    };
    if generated_tokens == 0 {
        return format!("{words} · nothing written");
    }
    format!(
        "{words} · {prompt_tokens} tokens read, first one after {time_to_first_token_ms:.0} ms · \
         {generated_tokens} written{speed}"
    )
}
