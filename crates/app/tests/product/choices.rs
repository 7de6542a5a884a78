//! What is chosen for one model and for one conversation, and another model while one writes.

use std::fs;

use candor_app::wire::{
    BannerAction, BannerKind, ChatSettings, Code, DownloadState, FolderState, MessageState,
    ModelSettings, Sampling, Settings,
};
use candor_testkit::TinyModel;
use candor_testkit::scripted::Fault;

use crate::desk::{Desk, ask, end_of, kind, load, until};

#[test]
fn a_model_has_choices_of_its_own() {
    let desk = Desk::new();
    let app = desk.open();
    let entry = app.add_model(&desk.model).unwrap();
    let own = ModelSettings {
        context: Some(512),
        ..ModelSettings::default()
    };
    app.save_settings(Settings {
        context: Some(1_024),
        models: [(entry.id.clone(), own)].into(),
        ..app.settings()
    })
    .unwrap();
    load(&app, &desk.model);
    assert_eq!(app.status().model.unwrap().context, 512);
    // It is counted for that as well.
    let fits = app.model_fits(std::slice::from_ref(&entry.id)).unwrap();
    assert_eq!(fits[0].fit.as_ref().unwrap().context, Some(512));
    let details = app.model_details(&entry.id).unwrap();
    assert_eq!(details.fit.unwrap().context, Some(512));
}

#[test]
fn a_conversation_has_choices_of_its_own_from_before_it_begins() {
    let desk = Desk::new();
    let app = desk.open_ready();
    let chat = ChatSettings {
        sampling: Sampling {
            temperature: 0.0,
            max_tokens: 2,
            ..Sampling::default()
        },
        ..app.settings().chat()
    };
    app.keep_chat_settings(None, Some(chat.clone())).unwrap();
    desk.reply("abcdef");
    let (sent, end) = ask(&app, None, "Hello");
    assert_eq!(
        (end.message.text.as_str(), end.message.state),
        ("ab", MessageState::Length)
    );
    let id = sent.conversation.id;
    assert_eq!(app.chat_settings(Some(id)).unwrap(), Some(chat));
    assert_eq!(
        app.chat_settings(None).unwrap(),
        None,
        "the next one begins without"
    );
    // Again as all.
    app.keep_chat_settings(Some(id), None).unwrap();
    assert_eq!(
        ask(&app, Some(id), "Again").1.message.text,
        "cdef",
        "the rest of it"
    );
    let gone = app.keep_chat_settings(Some(99), None).unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[test]
fn words_that_end_a_reply_are_not_shown_and_a_wrong_schema_is_named() {
    let desk = Desk::new();
    let app = desk.open_ready();
    app.save_settings(Settings {
        stop: vec![String::from("cd")],
        ..app.settings()
    })
    .unwrap();
    desk.reply("abcdef");
    let (_, end) = ask(&app, None, "Hello");
    assert_eq!(
        (end.message.text.as_str(), end.message.state),
        ("ab", MessageState::Finished)
    );
    app.save_settings(Settings {
        json_schema: String::from("{type"),
        ..app.settings()
    })
    .unwrap();
    let (_, end) = ask(&app, None, "Hello");
    assert_eq!(end.message.state, MessageState::Failed);
    assert!(end.error.unwrap().message.contains("is no JSON"));
}

#[test]
fn a_template_is_previewed_and_what_is_wrong_with_it_is_named() {
    let desk = Desk::new();
    let app = desk.open();
    let chat = ChatSettings {
        system_prompt: String::from("Be brief."),
        ..ChatSettings::default()
    };
    assert_eq!(app.preview_template(&chat).unwrap_err().code, Code::NoModel);
    load(&app, &desk.model);
    let text = app.preview_template(&chat).unwrap();
    assert!(
        text.contains("Be brief.") && text.contains("Hello"),
        "{text}"
    );
    let other = ChatSettings {
        template: String::from("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"),
        ..chat.clone()
    };
    let text = app.preview_template(&other).unwrap();
    assert_eq!(text, "[system]Be brief.[user]Hello");
    let wrong = ChatSettings {
        template: String::from("{% for %}"),
        ..chat
    };
    let error = app.preview_template(&wrong).unwrap_err();
    assert!(error.to_string().contains("template"), "{error}");
    // Who keeps it all the same is told that it was not used.
    app.keep_chat_settings(None, Some(wrong)).unwrap();
    let (sent, _) = ask(&app, None, "Who?");
    let messages = app
        .open_conversation(sent.conversation.id)
        .unwrap()
        .messages;
    let record = messages.last().unwrap().record.clone().unwrap();
    let notice = record.notice.unwrap_or_default();
    assert!(notice.contains("template"), "{notice:?}");
}

#[test]
fn another_model_comes_at_once_if_the_reply_is_not_to_be_waited_for() {
    let desk = Desk::new();
    let other = desk.dir.path().join("other.gguf");
    TinyModel::llama().seed(2).write(&other).unwrap();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun, Fault::Stall);
    let sent = app.send(None, "First words").unwrap();
    desk.script.wait_until_stalled();
    let entry = app.add_model(&other).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the load waits", || kind(&app) == BannerKind::Waiting);
    assert_eq!(app.status().banner.actions, [BannerAction::SwitchNow]);
    app.stop_writing();
    assert_eq!(end_of(&app, sent.turn).message.state, MessageState::Stopped);
    until("the other answers", || {
        app.status().model.is_some_and(|model| model.id == entry.id)
            && kind(&app) == BannerKind::Cpu
    });
    // Nothing is written: a word to stop it is no error.
    app.stop_writing();
}

#[test]
fn models_of_other_folders_are_listed_and_a_folder_that_goes_takes_nothing_away() {
    let desk = Desk::new();
    let drive = desk.dir.path().join("drive");
    fs::create_dir_all(drive.join("deep")).unwrap();
    fs::copy(&desk.model, drive.join("deep/far.gguf")).unwrap();
    let app = desk.open();
    let listed = || -> Vec<(String, bool)> {
        let models = app.models().unwrap().into_iter();
        models.map(|model| (model.name, model.missing)).collect()
    };
    assert_eq!(
        app.add_model_folder(&desk.model).unwrap_err().code,
        Code::NotFound
    );
    let settings = app.add_model_folder(&drive).unwrap();
    assert_eq!(settings.model_folders.len(), 1);
    until("it is found", || {
        listed() == [(String::from("far.gguf"), false)]
    });
    let folder = |app: &candor_app::App| app.bootstrap().unwrap().folders.remove(1);
    until("it is told", || folder(&app).state == FolderState::Ready);
    assert_eq!(folder(&app).models, 1);
    fs::rename(&drive, desk.dir.path().join("unplugged")).unwrap();
    app.search_folders();
    until("it is missed", || {
        folder(&app).state == FolderState::Missing
    });
    assert_eq!(listed(), [(String::from("far.gguf"), true)]);
    fs::rename(desk.dir.path().join("unplugged"), &drive).unwrap();
    app.search_folders();
    until("it is back", || folder(&app).state == FolderState::Ready);
    assert_eq!(listed(), [(String::from("far.gguf"), false)]);
    app.remove_model_folder(&settings.model_folders[0]).unwrap();
    assert!(listed().is_empty());
    assert!(drive.join("deep/far.gguf").exists());
    assert!(
        app.bootstrap()
            .unwrap()
            .downloads
            .iter()
            .all(|d| d.state == DownloadState::Done)
    );
}
