//! Templates that fail, refuse or do not end, and replies whose end the file does not tell: field
//! reports B08 and B09 on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use candor_testkit::gguf::Value as Entry;
use candor_testkit::{END_OF_TEXT, TURN_END, TinyModel};
use serde_json::{Value, json};

use crate::support::{Ran, folder, ids, run, run_with_input};
use crate::{args, streamed, tiny};

const TURNS: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content \
     + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}";
const NO_SYSTEM: &str = "{% if messages[0].role == 'system' %}\
     {{ raise_exception('no system text here') }}{% endif %}";
const ALTERNATE: &str = "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
     {{ raise_exception('turns have to alternate') }}{% endif %}{% endfor %}";
const ENDLESS: &str =
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";

/// A model's template, what is said of it, and how a strict conversation comes out of it.
struct Case {
    template: Option<String>,
    said: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |template: Option<String>, said| Case { template, said };
    vec![
        case(
            Some([NO_SYSTEM, TURNS].concat()),
            "no system text here; the system text was put into the first question",
        ),
        case(
            Some([NO_SYSTEM, ALTERNATE, TURNS].concat()),
            "no system text here; the system text was put into the first question",
        ),
        case(
            Some([ALTERNATE, TURNS].concat()),
            "turns have to alternate; ",
        ),
        case(
            None,
            "this model brings no chat template, so the built-in ChatML format is used",
        ),
        case(
            Some("{% if".into()),
            "the chat template is not valid in line 1",
        ),
        case(
            Some(ENDLESS.into()),
            "the chat template does not come to an end",
        ),
        case(
            Some("\n{{ messages | martian }}".into()),
            "the chat template fails in line 2: unknown filter",
        ),
    ]
}

fn model(folder: &Path, template: Option<&str>) -> PathBuf {
    let key = "tokenizer.chat_template";
    let model = TinyModel::llama().context(1_024);
    let model = match template {
        Some(template) => model.metadata(key, Entry::from(template)),
        None => model.without_metadata(key),
    };
    tiny(folder, &model)
}

/// The conversation as it stands at each question: one that was stopped before its first token
/// has no answer, and neither has one whose answer was deleted.
fn steps() -> Vec<Value> {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let system = message("system", "Be brief.");
    let (first, again, third) = (
        message("user", "First?"),
        message("user", "Again?"),
        message("user", "Third?"),
    );
    let empty = message("assistant", "");
    vec![
        json!([system, first]),
        json!([system, first, again]),
        json!([system, first, empty, again]),
        json!([system, first, message("assistant", "Yes."), again, third]),
        json!([system, first, again, third]),
    ]
}

#[test]
fn a_strict_or_broken_template_never_makes_a_conversation_unusable() {
    let dir = folder();
    for case in cases() {
        let model = model(dir.path(), case.template.as_deref());
        for step in steps() {
            let messages = dir.path().join("messages.json");
            fs::write(&messages, step.to_string()).unwrap();
            let file = format!("--messages {} --json", messages.display());
            let rendered = run(args("render", &model, &file)).last(0);
            let said = rendered["fallback"].as_str().unwrap();
            assert!(said.contains(case.said), "{said}");
            let prompt = rendered["prompt"].as_str().unwrap();
            for message in step.as_array().unwrap() {
                assert!(
                    prompt.contains(message["content"].as_str().unwrap()),
                    "{prompt}"
                );
            }
            let reply = run(args("generate", &model, &format!("{file} --max-tokens 3")));
            assert!(reply.stderr.contains(case.said), "{}", reply.stderr);
            let last = reply.last(0);
            assert_eq!(last["fallback"], rendered["fallback"]);
            assert_eq!(
                last["stats"]["prompt_tokens"].as_u64().unwrap() as usize,
                ids(&rendered["ids"]).len()
            );
        }
    }
}

