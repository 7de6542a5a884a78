use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_testkit::scripted::{HANG_LIMIT, Script};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::server::{Deed, Server};
use super::*;
use crate::wire::{DownloadState, Settings};
use crate::{AppConfig, AppPaths, Clock, ProbeCommand};

/// How long the tests wait for a server that says nothing, and between two tries.
const PATIENCE: Duration = Duration::from_millis(700);

struct Desk {
    dir: tempfile::TempDir,
    server: Server,
}

fn bytes(seed: u8, count: usize) -> Vec<u8> {
    let rest = (0..count).map(|at| (at as u8).wrapping_mul(31) ^ seed);
    b"GGUF".iter().copied().chain(rest).collect()
}

fn hash(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Desk {
    /// A hub with one model in one file, and one in two parts.
    fn new() -> Self {
        let (dir, server) = (tempfile::tempdir().unwrap(), Server::start());
        let files = [
            ("one.gguf", bytes(1, 30_000)),
            ("two-00001-of-00002.gguf", bytes(2, 20_000)),
            ("two-00002-of-00002.gguf", bytes(3, 10_000)),
        ];
        let blobs: Vec<_> = files
            .iter()
            .map(|(name, bytes)| {
                server.file(&format!("/ana/models/resolve/c0ffee/{name}"), bytes);
                let lfs = json!({ "sha256": hash(bytes), "size": bytes.len() });
                json!({ "rfilename": name, "size": bytes.len(), "lfs": lfs })
            })
            .collect();
        server.page(
            "/api/models/ana/models?blobs=true",
            json!({ "sha": "c0ffee", "siblings": blobs }),
        );
        let found = json!([
            { "id": "ana/models", "downloads": 12_000, "likes": 7, "lastModified": "2026-11-30T10:00:00.000Z" },
            { "id": "ana/closed", "gated": "manual" },
            { "id": "no place" },
            "nonsense",
        ]);
        server.page("/api/models?search=small%20models&filter=gguf", found);
        Self { dir, server }
    }

    fn open(&self) -> App {
        let script = Script::new(97..123);
        let config = AppConfig {
            version: String::from("0.0.0"),
            clock: Clock {
                now_ms: Arc::new(|| 1_000_000),
                instant: Arc::new(Instant::now),
            },
            machine: crate::Machine::unknown(),
            free_memory: Arc::new(|| Some(1_000_000_000)),
            fresh_seed: Arc::new(|| 7),
            threads: 1,
            probe: ProbeCommand {
                program: PathBuf::from("/bin/echo"),
                args: vec![r#"{"found":"no_driver"}"#.into()],
            },
            probe_limit: HANG_LIMIT,
            starters: vec![self.models().join("starter.gguf")],
            network: Network {
                proxy: None,
                starter: Some(StarterDownload {
                    repo: String::from("ana/models"),
                    file: String::from("starter.gguf"),
                    size_bytes: bytes(1, 30_000).len() as u64,
                    sha256: hash(&bytes(1, 30_000)),
                }),
                patience: Some(PATIENCE),
            },
            backends: Arc::new(move |_| vec![Box::new(script.backend())]),
        };
        let app = App::open(AppPaths::below(&self.dir.path().join("data")), config).unwrap();
        let hub_address = self.server.address.clone();
        app.save_settings(Settings {
            hub_address,
            ..app.settings()
        })
        .unwrap();
        app
    }

    fn models(&self) -> PathBuf {
        self.dir.path().join("data/models")
    }

    fn place(&self, name: &str) -> PathBuf {
        self.models().join("ana/models").join(name)
    }

    fn files_heard(&self) -> usize {
        let heard = self.server.heard();
        heard
            .iter()
            .filter(|line| line.contains("/resolve/"))
            .count()
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < HANG_LIMIT, "never so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn state(app: &App, id: u32) -> Option<DownloadState> {
    let all = app.bootstrap().unwrap().downloads;
    all.into_iter()
        .find(|job| job.id == id)
        .map(|job| job.state)
}

#[track_caller]
fn wait_for(app: &App, id: u32, want: DownloadState) -> Download {
    until(&format!("{want:?}"), || state(app, id) == Some(want));
    let all = app.bootstrap().unwrap().downloads;
    all.into_iter().find(|job| job.id == id).unwrap()
}

fn listed(app: &App) -> Vec<String> {
    app.models()
        .unwrap()
        .into_iter()
        .map(|model| model.name)
        .collect()
}

#[test]
fn a_hub_is_searched_and_its_models_are_told_with_their_sizes_and_their_room() {
    let desk = Desk::new();
    let app = desk.open();
    let found = app.hub_search(" small models ").unwrap();
    let told: Vec<_> = found
        .iter()
        .map(|model| (model.repo.as_str(), model.gated, model.updated.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("ana/models", false, "2026-11-30"),
            ("ana/closed", true, "")
        ]
    );
    let listing = app.hub_files("ana/models").unwrap();
    let told: Vec<_> = listing
        .files
        .iter()
        .map(|file| {
            (
                file.name.as_str(),
                file.parts,
                file.size_bytes,
                file.checked,
            )
        })
        .collect();
    let want = [
        ("one.gguf", 1, 30_004.0, true),
        ("two-00001-of-00002.gguf", 2, 30_008.0, true),
    ];
    assert_eq!(told, want);
    let sentence = &listing.files[0].fit.as_ref().unwrap().sentence;
    assert_eq!(
        sentence,
        "Fits: it takes about 36 kB, 1.0 GB are free of memory."
    );
    // Nothing of the sort is there: each is said in words.
    for (repo, want) in [("ana/gone", "no such file"), ("../etc", "no such file")] {
        let error = app.hub_files(repo).unwrap_err();
        assert_eq!(error.code, Code::Network);
        assert!(error.to_string().contains(want), "{error}");
    }
    desk.server.page("/api/models?search=x", "<html>");
    let error = app.hub_search("x").unwrap_err();
    assert!(error.to_string().contains("web page"), "{error}");
    desk.server.page("/api/models?search=y", "{\"error\":1}");
    let error = app.hub_search("y").unwrap_err();
    assert!(error.to_string().contains("not understood"), "{error}");
}

#[test]
fn a_model_is_listed_only_once_all_of_it_is_here() {
    let desk = Desk::new();
    let app = desk.open();
    desk.server.does([
        Deed::Whole,
        Deed::BreaksOffAfter(5_000),
        Deed::StallsAfter(1_000, Duration::from_millis(3_000)),
    ]);
    let begun = app
        .start_download("ana/models", "two-00001-of-00002.gguf")
        .unwrap();
    let names = ["two-00001-of-00002.gguf", "two-00002-of-00002.gguf"];
    until("it is whole", || {
        if !listed(&app).is_empty() {
            assert!(names.iter().all(|name| desk.place(name).is_file()));
        }
        state(&app, begun.id) == Some(DownloadState::Done)
    });
    assert_eq!(listed(&app), ["two-00001-of-00002.gguf"]);
    for (name, seed, count) in [
        ("two-00001-of-00002.gguf", 2, 20_000),
        ("two-00002-of-00002.gguf", 3, 10_000),
    ] {
        assert_eq!(fs::read(desk.place(name)).unwrap(), bytes(seed, count));
        assert!(!fetch::part_of(&desk.place(name)).exists());
    }
    let done = wait_for(&app, begun.id, DownloadState::Done);
    assert_eq!(
        (done.received_bytes, done.total_bytes),
        (30_008.0, 30_008.0)
    );
    assert_eq!(
        done.model,
        Some(path_id::encode(&desk.place("two-00001-of-00002.gguf")))
    );
    // What is here is not fetched again.
    let error = app
        .start_download("ana/models", "two-00001-of-00002.gguf")
        .unwrap_err();
    assert_eq!(error.code, Code::Busy);
    let listing = app.hub_files("ana/models").unwrap();
    assert_eq!(listing.files[1].id, done.model);
}

#[test]
fn a_paused_download_goes_on_where_it_was_also_after_a_restart() {
    let desk = Desk::new();
    let app = desk.open();
    desk.server
        .does([Deed::BreaksOffAfter(12_000), Deed::Slowly]);
    let begun = app.start_download("ana/models", "one.gguf").unwrap();
    until("the second try has begun", || desk.files_heard() == 2);
    app.pause_download(begun.id).unwrap();
    let paused = wait_for(&app, begun.id, DownloadState::Paused);
    assert!(paused.received_bytes >= 12_000.0, "{paused:?}");
    assert!(listed(&app).is_empty());
    app.close();
    drop(app);
    // The run that was stopped lets go of its file.
    std::thread::sleep(PATIENCE);

    let app = desk.open();
    let kept = app.bootstrap().unwrap().downloads.remove(0);
    assert_eq!(kept.state, DownloadState::Paused);
    assert!(kept.received_bytes >= 12_000.0, "{kept:?}");
    assert_eq!(desk.files_heard(), 2, "nothing is asked for before a click");
    app.resume_download(kept.id).unwrap();
    wait_for(&app, kept.id, DownloadState::Done);
    assert_eq!(fs::read(desk.place("one.gguf")).unwrap(), bytes(1, 30_000));
    let heard = desk.server.heard();
    let last = heard.iter().rev().find(|line| line.contains("/resolve/"));
    assert!(last.unwrap().contains(" from 1"), "{heard:?}");
    assert_eq!(listed(&app), ["one.gguf"]);
}

#[test]
fn what_fails_says_why_and_can_be_tried_again_or_taken_away() {
    let desk = Desk::new();
    let app = desk.open();
    desk.server.does([Deed::WrongBytes, Deed::WrongBytes]);
    let begun = app.start_download("ana/models", "one.gguf").unwrap();
    let failed = wait_for(&app, begun.id, DownloadState::Failed);
    assert!(failed.message.unwrap().contains("checksum"));
    assert_eq!(failed.received_bytes, 0.0);
    assert!(listed(&app).is_empty());
    desk.server.does([Deed::PageAsFile]);
    app.resume_download(begun.id).unwrap();
    until("the page is found out", || desk.files_heard() == 3);
    let failed = wait_for(&app, begun.id, DownloadState::Failed);
    assert!(failed.message.unwrap().contains("web page"));
    desk.server
        .does([Deed::BreaksOffAfter(9_000), Deed::Slowly]);
    app.resume_download(begun.id).unwrap();
    until("a part is here", || desk.files_heard() == 5);
    let part = fetch::part_of(&desk.place("one.gguf"));
    assert!(part.exists());
    app.remove_download(begun.id).unwrap();
    until("what came is removed", || !part.exists());
    assert!(app.bootstrap().unwrap().downloads.is_empty());
    assert_eq!(
        app.pause_download(begun.id).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn more_than_two_wait_their_turn() {
    let desk = Desk::new();
    let names = ["a.gguf", "b.gguf", "c.gguf"];
    let file = bytes(9, 3_000);
    let blobs = names.map(|name| {
        desk.server
            .file(&format!("/ana/more/resolve/main/{name}"), &file);
        json!({ "rfilename": name, "size": file.len(), "lfs": { "sha256": hash(&file) } })
    });
    desk.server.page(
        "/api/models/ana/more?blobs=true",
        json!({ "siblings": blobs }),
    );
    let app = desk.open();
    desk.server.does([Deed::Slowly, Deed::Slowly]);
    let ids = names.map(|name| app.start_download("ana/more", name).unwrap().id);
    until("two run", || desk.files_heard() == 2);
    assert_eq!(state(&app, ids[2]), Some(DownloadState::Queued));
    app.pause_download(ids[0]).unwrap();
    wait_for(&app, ids[2], DownloadState::Done);
    app.resume_download(ids[0]).unwrap();
    for id in ids {
        wait_for(&app, id, DownloadState::Done);
    }
}

#[test]
fn nothing_is_asked_while_the_user_wants_nothing_asked() {
    let desk = Desk::new();
    let app = desk.open();
    app.save_settings(Settings {
        offline: true,
        ..app.settings()
    })
    .unwrap();
    let refused = [
        app.hub_search("x").err(),
        app.hub_files("ana/models").err(),
        app.start_download("ana/models", "one.gguf").err(),
        app.download_starter().err(),
        app.resume_download(1).err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert_eq!(error.code, Code::Network);
        assert!(
            error.to_string().contains("nothing of the network"),
            "{error}"
        );
    }
    assert!(desk.server.heard().is_empty());
}

#[test]
fn what_runs_and_what_waits_ends_where_the_user_wants_nothing_asked() {
    let desk = Desk::new();
    let app = desk.open();
    desk.server.does([Deed::Slowly]);
    let begun = app.start_download("ana/models", "one.gguf").unwrap();
    until("it runs", || desk.files_heard() == 1);
    let offline = |offline| {
        let settings = app.settings();
        app.save_settings(Settings {
            offline,
            ..settings
        })
        .unwrap();
    };
    offline(true);
    wait_for(&app, begun.id, DownloadState::Paused);
    let heard = desk.files_heard();
    offline(false);
    assert_eq!(state(&app, begun.id), Some(DownloadState::Paused));
    assert_eq!(desk.files_heard(), heard, "a person has to say so");
    app.resume_download(begun.id).unwrap();
    wait_for(&app, begun.id, DownloadState::Done);
}

#[test]
fn the_starter_model_comes_as_the_file_that_it_has_to_be() {
    let desk = Desk::new();
    let app = desk.open();
    assert_eq!(
        app.bootstrap().unwrap().starter,
        Starter::Download { size_bytes: 30_004 }
    );
    assert!(desk.server.heard().is_empty(), "an offer asks nothing");
    let begun = app.download_starter().unwrap();
    wait_for(&app, begun.id, DownloadState::Done);
    let starter = desk.models().join("starter.gguf");
    let id = path_id::encode(&starter);
    assert_eq!(
        app.bootstrap().unwrap().starter,
        Starter::Ready {
            id,
            size_bytes: 30_004
        }
    );
    assert_eq!(listed(&app), ["starter.gguf"]);
    let other = |path: &Path| fs::read(path).unwrap();
    assert_eq!(other(&starter), bytes(1, 30_000));
}
