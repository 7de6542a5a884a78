//! What is known of replies: thoughts and their time, the record, and replays of it.

use std::sync::mpsc;

use candor_app::wire::{
    Code, Message, MessageState, PartKind, ReplayEvent, ReplayOutcome, Sampling, Settings,
    TurnEvent,
};
use candor_app::{App, Attached};
use candor_testkit::gguf::Value;
use candor_testkit::scripted::{Fault, HANG_LIMIT};
use candor_testkit::{TURN_END, TinyModel};

use crate::desk::{Desk, ask, end_of, follow, hear_all, load};

/// The next reply is this text, whatever it has, then the end.
fn replies(desk: &Desk, text: &str) {
    let end = TinyModel::llama().token_id(TURN_END).unwrap();
    let mut tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    tokens.push(end);
    desk.script.reply(&tokens);
}

/// The next reply begins like this; what comes after it is not planned.
fn begins(desk: &Desk, text: &str) {
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    desk.script.reply(&tokens);
}

/// The hash of the context that a reply was written from.
fn context(message: &Message) -> &str {
    &message.record.as_ref().unwrap().context_sha256
}

#[test]
fn thoughts_are_told_and_stored_apart_and_left_out_of_the_next_prompt() {
    let desk = Desk::new();
    let app = desk.open_ready();
    replies(&desk, "<think>\nhm hm\n</think>\n\nHello.");
    let sent = app.send(None, "Why?").unwrap();
    let mut told = Vec::new();
    let batches = follow(&app, sent.turn, 0);
    while let Ok(batch) = batches.recv_timeout(HANG_LIMIT) {
        told.extend(batch.events);
    }
    let thought = told.iter().filter_map(|event| match event {
        TurnEvent::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thought.collect::<String>(), "hm hm");
    let ends = told
        .iter()
        .filter(|event| matches!(event, TurnEvent::Thought { .. }));
    assert_eq!(ends.count(), 1);
    let (words, end) = hear_all(&follow(&app, sent.turn, 0));
    assert_eq!(
        (words.as_str(), end.message.text.as_str()),
        ("Hello.", "Hello.")
    );
    let parts: Vec<_> = end
        .message
        .parts
        .iter()
        .map(|p| (p.kind, p.text.as_str()))
        .collect();
    assert_eq!(
        parts,
        [(PartKind::Thinking, "hm hm"), (PartKind::Text, "Hello.")]
    );
    let record = end.message.record.unwrap();
    assert_eq!(
        (record.thinking_ms.len(), record.replay),
        (1, None),
        "windows need no more"
    );
    // The next prompt is that of a conversation in which nothing was thought.
    let second = |conversation| {
        replies(&desk, "Yes.");
        ask(&app, Some(conversation), "Sure?").1.message
    };
    let after_thoughts = second(sent.conversation.id);
    replies(&desk, "Hello.");
    let (plain, _) = ask(&app, None, "Why?");
    assert_eq!(
        context(&second(plain.conversation.id)),
        context(&after_thoughts)
    );
    // After a restart it is read as it was told.
    app.close();
    let again = desk.open().open_conversation(sent.conversation.id).unwrap();
    assert_eq!(again.messages[1].parts, end.message.parts);
}

#[test]
fn a_template_that_begins_the_thoughts_itself_hides_no_answer() {
    const THINKS: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + \
        '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n<think>\n' }}";
    let template = Value::Text(String::from(THINKS));
    let desk = Desk::with_model(&TinyModel::llama().metadata("tokenizer.chat_template", template));
    let app = desk.open_ready();
    replies(&desk, "hm\n</think>\n\nHello.");
    let (sent, end) = ask(&app, None, "Why?");
    let kinds: Vec<_> = end
        .message
        .parts
        .iter()
        .map(|part| (part.kind, part.text.as_str()))
        .collect();
    assert_eq!(
        kinds,
        [(PartKind::Thinking, "hm"), (PartKind::Text, "Hello.")]
    );
    // A stop in the thoughts leaves them, and no answer for the next prompt.
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 4, Fault::Stall);
    let second = app.send(Some(sent.conversation.id), "And?").unwrap();
    desk.script.wait_until_stalled();
    app.stop(second.turn);
    let stopped = end_of(&app, second.turn).message;
    assert_eq!(
        (stopped.state, stopped.text.as_str()),
        (MessageState::Stopped, "")
    );
    assert_eq!(stopped.parts[0].kind, PartKind::Thinking);
    replies(&desk, "</think>Yes.");
    let (_, third) = ask(&app, Some(sent.conversation.id), "Well?");
    assert_eq!(third.message.text, "Yes.");
}

