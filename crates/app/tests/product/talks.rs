//! Conversations that branch, are gone on with, and grow longer than the context.

use std::fs;

use candor_app::App;
use candor_app::wire::{Code, ExportFormat, MessageState, Place, Settings};
use candor_backend::Feed;
use candor_testkit::TinyModel;
use candor_testkit::scripted::Fault;

use crate::desk::{Desk, ask, end_of, lines, load};

/// What the model was given since so many batches, as the letters among its tokens.
fn letters_since(desk: &Desk, batches: usize) -> String {
    let seen = desk.script.batches();
    let rows = seen[batches..].iter().flat_map(|batch| batch.rows.iter());
    let letters = rows.filter_map(|row| {
        let Feed::Token(token) = row.feed;
        u8::try_from(token).ok().filter(u8::is_ascii_graphic)
    });
    letters.map(char::from).collect()
}

fn texts(app: &App, id: i64) -> Vec<String> {
    let conversation = app.open_conversation(id).unwrap();
    let all = lines(&conversation);
    all.into_iter()
        .map(|(_, _, text)| text.to_owned())
        .collect()
}

#[test]
fn an_edited_question_is_answered_beside_the_first() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("one");
    let (sent, _) = ask(&app, None, "First?");
    let id = sent.conversation.id;
    let question = sent.conversation.messages[0].id;
    desk.reply("two");
    let again = app.edit_question(question, "Second?").unwrap();
    end_of(&app, again.turn);
    assert_eq!(texts(&app, id), ["Second?", "two"]);
    let shown = app.open_conversation(id).unwrap();
    let version = shown.messages[0].id;
    assert_eq!(shown.messages[0].versions, [question, version]);
    let first = app.show_message(question).unwrap();
    assert_eq!(first.messages[1].text, "one");
    assert!(app.edit_question(first.messages[1].id, "x").is_err());
    assert!(app.edit_question(question, "  ").is_err());
    // A reply in the person's words is what the model is told it said.
    app.edit_reply(first.messages[1].id, "zebra").unwrap();
    let before = desk.script.batches().len();
    desk.reply("three");
    ask(&app, Some(id), "Third?");
    assert!(letters_since(&desk, before).contains("zebra"));
    assert_eq!(texts(&app, id), ["First?", "zebra", "Third?", "three"]);
}

#[test]
fn a_place_on_another_branch_is_not_shown_while_this_one_is_answered() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let (first, _) = ask(&app, None, "Birds?");
    let id = first.conversation.id;
    let question = app.open_conversation(id).unwrap().messages[0].id;
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 2, Fault::Stall);
    let again = app.edit_question(question, "Stones?").unwrap();
    desk.script.wait_until_stalled();
    // The reply would be shown under the other question.
    assert_eq!(app.show_message(question).unwrap_err().code, Code::Busy);
    let shown = app.open_conversation(id).unwrap().messages;
    assert_eq!(shown[0].text, "Stones?");
    assert_eq!(app.show_message(shown[0].id).unwrap().messages.len(), 2);
    app.stop(again.turn);
    end_of(&app, again.turn);
    assert_eq!(
        app.show_message(question).unwrap().messages[0].text,
        "Birds?"
    );
}

#[test]
fn a_stopped_reply_is_gone_on_with_at_its_place() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 4, Fault::Stall);
    desk.reply("abcdefgh");
    let sent = app.send(None, "Letters?").unwrap();
    desk.script.wait_until_stalled();
    app.stop(sent.turn);
    let stopped = end_of(&app, sent.turn).message;
    assert_eq!(
        (stopped.state, stopped.text.as_str()),
        (MessageState::Stopped, "abcd")
    );

    let before = desk.script.batches().len();
    let again = app.continue_reply(stopped.id).unwrap();
    assert_eq!(again.conversation.messages[1].kept, 4);
    let end = end_of(&app, again.turn).message;
    assert_eq!(
        (end.state, end.text.as_str()),
        (MessageState::Finished, "abcdefgh")
    );
    assert_eq!(end.id, stopped.id);
    assert!(end.record.unwrap().continued);
    // The question and the words so far were still in memory: nothing is read twice.
    let read = letters_since(&desk, before);
    assert!(
        !read.contains("Letters") && read.ends_with("efgh"),
        "{read}"
    );
    // A reply with an end of its own is not gone on with.
    assert_eq!(
        app.continue_reply(stopped.id).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn a_killed_reply_is_gone_on_with_after_the_restart() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 5, Fault::Stall);
    desk.reply("abcdefgh");
    let sent = app.send(None, "Letters?").unwrap();
    desk.script.wait_until_stalled();
    // Whatever had reached the disk at that moment.
    let killed = desk.killed();
    desk.script.release();
    let app = killed.open();
    let kept = app.open_conversation(sent.conversation.id).unwrap();
    let reply = kept.messages[1].clone();
    assert_eq!(reply.state, MessageState::Interrupted);
    load(&app, &killed.model);
    killed.reply("xyz");
    let again = app.continue_reply(reply.id).unwrap();
    let end = end_of(&app, again.turn).message;
    assert_eq!(end.text, format!("{}xyz", reply.text));
}

