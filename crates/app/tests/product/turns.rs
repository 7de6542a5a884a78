//! Replies: how they end, who is told, and what stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use candor_app::wire::{BannerKind, Code, MessageState, Role, Settings, TurnEvent};
use candor_backend::Feed;
use candor_testkit::gguf::Value;
use candor_testkit::scripted::Fault;
use candor_testkit::{TURN_END, TinyModel};

use crate::desk::{Desk, ask, end_of, follow, hear_all, kind, lines, load};

#[test]
fn two_windows_hear_the_same_and_one_end_each() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 5, Fault::Stall);
    desk.reply("abcdefghij");
    let sent = app.send(None, "Letters?").unwrap();
    let first = follow(&app, sent.turn, 0);
    desk.script.wait_until_stalled();
    let second = follow(&app, sent.turn, 0);
    desk.script.release();
    let heard = hear_all(&first);
    assert_eq!(heard.0, "abcdefghij");
    assert_eq!(hear_all(&second), heard);
    assert_eq!((heard.1.message.id, heard.1.error), (sent.turn, None));
    assert_eq!(heard.1.message.state, MessageState::Finished);
    // Who comes too late is told the same.
    let late = hear_all(&follow(&app, sent.turn, 0));
    assert_eq!(late.0, "abcdefghij");
    let behind_the_end = hear_all(&follow(&app, sent.turn, 9_999));
    assert_eq!(behind_the_end.0, "");
    assert_eq!(behind_the_end.1.message, late.1.message);
    assert!(!app.attach(-1, 0, Box::new(|_| candor_app::Attached::Stay)));
}

#[test]
fn a_reader_that_comes_back_goes_on_where_it_was() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 5, Fault::Stall);
    desk.reply("abcdefghij");
    let sent = app.send(None, "Letters?").unwrap();
    desk.script.wait_until_stalled();
    let first = follow(&app, sent.turn, 0);
    let (mut text, mut next_seq, mut counted) = (String::new(), 0, 0);
    while text.len() < 5 {
        let batch = first.recv().unwrap();
        next_seq = batch.next_seq;
        for event in batch.events {
            if let TurnEvent::Text { text: more, tokens } = event {
                text.push_str(&more);
                counted = tokens;
            }
        }
    }
    assert_eq!(counted, 5);
    drop(first);
    let second = follow(&app, sent.turn, next_seq);
    desk.script.release();
    text.push_str(&hear_all(&second).0);
    assert_eq!(text, "abcdefghij");
}

#[test]
fn a_stop_keeps_what_was_written() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 3, Fault::Stall);
    let sent = app.send(None, "Letters?").unwrap();
    desk.script.wait_until_stalled();
    let counted = desk.script.counts().committed;
    app.stop(sent.turn);
    app.stop(sent.turn);
    let end = end_of(&app, sent.turn);
    assert_eq!(
        (end.message.state, end.message.text.len()),
        (MessageState::Stopped, 3)
    );
    assert_eq!(
        desk.script.counts().committed,
        counted,
        "no forward is committed after a stop"
    );
    app.stop(sent.turn);
    app.stop(-1);
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    assert_eq!(conversation.messages[1], end.message);
    let record = end.message.record.unwrap();
    assert_eq!(
        (record.backend.as_str(), record.model.as_str()),
        ("CPU", "tiny")
    );
    assert_eq!(record.generated_tokens, 3);
}

#[test]
fn a_reply_stopped_before_its_first_word_is_left_out_of_the_next_prompt() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.script
        .at_forward(desk.script.counts().submitted, Fault::Stall);
    let sent = app.send(None, "First?").unwrap();
    desk.script.wait_until_stalled();
    app.stop(sent.turn);
    let end = end_of(&app, sent.turn);
    assert_eq!(
        (end.message.state, end.message.text.as_str()),
        (MessageState::Stopped, "")
    );
    let before = desk.script.batches().len();
    desk.reply("yes");
    let (again, end) = ask(&app, Some(sent.conversation.id), "Second?");
    assert_eq!(end.message.text, "yes");
    let conversation = app.open_conversation(again.conversation.id).unwrap();
    let want = [
        (Role::User, MessageState::Finished, "First?"),
        (Role::Assistant, MessageState::Stopped, ""),
        (Role::User, MessageState::Finished, "Second?"),
        (Role::Assistant, MessageState::Finished, "yes"),
    ];
    assert_eq!(lines(&conversation), want);
    // Two questions and the beginning of one answer: no turn of the assistant's is closed.
    let end = TinyModel::llama().token_id(TURN_END).unwrap();
    let batches = desk.script.batches();
    let rows = batches[before].rows.iter();
    let ends = rows.filter(|row| matches!(row.feed, Feed::Token(token) if token == end));
    assert_eq!(ends.count(), 2);
}

/// A template that takes no system turn and wants turns to alternate.
const STRICT: &str = "{% for m in messages %}\
{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}\
{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}\
{{ '<|im_start|>assistant\n' }}";

