//! What survives a restart, a kill and damage.

use std::fs;

use candor_app::wire::{Code, MessageState, Role, Theme, Unsent};
use candor_app::{App, AppPaths};
use candor_testkit::scripted::Fault;

use crate::desk::{Desk, ask, end_of, lines, load, until};

#[test]
fn conversations_models_and_settings_are_there_after_a_restart() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("one");
    let (sent, _) = ask(&app, None, "  Tell me\nabout birds ");
    desk.reply("two");
    ask(&app, Some(sent.conversation.id), "More?");
    let mut settings = app.settings();
    settings.theme = Theme::Dark;
    app.save_settings(settings.clone()).unwrap();
    let before = app.open_conversation(sent.conversation.id).unwrap();
    drop(app);

    let app = desk.open();
    assert_eq!(app.settings(), settings);
    let after = app.open_conversation(sent.conversation.id).unwrap();
    assert_eq!(after, before);
    let want = [
        (
            Role::User,
            MessageState::Finished,
            "  Tell me\nabout birds ",
        ),
        (Role::Assistant, MessageState::Finished, "one"),
        (Role::User, MessageState::Finished, "More?"),
        (Role::Assistant, MessageState::Finished, "two"),
    ];
    assert_eq!(lines(&after), want);
    let snapshot = app.bootstrap().unwrap();
    assert_eq!(snapshot.conversations[0].title, "Tell me");
    assert_eq!(snapshot.models[0].name, "tiny.gguf");
    assert!(snapshot.notices.is_empty());
    load(&app, &desk.model);
    desk.reply("three");
    let (_, end) = ask(&app, Some(sent.conversation.id), "And?");
    assert_eq!(end.message.text, "three");
}

#[test]
fn a_kill_in_the_middle_keeps_the_question_and_the_text_so_far() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("before");
    let (done, _) = ask(&app, None, "Done?");
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 4, Fault::Stall);
    desk.reply("abcdefgh");
    let sent = app.send(None, "Open?").unwrap();
    desk.script.wait_until_stalled();
    let text = || {
        let conversation = app.open_conversation(sent.conversation.id).unwrap();
        conversation.messages[1].text.clone()
    };
    until("the first letters are on disk", || !text().is_empty());
    let on_disk = text();
    let killed = desk.killed();
    desk.script.release();
    assert_eq!(end_of(&app, sent.turn).message.text, "abcdefgh");

    let app = killed.open();
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    let want = [
        (Role::User, MessageState::Finished, "Open?"),
        (Role::Assistant, MessageState::Interrupted, on_disk.as_str()),
    ];
    assert_eq!(lines(&conversation), want);
    assert!("abcdefgh".starts_with(&on_disk));
    let other = app.open_conversation(done.conversation.id).unwrap();
    assert_eq!(
        lines(&other)[1],
        (Role::Assistant, MessageState::Finished, "before")
    );

    // The conversation goes on: a reply can be written again, and a question asked.
    load(&app, &killed.model);
    killed.reply("again");
    let sent = app.regenerate(conversation.messages[1].id).unwrap();
    assert_eq!(end_of(&app, sent.turn).message.text, "again");
}

#[test]
fn a_kill_before_the_first_token_keeps_the_question() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.script
        .at_forward(desk.script.counts().submitted, Fault::Stall);
    let sent = app.send(None, "Open?").unwrap();
    desk.script.wait_until_stalled();
    let killed = desk.killed();
    app.stop(sent.turn);

    let app = killed.open();
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    let want = [
        (Role::User, MessageState::Finished, "Open?"),
        (Role::Assistant, MessageState::Interrupted, ""),
    ];
    assert_eq!(lines(&conversation), want);
}

#[test]
fn a_draft_that_cannot_be_read_costs_its_reply_and_nothing_else() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("before");
    let (done, _) = ask(&app, None, "Done?");
    desk.script
        .at_forward(desk.script.counts().submitted, Fault::Stall);
    let sent = app.send(None, "Open?").unwrap();
    desk.script.wait_until_stalled();
    let killed = desk.killed();
    app.stop(sent.turn);
    // A folder in its place: reading it fails, as on a bad sector.
    let drafts = AppPaths::below(&killed.data()).drafts_dir();
    let draft = drafts.join(format!("{}.txt", sent.turn));
    fs::remove_file(&draft).unwrap();
    fs::create_dir(&draft).unwrap();

    let app = killed.open();
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    let want = [
        (Role::User, MessageState::Finished, "Open?"),
        (Role::Assistant, MessageState::Interrupted, ""),
    ];
    assert_eq!(lines(&conversation), want);
    let other = app.open_conversation(done.conversation.id).unwrap();
    assert_eq!(lines(&other)[1].2, "before");
    assert!(!draft.exists() && draft.with_extension("unread").exists());
}

