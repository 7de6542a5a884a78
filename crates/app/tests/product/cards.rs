//! A card beside the processor: proven, rejected, passed over, lost in the middle of a reply; and
//! what a person reads of it.

use std::sync::Arc;

use candor_app::wire::{
    BannerAction, BannerKind, DeviceChoice, GpuCheck, MessageState, Settings, Tone, TurnEvent,
};
use candor_app::{App, AppConfig};
use candor_backend::{Backend, SessionError, Unsupported};
use candor_testkit::scripted::{Fault, Script};

use crate::desk::{Card, Desk, ask, follow, kind, load, one_card, until};

/// An app with a card that follows `card`, beside the processor of the desk.
fn config(desk: &Desk, card: impl Fn() -> Card + Send + Sync + 'static) -> AppConfig {
    let script = desk.script.clone();
    AppConfig {
        probe: one_card(),
        backends: Arc::new(move |choice| {
            let mut all: Vec<Box<dyn Backend>> = Vec::new();
            if choice.card.is_some() {
                all.push(Box::new(card()));
            }
            all.push(Box::new(script.backend()));
            all
        }),
        ..desk.config()
    }
}

/// Computes what the processor of a desk computes.
fn same() -> Script {
    Script::new(97..123)
}

/// Computes something else.
fn other() -> Script {
    Script::new(65..70)
}

fn opened(desk: &Desk, script: Script) -> App {
    let app = desk.open_with(config(desk, move || Card::of(&script)));
    load(&app, &desk.model);
    app
}

#[test]
fn a_card_that_computes_the_same_serves_and_says_by_what_right() {
    let desk = Desk::new();
    let app = opened(&desk, same());
    let banner = app.status().banner;
    assert_eq!(
        (banner.kind, banner.tone, banner.state.as_str()),
        (BannerKind::Gpu, Tone::Proven, "GPU")
    );
    assert!(
        banner.reason.starts_with("RTX 4090 · proven on "),
        "{}",
        banner.reason
    );
    assert!(
        banner.reason.ends_with(" · 1970-01-01"),
        "{}",
        banner.reason
    );
    assert!(banner.report.unwrap().starts_with("accepted"));
    let record = ask(&app, None, "Who?").1.message.record.unwrap();
    assert_eq!(
        (record.backend.as_str(), record.device.as_str()),
        ("GPU", "RTX 4090")
    );
    assert!(record.proof.starts_with("proven on "), "{}", record.proof);
    assert_eq!(record.moved, None);
}

#[test]
fn a_card_that_computes_something_else_writes_nothing_and_leaves_a_report() {
    let desk = Desk::new();
    let app = opened(&desk, other());
    let banner = app.status().banner;
    assert_eq!(
        (banner.kind, banner.tone),
        (BannerKind::Cpu, Tone::Attention)
    );
    let want = "GPU found (RTX 4090), but its answers differed";
    assert!(banner.reason.starts_with(want), "{}", banner.reason);
    assert!(
        banner.reason.contains("so the CPU is used"),
        "{}",
        banner.reason
    );
    assert!(banner.advice.unwrap().contains("copy the report"));
    assert_eq!(banner.actions, [BannerAction::CheckAgain]);
    assert!(banner.report.unwrap().starts_with("rejected"));
    desk.reply("hi");
    let record = ask(&app, None, "Who?").1.message.record.unwrap();
    assert_eq!(
        (record.backend.as_str(), record.proof.as_str()),
        ("CPU", "")
    );
    assert!(
        record.backend_reason.starts_with(want),
        "{}",
        record.backend_reason
    );
}

#[test]
fn a_card_that_cannot_run_the_model_is_passed_over_with_the_reason() {
    let desk = Desk::new();
    let missing = || Unsupported::Type(String::from("IQ1_S"));
    let app = desk.open_with(config(&desk, move || Card::without(&same(), missing())));
    load(&app, &desk.model);
    let banner = app.status().banner;
    assert_eq!((banner.kind, banner.tone), (BannerKind::Cpu, Tone::Neutral));
    let want = "this model's IQ1_S weights do not run on the GPU yet";
    assert!(banner.reason.starts_with(want), "{}", banner.reason);
}

