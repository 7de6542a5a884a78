use crate::conversations::tests::{Kept, NOW, asked, close};
use crate::conversations::{Question, Store};
use crate::wire::{Card, Unsent};

fn kept_with(cards: &[Card]) -> Unsent {
    Unsent {
        text: String::from("see"),
        cards: cards.to_vec(),
        ..Unsent::default()
    }
}

fn names(store: &Store, conversation: i64) -> Vec<Vec<String>> {
    let branch = store.branch(conversation).unwrap();
    let of = |cards: Vec<Card>| cards.into_iter().map(|card| card.name).collect();
    branch.into_iter().map(|m| of(m.cards)).collect()
}

#[test]
fn a_text_is_the_same_bytes_after_a_restart_and_after_it_was_sent() {
    let kept = Kept::new();
    let store = kept.open();
    for text in [
        "a\u{0}b\r\nc\t\u{202e}d\u{200b}\u{feff}".to_owned(),
        "x".repeat(1_000_000),
        String::new(),
    ] {
        let card = store.add_card("  t.txt ", &text).unwrap();
        assert_eq!(
            (card.name.as_str(), card.size_bytes as usize),
            ("t.txt", text.len())
        );
        assert_eq!(store.card_text(card.id).unwrap(), text);
    }
}

#[test]
fn a_card_lives_as_long_as_something_names_it() {
    let kept = Kept::new();
    let store = kept.open();
    let [sent, unsent, dropped] =
        ["sent", "unsent", "dropped"].map(|name| store.add_card(name, name).unwrap());
    store
        .keep_unsent(&kept_with(std::slice::from_ref(&unsent)))
        .unwrap();
    let question = Question {
        text: "Read this.",
        cards: &[sent.id],
    };
    let begun = store.ask(None, "T", &question, NOW).unwrap();
    close(&store, begun.reply, "Read.");
    drop(store);

    let store = kept.open();
    assert_eq!(
        store.unsent().unwrap(),
        [kept_with(std::slice::from_ref(&unsent))]
    );
    assert_eq!(names(&store, begun.conversation), [vec!["sent"], vec![]]);
    assert!(store.card_text(dropped.id).is_err());
    // It goes with one message only, and once.
    let again = Question {
        text: "Again.",
        cards: &[sent.id],
    };
    assert!(store.ask(None, "T", &again, NOW).is_err());
    assert_eq!(
        store.summaries().unwrap().len(),
        1,
        "nothing is stored of it"
    );
    store.delete(begun.conversation, NOW).unwrap();
    store.keep_unsent(&Unsent::default()).unwrap();
    drop(store);
    let store = kept.open();
    for card in [sent, unsent] {
        assert!(store.card_text(card.id).is_err(), "{} is left", card.name);
    }
}

#[test]
fn other_versions_and_copies_have_the_cards_too() {
    let kept = Kept::new();
    let store = kept.open();
    let card = store.add_card("a.txt", "words").unwrap();
    let question = Question {
        text: "Read this.",
        cards: &[card.id],
    };
    let begun = store.ask(None, "T", &question, NOW).unwrap();
    close(&store, begun.reply, "Read.");
    let copy = store.duplicate(begun.reply, NOW).unwrap();
    let question = store.message(begun.reply).unwrap().parent.unwrap();
    let other = store.ask_otherwise(question, "Read it.", NOW).unwrap();
    for id in [copy, other.conversation] {
        assert_eq!(names(&store, id), [vec!["a.txt"], vec![]]);
        let cards = &store.branch(id).unwrap()[0].cards;
        assert_eq!(store.card_text(cards[0].id).unwrap(), "words");
    }
    let plain = store.ask(None, "T", &asked("Nothing."), NOW).unwrap();
    assert_eq!(names(&store, plain.conversation), [vec![""; 0], vec![]]);
}
