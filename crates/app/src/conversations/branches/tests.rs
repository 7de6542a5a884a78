use crate::conversations::tests::{Kept, NOW, asked, close, texts};
use crate::conversations::{Closing, Store};
use crate::wire::{MessageId, MessageState, Role};

/// What is shown: each text, and which version of how many it is.
#[track_caller]
fn check(store: &Store, conversation: i64, want: &[(&str, usize, usize)]) {
    let branch = store.branch(conversation).unwrap();
    let shown: Vec<(&str, usize, usize)> = branch
        .iter()
        .map(|m| {
            let place = m.versions.iter().position(|id| *id == m.id);
            let (place, of) = (place.map_or(1, |place| place + 1), m.versions.len().max(1));
            (m.text.as_str(), place, of)
        })
        .collect();
    assert_eq!(shown, want);
}

/// A conversation of one question and its reply: the numbers of both.
fn begun(store: &Store) -> (i64, MessageId, MessageId) {
    let begun = store.ask(None, "T", &asked("Why?"), NOW).unwrap();
    close(store, begun.reply, "So.");
    let question = store.message(begun.reply).unwrap().parent.unwrap();
    (begun.conversation, question, begun.reply)
}

#[test]
fn an_edited_question_is_a_branch_beside_the_first_and_each_can_be_shown() {
    let kept = Kept::new();
    let store = kept.open();
    let (id, question, reply) = begun(&store);
    let more = store.ask(Some(id), "", &asked("And?"), NOW).unwrap();
    close(&store, more.reply, "Thus.");
    let other = store.ask_otherwise(question, "How?", NOW).unwrap();
    close(&store, other.reply, "With care.");
    check(&store, id, &[("How?", 2, 2), ("With care.", 1, 1)]);
    // Back to the first: it shows what was written last below it.
    assert_eq!(store.show_message(question).unwrap(), id);
    let first = [
        ("Why?", 1, 2),
        ("So.", 1, 1),
        ("And?", 1, 1),
        ("Thus.", 1, 1),
    ];
    check(&store, id, &first);
    // What is shown already stays as it is.
    store.show_message(reply).unwrap();
    check(&store, id, &first);
    drop(store);
    check(&kept.open(), id, &first);
}

#[test]
fn an_edited_reply_is_a_version_of_it_in_the_persons_words() {
    let kept = Kept::new();
    let store = kept.open();
    let (id, question, reply) = begun(&store);
    store.edit_reply(reply, "So be it.", NOW).unwrap();
    check(&store, id, &[("Why?", 1, 1), ("So be it.", 2, 2)]);
    let edited = store.branch(id).unwrap().pop().unwrap();
    assert_eq!((edited.state, edited.record), (MessageState::Edited, None));
    assert_eq!(store.message(reply).unwrap().text, "So.");
    for (message, what) in [(question, "a question"), (999, "nothing")] {
        assert!(
            store.edit_reply(message, "x", NOW).is_err(),
            "{what} is no reply"
        );
    }
    assert!(
        store.ask_otherwise(reply, "x", NOW).is_err(),
        "a reply is no question"
    );
}

#[test]
fn a_question_without_a_reply_can_be_answered() {
    let kept = Kept::new();
    let store = kept.open();
    let (id, question, _) = begun(&store);
    let again = store.ask_again(question, NOW).unwrap();
    close(&store, again.reply, "Because.");
    check(&store, id, &[("Why?", 1, 1), ("Because.", 2, 2)]);
}

/// Goes on with a reply that ended like this, writes some more, and is killed.
#[track_caller]
fn check_continued(state: MessageState, want: Option<&str>) {
    let kept = Kept::new();
    let store = kept.open();
    let begun = store.ask(None, "T", &asked("Why?"), NOW).unwrap();
    let closing = Closing {
        text: "Grüße ",
        state,
        record: None,
        now_ms: NOW,
    };
    store.close_reply(begun.reply, &closing).unwrap();
    let Ok(again) = store.go_on(begun.reply, NOW) else {
        assert_eq!(want, None, "{state:?}");
        return;
    };
    assert_eq!(again, begun);
    assert_eq!(store.message(begun.reply).unwrap().text, "Grüße ");
    let mut draft = store.draft(begun.reply).unwrap();
    draft.append("und so").unwrap();
    let written = store.branch(begun.conversation).unwrap().pop().unwrap();
    assert_eq!((written.text.as_str(), written.kept), ("Grüße und so", 6));
    drop(store);
    let shown = texts(&kept.open(), begun.conversation).pop().unwrap();
    let want = want.map(|text| (Role::Assistant, MessageState::Interrupted, text.to_owned()));
    assert_eq!(Some(shown), want);
}

#[test]
fn what_a_reply_had_is_kept_when_it_is_gone_on_with() {
    for state in [
        MessageState::Stopped,
        MessageState::Interrupted,
        MessageState::Length,
        MessageState::ContextFull,
        MessageState::Failed,
        MessageState::Edited,
    ] {
        check_continued(state, Some("Grüße und so"));
    }
    check_continued(MessageState::Finished, None);
}

#[test]
fn nothing_is_gone_on_with_that_was_answered() {
    let kept = Kept::new();
    let store = kept.open();
    let begun = store.ask(None, "T", &asked("Why?"), NOW).unwrap();
    let closing = Closing {
        text: "So",
        state: MessageState::Stopped,
        record: None,
        now_ms: NOW,
    };
    store.close_reply(begun.reply, &closing).unwrap();
    let next = store.ask(Some(begun.conversation), "", &asked("And?"), NOW);
    close(&store, next.unwrap().reply, "Thus.");
    assert!(store.go_on(begun.reply, NOW).is_err());
    assert_eq!(
        store.message(begun.reply).unwrap().state,
        MessageState::Stopped
    );
}

#[test]
fn a_duplicate_ends_where_it_was_made_and_is_its_own() {
    let kept = Kept::new();
    let store = kept.open();
    let (id, _, reply) = begun(&store);
    let more = store.ask(Some(id), "", &asked("And?"), NOW).unwrap();
    close(&store, more.reply, "Thus.");
    let copy = store.duplicate(reply, NOW + 5).unwrap();
    check(&store, copy, &[("Why?", 1, 1), ("So.", 1, 1)]);
    assert_eq!(store.summary(copy).unwrap().title, "T");
    let own = store.branch(copy).unwrap().pop().unwrap();
    store.edit_reply(own.id, "Else.", NOW).unwrap();
    assert_eq!(store.branch(id).unwrap().len(), 4);
    check(&store, copy, &[("Why?", 1, 1), ("Else.", 2, 2)]);
}
