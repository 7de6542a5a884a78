//! A load that comes to nothing takes nothing away: the model before is still there and answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use candor_app::App;
use candor_app::wire::{BannerKind, Code, Settings};
use candor_testkit::TinyModel;
use candor_testkit::scripted::LoadFault;

use crate::desk::{Desk, ask, kind, listen, load, until};

/// An app with a model that answers, and with another model's file. Where memory is tight there is
/// room for one model.
fn two_models() -> (Desk, App, Arc<AtomicBool>, String) {
    let desk = Desk::new();
    let other = desk.dir.path().join("other.gguf");
    TinyModel::llama().seed(2).write(&other).unwrap();
    let (tight, needed) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut config = desk.config();
    let (is_tight, one, script) = (Arc::clone(&tight), Arc::clone(&needed), desk.script.clone());
    config.free_memory = Arc::new(move || {
        let is_full = is_tight.load(Ordering::SeqCst) && script.counts().weights_alive > 0;
        // Nearly enough beside the first one, and more than enough once that has gone.
        let nearly = one.load(Ordering::SeqCst) / 10 * 9;
        Some(if is_full { nearly } else { u64::MAX })
    });
    let app = desk.open_with(config);
    choose(&app, |settings| settings.context = Some(256));
    load(&app, &desk.model);
    needed.store(memory_used(&app), Ordering::SeqCst);
    let entry = app.add_model(&other).unwrap();
    (desk, app, tight, entry.id)
}

/// What the details say, in bytes.
fn memory_used(app: &App) -> u64 {
    let details = app.status().banner.details;
    let row = details
        .iter()
        .find(|row| row.name == "Memory used")
        .unwrap();
    let (number, unit) = row.value.split_once(' ').unwrap();
    let unit = match unit {
        "kB" => 1e3,
        "MB" => 1e6,
        other => panic!("{other}"),
    };
    (number.parse::<f64>().unwrap() * unit) as u64
}

fn choose(app: &App, change: impl FnOnce(&mut Settings)) {
    let mut settings = app.settings();
    change(&mut settings);
    app.save_settings(settings).unwrap();
}

fn choose_threads(app: &App, threads: u32) {
    choose(app, |settings| settings.threads = Some(threads));
}

fn context(app: &App) -> Option<u32> {
    app.status().model.map(|model| model.context)
}

fn is_open(app: &App, name: &str) -> bool {
    app.status().model.is_some_and(|model| model.name == name)
}

/// How a load comes to nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Stopped,
    Fails(LoadFault),
}