#[test]
fn in_a_conversation_a_fallback_is_said_once() {
    let dir = folder();
    for case in cases() {
        let model = model(dir.path(), case.template.as_deref());
        let mut all = args("chat", &model, "--max-tokens 4 --seed 3");
        all.extend(["--system".into(), "Be brief.".into()]);
        let ran = run_with_input(&all, b"First?\nAgain?\nThird?\n");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("tokens/s").count(), 3, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches(case.said).count(), 1, "{}", ran.stderr);
    }
}

/// A long reply that is not steered by end tokens, and one that is, by the same draws.
fn replies(model: &Path) -> (Ran, Ran) {
    let options = "--ids 1,2,3 --max-tokens 900 --temperature 1.5 --top-k 0 --top-p 1 --seed 5";
    let whole = run(args(
        "generate",
        model,
        &format!("{options} --ignore-eos --json"),
    ));
    let cut = run(args("generate", model, &format!("{options} --json")));
    (whole, cut)
}

#[test]
fn a_reply_ends_at_its_first_end_token_and_not_before_whatever_the_file_says() {
    let dir = folder();
    let tiny_model = || TinyModel::llama().context(1_024);
    let ends = [TURN_END, END_OF_TEXT].map(|token| tiny_model().token_id(token).unwrap());
    let eos = "tokenizer.ggml.eos_token_id";
    let letter = u32::from(b'e');
    let models = [
        tiny_model(),
        tiny_model().without_metadata(eos),
        tiny_model().metadata(eos, Entry::U32(99_999)),
        // An ordinary letter, which the reply is full of.
        tiny_model().metadata(eos, Entry::U32(letter)),
        tiny_model().token_type(TURN_END, 1),
        tiny_model().without_metadata(eos).token_type(TURN_END, 1),
    ];
    for model in models {
        let model = tiny(dir.path(), &model);
        let (whole, cut) = replies(&model);
        let all = ids(&whole.last(0)["ids"]);
        let end = all.iter().position(|id| ends.contains(id));
        let end = end.expect("900 tokens of 400 kinds hold an end");
        assert!(end > 20 && all[..end].contains(&letter), "{end}");
        let last = cut.last(0);
        assert_eq!(last["finish"], "stop");
        assert_eq!(
            ids(&last["ids"]),
            all[..end],
            "not cut, and the end is none of it"
        );
        let (text, _) = streamed(&cut.lines());
        assert!(!text.contains("<|im_end|>") && !text.contains("<|endoftext|>"));
    }
}

/// The shortest block that a list ends with so often that it counts as repetition, and where that
/// is first so: the rule as it is documented, written anew.
fn first_repetition(ids: &[u32]) -> Option<usize> {
    (1..=ids.len()).find(|&end| {
        (1..=512).any(|block| {
            let need = (3 * block).max(128);
            end >= need + block && (end - need..end).all(|at| ids[at] == ids[at - block])
        })
    })
}

#[test]
fn a_reply_that_repeats_itself_says_so_once_and_ends_at_its_limit() {
    let dir = folder();
    let mut seen = [0, 0];
    for seed in 0..3 {
        // Without a matrix of its own for the output, it likes best what it has just written.
        let model = TinyModel::llama()
            .context(1_024)
            .seed(seed)
            .tied()
            .layers(1);
        let model = tiny(dir.path(), &model);
        for options in ["--temperature 0", "--temperature 1.5 --top-k 0 --seed 1"] {
            let options = format!("--ids 1,2,3 --ignore-eos --max-tokens 700 {options} --json");
            let ran = run(args("generate", &model, &options));
            let last = ran.last(0);
            assert_eq!(last["finish"], "length");
            let repeats = first_repetition(&ids(&last["ids"])).is_some();
            seen[usize::from(repeats)] += 1;
            let said = ran.stderr.matches("repeats itself").count();
            assert_eq!(said, usize::from(repeats), "{}", ran.stderr);
        }
    }
    assert!(seen.iter().all(|&runs| runs > 0), "{seen:?}");
}