#[test]
fn a_strict_template_does_not_make_the_conversation_unusable_after_a_stop() {
    let template = Value::Text(String::from(STRICT));
    let model = TinyModel::llama().metadata("tokenizer.chat_template", template);
    let desk = Desk::with_model(&model);
    let app = desk.open_ready();
    let system_prompt = String::from("Be brief.");
    app.save_settings(Settings {
        system_prompt,
        ..app.settings()
    })
    .unwrap();
    desk.script
        .at_forward(desk.script.counts().submitted, Fault::Stall);
    let sent = app.send(None, "First?").unwrap();
    desk.script.wait_until_stalled();
    app.stop(sent.turn);
    let first = end_of(&app, sent.turn).message;
    assert_eq!(first.text, "");
    // That the system text had to move is said where it happens first, and what more had to be
    // done then as well; the same is not said again.
    let mut said = vec![first.record.unwrap().notice];
    for reply in ["yes", "no", "well"] {
        desk.reply(reply);
        let (_, end) = ask(&app, Some(sent.conversation.id), "Next?");
        assert_eq!((end.error, end.message.text.as_str()), (None, reply));
        said.push(end.message.record.unwrap().notice);
    }
    let said: Vec<&str> = said.iter().map(|it| it.as_deref().unwrap_or("")).collect();
    let moved = "system text was put into the first question";
    assert!(said[0].ends_with(&format!("the {moved}.")), "{said:?}");
    assert!(
        said[1].contains(moved) && said[1].contains("joined"),
        "{said:?}"
    );
    assert_eq!(said[2..], ["", ""]);
}

#[test]
fn a_template_that_takes_everything_gives_no_notice_and_one_that_is_not_used_is_the_models() {
    let models = [
        TinyModel::llama(),
        TinyModel::llama().metadata(
            "tokenizer.chat_template",
            Value::Text(String::from("{% for %}")),
        ),
    ];
    for (model, is_told) in models.iter().zip([false, true]) {
        let desk = Desk::with_model(model);
        let app = desk.open_ready();
        let of_model = app.status().model.unwrap().template_fallback;
        assert_eq!(of_model.is_some(), is_told);
        desk.reply("yes");
        let (_, end) = ask(&app, None, "Well?");
        assert_eq!(end.message.record.unwrap().notice, None);
    }
}

#[test]
fn a_question_without_a_model_is_kept() {
    let desk = Desk::new();
    let app = desk.open();
    let (sent, end) = ask(&app, None, "Anybody?");
    assert_eq!(end.error.unwrap().code, Code::NoModel);
    assert_eq!(end.message.state, MessageState::Failed);
    assert_eq!(
        end.message.record.unwrap().failure.unwrap(),
        "No model is open."
    );
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    assert_eq!(
        lines(&conversation)[0],
        (Role::User, MessageState::Finished, "Anybody?")
    );
    assert_eq!(kind(&app), BannerKind::NoModel);
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers_and_nothing_is_stored() {
    let desk = Desk::with_model(&TinyModel::llama().context(64));
    let app = desk.open_ready();
    let forwards = desk.script.counts().submitted;
    let refused = app.send(None, &"x".repeat(100)).unwrap_err();
    assert_eq!(refused.code, Code::TooLong);
    let numbers = ["this message has 1", "the context holds 64"];
    assert!(
        numbers
            .iter()
            .all(|part| refused.to_string().contains(part)),
        "{refused}"
    );
    assert!(app.bootstrap().unwrap().conversations.is_empty());
    assert_eq!(desk.script.counts().submitted, forwards);
    for nothing in ["", " \n\t"] {
        assert!(app.send(None, nothing).is_err());
    }
}

#[test]
fn another_reply_stands_beside_the_first() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("one");
    let (sent, first) = ask(&app, None, "Letters?");
    desk.reply("two");
    let again = app.regenerate(first.message.id).unwrap();
    assert_eq!(again.conversation.id, sent.conversation.id);
    let second = end_of(&app, again.turn);
    assert_ne!(second.message.id, first.message.id);
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    let want = [
        (Role::User, MessageState::Finished, "Letters?"),
        (Role::Assistant, MessageState::Finished, "two"),
    ];
    assert_eq!(lines(&conversation), want);
    // The question names the same.
    desk.reply("three");
    let third = app.regenerate(conversation.messages[0].id).unwrap();
    assert_eq!(end_of(&app, third.turn).message.text, "three");
    assert_eq!(app.regenerate(9_999).unwrap_err().code, Code::NotFound);
}

#[test]
fn a_conversation_is_answered_once_at_a_time() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.script
        .at_forward(desk.script.counts().submitted, Fault::Stall);
    let sent = app.send(None, "First?").unwrap();
    desk.script.wait_until_stalled();
    let id = sent.conversation.id;
    assert_eq!(app.send(Some(id), "Second?").unwrap_err().code, Code::Busy);
    assert_eq!(app.regenerate(sent.turn).unwrap_err().code, Code::Busy);
    let message = &app.open_conversation(id).unwrap().messages[1];
    assert_eq!(
        (message.state, message.turn),
        (MessageState::Writing, Some(sent.turn))
    );
    app.stop(sent.turn);
    end_of(&app, sent.turn);
}

