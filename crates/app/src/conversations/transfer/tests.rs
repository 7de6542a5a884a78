use std::fs;

use serde_json::json;

use super::read::Taken;
use super::*;
use crate::conversations::Store;
use crate::conversations::tests::{Kept, NOW};
use crate::wire::{ChatSettings, Code, Sampling, Thinking};
use crate::words::Tongue;

/// Numbers that look drawn by chance and are the same every time (a 64-bit xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 8] = [
            "a",
            "\n\n```\n",
            "日本 ",
            "\u{0}",
            "\"\\",
            "🙂",
            "<b> ",
            "\r\n\t",
        ];
        (0..self.below(9))
            .map(|_| WORDS[self.below(WORDS.len())])
            .collect()
    }

    fn cards(&mut self) -> Vec<CardText> {
        let card = |chance: &mut Self| CardText {
            name: String::from("n.txt"),
            text: chance.text(),
        };
        (0..self.below(3)).map(|_| card(self)).collect()
    }
}

fn record(chance: &mut Chance) -> Value {
    let mut record =
        crate::record::begun(None, &crate::wire::Sampling::default(), 7, Tongue::English);
    record.model = chance.text();
    serde_json::to_value(record).unwrap()
}

/// A conversation drawn by chance: a forest of messages in all states.
fn drawn(chance: &mut Chance) -> Talk {
    const STATES: [&str; 7] = [
        "finished",
        "stopped",
        "length",
        "context-full",
        "interrupted",
        "failed",
        "edited",
    ];
    let count = 1 + chance.below(12);
    let messages = (0..count).map(|place| {
        let is_reply = chance.below(2) == 1;
        Said {
            after: (place > 0 && chance.below(8) > 0).then(|| chance.below(place)),
            role: String::from(if is_reply { "assistant" } else { "user" }),
            state: String::from(STATES[chance.below(STATES.len())]),
            created_ms: 1 + chance.below(9_999) as i64,
            text: chance.text(),
            record: is_reply.then(|| record(chance)),
            cards: chance.cards(),
        }
    });
    let messages: Vec<Said> = messages.collect();
    Talk {
        title: format!("Talk {}", chance.below(99)),
        created_ms: 1 + chance.below(9_999) as i64,
        updated_ms: 1 + chance.below(9_999) as i64,
        pinned: chance.below(2) == 1,
        folder: (chance.below(2) == 1).then(|| String::from("Nature")),
        shown: Some(chance.below(count)),
        messages,
        unsent: (chance.below(2) == 1).then(|| UnsentWords {
            text: format!("u{}", chance.text()),
            waiting: chance.text(),
            cards: chance.cards(),
            waiting_cards: chance.cards(),
        }),
        settings: (chance.below(2) == 1).then(|| ChatSettings {
            system_prompt: chance.text(),
            template: chance.text(),
            thinking: Thinking::Off,
            sampling: Sampling {
                top_k: chance.below(99) as u32,
                ..Sampling::default()
            },
            ..ChatSettings::default()
        }),
    }
}

fn read_text(text: &str) -> Result<Taken, crate::Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.json");
    fs::write(&path, text).unwrap();
    read(&path)
}

#[test]
fn a_round_trip_through_our_own_file_loses_nothing() {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let talks: Vec<Talk> = (0..60).map(|_| drawn(&mut chance)).collect();
    let written = serde_json::to_string(&TalkFile::new(talks.clone())).unwrap();
    let taken = read_text(&written).unwrap();
    assert_eq!((taken.source, taken.left_out), ("Candor", 0));
    assert_eq!(taken.talks, talks);
    // And through the store.
    let kept = Kept::new();
    let store = kept.open();
    for talk in &taken.talks {
        let id = store.add_talk(talk, NOW).unwrap();
        assert_eq!(&store.talk(id).unwrap(), talk);
        let branch = store.branch(id).unwrap();
        assert_eq!(
            branch.last().map(|m| m.text.as_str()),
            talk.shown.map(|place| talk.messages[place].text.as_str())
        );
    }
    drop(store);
    let store = kept.open();
    let id = store.summaries().unwrap()[0].id;
    assert!(
        talks.contains(&store.talk(id).unwrap()),
        "also after a restart"
    );
}