#[test]
fn a_reply_that_repeats_itself_is_told_once() {
    let desk = Desk::new();
    let app = desk.open_ready();
    replies(&desk, &"abcdefgh ".repeat(40));
    let sent = app.send(None, "Letters?").unwrap();
    let batches = follow(&app, sent.turn, 0);
    let mut repeats = Vec::new();
    while let Ok(batch) = batches.recv_timeout(HANG_LIMIT) {
        let found = batch.events.into_iter().filter_map(|event| match event {
            TurnEvent::Repeats {
                block_tokens,
                copies,
            } => Some((block_tokens, copies)),
            _ => None,
        });
        repeats.extend(found);
    }
    assert_eq!(repeats, [(9, 14)]);
}

/// Everything that a replay tells.
fn replayed(app: &App, message: i64) -> Vec<ReplayEvent> {
    let (sender, receiver) = mpsc::channel();
    let reader = move |event| match sender.send(event) {
        Ok(()) => Attached::Stay,
        Err(_) => Attached::Gone,
    };
    app.replay(message, Box::new(reader)).unwrap();
    let mut told = Vec::new();
    while let Ok(event) = receiver.recv_timeout(HANG_LIMIT) {
        told.push(event);
    }
    told
}

#[track_caller]
fn outcome(app: &App, message: i64) -> ReplayOutcome {
    let told = replayed(app, message);
    let ends = told
        .iter()
        .filter(|event| matches!(event, ReplayEvent::Ended { .. }))
        .count();
    match told.into_iter().last() {
        Some(ReplayEvent::Ended { outcome }) if ends == 1 => outcome,
        other => panic!("a replay ends once, and last: {other:?}"),
    }
}

fn differs(token: u32, then: Option<&str>, now: Option<&str>) -> ReplayOutcome {
    ReplayOutcome::Differs {
        token,
        then: then.map(String::from),
        now: now.map(String::from),
        note: None,
    }
}

#[test]
fn a_replay_finds_the_first_token_that_is_another_and_changes_nothing() {
    let desk = Desk::new();
    let app = desk.open_ready();
    replies(&desk, "abcdef");
    let (sent, end) = ask(&app, None, "Letters?");
    let before = app.open_conversation(sent.conversation.id).unwrap();
    let reply = end.message.id;
    replies(&desk, "abcdef");
    let same = ReplayOutcome::Same {
        tokens: 6,
        note: None,
    };
    assert_eq!(outcome(&app, reply), same);
    let courses = [
        ("abX", differs(3, Some("c"), Some("X"))),
        ("abcdefg", differs(7, None, Some("g"))),
        ("X", differs(1, Some("a"), Some("X"))),
    ];
    for (now, want) in courses {
        begins(&desk, now);
        assert_eq!(outcome(&app, reply), want, "{now}");
    }
    replies(&desk, "abcd");
    assert_eq!(outcome(&app, reply), differs(5, Some("e"), None));
    let after = app.open_conversation(sent.conversation.id).unwrap();
    // Only the hash of the file was noted meanwhile.
    let texts = |c: &candor_app::wire::Conversation| {
        let messages = c.messages.iter();
        messages
            .map(|m| (m.id, m.text.clone(), m.state))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&after), texts(&before));
    let hash = after.messages[1]
        .record
        .as_ref()
        .unwrap()
        .file_sha256
        .clone();
    assert_eq!(hash, Some(app.reply_file_hash(reply).unwrap()));
    assert_eq!(hash.unwrap().len(), 64);
}

