//! Models: loading, refusing, stopping, exchanging; and what the banner says meanwhile.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use candor_app::wire::{
    BannerAction, BannerKind, Code, DeviceChoice, FindingWeight, KvChoice, MessageState,
    ModelDetails, Settings, Starter, Tone,
};
use candor_app::{ProbeCommand, compose};
use candor_testkit::scripted::{Fault, LoadFault};
use candor_testkit::{Damage, TinyModel};

use crate::desk::{Desk, answer_of_driver, ask, end_of, kind, load, until};

#[test]
fn a_refused_file_keeps_the_model_before() {
    let desk = Desk::new();
    let app = desk.open_ready();
    for damage in Damage::ALL {
        let path = damage.write(desk.dir.path(), &TinyModel::llama()).unwrap();
        let entry = app.add_model(&path).unwrap();
        app.load_model(&entry.id).unwrap();
        until("the file is refused", || kind(&app) == BannerKind::Refused);
        let status = app.status();
        let banner = &status.banner;
        assert_eq!(
            (banner.state.as_str(), banner.tone),
            ("Not loaded", Tone::Refusal)
        );
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(banner.reason.matches(name).count(), 1, "{}", banner.reason);
        assert!(banner.reason.len() > name.len() + 10, "{}", banner.reason);
        assert!(
            banner.advice.as_ref().unwrap().contains("tiny stays open"),
            "{banner:?}"
        );
        assert_eq!(status.model.unwrap().name, "tiny");
    }
    desk.reply("fine");
    let (_, end) = ask(&app, None, "Still there?");
    assert_eq!(end.message.text, "fine");
    assert_eq!(kind(&app), BannerKind::Cpu);
}

#[test]
fn a_refusal_without_a_model_before_says_so_and_a_good_file_works() {
    let desk = Desk::new();
    let app = desk.open();
    let gone = app.add_model(&desk.dir.path().join("gone.gguf")).unwrap();
    assert!(gone.missing);
    app.load_model(&gone.id).unwrap();
    until("the file is refused", || kind(&app) == BannerKind::Refused);
    assert_eq!(app.status().model, None);
    load(&app, &desk.model);
    assert!(app.load_model("%zz").is_err());
}

#[test]
fn a_load_can_be_stopped_and_gives_everything_back() {
    let desk = Desk::new();
    let app = desk.open();
    desk.script.at_load_report(1, LoadFault::Stall);
    let entry = app.add_model(&desk.model).unwrap();
    app.load_model(&entry.id).unwrap();
    desk.script.wait_until_stalled();
    until("the banner says so", || {
        let banner = app.status().banner;
        banner.kind == BannerKind::Loading && banner.progress.is_some()
    });
    let banner = app.status().banner;
    assert!(
        banner.reason.starts_with("tiny · 25 %"),
        "{}",
        banner.reason
    );
    assert_eq!(banner.actions, [BannerAction::StopLoading]);
    app.stop_loading();
    until("nothing is open", || kind(&app) == BannerKind::NoModel);
    app.stop_loading();
    until("the memory is back", || {
        desk.script.counts().weights_alive == 0
    });
    load(&app, &desk.model);
}

#[test]
fn a_question_waits_for_the_model_that_is_being_loaded() {
    let desk = Desk::new();
    let app = desk.open();
    let entry = app.add_model(&desk.model).unwrap();
    for is_stopped in [true, false] {
        desk.script.at_load_report(1, LoadFault::Stall);
        app.load_model(&entry.id).unwrap();
        desk.script.wait_until_stalled();
        let sent = app.send(None, "Early?").unwrap();
        if is_stopped {
            app.stop(sent.turn);
            assert_eq!(end_of(&app, sent.turn).message.state, MessageState::Stopped);
            app.stop_loading();
            until("nothing is open", || kind(&app) == BannerKind::NoModel);
        } else {
            desk.reply("here");
            desk.script.release();
            assert_eq!(end_of(&app, sent.turn).message.text, "here");
        }
    }
}

