//! Where replies end: at end tokens, whatever the file says of them, and at limits.

use candor_testkit::gguf::Value;
use candor_testkit::{END_OF_TEXT, TURN_END, TinyModel};

use super::*;
use crate::testing::{end_of, ids, options, prompt, text};

/// The type of ordinary text.
const NORMAL: i32 = 1;

/// What the scripted model writes before it wants to end.
const WORDS: [u32; 6] = [104, 101, 108, 108, 111, 33];

/// Loads a variant of the tiny model.
fn load(running: &Running, model: &TinyModel) -> Arc<LoadedModel> {
    running.folder.write("variant.gguf", &model.bytes());
    let options = LoadOptions {
        ctx_len: Some(4_096),
        ..LoadOptions::default()
    };
    let spec = running.folder.spec("variant.gguf", options);
    running.handle.load(spec).unwrap().wait().unwrap()
}

/// Heeds end tokens, as replies for people do.
fn heeding(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        ends: EndTokens::Heed,
        ..options(prompt(0, 5), max_tokens)
    }
}

fn finish(log: &TurnLog) -> FinishReason {
    match end_of(log) {
        Event::Finished { reason, .. } => reason,
        other => panic!("the reply did not finish: {other:?}"),
    }
}

/// A reply to a model of which the metadata is wrong: all words are there, the end is not shown.
fn check_end(model: &TinyModel, end: u32) {
    let running = Running::new();
    let loaded = load(&running, model);
    running.script.reply(&WORDS);
    running.script.reply(&[end, 97, 98, 99]);
    let (_, log) = running.generate(&loaded, heeding(50));
    assert_eq!(finish(&log), FinishReason::Stop);
    assert_eq!(ids(&log), WORDS, "no word is lost and the end is none");
    assert_eq!(text(&log), "hello!");
}

#[test]
fn a_reply_ends_at_its_end_token_whatever_the_metadata_says() {
    let tiny = TinyModel::llama;
    let turn_end = tiny().token_id(TURN_END).unwrap();
    let text_end = tiny().token_id(END_OF_TEXT).unwrap();
    let missing = tiny().without_metadata("tokenizer.ggml.eos_token_id");
    let wrong = |id| tiny().metadata("tokenizer.ggml.eos_token_id", Value::U32(id));
    let models = [
        missing.clone(),
        missing.token_type(TURN_END, NORMAL),
        tiny().token_type(TURN_END, NORMAL),
        // The end of a text, which is not what this model ends its turns with.
        wrong(text_end),
        // No token at all, and a letter that the reply contains.
        wrong(99_999),
        wrong(WORDS[0]),
    ];
    for model in models {
        check_end(&model, turn_end);
        check_end(&model, text_end);
    }
}

#[test]
fn end_strings_of_a_template_end_a_reply_and_are_not_shown() {
    let stop = || vec![String::from("<|eot_id|>"), String::from("\nUser:")];
    // Control tokens of other families are spelled out in letters by this vocabulary.
    for (written, shown) in [
        ("hello<|eot_id|>abc", "hello"),
        ("so\nUser: and you?", "so"),
        ("a<|eot_i", "a<|eot_i"),
    ] {
        let (running, model) = Running::loaded(1);
        // The ids of bytes stand in their order.
        let ids: Vec<u32> = written.bytes().map(u32::from).collect();
        running.script.reply(&ids);
        let options = GenerateOptions {
            stop: stop(),
            ..heeding(ids.len())
        };
        let (_, log) = running.generate(&model, options);
        let expected = if shown == written {
            FinishReason::Length
        } else {
            FinishReason::StopString
        };
        assert_eq!((finish(&log), text(&log).as_str()), (expected, shown));
    }
}

fn repeats(log: &TurnLog) -> Vec<(usize, Repeated)> {
    let events = testing::events(log);
    let tokens_before = |at: usize| {
        let tokens = |event: &&Event| matches!(event, Event::Token { .. });
        events[..at].iter().filter(tokens).count()
    };
    let found = events.iter().enumerate().filter_map(|(at, event)| {
        let Event::Repeats(repeated) = event else {
            return None;
        };
        Some((tokens_before(at), *repeated))
    });
    found.collect()
}

#[test]
fn a_reply_without_end_says_once_that_it_repeats_and_ends_at_its_limit() {
    let (running, model) = Running::loaded(1);
    let paragraph: Vec<u32> = prompt(3, 50);
    let endless: Vec<u32> = paragraph.iter().copied().cycle().take(6_000).collect();
    let context = model.ctx_len - 5;
    for (max_tokens, reason, written) in [
        (1_000, FinishReason::Length, 1_000),
        (6_000, FinishReason::ContextFull, context + 1),
    ] {
        running.script.reply(&endless[..written]);
        let (_, log) = running.generate(&model, heeding(max_tokens));
        assert_eq!((finish(&log), ids(&log).len()), (reason, written));
        let repeated = Repeated {
            block_tokens: 50,
            copies: 3,
        };
        assert_eq!(repeats(&log), [(200, repeated)]);
    }
    // The next reply begins anew, and Stop ends one that repeats like any other.
    let (_, log) = running.generate(&model, heeding(150));
    assert_eq!(finish(&log), FinishReason::Length);
    assert!(repeats(&log).is_empty());
    running.script.reply(&endless);
    let before = running.script.counts().submitted;
    let stall = candor_testkit::scripted::Fault::Stall;
    running.script.at_forward(before + 300, stall);
    let (cancel, log) = running.generate(&model, heeding(1_000));
    running.script.wait_until_stalled();
    assert_eq!(repeats(&log).len(), 1, "it is said while the reply runs");
    cancel.cancel();
    assert_eq!(finish(&log), FinishReason::Cancelled);
}
