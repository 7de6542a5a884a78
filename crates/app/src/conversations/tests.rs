use std::fs;

use super::*;
use crate::wire::{MessageState, Role, Unsent};

pub(super) const NOW: i64 = 1_000;

pub(super) struct Kept {
    pub(super) dir: tempfile::TempDir,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn paths(&self) -> AppPaths {
        AppPaths::below(self.dir.path())
    }

    pub(super) fn open(&self) -> Store {
        let opened = Store::open(&self.paths(), NOW).unwrap();
        assert_eq!(opened.notice, None);
        opened.store
    }
}

pub(super) fn asked(text: &str) -> Question<'_> {
    Question { text, cards: &[] }
}

pub(super) fn close(store: &Store, reply: i64, text: &str) {
    let state = MessageState::Finished;
    store
        .close_reply(
            reply,
            &Closing {
                text,
                state,
                record: None,
                now_ms: NOW + 1,
            },
        )
        .unwrap();
}

pub(super) fn texts(store: &Store, conversation: i64) -> Vec<(Role, MessageState, String)> {
    let branch = store.branch(conversation).unwrap();
    branch
        .into_iter()
        .map(|m| (m.role, m.state, m.text))
        .collect()
}

fn question(text: &str) -> (Role, MessageState, String) {
    (Role::User, MessageState::Finished, String::from(text))
}

fn reply(state: MessageState, text: &str) -> (Role, MessageState, String) {
    (Role::Assistant, state, String::from(text))
}

#[test]
fn a_conversation_is_there_after_a_restart() {
    let kept = Kept::new();
    let store = kept.open();
    let first = store.ask(None, "Title", &asked("How?"), NOW).unwrap();
    close(&store, first.reply, "So.");
    let second = store
        .ask(Some(first.conversation), "", &asked("And?"), NOW)
        .unwrap();
    close(&store, second.reply, "Thus 🙂.");
    drop(store);

    let store = kept.open();
    let want = [
        question("How?"),
        reply(MessageState::Finished, "So."),
        question("And?"),
        reply(MessageState::Finished, "Thus 🙂."),
    ];
    assert_eq!(texts(&store, first.conversation), want);
    let summaries = store.summaries().unwrap();
    assert_eq!(summaries.len(), 1);
    assert_eq!(
        (summaries[0].title.as_str(), summaries[0].updated_ms),
        ("Title", NOW + 1)
    );
}

#[test]
fn another_reply_stands_beside_the_first() {
    let kept = Kept::new();
    let store = kept.open();
    let first = store.ask(None, "T", &asked("How?"), NOW).unwrap();
    close(&store, first.reply, "One.");
    let again = store.ask_again(first.reply, NOW).unwrap();
    close(&store, again.reply, "Two.");
    let shown = [question("How?"), reply(MessageState::Finished, "Two.")];
    assert_eq!(texts(&store, first.conversation), shown);
    assert_eq!(store.message(first.reply).unwrap().text, "One.");
    assert!(
        store.ask_again(999, NOW).is_err(),
        "there is no such message"
    );
}

#[test]
fn a_killed_program_leaves_an_interrupted_reply_with_its_text() {
    let kept = Kept::new();
    let store = kept.open();
    let done = store.ask(None, "Done", &asked("A?"), NOW).unwrap();
    close(&store, done.reply, "A.");
    let begun = store.ask(None, "Open", &asked("B?"), NOW).unwrap();
    let mut draft = store.draft(begun.reply).unwrap();
    draft.append("So f").unwrap();
    draft.append("ar").unwrap();
    assert_eq!(
        texts(&store, begun.conversation)[1],
        reply(MessageState::Writing, "So far")
    );

    let copy = Kept::new();
    copy_store(&kept, &copy);

    let store = copy.open();
    let want = [question("B?"), reply(MessageState::Interrupted, "So far")];
    assert_eq!(texts(&store, begun.conversation), want);
    assert_eq!(
        texts(&store, done.conversation)[1],
        reply(MessageState::Finished, "A.")
    );
    let name = format!("{}.txt", begun.reply);
    assert!(!copy.paths().drafts_dir().join(name).exists());
}