/// Each message as "what it follows: role: text", and which is shown.
#[track_caller]
fn check(text: &str, source: &str, want: &[&str], left_out: u32) -> Talk {
    let taken = read_text(text).unwrap();
    assert_eq!((taken.source, taken.left_out), (source, left_out));
    let talk = taken.talks.into_iter().next().unwrap();
    let line = |(place, said): (usize, &Said)| {
        let after = said
            .after
            .map_or(String::from("-"), |after| after.to_string());
        let mark = if talk.shown == Some(place) { "*" } else { "" };
        format!("{after} {}: {}{mark}", said.role, said.text)
    };
    let lines: Vec<String> = talk.messages.iter().enumerate().map(line).collect();
    assert_eq!(lines, want);
    let kept = Kept::new();
    let store: Store = kept.open();
    let id = store.add_talk(&talk, NOW).unwrap();
    assert_eq!(store.talk(id).unwrap().messages, talk.messages);
    talk
}

#[test]
fn chatgpts_export_is_read_with_its_branches() {
    let message = |role: &str, time: f64, parts: Value| json!({ "author": { "role": role }, "create_time": time, "content": { "content_type": "text", "parts": parts } });
    let node = |parent: Value, message: Value| json!({ "parent": parent, "message": message });
    let file = json!([{
        "title": "Tides", "create_time": 1_700_000_000.5, "update_time": 1_700_000_009.0,
        "current_node": "d",
        "mapping": {
            "root": node(Value::Null, Value::Null),
            "s": node(json!("root"), message("system", 0.0, json!([""]))),
            "a": node(json!("s"), message("user", 1.0, json!(["Why?", { "asset_pointer": "x" }]))),
            "b": node(json!("a"), message("assistant", 2.0, json!(["So."]))),
            "c": node(json!("a"), message("assistant", 3.0, json!(["Thus."]))),
            "t": node(json!("c"), message("tool", 4.0, json!(["searched"]))),
            "d": node(json!("t"), message("assistant", 5.0, json!(["Found."]))),
        }
    }]);
    let want = [
        "- user: Why?",
        "0 assistant: So.",
        "0 assistant: Thus.",
        "2 assistant: Found.*",
    ];
    let talk = check(&file.to_string(), "ChatGPT", &want, 2);
    assert_eq!(
        (talk.title.as_str(), talk.created_ms),
        ("Tides", 1_700_000_000_500)
    );
}

#[test]
fn one_conversation_that_is_not_as_the_others_keeps_none_of_them_away() {
    let node = |role: &str, text: &str| json!({ "parent": null, "message": { "author": { "role": role }, "content": { "content_type": "text", "parts": [text] } } });
    let good =
        json!({ "title": "Tides", "current_node": "a", "mapping": { "a": node("user", "Why?") } });
    let bad = [
        json!({ "title": "Odd", "mapping": 7 }),
        json!("nothing of the kind"),
        json!({ "title": "Empty" }),
    ];
    for bad in bad {
        for file in [json!([bad, good]), json!([good, bad])] {
            let taken = read_text(&file.to_string()).unwrap();
            let titles: Vec<&str> = taken.talks.iter().map(|talk| &*talk.title).collect();
            assert_eq!(titles, ["Tides"], "{bad}");
            assert!(taken.left_out <= 1, "{bad}");
        }
    }
}

#[test]
fn open_webuis_export_is_read_with_its_branches() {
    let message = |parent: Value, role: &str, time: u64, text: &str| json!({ "parentId": parent, "role": role, "timestamp": time, "content": text });
    let file = json!([{
        "title": "Tides", "created_at": 1_700_000_000, "updated_at": 1_700_000_009, "pinned": true,
        "chat": { "history": { "currentId": "b", "messages": {
            "c": message(json!("a"), "assistant", 3, "Thus."),
            "a": message(Value::Null, "user", 1, "Why?"),
            "b": message(json!("a"), "assistant", 2, "So."),
        } } }
    }]);
    let want = ["- user: Why?", "0 assistant: So.*", "0 assistant: Thus."];
    assert!(check(&file.to_string(), "Open WebUI", &want, 0).pinned);
    let old = json!([{ "chat": { "title": "Old", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Why?", "files": [{}] },
        { "role": "tool", "content": "searched" },
        { "role": "system", "content": "Be long." },
        { "role": "assistant", "content": [{ "type": "text", "text": "So." }, { "type": "image_url" }] },
    ] } }]);
    let want = ["- user: Why?", "0 assistant: So.*"];
    // Besides the file and the picture what a tool said, and that the system spoke twice.
    let talk = check(&old.to_string(), "Open WebUI", &want, 4);
    assert_eq!(talk.settings.unwrap().system_prompt, "Be brief.");
}