#[test]
fn another_model_takes_over_after_the_reply_and_each_reply_names_its_own() {
    let desk = Desk::new();
    let other = desk.dir.path().join("other.gguf");
    TinyModel::llama().seed(2).write(&other).unwrap();
    let app = desk.open_ready();
    let begun = desk.script.counts().submitted;
    desk.script.at_forward(begun + 2, Fault::Stall);
    desk.reply("abcdef");
    let first = app.send(None, "First words").unwrap();
    desk.script.wait_until_stalled();
    let entry = app.add_model(&other).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the load waits", || kind(&app) == BannerKind::Waiting);
    assert_eq!(app.status().banner.reason, "for the reply in First words");
    assert_eq!(app.status().model.unwrap().name, "tiny");
    let second = app.send(None, "Second words").unwrap();
    desk.reply("xyz");
    desk.script.release();
    let (first, second) = (end_of(&app, first.turn), end_of(&app, second.turn));
    let model = |message: &candor_app::wire::Message| message.record.clone().unwrap().model;
    assert_eq!(
        (first.message.text.as_str(), model(&first.message).as_str()),
        ("abcdef", "tiny")
    );
    assert_eq!(
        (
            second.message.text.as_str(),
            model(&second.message).as_str()
        ),
        ("xyz", "other")
    );
    until("the other answers", || {
        app.status().model.is_some_and(|m| m.name == "other")
    });
}

#[test]
fn a_context_that_does_not_fit_becomes_smaller_and_it_is_said() {
    let desk = Desk::with_model(&TinyModel::llama().context(8_192));
    let mut config = desk.config();
    // The model takes 192 bytes of state for a token: some 1.6 MB for 8,192 of them.
    config.free_memory = Arc::new(|| Some(2_000_000));
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let status = app.status();
    let context = status.model.unwrap().context;
    assert!(
        (512..8_192).contains(&context) && context.is_multiple_of(256),
        "{context}"
    );
    let row = status
        .banner
        .details
        .into_iter()
        .find(|row| row.name == "Context")
        .unwrap();
    assert!(
        row.value.ends_with("(8,192 do not fit in memory)"),
        "{}",
        row.value
    );
}

#[test]
fn a_model_that_does_not_fit_at_all_is_refused_with_both_numbers() {
    let desk = Desk::new();
    let mut config = desk.config();
    config.free_memory = Arc::new(|| Some(1_000));
    let app = desk.open_with(config);
    let entry = app.add_model(&desk.model).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the file is refused", || kind(&app) == BannerKind::Refused);
    let banner = app.status().banner;
    assert!(
        banner.reason.ends_with("1 kB are free"),
        "{}",
        banner.reason
    );
}

#[test]
fn other_threads_take_effect_with_the_next_model() {
    let desk = Desk::new();
    let mut config = desk.config();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (inner, list) = (config.backends.clone(), Arc::clone(&asked));
    config.backends = Arc::new(move |choice| {
        list.lock().unwrap().push(choice.threads);
        inner(choice)
    });
    let app = desk.open_with(config);
    load(&app, &desk.model);
    app.save_settings(Settings {
        threads: Some(3),
        ..app.settings()
    })
    .unwrap();
    let entry = app.add_model(&desk.model).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the engine is another", || asked.lock().unwrap().len() == 2);
    until("the model answers", || kind(&app) == BannerKind::Cpu);
    desk.reply("fine");
    assert_eq!(ask(&app, None, "Well?").1.message.text, "fine");
    assert_eq!(*asked.lock().unwrap(), [1, 3]);
}