#[test]
fn a_reply_that_was_cut_is_replayed_up_to_its_cut() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let mut settings = app.settings();
    settings.sampling.max_tokens = 4;
    app.save_settings(settings).unwrap();
    begins(&desk, "abcd");
    let (_, end) = ask(&app, None, "Letters?");
    assert_eq!(end.message.state, MessageState::Length);
    begins(&desk, "abcd");
    let same = ReplayOutcome::Same {
        tokens: 4,
        note: None,
    };
    assert_eq!(outcome(&app, end.message.id), same);
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let desk = Desk::new();
    let app = desk.open_ready();
    replies(&desk, "abc");
    let (sent, end) = ask(&app, None, "Letters?");
    let reply = end.message.id;
    let reader = || Box::new(|_| Attached::Stay);
    let question = sent.conversation.messages[0].id;
    assert_eq!(
        app.replay(question, reader()).unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(app.replay(-1, reader()).unwrap_err().code, Code::NotFound);
    let why = |app: &App| match outcome(app, reply) {
        ReplayOutcome::Impossible { why } => why,
        other => panic!("it is not possible: {other:?}"),
    };
    // The settings of now do not matter: the record has those of then.
    let changed = Settings {
        system_prompt: String::from("Be brief."),
        sampling: Sampling {
            max_tokens: 1,
            ..app.settings().sampling
        },
        ..app.settings()
    };
    app.save_settings(changed).unwrap();
    replies(&desk, "abc");
    assert_eq!(
        outcome(&app, reply),
        ReplayOutcome::Same {
            tokens: 3,
            note: None
        }
    );
    // Another file, under another name and under the same.
    let other = desk.dir.path().join("other.gguf");
    let general = Value::Text(String::from("another"));
    let model = TinyModel::llama().metadata("general.name", general);
    model.write(&other).unwrap();
    load(&app, &other);
    assert_eq!(
        why(&app),
        "Open tiny to write this reply again; other is open."
    );
    let twin = desk.dir.path().join("below");
    std::fs::create_dir(&twin).unwrap();
    let twin = twin.join("tiny.gguf");
    model.write(&twin).unwrap();
    load(&app, &twin);
    assert_eq!(
        why(&app),
        "tiny is another file than the one that wrote this reply."
    );
    // The same file elsewhere is the same.
    let copy = desk.dir.path().join("copy.gguf");
    std::fs::copy(&desk.model, &copy).unwrap();
    load(&app, &copy);
    replies(&desk, "abc");
    assert_eq!(
        outcome(&app, reply),
        ReplayOutcome::Same {
            tokens: 3,
            note: None
        }
    );
}

#[test]
fn a_replay_can_be_stopped_and_runs_once_at_a_time() {
    let desk = Desk::new();
    let app = desk.open_ready();
    replies(&desk, "abcdef");
    let (_, end) = ask(&app, None, "Letters?");
    let reply = end.message.id;
    desk.script
        .at_forward(desk.script.counts().submitted + 2, Fault::Stall);
    replies(&desk, "abcdef");
    let (sender, receiver) = mpsc::channel();
    let reader = move |event| match sender.send(event) {
        Ok(()) => Attached::Stay,
        Err(_) => Attached::Gone,
    };
    app.replay(reply, Box::new(reader)).unwrap();
    desk.script.wait_until_stalled();
    let twice = app.replay(reply, Box::new(|_| Attached::Stay));
    assert_eq!(twice.unwrap_err().code, Code::Busy);
    app.stop_replay(reply);
    app.stop_replay(-1);
    let mut last = None;
    while let Ok(event) = receiver.recv_timeout(HANG_LIMIT) {
        last = Some(event);
    }
    let outcome = ReplayOutcome::Stopped;
    assert_eq!(last, Some(ReplayEvent::Ended { outcome }));
}

/// As many chats as a person goes back and forth between.
#[test]
fn who_goes_back_to_another_chat_does_not_wait_until_it_is_read_again() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let words = ["one, two, three", "birds and stones", "a long way home"];
    let chats = words.map(|words| {
        replies(&desk, "Indeed.");
        ask(&app, None, words).0.conversation.id
    });
    for (chat, words) in chats.into_iter().zip(words) {
        replies(&desk, "Yes.");
        ask(&app, Some(chat), "And then?");
        let messages = app.open_conversation(chat).unwrap().messages;
        let record = messages.last().unwrap().record.clone().unwrap();
        let read_before = record.cached_tokens as usize;
        assert!(read_before > words.len(), "{read_before} of {words:?}");
    }
}