#[test]
fn llama_cpps_export_is_read_with_its_branches_and_files() {
    let file = json!({
        "conv": { "id": "x", "name": "Tides", "lastModified": 9_000, "currNode": "3" },
        "messages": [
            { "id": "0", "type": "root", "role": "system", "content": "", "parent": null, "timestamp": 1 },
            { "id": "1", "type": "text", "role": "user", "content": "Why?", "parent": "0", "timestamp": 2,
              "extra": [{ "type": "textFile", "name": "a.txt", "content": "words" }, { "type": "imageFile", "name": "b" }] },
            { "id": "2", "type": "text", "role": "assistant", "content": "So.", "parent": "1", "timestamp": 3 },
            { "id": "3", "type": "text", "role": "assistant", "content": "Thus.", "parent": "1", "timestamp": 4,
              "thinking": "Hm." },
        ]
    });
    let want = [
        "- user: Why?",
        "0 assistant: So.",
        "0 assistant: <think>\nHm.\n</think>\n\nThus.*",
    ];
    let talk = check(&file.to_string(), "llama.cpp", &want, 1);
    assert_eq!(talk.messages[0].cards[0].text, "words");
    let list = json!([file.clone(), file]);
    assert_eq!(read_text(&list.to_string()).unwrap().talks.len(), 2);
}

#[test]
fn circles_and_orphans_do_no_harm() {
    let file = json!({
        "conv": { "name": "Odd", "currNode": "nowhere" },
        "messages": [
            { "id": "a", "role": "user", "content": "A", "parent": "b" },
            { "id": "b", "role": "assistant", "content": "B", "parent": "a" },
            { "id": "c", "role": "user", "content": "C", "parent": "lost" },
            { "id": "c", "role": "user", "content": "Twice", "parent": "c" },
            { "id": "e", "role": "tool", "content": "E", "parent": "c" },
        ]
    });
    let taken = read_text(&file.to_string()).unwrap();
    let texts: Vec<&str> = taken.talks[0]
        .messages
        .iter()
        .map(|said| said.text.as_str())
        .collect();
    assert_eq!((texts, taken.left_out), (vec!["C"], 4));
    let ours = json!({ "format": FORMAT, "version": 1, "conversations": [{
        "title": "x", "shown": 77, "messages": [
            { "role": "user", "text": "A", "after": 5 },
            { "role": "root", "text": "B", "after": 0 },
            { "role": "assistant", "text": "C", "after": 1, "state": "writing", "record": { "model": 7 } },
        ] }] });
    let talk = read_text(&ours.to_string()).unwrap().talks.remove(0);
    assert_eq!((talk.messages[1].after, talk.shown), (Some(0), Some(1)));
    let kept = Kept::new();
    let store = kept.open();
    let id = store.add_talk(&talk, NOW).unwrap();
    let said = &store.talk(id).unwrap().messages[1];
    assert_eq!((said.state.as_str(), &said.record), ("finished", &None));
}

#[test]
fn what_is_no_export_is_refused_in_words() {
    let newer = format!("{{\"format\":\"{FORMAT}\",\"version\":2,\"conversations\":[]}}");
    let cases = [
        ("", "is no export"),
        ("{}", "is no export"),
        ("PK\u{3}\u{4}rest", "is an archive"),
        ("[{\"mapping\": 7}]", "is damaged"),
        ("[{\"mapping\": {", "is damaged"),
        (newer.as_str(), "newer version"),
    ];
    for (text, want) in cases {
        let refused = read_text(text).err().unwrap();
        assert_eq!(refused.code, Code::Refused, "{text}");
        assert!(refused.to_string().contains(want), "{text}: {refused}");
    }
    let deep = format!("[{{\"mapping\": {}", "[".repeat(100_000));
    assert!(read_text(&deep).is_err());
}

#[test]
fn markdown_shows_the_branch_that_is_shown() {
    let said = |after, role: &str, text: &str| Said {
        after,
        role: role.to_owned(),
        state: String::from("finished"),
        text: text.to_owned(),
        ..Said::default()
    };
    let mut stopped = said(Some(0), "assistant", "Th");
    stopped.state = String::from("stopped");
    stopped.record = Some(json!({ "model": "Tiny" }));
    let mut question = said(None, "user", "Why?");
    question.cards.push(CardText {
        name: String::from("a.txt"),
        text: String::from("words"),
    });
    let talk = Talk {
        title: String::from("Ti\ndes"),
        shown: Some(2),
        messages: vec![question, said(Some(0), "assistant", "So."), stopped],
        ..Talk::default()
    };
    let want =
        "# Ti des\n\n## You\n\nWhy?\n\na.txt:\n```\nwords\n```\n\n## Tiny\n\nTh\n\n*(stopped)*\n";
    assert_eq!(markdown(&talk, Tongue::English), want);
    let german = want
        .replace("## You", "## Du")
        .replace("(stopped)", "(von Hand angehalten)");
    assert_eq!(markdown(&talk, Tongue::German), german);
    assert_ne!(german, want);
}
