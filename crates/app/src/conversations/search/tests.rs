use super::*;
use crate::conversations::tests::{Kept, NOW, asked, close};

/// A text with its hits in brackets.
fn bracketed(pieces: &[Piece]) -> String {
    let shown = pieces.iter().map(|piece| match piece.hit {
        true => format!("[{}]", piece.text),
        false => piece.text.clone(),
    });
    shown.collect()
}

#[track_caller]
fn check(store: &Store, words: &str, want: &[&str]) {
    let found = store.search(words).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|found| match found.message {
            Some(_) => bracketed(&found.snippet),
            None => format!("{}!", bracketed(&found.title)),
        })
        .collect();
    assert_eq!(shown, want, "{words:?}");
}

#[test]
fn words_are_found_in_titles_and_messages_by_their_beginning() {
    let kept = Kept::new();
    let store = kept.open();
    let talks = [
        (
            "About tides",
            "Why are there two TIDES a day?",
            "The Moon pulls.",
        ),
        (
            "Café",
            "What is a \"cortado\"?",
            "A small coffee, naïvely put: café.",
        ),
        ("潮汐", "为什么一天有两次潮汐？", "月亮的引力。"),
        ("C++ or C#", "GPU測試 🙂 §5", "a++ and a--"),
    ];
    for (title, question, reply) in talks {
        let begun = store.ask(None, title, &asked(question), NOW).unwrap();
        close(&store, begun.reply, reply);
    }
    check(
        &store,
        "tid",
        &["About [tides]!", "Why are there two [TIDES] a day?"],
    );
    check(&store, "moon pull", &["The [Moon] [pulls]."]);
    check(&store, "moon cafe", &[]);
    check(
        &store,
        "CAFE",
        &["[Café]!", "A small coffee, naïvely put: [café]."],
    );
    check(&store, "\"cort", &["What is a \"[cortado]\"?"]);
    check(&store, "潮汐", &["[潮汐]!", "为什么一天有两次[潮汐]？"]);
    check(&store, "引力", &["月亮的[引力]。"]);
    // Signs alone are looked for; beside words they are how people write.
    check(&store, "++", &["C[++] or C#!", "a[++] and a--"]);
    check(&store, "🙂", &["GPU測試 [🙂] §5"]);
    check(&store, "§", &["GPU測試 🙂 [§]5"]);
    check(&store, "moon ?", &["The [Moon] pulls."]);
    check(&store, "gpu測試", &["[GPU測試] 🙂 §5"]);
    check(&store, "gpu 測", &["[GPU][測]試 🙂 §5"]);
    // Signs that nobody sees are not looked for.
    check(&store, "mo\0on pu\u{1}ll\0", &["The [Moon] [pulls]."]);
    for nothing in ["", "  ", "\0", "?!", "\"", "NEAR AND NOT", "tides*) OR ("] {
        let found = store.search(nothing).unwrap();
        assert!(found.len() < 2, "{nothing:?}: {found:?}");
    }
}

#[test]
fn the_index_follows_every_change() {
    let kept = Kept::new();
    let store = kept.open();
    let begun = store
        .ask(None, "Birds", &asked("Do birds sleep?"), NOW)
        .unwrap();
    check(&store, "swift", &[]);
    close(&store, begun.reply, "Swifts do in flight.");
    check(&store, "swift", &["[Swifts] do in flight."]);
    close(&store, begun.reply, "Gulls do.");
    check(&store, "swift", &[]);
    store.rename(begun.conversation, "Fowl").unwrap();
    check(&store, "bird", &["Do [birds] sleep?"]);
    store.delete(begun.conversation, NOW).unwrap();
    check(&store, "gull", &[]);
    store.restore(begun.conversation).unwrap();
    check(&store, "gull", &["[Gulls] do."]);
    store.delete(begun.conversation, NOW).unwrap();
    drop(store);
    let store = kept.open();
    check(&store, "gull", &[]);
    let sql = "SELECT count(*) FROM message_words WHERE message_words MATCH '\"gulls\"'";
    let left: i64 = store
        .connection()
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0, "words of what was removed");
}

#[test]
fn a_long_text_is_shown_around_the_hit() {
    let kept = Kept::new();
    let store = kept.open();
    let text = format!("{}needle {}", "hay ".repeat(5_000), "straw ".repeat(5_000));
    store.ask(None, "T", &asked(&text), NOW).unwrap();
    let found = store.search("needle").unwrap();
    let shown = bracketed(&found[0].snippet);
    assert!(shown.contains("[needle]") && shown.len() < 200, "{shown}");
    let text = format!("{}针{}", "草".repeat(5_000), "秆".repeat(5_000));
    store.ask(None, "T", &asked(&text), NOW).unwrap();
    let shown = bracketed(&store.search("针").unwrap()[0].snippet);
    assert!(
        shown.contains("[针]") && shown.chars().count() < 100,
        "{shown}"
    );
}