/// `room` for two models, or for one: then the first has given way when the load ends.
fn check(ends: Ends, other_threads: Option<u32>, room: Room) {
    let what = format!("{ends:?}, {other_threads:?}, {room:?}");
    let (desk, app, tight, other) = two_models();
    // What is chosen later does not concern the model that is there.
    choose(&app, |settings| settings.context = Some(512));
    if let Some(threads) = other_threads {
        choose_threads(&app, threads);
    }
    tight.store(room == Room::ForOne, Ordering::SeqCst);
    match ends {
        Ends::Stopped => {
            desk.script.at_load_report(2, LoadFault::Stall);
            app.load_model(&other).unwrap();
            desk.script.wait_until_stalled();
            app.stop_loading();
            until(&what, || {
                kind(&app) == BannerKind::Cpu && is_open(&app, "tiny")
            });
        }
        Ends::Fails(fault) => {
            desk.script.at_load_report(2, fault);
            app.load_model(&other).unwrap();
            // What went wrong is still said when the model before is back.
            until(&what, || {
                kind(&app) == BannerKind::Refused && is_open(&app, "tiny")
            });
            let banner = app.status().banner;
            assert!(
                banner.reason.starts_with("other.gguf: "),
                "{what}: {banner:?}"
            );
        }
    }
    let counts = desk.script.counts();
    let opened = match room {
        Room::ForTwo => 1,
        Room::ForOne => 2,
    };
    assert_eq!(
        (counts.sessions_opened, counts.weights_alive),
        (opened, 1),
        "{what}"
    );
    desk.reply("fine");
    assert_eq!(
        ask(&app, None, "Still there?").1.message.text,
        "fine",
        "{what}"
    );
    assert_eq!(context(&app), Some(256), "{what}");
    // The same load works when nothing stands in its way.
    tight.store(false, Ordering::SeqCst);
    app.load_model(&other).unwrap();
    until(&what, || {
        kind(&app) == BannerKind::Cpu && is_open(&app, "other")
    });
    assert_eq!(context(&app), Some(512), "{what}");
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Room {
    ForTwo,
    ForOne,
}

#[test]
fn the_model_before_answers_after_a_load_that_came_to_nothing() {
    let ends = [
        Ends::Stopped,
        Ends::Fails(LoadFault::OutOfMemory),
        Ends::Fails(LoadFault::Panic),
    ];
    for end in ends {
        for other_threads in [None, Some(3)] {
            for room in [Room::ForTwo, Room::ForOne] {
                check(end, other_threads, room);
            }
        }
    }
}

#[test]
fn a_question_that_came_during_a_stopped_load_is_answered_by_the_model_before() {
    for is_tight in [false, true] {
        let (desk, app, tight, other) = two_models();
        choose_threads(&app, 3);
        tight.store(is_tight, Ordering::SeqCst);
        desk.script.at_load_report(2, LoadFault::Stall);
        app.load_model(&other).unwrap();
        desk.script.wait_until_stalled();
        let sent = app.send(None, "Who answers?").unwrap();
        desk.reply("me");
        app.stop_loading();
        let end = crate::desk::end_of(&app, sent.turn);
        assert_eq!(end.message.text, "me");
        assert_eq!(end.message.record.unwrap().model, "tiny");
    }
}

#[test]
fn a_model_that_comes_back_can_be_stopped_and_then_none_is_open() {
    let (desk, app, tight, other) = two_models();
    tight.store(true, Ordering::SeqCst);
    desk.script.at_load_report(2, LoadFault::Stall);
    app.load_model(&other).unwrap();
    desk.script.wait_until_stalled();
    desk.script.at_load_report(2, LoadFault::Stall);
    app.stop_loading();
    until("the model before is on its way", || {
        app.status().banner.reason.starts_with("tiny · 5")
    });
    desk.script.wait_until_stalled();
    app.stop_loading();
    until("nothing is open", || kind(&app) == BannerKind::NoModel);
    let (_, end) = ask(&app, None, "Anybody?");
    assert_eq!(end.error.unwrap().code, Code::NoModel);
    assert_eq!(desk.script.counts().weights_alive, 0);
    // It does not come back against the person's will, whatever else is stopped.
    desk.script.at_load_report(2, LoadFault::Stall);
    app.load_model(&other).unwrap();
    desk.script.wait_until_stalled();
    app.stop_loading();
    until("nothing is open again", || {
        kind(&app) == BannerKind::NoModel
    });
    assert_eq!(desk.script.counts().sessions_opened, 1);
}

#[test]
fn a_fault_of_the_program_over_a_load_ends_it_with_a_word() {
    let desk = Desk::new();
    let mut config = desk.config();
    let (broken, script) = (Arc::new(AtomicBool::new(true)), desk.script.clone());
    let is_broken = Arc::clone(&broken);
    config.backends = Arc::new(move |_| {
        assert!(!is_broken.load(Ordering::SeqCst), "as planned");
        vec![Box::new(script.backend())]
    });
    let app = desk.open_with(config);
    let entry = app.add_model(&desk.model).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the load is over", || kind(&app) == BannerKind::Refused);
    let reason = app.status().banner.reason;
    assert!(reason.starts_with("tiny.gguf: "), "{reason}");
    broken.store(false, Ordering::SeqCst);
    load(&app, &desk.model);
    // Also where other threads are to compute: what was there before stays.
    broken.store(true, Ordering::SeqCst);
    choose_threads(&app, 3);
    app.load_model(&entry.id).unwrap();
    until("the load is over", || kind(&app) == BannerKind::Refused);
    desk.reply("fine");
    assert_eq!(ask(&app, None, "Still there?").1.message.text, "fine");
}

#[test]
fn more_context_than_a_model_was_trained_for_becomes_less_and_it_is_said() {
    let desk = Desk::with_model(&TinyModel::llama().context(1_024));
    let app = desk.open();
    // Chosen, used, and what the line says to that.
    let cases = [
        (512, 512, None),
        (1_024, 1_024, None),
        (
            1_025,
            1_024,
            Some("context 1,024 (the model was trained for no more)"),
        ),
        (
            1 << 20,
            1_024,
            Some("context 1,024 (the model was trained for no more)"),
        ),
    ];
    for (chosen, used, said) in cases {
        app.save_settings(Settings {
            context: Some(chosen),
            ..app.settings()
        })
        .unwrap();
        load(&app, &desk.model);
        until("the new load answers", || {
            app.status()
                .model
                .is_some_and(|model| model.context == used)
        });
        let line = app.status().banner.reason;
        match said {
            Some(words) => assert!(line.ends_with(words), "{line}"),
            None => assert!(!line.contains("context"), "{line}"),
        }
    }
}

#[test]
fn the_banner_names_the_conversation_that_is_waited_for_also_while_it_is_deleted() {
    let (desk, app, _, other) = two_models();
    let heard = listen(&app);
    for _ in 0..5 {
        let begun = desk.script.counts().submitted;
        desk.script
            .at_forward(begun, candor_testkit::scripted::Fault::Stall);
        let sent = app.send(None, "First words").unwrap();
        desk.script.wait_until_stalled();
        app.load_model(&other).unwrap();
        until("the load waits", || kind(&app) == BannerKind::Waiting);
        app.delete_conversation(sent.conversation.id).unwrap();
        until("the other answers", || kind(&app) == BannerKind::Cpu);
    }
    let waiting = |news: &candor_app::News| match news {
        candor_app::News::Status(status) if status.banner.kind == BannerKind::Waiting => {
            Some(status.banner.reason.clone())
        }
        _ => None,
    };
    let lines: Vec<String> = heard.lock().unwrap().iter().filter_map(waiting).collect();
    assert!(!lines.is_empty());
    assert!(
        lines
            .iter()
            .all(|line| line == "for the reply in First words"),
        "{lines:?}"
    );
}