#[test]
fn deletion_can_be_undone_until_the_next_start() {
    let kept = Kept::new();
    let store = kept.open();
    let begun = store.ask(None, "T", &asked("?"), NOW).unwrap();
    store.delete(begun.conversation, NOW).unwrap();
    assert!(store.summaries().unwrap().is_empty());
    assert!(store.branch(begun.conversation).is_err());
    assert!(
        store
            .ask(Some(begun.conversation), "", &asked("?"), NOW)
            .is_err()
    );
    store.restore(begun.conversation).unwrap();
    assert_eq!(store.branch(begun.conversation).unwrap().len(), 2);
    store.delete(begun.conversation, NOW).unwrap();
    drop(store);

    let store = kept.open();
    assert!(store.restore(begun.conversation).is_err());
    assert!(
        store.message(begun.reply).is_err(),
        "its messages go with it"
    );
}

#[test]
fn a_title_is_trimmed_and_never_empty() {
    let kept = Kept::new();
    let store = kept.open();
    let id = store.ask(None, "T", &asked("?"), NOW).unwrap().conversation;
    assert_eq!(store.rename(id, "  New 🙂 ").unwrap().title, "New 🙂");
    assert_eq!(store.rename(id, " ").unwrap().title, "New 🙂");
    assert_eq!(store.rename(id, &"x".repeat(999)).unwrap().title.len(), 200);
}

#[test]
fn a_damaged_file_is_kept_aside_and_said() {
    let kept = Kept::new();
    let store = kept.open();
    store
        .ask(None, "T", &asked(&"text ".repeat(20_000)), NOW)
        .unwrap();
    drop(store);
    let path = kept.paths().database();
    let sound = fs::read(&path).unwrap();
    let mut torn = sound.clone();
    for byte in torn.iter_mut().skip(4_096) {
        *byte = 0xA5;
    }
    for damaged in [
        torn,
        b"not a database, but long enough to be read as one".repeat(200),
    ] {
        fs::write(&path, &damaged).unwrap();
        let opened = Store::open(&kept.paths(), NOW).unwrap();
        let notice = opened.notice.unwrap().to_string();
        assert!(notice.contains("candor.db.damaged-1000"), "{notice}");
        let aside = kept.dir.path().join("candor.db.damaged-1000");
        assert_eq!(fs::read(aside).unwrap(), damaged);
        assert!(opened.store.summaries().unwrap().is_empty());
        drop(opened.store);
    }
}

#[test]
fn a_newer_store_is_refused_and_no_byte_of_it_is_written() {
    let kept = Kept::new();
    let store = kept.open();
    let begun = store.ask(None, "T", &asked("?"), NOW).unwrap();
    store.draft(begun.reply).unwrap().append("half").unwrap();
    store
        .connection()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    // As a kill leaves it, with what is new in the journal only, and as an ordinary end does.
    let killed = Kept::new();
    copy_store(&kept, &killed);
    drop(store);
    for (kept, names) in [
        (&killed, &["candor.db", "candor.db-wal"][..]),
        (&kept, &["candor.db"]),
    ] {
        let read = || {
            let files = names.iter().map(|name| kept.dir.path().join(name));
            let draft = kept
                .paths()
                .drafts_dir()
                .join(format!("{}.txt", begun.reply));
            let files = files.chain([draft]);
            files
                .map(|path| fs::read(path).unwrap())
                .collect::<Vec<_>>()
        };
        let before = read();
        let refused = Store::open(&kept.paths(), NOW).err().unwrap();
        assert!(refused.to_string().contains("newer version"), "{refused}");
        assert_eq!(read(), before);
    }
}

/// What is on the disk while a store is open: what a kill leaves.
fn copy_store(from: &Kept, to: &Kept) {
    for name in ["candor.db", "candor.db-wal"] {
        fs::copy(from.dir.path().join(name), to.dir.path().join(name)).unwrap();
    }
    let (from, to) = (from.paths().drafts_dir(), to.paths().drafts_dir());
    fs::create_dir(&to).unwrap();
    for draft in fs::read_dir(from).unwrap() {
        let draft = draft.unwrap();
        fs::copy(draft.path(), to.join(draft.file_name())).unwrap();
    }
}

