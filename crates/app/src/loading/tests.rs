//! What happens when the engine is gone: nobody shuts it down but the app itself, so these tests
//! reach inside.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use candor_backend::Backend;
use candor_testkit::scripted::{Fault, HANG_LIMIT, Script};
use candor_testkit::{TURN_END, TinyModel};

use crate::wire::{BannerKind, MessageState, Sampling, Settings};
use crate::{App, AppConfig, AppPaths, Clock, Machine, ProbeCommand};

struct Desk {
    app: App,
    script: Script,
    /// Goes last.
    _dir: tempfile::TempDir,
}

impl Desk {
    /// An app whose model answers.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::new(97..123);
        let (now, backend) = (Arc::new(AtomicI64::new(1)), script.clone());
        let config = AppConfig {
            version: String::from("0.0.0"),
            clock: Clock {
                now_ms: Arc::new(move || now.fetch_add(1, Ordering::Relaxed)),
                instant: Arc::new(Instant::now),
            },
            machine: Machine::unknown(),
            free_memory: Arc::new(|| None),
            fresh_seed: Arc::new(|| 7),
            threads: 1,
            probe: ProbeCommand {
                program: PathBuf::from("/bin/true"),
                args: Vec::new(),
            },
            probe_limit: HANG_LIMIT,
            starters: Vec::new(),
            network: crate::Network::default(),
            backends: Arc::new(move |_| vec![Box::new(backend.backend()) as Box<dyn Backend>]),
        };
        let app = App::open(AppPaths::below(&dir.path().join("data")), config).unwrap();
        let sampling = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        app.save_settings(Settings {
            sampling,
            ..app.settings()
        })
        .unwrap();
        let path = dir.path().join("tiny.gguf");
        TinyModel::llama().write(&path).unwrap();
        let entry = app.add_model(&path).unwrap();
        app.load_model(&entry.id).unwrap();
        let desk = Self {
            app,
            script,
            _dir: dir,
        };
        desk.until("the model answers", |app| app.status().model.is_some());
        desk.until("nothing is loaded", |app| {
            app.inner.models.state().load.is_none()
        });
        desk
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&App) -> bool) {
        let started = Instant::now();
        while !is_so(&self.app) {
            assert!(started.elapsed() < HANG_LIMIT, "never so: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The thread of the engine ends, for a reason of its own.
    fn end_engine(&self) {
        let state = self.app.inner.models.state();
        let engine = state.seat.as_ref().unwrap().engine.clone();
        drop(state);
        engine.shutdown();
    }

    /// The next reply is this text.
    fn reply(&self, text: &str) {
        let end = TinyModel::llama().token_id(TURN_END).unwrap();
        let tokens: Vec<u32> = text.bytes().map(u32::from).chain([end]).collect();
        self.script.reply(&tokens);
    }

    /// How the reply in a conversation ended.
    fn ended(&self, conversation: i64) -> (MessageState, String) {
        self.until("no turn runs", |app| {
            app.bootstrap().unwrap().turns.is_empty()
        });
        let conversation = self.app.open_conversation(conversation).unwrap();
        let reply = conversation.messages.last().unwrap();
        (reply.state, reply.text.clone())
    }
}

#[test]
fn a_question_to_an_engine_that_is_gone_is_answered_by_another() {
    let desk = Desk::new();
    for words in ["one", "two"] {
        desk.end_engine();
        desk.reply(words);
        let sent = desk.app.send(None, "Anybody?").unwrap();
        let want = (MessageState::Finished, String::from(words));
        assert_eq!(desk.ended(sent.conversation.id), want);
        assert_eq!(desk.app.status().banner.kind, BannerKind::Cpu);
    }
    // Nobody has to ask: the model is back by itself.
    desk.end_engine();
    desk.until("the model is back", |app| {
        app.inner.models.state().chat().is_some()
    });
}

#[test]
fn a_reply_that_waits_in_an_engine_that_ends_is_written_by_the_next() {
    let desk = Desk::new();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun, Fault::Stall);
    let first = desk.app.send(None, "First").unwrap();
    desk.script.wait_until_stalled();
    let second = desk.app.send(None, "Second").unwrap();
    desk.until("both are with the engine", |app| {
        app.inner
            .turns
            .written_first()
            .is_some_and(|(_, others)| others == 1)
    });
    desk.reply("yes");
    desk.end_engine();
    let want = (MessageState::Finished, String::from("yes"));
    assert_eq!(desk.ended(second.conversation.id), want);
    // Of the one that was being written is told that it did not come to its end.
    let (state, text) = desk.ended(first.conversation.id);
    assert_eq!((state, text.as_str()), (MessageState::Stopped, ""));
}

#[test]
fn what_is_stopped_while_its_engine_is_gone_is_stopped() {
    let desk = Desk::new();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun, Fault::Stall);
    let first = desk.app.send(None, "First").unwrap();
    desk.script.wait_until_stalled();
    let second = desk.app.send(None, "Second").unwrap();
    desk.app.stop(second.turn);
    desk.end_engine();
    for sent in [first, second] {
        assert_eq!(desk.ended(sent.conversation.id).0, MessageState::Stopped);
    }
}