#[test]
fn a_refused_file_keeps_the_model_before_also_when_other_threads_were_chosen() {
    let desk = Desk::new();
    let app = desk.open_ready();
    app.save_settings(Settings {
        threads: Some(3),
        ..app.settings()
    })
    .unwrap();
    for damage in Damage::ALL {
        let path = damage.write(desk.dir.path(), &TinyModel::llama()).unwrap();
        let entry = app.add_model(&path).unwrap();
        app.load_model(&entry.id).unwrap();
        until("the file is refused", || kind(&app) == BannerKind::Refused);
        let model = app.status().model;
        assert_eq!(model.unwrap().name, "tiny", "{}", path.display());
    }
    desk.reply("fine");
    assert_eq!(ask(&app, None, "Still there?").1.message.text, "fine");
}

#[test]
fn the_banner_says_why_the_processor_computes() {
    let cases = [
        (r#"{"found":"no_driver"}"#, "no NVIDIA driver found"),
        (r#"{"found":"no_device"}"#, "the driver sees no NVIDIA card"),
        (
            r#"{"found":"too_old","version":11040}"#,
            "the NVIDIA driver is too old (470; 525",
        ),
        (
            r#"{"found":"card_too_old","name":"GTX 1080","capability":[6,1]}"#,
            "GTX 1080 is too old",
        ),
        (
            "nonsense",
            "the NVIDIA driver does not answer (it crashed when it was asked",
        ),
    ];
    for (answer, want) in cases {
        let desk = Desk::new();
        let mut config = desk.config();
        config.probe = answer_of_driver(answer);
        let app = desk.open_with(config);
        load(&app, &desk.model);
        let banner = app.status().banner;
        assert_eq!(
            (banner.kind, banner.state.as_str()),
            (BannerKind::Cpu, "CPU")
        );
        assert!(banner.reason.starts_with(want), "{}", banner.reason);
        assert!(
            banner.reason.ends_with("· none · 1 thread"),
            "{}",
            banner.reason
        );
        desk.reply("hi");
        let record = ask(&app, None, "Who?").1.message.record.unwrap();
        assert!(
            banner.reason.starts_with(&record.backend_reason),
            "{}",
            record.backend_reason
        );
    }
}

#[test]
fn the_processor_chosen_by_the_user_leaves_the_driver_alone() {
    let desk = Desk::new();
    fs::create_dir_all(desk.data()).unwrap();
    fs::write(desk.data().join("settings.json"), r#"{"device":"cpu"}"#).unwrap();
    let trace = desk.dir.path().join("asked");
    let mut config = desk.config();
    config.probe = ProbeCommand {
        program: PathBuf::from("/usr/bin/touch"),
        args: vec![trace.clone().into()],
    };
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let banner = app.status().banner;
    assert!(
        banner.reason.starts_with("chosen by you · "),
        "{}",
        banner.reason
    );
    assert_eq!((banner.tone, banner.advice), (Tone::Neutral, None));
    assert!(!trace.exists());
    // Only who takes the choice back has the driver asked.
    app.save_settings(Settings {
        device: DeviceChoice::Auto,
        ..app.settings()
    })
    .unwrap();
    until("the driver is asked", || trace.exists());
}

#[test]
fn the_shipped_backend_answers() {
    let desk = Desk::new();
    let mut config = desk.config();
    (config.backends, config.threads) = (compose::backends(), 2);
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let banner = app.status().banner;
    assert!(banner.reason.ends_with(" · 2 threads"), "{}", banner.reason);
    let mut settings = app.settings();
    settings.sampling.max_tokens = 8;
    app.save_settings(settings).unwrap();
    let (_, first) = ask(&app, None, "Hello world");
    let (_, second) = ask(&app, None, "Hello world");
    assert_eq!(first.error, None);
    assert_eq!(
        first.message.text, second.message.text,
        "greedy replies are the same"
    );
    assert!(first.message.record.unwrap().generated_tokens > 0);
}

#[test]
fn the_starter_model_is_offered_if_it_is_there() {
    let desk = Desk::new();
    let mut config = desk.config();
    config.starters = vec![desk.dir.path().join("gone.gguf"), desk.model.clone()];
    let app = desk.open_with(config);
    let snapshot = app.bootstrap().unwrap();
    let Starter::Ready { id, size_bytes } = snapshot.starter else {
        panic!()
    };
    assert_eq!(
        u64::from(size_bytes),
        fs::metadata(&desk.model).unwrap().len()
    );
    let banner = snapshot.status.banner;
    assert_eq!(
        banner.actions,
        [BannerAction::OpenModel, BannerAction::OpenStarter]
    );
    app.load_model(&id).unwrap();
    until("the model answers", || kind(&app) == BannerKind::Cpu);
}

#[test]
fn any_name_that_a_disk_can_hold_loads_and_is_found_again() {
    let desk = Desk::new();
    let mut names: Vec<PathBuf> = vec![
        PathBuf::from("Модели  é ü 田中\u{3000}/qwen tiny 🙂 (final) #1 100%.gguf"),
        PathBuf::from("\u{e9}.gguf"),
        PathBuf::from("e\u{301}.gguf"),
        PathBuf::from(format!("{}.gguf", "n".repeat(245))),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        names.push(PathBuf::from(std::ffi::OsString::from_vec(
            b"\xff\xfe.gguf".to_vec(),
        )));
    }
    let app = desk.open();
    for name in &names {
        let path = desk.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&desk.model, &path).unwrap();
        load(&app, &path);
    }
    drop(app);
    let app = desk.open();
    let models = app.models().unwrap();
    assert_eq!(models.len(), names.len());
    for (entry, name) in models.iter().zip(names.iter().rev()) {
        assert_eq!(entry.name, name.file_name().unwrap().to_string_lossy());
        assert!(!entry.missing);
        app.load_model(&entry.id).unwrap();
        until("the model answers", || {
            app.status().model.is_some_and(|m| m.id == entry.id)
        });
    }
    app.forget_model(&models[0].id).unwrap();
    assert_eq!(app.models().unwrap().len(), names.len() - 1);
}

#[test]
fn details_describe_a_file_before_it_is_opened() {
    let desk = Desk::new();
    let app = desk.open();
    let describe = |name: &str| {
        let entry = app.add_model(&desk.dir.path().join(name)).unwrap();
        app.model_details(&entry.id).unwrap()
    };
    let row = |details: &ModelDetails, name: &str| {
        let row = details.facts.iter().find(|row| row.name == name);
        row.map(|row| row.value.clone())
    };
    let tiny = describe("tiny.gguf");
    assert_eq!((tiny.name.as_str(), tiny.findings.len()), ("tiny.gguf", 0));
    assert_eq!(row(&tiny, "Architecture").as_deref(), Some("llama"));
    assert_eq!(
        row(&tiny, "Use").as_deref(),
        Some("runs on the CPU, and on NVIDIA cards that prove themselves")
    );
    let context = row(&tiny, "Memory").unwrap();
    app.save_settings(Settings {
        context: Some(256),
        kv: KvChoice::Q8,
        ..app.settings()
    })
    .unwrap();
    let short = row(&describe("tiny.gguf"), "Memory").unwrap();
    assert!(
        short.ends_with("with 256 tokens") && short != context,
        "{short}"
    );

    fs::write(desk.dir.path().join("page.gguf"), "<!DOCTYPE html><html>").unwrap();
    let page = describe("page.gguf");
    assert_eq!((page.facts.len(), page.findings.len()), (0, 1), "{page:?}");
    let finding = &page.findings[0];
    assert_eq!(finding.weight, FindingWeight::Against);
    assert!(finding.message.starts_with("page.gguf: "), "{finding:?}");
    assert!(finding.message.ends_with('.') && finding.advice.is_some());

    fs::remove_file(&desk.model).unwrap();
    let gone = describe("tiny.gguf");
    assert_eq!(gone.findings[0].weight, FindingWeight::Against, "{gone:?}");
    assert_eq!(app.model_details("").unwrap_err().code, Code::NotFound);
}
