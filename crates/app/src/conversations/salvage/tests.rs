use std::fs;

use crate::conversations::Store;
use crate::conversations::tests::{Kept, NOW, asked, close};
use crate::wire::{ChatSettings, Unsent};

/// Conversations in the store: enough for many pages.
const TALKS: usize = 60;

fn filled(kept: &Kept) {
    let store = kept.open();
    for talk in 0..TALKS {
        let title = format!("Talk {talk}");
        let begun = store.ask(None, &title, &asked("Why?"), NOW).unwrap();
        close(
            &store,
            begun.reply,
            &format!("Because {talk}. ").repeat(200),
        );
        let own = ChatSettings {
            system_prompt: format!("Of {talk}"),
            ..ChatSettings::default()
        };
        let id = begun.conversation;
        store.keep_chat_settings(Some(id), Some(&own)).unwrap();
        let unsent = Unsent {
            conversation: Some(id),
            text: format!("And {talk}?"),
            ..Unsent::default()
        };
        store.keep_unsent(&unsent).unwrap();
    }
    // All of it stands in the one file now.
    store
        .connection()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
}

/// How many conversations are whole after these pages were overwritten.
fn whole_after(pages: &[usize]) -> (usize, String) {
    let kept = Kept::new();
    filled(&kept);
    let path = kept.paths().database();
    let mut bytes = fs::read(&path).unwrap();
    for page in pages {
        bytes[page * 4_096..(page + 1) * 4_096].fill(0xA5);
    }
    fs::write(&path, &bytes).unwrap();
    let opened = Store::open(&kept.paths(), NOW).unwrap();
    let aside = kept.dir.path().join(format!("candor.db.damaged-{NOW}"));
    assert_eq!(
        fs::read(aside).unwrap(),
        bytes,
        "the damaged file is as it was"
    );
    let files = fs::read_dir(kept.dir.path()).unwrap().flatten();
    let copies = files.filter(|file| file.path().extension().is_some_and(|end| end == "copy"));
    assert_eq!(copies.count(), 0, "no copy is left");
    let store = opened.store;
    let summaries = store.summaries().unwrap();
    let whole = summaries.iter().filter(|summary| {
        let branch = store.branch(summary.id).unwrap();
        summary.title.starts_with("Talk ") && branch.len() == 2 && branch[1].text.len() > 2_000
    });
    let whole = whole.count();
    // What was chosen for them and not sent yet stands on pages of its own.
    let own = |id| store.chat_settings(Some(id)).unwrap().is_some();
    let own = summaries.iter().filter(|summary| own(summary.id)).count();
    let unsent = store.unsent().unwrap().len();
    assert!(own.min(unsent) + 8 >= whole, "{own} {unsent} of {whole}");
    (whole, opened.notice.unwrap().to_string())
}

#[test]
fn good_conversations_are_there_after_one_page_was_damaged() {
    // The last pages hold messages; the first holds the list of tables, without which nothing is.
    let pages = {
        let kept = Kept::new();
        filled(&kept);
        fs::metadata(kept.paths().database()).unwrap().len() as usize / 4_096
    };
    for page in [pages - 12, pages / 2] {
        let (whole, notice) = whole_after(&[page]);
        assert!(whole >= TALKS - 8, "page {page}: {whole} of {TALKS}");
        assert!(
            notice.contains("damaged-1000") && notice.contains("are here"),
            "{notice}"
        );
    }
    let (whole, notice) = whole_after(&[0]);
    assert_eq!(whole, 0);
    assert!(notice.contains("nothing in it could be read"), "{notice}");
}