/// A device of Linux that takes nothing: each write to it fails as one to a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_a_draft_costs_no_word_of_the_reply() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    let desk = Desk::new();
    let mut config = desk.config();
    // A clock that runs fast enough for a draft after each word.
    let (began, seconds) = (Instant::now(), AtomicU64::new(0));
    config.clock.instant =
        Arc::new(move || began + Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let draft = AppPaths::below(&desk.data()).drafts_dir().join("2.txt");
    std::os::unix::fs::symlink("/dev/full", &draft).unwrap();
    desk.reply("everything");
    let (sent, end) = ask(&app, None, "Well?");
    assert_eq!(sent.conversation.messages[1].id, 2);
    assert_eq!((end.message.text.as_str(), end.error), ("everything", None));
    assert_eq!(end.message.state, MessageState::Finished);
    desk.reply("more");
    let (_, end) = ask(&app, Some(sent.conversation.id), "And?");
    assert_eq!(end.message.text, "more");
}

#[test]
fn closing_stops_the_reply_and_keeps_its_text() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 3, Fault::Stall);
    let sent = app.send(None, "Open?").unwrap();
    desk.script.wait_until_stalled();
    app.close();
    app.close();
    let closed = app.send(None, "Late?").err().unwrap();
    assert_eq!(closed.code, Code::Internal);
    drop(app);

    let app = desk.open();
    let conversation = app.open_conversation(sent.conversation.id).unwrap();
    let (_, state, text) = lines(&conversation)[1];
    assert_eq!((state, text.len()), (MessageState::Stopped, 3));
}

#[test]
fn damage_is_said_once_and_nothing_is_deleted() {
    let desk = Desk::new();
    drop(desk.open());
    fs::write(
        desk.data().join("candor.db"),
        "no database at all".repeat(999),
    )
    .unwrap();
    fs::write(desk.data().join("settings.json"), "{").unwrap();
    let app = App::open(AppPaths::below(&desk.data()), desk.config()).unwrap();
    let notices = app.bootstrap().unwrap().notices;
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("candor.db.damaged-") && notices[1].contains("settings.broken-"));
    assert!(app.bootstrap().unwrap().notices.is_empty());
    let names = fs::read_dir(desk.data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(
        names
            .iter()
            .any(|name| name.starts_with("candor.db.damaged-")),
        "{names:?}"
    );
    assert!(
        names
            .iter()
            .any(|name| name.starts_with("settings.broken-")),
        "{names:?}"
    );
}

#[test]
fn a_second_program_is_refused_until_the_first_has_closed() {
    let desk = Desk::new();
    let app = desk.open();
    let second = App::open(AppPaths::below(&desk.data()), desk.config());
    assert_eq!(second.err().unwrap().code, Code::Busy);
    app.close();
    assert!(App::open(AppPaths::below(&desk.data()), desk.config()).is_ok());
}

#[test]
fn words_that_were_not_sent_survive_a_restart_and_a_kill() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("yes");
    let (sent, _) = ask(&app, None, "First?");
    let unsent = |conversation, text: &str, waiting: &str| Unsent {
        conversation,
        text: String::from(text),
        waiting: String::from(waiting),
        ..Unsent::default()
    };
    let paste = "line of code\n".repeat(80_000);
    let want = [
        unsent(None, "half a thought", ""),
        unsent(Some(sent.conversation.id), &paste, "and then?"),
    ];
    for words in &want {
        app.keep_unsent(words).unwrap();
    }
    let killed = desk.killed();
    drop(app);
    for desk in [&desk, &killed] {
        let app = desk.open();
        assert_eq!(app.bootstrap().unwrap().unsent, want);
    }
    // What is refused leaves what was kept.
    let app = desk.open();
    let endless = unsent(None, &"x".repeat(33 << 20), "");
    assert_eq!(app.keep_unsent(&endless).unwrap_err().code, Code::TooLong);
    assert_eq!(app.bootstrap().unwrap().unsent, want);
    app.keep_unsent(&unsent(None, "", "")).unwrap();
    assert_eq!(app.bootstrap().unwrap().unsent, want[1..]);
}