#[test]
fn the_processor_chosen_by_the_user_can_be_taken_back_with_one_button() {
    let desk = Desk::new();
    let config = config(&desk, || Card::of(&same()));
    std::fs::create_dir_all(desk.data()).unwrap();
    std::fs::write(desk.data().join("settings.json"), r#"{"device":"cpu"}"#).unwrap();
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let banner = app.status().banner;
    assert!(
        banner.reason.starts_with("chosen by you"),
        "{}",
        banner.reason
    );
    assert_eq!(
        (banner.tone, banner.actions),
        (Tone::Neutral, vec![BannerAction::UseGpu])
    );
    app.use_gpu().unwrap();
    until("the card computes", || kind(&app) == BannerKind::Gpu);
    assert_eq!(app.settings().device, DeviceChoice::Auto);
}

#[test]
fn a_number_that_no_card_has_is_said() {
    let desk = Desk::new();
    let app = desk.open_with(config(&desk, || Card::of(&same())));
    let (device, gpu) = (DeviceChoice::Gpu, Some(4));
    app.save_settings(Settings {
        device,
        gpu,
        ..app.settings()
    })
    .unwrap();
    load(&app, &desk.model);
    let banner = app.status().banner;
    let want = "there is no card number 4; there is 1 card, counted from 0";
    assert!(banner.reason.starts_with(want), "{}", banner.reason);
    assert_eq!(
        (banner.kind, banner.tone),
        (BannerKind::Cpu, Tone::Attention)
    );
}

#[test]
fn a_card_lost_in_the_middle_of_a_reply_is_said_once_and_noted() {
    let desk = Desk::new();
    let card = same();
    let app = opened(&desk, card.clone());
    assert_eq!(kind(&app), BannerKind::Gpu);
    // The prompt is read in one forward, and some tokens are written.
    let lost = SessionError::DeviceLost {
        reason: String::from("code 719"),
    };
    card.at_forward(card.counts().submitted + 5, Fault::Error(lost));
    let sent = app.send(None, "Go on").unwrap();
    let mut notices = Vec::new();
    let mut ended = None;
    for batch in follow(&app, sent.turn, 0) {
        for event in batch.events {
            match event {
                TurnEvent::Moved { notice } => notices.push(notice),
                TurnEvent::Finished { message } | TurnEvent::Failed { message, .. } => {
                    ended = Some(message);
                }
                _ => {}
            }
        }
    }
    let message = ended.unwrap();
    let record = message.record.unwrap();
    assert_ne!(message.state, MessageState::Failed, "{:?}", record.failure);
    assert_eq!(record.backend, "GPU, then CPU");
    assert_eq!(
        notices,
        Vec::from_iter(record.moved),
        "said once, and noted"
    );
    assert!(
        notices[0].contains("went on with the CPU"),
        "{}",
        notices[0]
    );
    until("the banner says so", || kind(&app) == BannerKind::Cpu);
    let banner = app.status().banner;
    assert!(
        banner.reason.contains("stopped working"),
        "{}",
        banner.reason
    );
    assert_eq!(banner.actions, [BannerAction::CheckAgain]);
    app.check_again();
    until("the card is proven again", || kind(&app) == BannerKind::Gpu);
}

#[test]
fn a_model_with_a_check_of_its_own_is_checked_on_every_message() {
    let desk = Desk::new();
    let app = desk.open_with(config(&desk, || Card::of(&same())));
    let entry = app.add_model(&desk.model).unwrap();
    let mut settings = app.settings();
    settings.gpu_checks.insert(entry.id, GpuCheck::EveryPrompt);
    settings.sampling.max_tokens = 8;
    app.save_settings(settings).unwrap();
    load(&app, &desk.model);
    let banner = app.status().banner;
    assert!(
        banner.reason.contains("to be checked on every message"),
        "{}",
        banner.reason
    );
    assert_eq!((banner.kind, banner.tone), (BannerKind::Gpu, Tone::Neutral));
    let record = ask(&app, None, "Who?").1.message.record.unwrap();
    assert_eq!(record.backend, "GPU");
    assert!(record.proof.starts_with("proven on "), "{}", record.proof);
}

#[test]
fn the_second_load_rests_on_what_the_processor_gave_before() {
    let desk = Desk::new();
    let details = |app: &App| {
        let rows = app.status().banner.details;
        let row = rows.into_iter().find(|row| row.name == "Checked");
        row.unwrap().value
    };
    let app = opened(&desk, same());
    assert!(
        details(&app).ends_with("against the CPU"),
        "{}",
        details(&app)
    );
    app.close();
    drop(app);
    let app = opened(&desk, same());
    assert!(
        details(&app).ends_with("against what the CPU gave before"),
        "{}",
        details(&app)
    );
    app.check_again();
    until("the processor was asked again", || {
        kind(&app) == BannerKind::Gpu && details(&app).ends_with("against the CPU")
    });
}
