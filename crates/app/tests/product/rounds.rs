//! Models and conversations changed at random while replies are written, as a person in a hurry does.

use candor_app::wire::{MessageState, Sent, Settings};
use candor_app::{App, compose};
use candor_testkit::{Random, TinyModel};

use crate::desk::{Desk, End, ask, end_of, load, until};

/// Rounds in a plain run; a soak asks for more.
const ROUNDS: usize = 8;

/// Long enough that the next thing happens while it is written.
const TOKENS: u32 = 40;

/// The same question always: each model has one answer to it.
const QUESTION: &str = "Who are you?";

/// What a person does while a reply is written.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    Stop,
    DeleteTheConversation,
    PickTheOther,
    PickTheOtherAndBack,
    PickTheOtherAtOnce,
    StopTheLoad,
    AskElsewhere,
}

const DEEDS: [Deed; 8] = [
    Deed::Nothing,
    Deed::Stop,
    Deed::DeleteTheConversation,
    Deed::PickTheOther,
    Deed::PickTheOtherAndBack,
    Deed::PickTheOtherAtOnce,
    Deed::StopTheLoad,
    Deed::AskElsewhere,
];

/// A model with the one answer that it has.
struct Known {
    id: String,
    name: String,
    answer: String,
}

struct Rounds {
    app: App,
    models: [Known; 2],
    random: Random,
}

impl Rounds {
    fn id(&mut self) -> String {
        let which = self.random.below(2);
        self.models[which].id.clone()
    }

    /// One question, and what is done meanwhile.
    fn round(&mut self, deed: Deed) {
        let sent = self.app.send(None, QUESTION).unwrap();
        let mut more = Vec::new();
        match deed {
            Deed::Nothing => {}
            Deed::Stop => self.app.stop(sent.turn),
            Deed::DeleteTheConversation => {
                self.app.delete_conversation(sent.conversation.id).unwrap();
            }
            Deed::PickTheOther => self.pick(),
            Deed::PickTheOtherAndBack => {
                self.pick();
                self.pick();
            }
            Deed::PickTheOtherAtOnce => {
                self.pick();
                self.app.stop_writing();
            }
            Deed::StopTheLoad => {
                self.pick();
                self.app.stop_loading();
            }
            Deed::AskElsewhere => more.push(self.app.send(None, QUESTION).unwrap()),
        }
        more.push(sent);
        for sent in more {
            let end = end_of(&self.app, sent.turn);
            self.is_right(&sent, &end, deed);
        }
    }

    fn pick(&mut self) {
        let id = self.id();
        self.app.load_model(&id).unwrap();
    }

    /// Each reply is a beginning of what the model that it names answers, in its own conversation.
    fn is_right(&self, sent: &Sent, end: &End, deed: Deed) {
        let message = &end.message;
        assert_eq!(message.id, sent.conversation.messages[1].id, "{deed:?}");
        let deleted = matches!(deed, Deed::DeleteTheConversation);
        if message.state == MessageState::Failed {
            // Only a load that was stopped leaves nobody to answer, and a deleted conversation no
            // place for the words.
            let may_fail = deleted || matches!(deed, Deed::StopTheLoad);
            assert!(may_fail, "{deed:?}: {:?}", end.error);
            return;
        }
        if message.text.is_empty() {
            let may_be_empty = deleted
                || matches!(
                    deed,
                    Deed::Stop | Deed::PickTheOtherAtOnce | Deed::StopTheLoad
                );
            assert!(may_be_empty, "{deed:?}: {message:?}");
            return;
        }
        let named = message.record.as_ref().map(|record| record.model.as_str());
        let wrote = self
            .models
            .iter()
            .find(|model| Some(model.name.as_str()) == named);
        let wrote = wrote.unwrap_or_else(|| panic!("{deed:?}: nobody is called {named:?}"));
        assert!(
            wrote.answer.starts_with(&message.text),
            "{deed:?}: {message:?}"
        );
        if message.state == MessageState::Length {
            assert_eq!(message.text, wrote.answer, "{deed:?}");
        }
        if !deleted {
            let kept = self.app.open_conversation(sent.conversation.id).unwrap();
            assert_eq!(kept.messages[1].text, message.text, "{deed:?}");
            assert_eq!(kept.messages[0].text, QUESTION, "{deed:?}");
        }
    }

    /// A model is open in the end, whatever was done.
    fn settle(&mut self) {
        let id = self.id();
        self.app.load_model(&id).unwrap();
        until("the model that was picked last answers", || {
            self.app.status().model.is_some_and(|model| model.id == id)
        });
    }
}

/// The two models, and what each says when nobody disturbs it.
fn prepare() -> (Desk, Rounds) {
    let desk = Desk::new();
    let other = desk.dir.path().join("other.gguf");
    TinyModel::llama().seed(2).write(&other).unwrap();
    let mut config = desk.config();
    (config.backends, config.threads) = (compose::backends(), 1);
    let app = desk.open_with(config);
    let mut settings = app.settings();
    settings.sampling.max_tokens = TOKENS;
    let saved: Settings = app.save_settings(settings).unwrap();
    assert_eq!(saved.sampling.max_tokens, TOKENS);
    let models = [("tiny", &desk.model), ("other", &other)].map(|(name, path)| {
        load(&app, path);
        let answer = ask(&app, None, QUESTION).1.message.text;
        let id = app.status().model.unwrap().id;
        let name = String::from(name);
        Known { id, name, answer }
    });
    assert_ne!(models[0].answer, models[1].answer);
    let random = Random::new(16);
    let rounds = Rounds {
        app,
        models,
        random,
    };
    (desk, rounds)
}

#[test]
fn whatever_is_picked_meanwhile_each_reply_is_of_the_model_that_it_names() {
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let asked = std::env::var("CANDOR_ROUNDS").ok();
    let count = asked.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let (_desk, mut rounds) = prepare();
    let mut second = 0.0;
    for round in 0..count {
        // All of them in turn first, so that a short run has had each.
        let deed = match DEEDS.get(round) {
            Some(deed) => *deed,
            None => DEEDS[rounds.random.below(DEEDS.len())],
        };
        rounds.round(deed);
        rounds.settle();
        if round == 1 {
            second = anonymous_mb();
        }
    }
    println!(
        "MEASURED memory grown since the second round, MB: {:.1}",
        anonymous_mb() - second
    );
    println!("MEASURED rounds: {count}");
}

/// Memory of this process that no file stands behind; 0 where the system does not say.
fn anonymous_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kibibytes.unwrap_or_default() * 1_024.0 / 1e6
}
