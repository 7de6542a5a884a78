//! How models mark thoughts and calls of tools, and which of that a model's template speaks of.

/// The marks around thoughts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ThinkTags {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
}

/// Every pair that is known. They are heeded for every model: what is fine-tuned to think often
/// keeps the template of a model that did not.
pub(super) const THINK_TAGS: [ThinkTags; 6] = [
    // Qwen, DeepSeek, SmolLM3, and what the channels of gpt-oss are shown as.
    ThinkTags {
        open: "<think>",
        close: "</think>",
    },
    // Magistral.
    ThinkTags {
        open: "[THINK]",
        close: "[/THINK]",
    },
    // Seed-OSS.
    ThinkTags {
        open: "<seed:think>",
        close: "</seed:think>",
    },
    // Gemma 4.
    ThinkTags {
        open: "<|channel>thought",
        close: "<channel|>",
    },
    // EXAONE Deep.
    ThinkTags {
        open: "<thought>",
        close: "</thought>",
    },
    ThinkTags {
        open: "<thinking>",
        close: "</thinking>",
    },
];

/// How a model writes that it calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallForm {
    /// `<tool_call>` around JSON (Hermes, Qwen) or around a [`CallForm::Function`] (Qwen3-Coder).
    Tagged,
    /// `<function=name>` around parameters in tags, or around JSON (also what the channels of
    /// gpt-oss are shown as).
    Function,
    /// `[TOOL_CALLS]` before a list, or before a name, `[ARGS]` and JSON (Mistral).
    List,
    /// `<|python_tag|>` before JSON (Llama 3).
    PythonTag,
    /// JSON with a name and parameters, and nothing before it (Llama 3).
    Bare,
}

/// What calls begin with.
pub(super) const CALL_MARKS: [(CallForm, &str); 4] = [
    (CallForm::Tagged, "<tool_call>"),
    (CallForm::Function, FUNCTION),
    (CallForm::List, "[TOOL_CALLS]"),
    (CallForm::PythonTag, "<|python_tag|>"),
];

/// What a call of a named function begins with.
pub(super) const FUNCTION: &str = "<function=";

/// What it ends with.
pub(super) const FUNCTION_END: &str = "</function>";

impl CallForm {
    /// What may come after a call and says nothing, in this order.
    pub(super) fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Tagged | Self::Function => &[FUNCTION_END, "</tool_call>"],
            Self::List => &[],
            Self::PythonTag | Self::Bare => &[";"],
        }
    }
}

/// Control tokens that have no text of their own and yet say what a part of a reply is: the parser
/// has to see them.
const MARKS: [&str; 14] = [
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<seed:think>",
    "</seed:think>",
    "<|channel>",
    "<channel|>",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|python_tag|>",
];

/// Whether a control token of this spelling is shown.
pub(crate) fn is_mark(spelling: &[u8]) -> bool {
    MARKS.iter().any(|mark| mark.as_bytes() == spelling)
}

/// How one model writes its replies, as far as its chat template tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyFormat {
    /// The template speaks of thoughts.
    pub(super) thinks: bool,
    pub(super) calls: Vec<CallForm>,
}

impl ReplyFormat {
    /// The format of a model with this chat template, or with none.
    pub fn of_template(template: Option<&str>) -> Self {
        let text = template.unwrap_or_default();
        let thinks = THINK_TAGS.iter().any(|tags| text.contains(tags.close));
        let mut calls: Vec<CallForm> = CALL_MARKS
            .iter()
            .filter(|(_, mark)| text.contains(mark))
            .map(|(form, _)| *form)
            .collect();
        if text.contains("<|channel|>") && !calls.contains(&CallForm::Function) {
            calls.push(CallForm::Function);
        }
        // Llama 3 is told to answer with the name of a function and its parameters.
        if text.contains("<|start_header_id|>") && text.contains("parameters") {
            calls.extend([CallForm::PythonTag, CallForm::Bare]);
        }
        if calls.is_empty() {
            // It says nothing of tools: every mark that nobody writes by accident counts.
            calls = CALL_MARKS.iter().map(|(form, _)| *form).collect();
        }
        Self { thinks, calls }
    }

    /// The end of a prompt by which the template has begun the model's thoughts itself, so that
    /// the reply has no opening mark; empty where it has not. Give it to the parser before the
    /// reply.
    pub fn opened_by(prompt: &str) -> &str {
        let said = prompt.trim_end();
        let open = THINK_TAGS.iter().find(|tags| said.ends_with(tags.open));
        open.map_or("", |tags| &prompt[said.len() - tags.open.len()..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_may_begin_the_thoughts() {
        let check = |prompt: &str, want: &str| {
            assert_eq!(ReplyFormat::opened_by(prompt), want, "{prompt:?}");
        };
        check("<|im_start|>assistant\n<think>\n", "<think>\n");
        check("<｜Assistant｜><think>", "<think>");
        check("[/INST][THINK]", "[THINK]");
        check("<|im_start|>assistant\n", "");
        check("<think>\n\n</think>\n\n", "");
        check("", "");
    }

    #[test]
    fn a_template_tells_how_tools_are_called() {
        let check = |template: Option<&str>, want: &[CallForm]| {
            assert_eq!(
                ReplyFormat::of_template(template).calls,
                want,
                "{template:?}"
            );
        };
        check(Some("{{ '<tool_call>' }}"), &[CallForm::Tagged]);
        check(
            Some("<tool_call>\n<function=x>"),
            &[CallForm::Tagged, CallForm::Function],
        );
        check(Some("[TOOL_CALLS]"), &[CallForm::List]);
        check(Some("<|channel|>analysis"), &[CallForm::Function]);
        check(
            Some("<|start_header_id|> parameters"),
            &[CallForm::PythonTag, CallForm::Bare],
        );
        let all = CALL_MARKS.map(|(form, _)| form);
        check(Some("<|im_start|>"), &all);
        check(None, &all);
    }
}