/// Asks until a turn has been left out, and gives the conversation.
fn long_talk(desk: &Desk, app: &App) -> i64 {
    let words = "w".repeat(90);
    desk.reply("a");
    let (sent, _) = ask(app, None, &format!("first {words}"));
    let id = sent.conversation.id;
    for turn in 0..12 {
        desk.reply("b");
        let (_, end) = ask(app, Some(id), &format!("turn {turn} {words}"));
        if end.message.record.is_some_and(|record| record.left_out > 0) {
            return id;
        }
    }
    panic!("nothing was ever left out");
}

#[test]
fn what_does_not_fit_is_left_out_by_whole_turns_and_never_the_system_prompt() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let context = app.status().model.unwrap().context as usize;
    let settings = Settings {
        system_prompt: String::from("SYSTEMTEXT"),
        ..app.settings()
    };
    app.save_settings(settings).unwrap();
    let id = long_talk(&desk, &app);
    let shown = app.open_conversation(id).unwrap();
    let record = shown.messages.last().unwrap().record.clone().unwrap();
    let left_out = record.left_out as usize;
    assert_eq!(left_out % 2, 0, "whole turns");
    assert!(
        record.prompt_tokens as usize <= context * 3 / 4,
        "{record:?}"
    );

    // The next question begins at the same place, so that nothing is read twice.
    let before = desk.script.batches().len();
    desk.reply("c");
    let (_, end) = ask(&app, Some(id), "short");
    assert_eq!(end.message.record.unwrap().left_out as usize, left_out);
    assert!(!letters_since(&desk, before).contains("SYSTEMTEXT"));
    // The same in another process, which has to read all of it.
    drop(app);
    let app = desk.open_ready();
    let before = desk.script.batches().len();
    desk.reply("d");
    let (_, end) = ask(&app, Some(id), "zzz");
    assert_eq!(end.message.record.unwrap().left_out as usize, left_out);
    let read = letters_since(&desk, before);
    assert!(
        read.contains("SYSTEMTEXT") && read.contains("zzz"),
        "{read}"
    );
    let begin = |place: usize| {
        let words = shown.messages[place].text.split(' ').take(2);
        words.collect::<String>()
    };
    for (place, want) in [(0, false), (left_out - 2, false), (left_out, true)] {
        assert_eq!(read.contains(&begin(place)), want, "{place}: {read}");
    }
}

#[test]
fn two_hundred_turns_are_answered_and_the_same_line_is_shown_after_a_restart() {
    let desk = Desk::with_model(&TinyModel::llama().context(512));
    let app = desk.open_ready();
    let settings = Settings {
        system_prompt: String::from("RULE"),
        ..app.settings()
    };
    app.save_settings(settings).unwrap();
    let (mut id, mut left_out) = (None, 0);
    for turn in 0..200 {
        desk.reply("ok");
        let (sent, end) = ask(&app, id, &format!("This is what I say in turn {turn}."));
        id = Some(sent.conversation.id);
        assert_eq!(
            (end.message.text.as_str(), end.error),
            ("ok", None),
            "{turn}"
        );
        let record = end.message.record.unwrap();
        assert!(record.prompt_tokens <= 512, "{turn}: {record:?}");
        assert!(
            record.left_out >= left_out,
            "{turn}: what is forgotten stays so"
        );
        left_out = record.left_out;
    }
    assert!(left_out > 300, "{left_out}");
    drop(app);
    let app = desk.open_ready();
    let count = app.count_tokens(id, "", &[]).unwrap().unwrap();
    assert_eq!(count.left_out, left_out);
    // Nothing is in memory any more: all that the model sees is read, the rule first.
    let before = desk.script.batches().len();
    desk.reply("ok");
    let (_, end) = ask(&app, id, "Still there?");
    assert_eq!(end.message.record.unwrap().left_out, left_out);
    let read = letters_since(&desk, before);
    assert!(read.contains("RULE") && read.contains("199.ok"), "{read}");
}

