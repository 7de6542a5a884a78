//! What every window is told.

use candor_app::diagnostics::{self, Surroundings};
use candor_app::wire::{BannerKind, Code};
use candor_app::{AppPaths, News};

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
    app.notice("Once.");
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