#[test]
fn the_system_prompt_is_in_every_prompt() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let settings = app.settings();
    app.save_settings(Settings {
        system_prompt: String::from("Be brief."),
        ..settings
    })
    .unwrap();
    let system = TinyModel::llama().token_id("system").unwrap();
    let mut conversation = None;
    for reply in ["one", "two", "three"] {
        desk.reply(reply);
        let before = desk.script.batches().len();
        let (sent, end) = ask(&app, conversation, "Say");
        assert_eq!(end.message.text, reply);
        conversation = Some(sent.conversation.id);
        let rows: usize = desk.script.batches()[before..]
            .iter()
            .map(|b| b.rows.len())
            .sum();
        let prompt = end.message.record.unwrap();
        assert!(prompt.prompt_tokens > 0 && rows > 0);
        if prompt.cached_tokens == 0 {
            let first = &desk.script.batches()[before];
            let tokens = first.rows.iter().map(|row| row.feed);
            assert!(tokens.into_iter().any(|feed| feed == Feed::Token(system)));
        } else {
            assert!(
                prompt.cached_tokens as usize > 4,
                "the system text was not kept"
            );
        }
    }
}

#[test]
fn a_deleted_conversation_is_not_written_any_more() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 2, Fault::Stall);
    let sent = app.send(None, "Letters?").unwrap();
    desk.script.wait_until_stalled();
    app.delete_conversation(sent.conversation.id).unwrap();
    assert_eq!(end_of(&app, sent.turn).message.state, MessageState::Stopped);
    assert!(app.bootstrap().unwrap().conversations.is_empty());
    app.restore_conversation(sent.conversation.id).unwrap();
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    assert_eq!(lines(&conversation)[1].1, MessageState::Stopped);
}

#[test]
fn limits_and_faults_end_a_reply_with_their_own_state() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let mut settings = app.settings();
    settings.sampling.max_tokens = 5;
    app.save_settings(settings).unwrap();
    let (_, end) = ask(&app, None, "Letters?");
    assert_eq!(
        (end.message.state, end.message.text.len()),
        (MessageState::Length, 5)
    );

    desk.script
        .at_forward(desk.script.counts().submitted + 2, Fault::NotANumber);
    let (_, end) = ask(&app, None, "Letters?");
    assert_eq!(
        (end.message.state, end.message.text.len()),
        (MessageState::Failed, 2)
    );
    let (error, record) = (end.error.unwrap(), end.message.record.unwrap());
    assert_eq!(error.code, Code::Internal);
    assert_eq!(record.failure, Some(error.message));
}

#[test]
fn a_broken_engine_loads_its_model_again() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.script
        .at_forward(desk.script.counts().submitted + 2, Fault::Panic);
    let (sent, end) = ask(&app, None, "Letters?");
    assert_eq!(
        (end.message.state, end.message.text.len()),
        (MessageState::Failed, 2)
    );
    // At once, whether or not the model is back.
    desk.reply("well");
    let (_, end) = ask(&app, Some(sent.conversation.id), "Again?");
    assert_eq!(end.message.text, "well");
    assert_eq!(kind(&app), BannerKind::Cpu);
}

#[test]
fn a_fault_of_the_program_itself_ends_the_turn_and_keeps_its_words() {
    let desk = Desk::new();
    let mut config = desk.config();
    let armed = Arc::new(AtomicBool::new(false));
    let fault = Arc::clone(&armed);
    // Everything that a turn's thread does with a new word looks at the clock.
    config.clock.instant = Arc::new(move || {
        let here = thread::current().name() == Some("turn");
        assert!(!(here && fault.swap(false, Ordering::SeqCst)), "as planned");
        Instant::now()
    });
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 5, Fault::Stall);
    desk.reply("abcdefghij");
    let sent = app.send(None, "Letters?").unwrap();
    let heard = follow(&app, sent.turn, 0);
    desk.script.wait_until_stalled();
    armed.store(true, Ordering::SeqCst);
    desk.script.release();
    let end = hear_all(&heard).1;
    assert_eq!(end.message.state, MessageState::Failed);
    let text = end.message.text.as_str();
    assert!(
        !text.is_empty() && "abcdefghij".starts_with(text),
        "{text:?}"
    );
    assert_eq!(end.error.unwrap().code, Code::Internal);
    // With whatever words the script has left.
    let (_, end) = ask(&app, Some(sent.conversation.id), "And now?");
    assert_eq!(end.error, None);
}

#[test]
fn whoever_hears_the_end_of_a_reply_can_ask_the_next_question_at_once() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let mut conversation = None;
    for round in 0..20 {
        desk.reply("one");
        let sent = app.send(conversation, "Next?").unwrap();
        conversation = Some(sent.conversation.id);
        end_of(&app, sent.turn);
        assert!(app.bootstrap().unwrap().turns.is_empty(), "round {round}");
    }
}