#[test]
fn a_message_that_is_too_long_alone_is_refused_with_both_numbers() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let context = app.status().model.unwrap().context as usize;
    desk.reply("a");
    let (sent, _) = ask(&app, None, "First?");
    let id = sent.conversation.id;
    let long = "w".repeat(context + 50);
    let count = app.count_tokens(Some(id), &long, &[]).unwrap().unwrap();
    assert!(
        count.message as usize > context && count.too_long.is_some(),
        "{count:?}"
    );
    let refused = app.send(Some(id), &long).unwrap_err();
    assert_eq!(refused.code, Code::TooLong);
    assert_eq!(Some(refused.to_string()), count.too_long);
    assert_eq!(texts(&app, id).len(), 2, "nothing is stored of it");

    let fits = app.count_tokens(Some(id), "Second?", &[]).unwrap().unwrap();
    desk.reply("b");
    let (_, end) = ask(&app, Some(id), "Second?");
    assert_eq!(end.message.record.unwrap().prompt_tokens, fits.prompt);
    assert_eq!((fits.left_out, fits.context as usize), (0, context));

    let settings = Settings {
        system_prompt: long,
        ..app.settings()
    };
    app.save_settings(settings).unwrap();
    let refused = app.send(Some(id), "Third?").unwrap_err();
    assert!(
        refused.to_string().starts_with("The system prompt alone"),
        "{refused}"
    );
}

#[test]
fn a_card_is_read_by_the_model_and_stays_with_its_message() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let file = desk.dir.path().join("notes.txt");
    fs::write(&file, "zebra\r\n").unwrap();
    let card = app.add_file_card(&file).unwrap();
    let before = desk.script.batches().len();
    desk.reply("a");
    let sent = app.send_with(None, "", &[card.id]).unwrap();
    end_of(&app, sent.turn);
    assert_eq!(sent.conversation.title, "notes.txt");
    assert_eq!(sent.conversation.messages[0].cards[0], card);
    let read = letters_since(&desk, before);
    assert!(read.contains("notes.txt:```zebra```"), "{read}");
    assert_eq!(app.card_text(card.id).unwrap(), "zebra\r\n");
    assert!(
        app.send_with(None, "again", &[card.id]).is_err(),
        "it was sent"
    );
    for (bytes, what) in [(&b"a\0b"[..], "no text"), (b"\xff\xfe\xfd", "no UTF-8")] {
        fs::write(&file, bytes).unwrap();
        assert_eq!(
            app.add_file_card(&file).unwrap_err().code,
            Code::Refused,
            "{what}"
        );
    }
    assert!(
        app.add_file_card(desk.dir.path()).is_err(),
        "a folder is no file"
    );
}

#[test]
fn places_and_folders_are_told_and_kept() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("a");
    let id = ask(&app, None, "Birds?").0.conversation.id;
    let place = Place {
        pinned: true,
        folder: Some(String::from("  Nature ")),
    };
    let summary = app.place_conversation(id, &place).unwrap();
    assert_eq!(
        (summary.pinned, summary.folder.as_deref()),
        (true, Some("Nature"))
    );
    app.rename_folder("Nature", "Outside").unwrap();
    drop(app);
    let app = desk.open();
    let kept = app.bootstrap().unwrap().conversations[0].clone();
    assert_eq!(
        (kept.pinned, kept.folder.as_deref()),
        (true, Some("Outside"))
    );
    app.rename_folder("Outside", " ").unwrap();
    assert_eq!(app.bootstrap().unwrap().conversations[0].folder, None);
}

#[test]
fn conversations_leave_and_come_back_through_a_file() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("one");
    let (sent, _) = ask(&app, None, "First? / second");
    desk.reply("two");
    let again = app.regenerate(sent.conversation.messages[1].id).unwrap();
    end_of(&app, again.turn);
    let id = sent.conversation.id;
    assert_eq!(
        app.export_name(Some(id), ExportFormat::Markdown).unwrap(),
        "First  second.md"
    );
    let file = desk.dir.path().join("all.json");
    let done = app
        .export_conversations(None, ExportFormat::Json, &file)
        .unwrap();
    assert_eq!(done.conversations, 1);
    app.delete_conversation(id).unwrap();
    let imported = app.import_conversations(&file).unwrap();
    let counts = (imported.conversations, imported.messages, imported.left_out);
    assert_eq!((imported.source.as_str(), counts), ("Candor", (1, 3, 0)));
    let back = app.open_conversation(imported.first.unwrap()).unwrap();
    assert_eq!(back.messages[1].text, "two");
    assert_eq!(back.messages[1].versions.len(), 2);
    assert!(back.messages[1].record.is_some());
    let readable = desk.dir.path().join("one.md");
    app.export_conversations(imported.first, ExportFormat::Markdown, &readable)
        .unwrap();
    let text = fs::read_to_string(&readable).unwrap();
    assert_eq!(
        text,
        "# First? / second\n\n## You\n\nFirst? / second\n\n## tiny\n\ntwo\n"
    );
    let nowhere = desk.dir.path().join("no/such/folder.json");
    let refused = app
        .export_conversations(None, ExportFormat::Json, &nowhere)
        .unwrap_err();
    assert_eq!(refused.code, Code::Storage);
    assert!(app.import_conversations(&readable).is_err());
}
