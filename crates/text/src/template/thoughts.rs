//! Thoughts of earlier answers, for templates of models that write them in a channel.

use serde_json::Value;

use crate::channels::{THINK_CLOSE, THINK_OPEN};

/// What a template of channels writes before every finished answer.
const FINAL: &str = "<|channel|>final<|message|>";

/// The conversation without the thoughts that stand in its answers, if the template would write
/// them as if they were answers: it expects them elsewhere, and leaves those of earlier turns out.
pub(super) fn left_out(template: &str, messages: &[Value]) -> Option<Vec<Value>> {
    if !template.contains(FINAL) {
        return None;
    }
    let answers = messages.iter().map(answer_alone);
    let found = answers.clone().any(|message| message.is_some());
    let kept = answers.zip(messages);
    found.then(|| {
        kept.map(|(answer, message)| answer.unwrap_or_else(|| message.clone()))
            .collect()
    })
}

/// An answer whose thoughts were shown in front of it, without them. Of an answer that was cut
/// while thinking nothing is left.
fn answer_alone(message: &Value) -> Option<Value> {
    if message["role"] != "assistant" {
        return None;
    }
    let text = message["content"].as_str()?.strip_prefix(THINK_OPEN)?;
    let (_, answer) = text.split_once(THINK_CLOSE).unwrap_or((text, ""));
    let mut message = message.clone();
    message["content"] = answer.into();
    Some(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controls::ControlSpellings;
    use crate::template::{ChatFormat, Generation, RenderRequest};

    fn check(content: &str, expected: Option<&str>) {
        let conversation = |content: &str| {
            vec![
                json!({ "role": "user", "content": "<think>\nq\n</think>\n\nr" }),
                json!({ "role": "assistant", "content": content }),
            ]
        };
        let messages = conversation(content);
        let found = left_out(FINAL, &messages);
        assert_eq!(found, expected.map(conversation), "{content:?}");
        assert_eq!(left_out("<|im_start|>", &messages), None);
    }

    #[test]
    fn only_thoughts_of_answers_are_left_out() {
        check("b", None);
        check("b <think>\na\n</think>\n\n", None);
        check("<think>\na\n</think>\n\nb", Some("b"));
        check("<think>\na", Some(""));
    }

    #[test]
    fn a_later_prompt_holds_the_answer_alone() {
        let template =
            "{% for m in messages %}<|channel|>final<|message|>{{ m.content }}{% endfor %}";
        let controls = ControlSpellings::default();
        let messages = [json!({ "role": "assistant", "content": "<think>\na\n</think>\n\nb" })];
        let request = RenderRequest {
            messages: &messages,
            tools: &[],
            extra: serde_json::Map::new(),
            generation: Generation::None,
            bos: String::new(),
            eos: String::new(),
            now: None,
            controls: &controls,
        };
        let rendered = ChatFormat::new(Some(template), &controls).render(&request);
        assert_eq!(rendered.prompt.text, "<|channel|>final<|message|>b");
        assert_eq!(rendered.fallback, None);
    }
}
