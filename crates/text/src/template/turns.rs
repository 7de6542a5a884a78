//! With which text a template opens the user's next turn: a model that writes it has begun to
//! play the user.

use serde_json::json;

use super::{ChatTemplate, Generation, RenderRequest};
use crate::controls::ControlSpellings;
use crate::stop::STOP_BYTES_MAX;
use crate::tokenizer::END_OF_TURN;

/// What stands for texts and tokens in the conversation that is rendered: nothing that a template
/// has of its own.
const ANSWER: &str = "candor-answer";
const QUESTION: &str = "candor-question";
const END: &str = "candor-end";

/// Work for this one conversation of three short messages; a template that needs more is not
/// asked further.
const FUEL: u64 = 100_000;

/// A shorter opening, such as a bracket, could well be part of an answer.
const OPENING_CHARS_MIN: usize = 5;

/// The text between an answer and the next question, for a template that ends its turns without a
/// token: only there it is needed, and there it is all that ends a turn.
pub(super) fn users_opening(
    template: &ChatTemplate,
    controls: &ControlSpellings,
) -> Option<String> {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let messages = [
        message("user", "candor-first"),
        message("assistant", ANSWER),
        message("user", QUESTION),
    ];
    let request = RenderRequest {
        messages: &messages,
        tools: &[],
        extra: serde_json::Map::new(),
        generation: Generation::None,
        bos: String::new(),
        eos: END.to_owned(),
        now: None,
        controls,
    };
    let prompt = template.with_fuel(FUEL).render(&request).ok()?;
    let (_, after) = prompt.text.split_once(ANSWER)?;
    let (between, _) = after.split_once(QUESTION)?;
    let ends = |text: &str| {
        let mut markers = END_OF_TURN.iter().chain([&END]);
        markers.any(|marker| text.contains(marker)) || controls.find(text).next().is_some()
    };
    if ends(between) {
        return None;
    }
    let opening = between.trim_end();
    let is_telling = opening.trim().chars().count() >= OPENING_CHARS_MIN
        && opening.chars().any(char::is_alphabetic)
        && opening.len() <= STOP_BYTES_MAX;
    is_telling.then(|| opening.to_owned())
}
