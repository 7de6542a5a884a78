//! What every window is told.

use candor_app::diagnostics::{self, Surroundings};
use candor_app::wire::{BannerKind, Code, Language, Settings};
use candor_app::{AppPaths, News, Phrase, Tongue};

use crate::desk::{Desk, ask, listen, load, until};

#[test]
fn every_window_hears_of_models_status_conversations_and_ends() {
    let desk = Desk::new();
    let app = desk.open();
    let heard = listen(&app);
    load(&app, &desk.model);
    desk.reply("hi");
    let (sent, _) = ask(&app, None, "Hello there");
    app.rename_conversation(sent.conversation.id, "Greeting")
        .unwrap();
    let ends = || {
        let heard = heard.lock().unwrap();
        let ends = heard.iter().filter(|news| match news {
            News::TurnEnded(turn) => turn.turn == sent.turn,
            _ => false,
        });
        ends.count()
    };
    until("the end is told", || ends() == 1);
    let heard = heard.lock().unwrap();
    let kinds = heard.iter().filter_map(|news| match news {
        News::Status(status) => Some(status.banner.kind),
        _ => None,
    });
    let kinds: Vec<BannerKind> = kinds.collect();
    assert_eq!(kinds.first(), Some(&BannerKind::Loading), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&BannerKind::Cpu), "{kinds:?}");
    let statuses = heard.iter().filter_map(|news| match news {
        News::Status(status) => Some(status),
        _ => None,
    });
    let statuses: Vec<_> = statuses.collect();
    assert!(
        statuses.windows(2).all(|pair| pair[0] != pair[1]),
        "the same was told twice"
    );
    let mut titles = heard.iter().filter_map(|news| match news {
        News::Conversations(list) => list.first().map(|summary| summary.title.as_str()),
        _ => None,
    });
    assert_eq!(titles.next_back(), Some("Greeting"));
    assert!(
        heard
            .iter()
            .any(|news| matches!(news, News::Models(list) if list.len() == 1))
    );
}

#[test]
fn a_report_tells_of_the_program_and_of_no_conversation() {
    let desk = Desk::new();
    let app = desk.open_ready();
    desk.reply("confidential");
    ask(&app, None, "Something private?");
    app.notice(Phrase::same("Once."));
    assert_eq!(app.bootstrap().unwrap().notices, ["Once."]);
    assert!(app.bootstrap().unwrap().notices.is_empty());
    let logs = AppPaths::below(&desk.data()).logs_dir();
    candor_app::logs::append(&logs, candor_app::logs::PANICS, "a fault in x.rs\n").unwrap();
    let report = app.diagnostics(&Surroundings {
        rows: vec![("display", String::from("none"))],
        home: Some(desk.dir.path()),
    });
    let wanted = [
        "Candor 0.0.0",
        "display          none",
        "state            CPU",
        "model            tiny (llama",
        "conversations    1\n",
        "models           1, 0 of them missing",
        "data folder      ok: ~/data\n",
        "a fault in x.rs",
    ];
    for words in wanted {
        assert!(report.contains(words), "{words} is not in {report}");
    }
    let home = desk.dir.path().to_string_lossy();
    for words in ["confidential", "private", &*home] {
        assert!(!report.contains(words), "{words} is in {report}");
    }
    let place = desk.dir.path().join("report.txt");
    diagnostics::save(&place, &report).unwrap();
    assert_eq!(std::fs::read_to_string(place).unwrap(), report);
    let nowhere = desk.dir.path().join("no/such/report.txt");
    assert_eq!(
        diagnostics::save(&nowhere, "").unwrap_err().code,
        Code::Storage
    );
}

#[test]
fn a_window_hears_everything_in_its_language() {
    let desk = Desk::new();
    let app = desk.open();
    let line = || app.status().banner.state;
    let refusal = || {
        let error = app.send(None, " ").unwrap_err();
        error.wire(app.tongue()).message
    };
    let speak = |language| {
        let settings = Settings {
            language,
            ..app.settings()
        };
        app.save_settings(settings).unwrap();
    };
    app.notice(Phrase::new("One thing.", "Eine Sache."));
    assert_eq!(line(), "No model open.");
    assert_eq!(refusal(), "There is nothing to send.");
    // The page has found out what the system speaks, and nobody chose another language.
    app.system_speaks(Tongue::German);
    assert_eq!(line(), "Kein Modell geöffnet.");
    assert_eq!(refusal(), "Es gibt nichts zu senden.");
    assert_eq!(app.bootstrap().unwrap().notices, ["Eine Sache."]);
    let heard = listen(&app);
    speak(Language::English);
    assert_eq!(line(), "No model open.");
    speak(Language::German);
    let heard = heard.lock().unwrap();
    let mut told = heard.iter().filter_map(|news| match news {
        News::Status(status) => Some(status.banner.state.as_str()),
        _ => None,
    });
    assert_eq!(told.next_back(), Some("Kein Modell geöffnet."));
    let lists = heard
        .iter()
        .filter(|news| matches!(news, News::Downloads(_)));
    assert_eq!(lists.count(), 2, "sentences of downloads are told anew");
}

#[test]
fn what_is_noted_of_a_reply_is_noted_in_the_language_of_the_window() {
    let desk = Desk::new();
    let app = desk.open_ready();
    app.system_speaks(Tongue::German);
    desk.reply("hi");
    let (_, end) = ask(&app, None, "Hallo");
    let record = end.message.record.unwrap();
    assert_eq!(record.kv, "16 Bit");
    assert_eq!(record.backend, "CPU");
    let name = app.status().model.unwrap().id;
    let details = app.model_details(&name).unwrap();
    let fit = details.fit.unwrap().sentence;
    assert!(fit.contains("Es braucht"), "{fit}");
    assert!(details.facts.iter().any(|row| row.name == "Datei"));
}
