//! What every window is told.

use candor_app::News;
use candor_app::wire::BannerKind;

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
