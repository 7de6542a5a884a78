//! What was read once is not read again, as a client sees it in its figures and as the engine
//! counts it.

use serde_json::{Value, json};

use super::client::Sent;
use super::desk::{Desk, Plan, chat};

/// Tokens of each reply here.
const TOKENS: usize = 3;

/// How an answer was come by.
#[derive(Clone, Copy, Debug)]
struct Figures {
    prompt: usize,
    cached: usize,
}

fn figures(answer: &Value) -> Figures {
    let usage = &answer["usage"];
    let count = |value: &Value| value.as_u64().unwrap() as usize;
    Figures {
        prompt: count(&usage["prompt_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
    }
}

fn rows(desk: &Desk) -> usize {
    desk.script.counts().rows.iter().sum()
}

/// Asks, and holds what the answer says of what was read against what was computed.
#[track_caller]
fn ask(desk: &Desk, question: &str) -> Figures {
    let before = rows(desk);
    let sent = desk.post("/v1/chat/completions", &chat(question, TOKENS));
    let answer = sent.answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let found = figures(&answer.json());
    // The last token of a reply is computed by nobody.
    let computed = found.prompt - found.cached + TOKENS - 1;
    assert_eq!(rows(desk) - before, computed, "{question}: {found:?}");
    found
}

/// Words that are the beginning of a talk, of some hundred tokens.
fn talk(word: &str) -> String {
    format!("{word} ").repeat(60)
}

/// Two requests at a time, and two places beside them.
const PLACES: usize = 4;

#[test]
fn each_of_several_talks_goes_on_where_it_was() {
    let desk = Desk::with(Plan {
        slots: 2,
        ..Plan::default()
    });
    // What the template begins with is common to all.
    let words = ["abc", "def", "ghi", "jkl"];
    let first = words.map(|word| ask(&desk, &talk(word)));
    assert!(first.iter().all(|found| found.cached < 20), "{first:?}");
    let mut cached = first.iter().map(|found| found.cached).sum::<usize>();
    for turn in ["one", "two"] {
        for (word, first) in words.iter().zip(&first) {
            let next = ask(&desk, &format!("{}{turn}", talk(word)));
            // All but the end of the question and what the template has after it.
            assert!(next.cached + 40 > first.prompt, "{word}: {next:?}");
            assert!(next.cached < next.prompt, "{word}: {next:?}");
            cached += next.cached;
        }
    }
    assert_eq!(
        desk.metric("candor_cached_tokens_total"),
        cached as u64,
        "the sum of what the clients were told"
    );
}

#[test]
fn the_longest_common_beginning_of_all_slots_is_taken() {
    let desk = Desk::new();
    let [near, far] = ["near", "far"].map(|end| format!("{}{}", talk("abc"), talk(end)));
    let whole = ask(&desk, &near);
    let other = ask(&desk, &far);
    // What both begin with was read for the first.
    assert!(other.cached + 80 > whole.prompt / 2, "{other:?}");
    assert!(other.cached < whole.prompt - 80, "{other:?}");
    for (talk, read) in [(&near, whole), (&far, other), (&near, whole)] {
        let next = ask(&desk, &format!("{talk}and"));
        assert!(next.cached + 40 > read.prompt, "{next:?}");
    }
}

#[test]
fn what_was_finished_is_kept_in_bounds_and_the_oldest_gives_way() {
    let desk = Desk::with(Plan {
        slots: 2,
        ..Plan::default()
    });
    let words = ["abc", "def", "ghi", "jkl", "mno", "pqr"];
    for word in words {
        ask(&desk, &talk(word));
    }
    // The newest are there, looked at from the newest on so that each look keeps the rest.
    let (lost, kept) = words.split_at(words.len() - PLACES);
    for word in kept.iter().rev() {
        let found = ask(&desk, &talk(word));
        assert_eq!(found.cached, found.prompt - 1, "{word}");
    }
    for word in lost {
        let found = ask(&desk, &talk(word));
        assert!(found.cached < 20, "{word}: {found:?}");
    }
}

#[test]
fn what_many_clients_begin_with_is_read_once_however_they_come() {
    let desk = Desk::with(Plan {
        slots: 4,
        ..Plan::default()
    });
    let begun = talk("system");
    let questions: Vec<String> = (0..12).map(|i| format!("{begun} question {i}")).collect();
    let sent: Vec<Sent> = questions
        .iter()
        .map(|question| desk.post("/v1/chat/completions", &chat(question, TOKENS)))
        .collect();
    let answers = sent.into_iter().map(|sent| figures(&sent.answer().json()));
    let answers: Vec<Figures> = answers.collect();
    let read: usize = answers
        .iter()
        .map(|found| found.prompt - found.cached)
        .sum();
    assert_eq!(rows(&desk), read + questions.len() * (TOKENS - 1));
    let not_read = answers.iter().filter(|found| found.cached < 20).count();
    assert_eq!(not_read, 1, "{answers:?}");
}

#[test]
fn every_protocol_says_what_was_not_read_again() {
    let question = talk("abc");
    let messages = json!([{ "role": "user", "content": question }]);
    let cases = [
        (
            "/v1/chat/completions",
            json!({ "messages": messages, "max_tokens": TOKENS }),
            "/usage/prompt_tokens_details/cached_tokens",
        ),
        (
            "/v1/messages",
            json!({ "messages": messages, "max_tokens": TOKENS }),
            "/usage/cache_read_input_tokens",
        ),
        (
            "/v1/responses",
            json!({ "input": question, "max_output_tokens": TOKENS }),
            "/usage/input_tokens_details/cached_tokens",
        ),
    ];
    for (path, body, pointer) in cases {
        let desk = Desk::new();
        let cached = || {
            let json = desk.post(path, &body).answer().json();
            let found = json.pointer(pointer).and_then(Value::as_u64);
            found.unwrap_or_else(|| panic!("{path}: {json}"))
        };
        assert_eq!(cached(), 0, "{path}");
        assert!(cached() > 100, "{path}");
    }
}