#[test]
fn a_full_disk_is_said_and_what_was_kept_before_is_unharmed() {
    let kept = Kept::new();
    let store = kept.open();
    let first = store.ask(None, "T", &asked("How?"), NOW).unwrap();
    close(&store, first.reply, "So.");
    let begun = store
        .ask(Some(first.conversation), "", &asked("And?"), NOW)
        .unwrap();
    let pages: i64 = store
        .connection()
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    let room_for = |pages: i64| {
        let set = format!("PRAGMA max_page_count = {pages}");
        store.connection().query_row(&set, [], |_| Ok(())).unwrap();
    };
    // As full as the system says it: the same error comes of a disk.
    room_for(pages);
    let long = "w".repeat(100_000);
    let closing = Closing {
        text: &long,
        state: MessageState::Finished,
        record: None,
        now_ms: NOW + 1,
    };
    let asked_long = store.ask(None, "T", &asked(&long), NOW).err();
    let closed_long = store.close_reply(begun.reply, &closing).err();
    for refused in [asked_long, closed_long] {
        let refused = refused.unwrap();
        assert_eq!(refused.code, Code::Storage);
        assert!(
            refused.to_string().starts_with("The disk is full"),
            "{refused}"
        );
    }
    let shown = || texts(&store, first.conversation);
    assert_eq!(
        shown()[..2],
        [question("How?"), reply(MessageState::Finished, "So.")]
    );
    // With room again, the same reply is kept.
    room_for(pages + 1_000);
    store.close_reply(begun.reply, &closing).unwrap();
    assert_eq!(shown()[3], reply(MessageState::Finished, &long));
}

#[test]
fn a_second_program_is_refused_in_words() {
    let kept = Kept::new();
    let store = kept.open();
    let refused = Store::open(&kept.paths(), NOW).err().unwrap();
    assert_eq!(refused.code, Code::Busy);
    drop(store);
    kept.open();
}

/// What is kept of a conversation: in the box, and waiting.
fn unsent(conversation: Option<i64>, text: &str, waiting: &str) -> Unsent {
    Unsent {
        conversation,
        text: String::from(text),
        waiting: String::from(waiting),
        ..Unsent::default()
    }
}

#[test]
fn unsent_words_are_kept_once_for_each_conversation_until_they_are_empty() {
    let kept = Kept::new();
    let store = kept.open();
    let one = store.ask(None, "t", &asked("q"), NOW).unwrap().conversation;
    let two = store.ask(None, "t", &asked("q"), NOW).unwrap().conversation;
    assert_eq!(store.unsent().unwrap(), []);
    for words in [
        unsent(None, "first", ""),
        unsent(Some(one), "", "waits"),
        unsent(None, "second\n\u{0}🙂", "too"),
        unsent(Some(two), "gone soon", ""),
        unsent(Some(one), "typed", "waits"),
        unsent(Some(two), "", ""),
    ] {
        store.keep_unsent(&words).unwrap();
    }
    let want = [
        unsent(None, "second\n\u{0}🙂", "too"),
        unsent(Some(one), "typed", "waits"),
    ];
    assert_eq!(store.unsent().unwrap(), want);
    drop(store);
    // They go with their conversation, and only with it.
    let store = kept.open();
    assert_eq!(store.unsent().unwrap(), want);
    store.delete(one, NOW).unwrap();
    assert_eq!(store.unsent().unwrap(), want, "it can be restored");
    drop(store);
    let store = kept.open();
    assert_eq!(store.unsent().unwrap(), want[..1]);
    assert!(store.keep_unsent(&unsent(Some(one), "late", "")).is_err());
    assert_eq!(store.unsent().unwrap(), want[..1]);
}

#[test]
fn the_title_of_a_deleted_conversation_is_known_until_the_next_start() {
    let kept = Kept::new();
    let store = kept.open();
    let id = store
        .ask(None, "Birds", &asked("q"), NOW)
        .unwrap()
        .conversation;
    store.delete(id, NOW).unwrap();
    assert_eq!(store.title(id).unwrap(), "Birds");
    drop(store);
    assert!(kept.open().title(id).is_err());
}
