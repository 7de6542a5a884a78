//! Chats with models whose template refuses, fails or does not end (field report B08): whatever
//! happens to a reply, the next question is answered, and what was done instead is said.
#![allow(clippy::unwrap_used, reason = "this is a test")]

#[path = "product/desk.rs"]
#[allow(dead_code, reason = "only a part of it is needed here")]
mod desk;

use candor_app::App;
use candor_app::wire::{MessageState, Role, Settings};
use candor_testkit::TinyModel;
use candor_testkit::gguf::Value;
use candor_testkit::scripted::Fault;

use desk::{Desk, ask, end_of, load};

const TURNS: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content \
     + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}";
const NO_SYSTEM: &str = "{% if messages[0].role == 'system' %}\
     {{ raise_exception('no system text here') }}{% endif %}";
const ALTERNATE: &str = "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
     {{ raise_exception('turns have to alternate') }}{% endif %}{% endfor %}";
const ENDLESS: &str =
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";

/// Where it is said what was done instead of rendering the template.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    /// Of the model, as long as it is open.
    OfModel,
    /// Of the first reply that it concerns.
    OfReply,
}

struct Case {
    template: Option<String>,
    said: Said,
    words: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |template, said, words| Case {
        template,
        said,
        words,
    };
    vec![
        case(
            Some([NO_SYSTEM, TURNS].concat()),
            Said::OfReply,
            "the system text was put into the first question",
        ),
        case(
            Some([ALTERNATE, TURNS].concat()),
            Said::OfReply,
            "the system text was put into the first question",
        ),
        case(None, Said::OfModel, "brings no chat template"),
        case(Some("{% if".into()), Said::OfModel, "not valid in line 1"),
        case(
            Some(ENDLESS.into()),
            Said::OfReply,
            "does not come to an end",
        ),
        case(
            Some("{{ messages | martian }}".into()),
            Said::OfReply,
            "unknown filter",
        ),
    ]
}

fn desk(case: &Case) -> Desk {
    let key = "tokenizer.chat_template";
    let model = TinyModel::llama().context(2_048);
    Desk::with_model(&match &case.template {
        Some(template) => model.metadata(key, Value::from(template.as_str())),
        None => model.without_metadata(key),
    })
}

/// Asks and stops before the first token.
fn stopped_before_the_first_token(desk: &Desk, app: &App) -> i64 {
    let forward = desk.script.counts().submitted;
    desk.script.at_forward(forward, Fault::Stall);
    let sent = app.send(None, "First?").unwrap();
    desk.script.wait_until_stalled();
    app.stop(sent.turn);
    let end = end_of(app, sent.turn);
    assert_eq!(
        (end.message.state, end.message.text.as_str()),
        (MessageState::Stopped, "")
    );
    desk::until("the turn is over", || {
        app.bootstrap().unwrap().turns.is_empty()
    });
    sent.conversation.id
}

fn check(case: &Case) {
    let desk = desk(case);
    let app = desk.open();
    load(&app, &desk.model);
    app.save_settings(Settings {
        system_prompt: "Be brief.".into(),
        ..app.settings()
    })
    .unwrap();
    let chat = stopped_before_the_first_token(&desk, &app);
    for (question, answer) in [("Again?", "yes"), ("More?", "no")] {
        desk.reply(answer);
        let (_, end) = ask(&app, Some(chat), question);
        assert_eq!(end.error, None, "{}", case.words);
        assert_eq!(end.message.state, MessageState::Finished);
        assert_eq!(end.message.text, answer);
    }
    // The last answer gives way to another one, after which the chat goes on.
    let messages = app.open_conversation(chat).unwrap().messages;
    let last = messages.last().unwrap();
    assert_eq!(last.role, Role::Assistant);
    desk.reply("perhaps");
    let again = app.regenerate(last.id).unwrap();
    assert_eq!(end_of(&app, again.turn).message.text, "perhaps");
    desk::until("the turn is over", || {
        app.bootstrap().unwrap().turns.is_empty()
    });
    desk.reply("end");
    assert_eq!(ask(&app, Some(chat), "Last?").1.message.text, "end");
    check_said(case, &app, chat);
}

fn check_said(case: &Case, app: &App, chat: i64) {
    let messages = app.open_conversation(chat).unwrap().messages;
    let records = messages.iter().filter_map(|m| m.record.as_ref());
    let notices: Vec<&String> = records.filter_map(|r| r.notice.as_ref()).collect();
    let of_model = app.status().model.unwrap().template_fallback;
    match case.said {
        Said::OfReply => {
            assert!(notices[0].contains(case.words), "{notices:?}");
            let same = notices.iter().filter(|notice| **notice == notices[0]);
            assert_eq!(same.count(), 1, "it is said once: {notices:?}");
            assert_eq!(of_model, None);
        }
        Said::OfModel => {
            assert!(of_model.unwrap().contains(case.words));
            assert_eq!(notices, [""; 0]);
        }
    }
}

#[test]
fn a_strict_or_broken_template_never_makes_a_chat_unusable() {
    for case in cases() {
        check(&case);
    }
}
