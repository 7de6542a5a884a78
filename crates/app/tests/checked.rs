//! A check of a card that somebody ends: over the simulated card, each in a process of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use candor_app::wire::{BannerKind, MessageState};
use candor_app::{App, AppConfig, AppPaths, Clock, Machine, ProbeCommand, compose};
use simcuda::{Library, scenario};

/// Longer than a simulated card takes for a check on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the child would find; the library is in this process already.
const CARD: &str = r#"{"found":"devices","devices":[{"ordinal":0,"name":"Simulated GPU","capability":[8,6],"total_bytes":8589934592,"free_bytes":8589934592,"driver_version":12040}]}"#;

/// An app in whose first load a card is just being checked.
struct Checking {
    app: App,
    library: Library,
    /// Goes last.
    _dir: tempfile::TempDir,
}

impl Checking {
    fn begin(library: Library) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicI64::new(1));
        let config = AppConfig {
            version: String::from("0.0.0"),
            clock: Clock {
                now_ms: Arc::new(move || now.fetch_add(1, Ordering::Relaxed)),
                instant: Arc::new(Instant::now),
            },
            machine: Machine::unknown(),
            free_memory: Arc::new(|| None),
            fresh_seed: Arc::new(|| 7),
            threads: 2,
            probe: ProbeCommand {
                program: PathBuf::from("/bin/echo"),
                args: vec![CARD.into()],
            },
            probe_limit: PATIENCE,
            starters: Vec::new(),
            network: candor_app::Network::default(),
            backends: compose::backends(),
        };
        let app = App::open(AppPaths::below(&dir.path().join("data")), config).unwrap();
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
        let entry = app.add_model(&models.join("s10-qwen2-q4_k_m.gguf"));
        let begun = library.counters().launches();
        app.load_model(&entry.unwrap().id).unwrap();
        let this = Self {
            app,
            library,
            _dir: dir,
        };
        // The card is at it, not only the processor.
        this.until("the card is being checked", |app| {
            app.status().banner.kind == BannerKind::Proving
                && this.library.counters().launches() > begun + 20
        });
        this
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&App) -> bool) {
        let started = Instant::now();
        while !is_so(&self.app) {
            let banner = self.app.status().banner;
            assert!(started.elapsed() < PATIENCE, "never so: {what}: {banner:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The words of a check that runs: so many positions, and no position counted twice.
    fn positions(&self) -> (u64, u64) {
        let banner = self.app.status().banner;
        let (_, counted) = banner.reason.rsplit_once(" · ").unwrap();
        let (done, total) = counted.split_once(" of ").unwrap();
        (done.parse().unwrap(), total.parse().unwrap())
    }

    /// Nothing is computed on the card any more, and what it holds is given back.
    fn has_left_the_card(&self) {
        let launches = self.library.counters().launches();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(self.library.counters().launches(), launches);
    }
}

scenario!(
    a_check_that_is_stopped_ends_the_load,
    "",
    |library: Library| {
        let checking = Checking::begin(library);
        let (done, total) = checking.positions();
        assert!(done < total && total == 289, "{done} of {total}");
        checking.app.stop_loading();
        checking.until("no model is open", |app| {
            app.status().banner.kind == BannerKind::NoModel
        });
        checking.has_left_the_card();
        assert!(checking.app.status().model.is_none());
    }
);

scenario!(
    a_check_that_is_left_out_leaves_the_processor,
    "",
    |library: Library| {
        let checking = Checking::begin(library);
        checking.app.use_cpu();
        checking.until("the processor serves", |app| {
            app.status().banner.kind == BannerKind::Cpu && app.status().model.is_some()
        });
        let banner = checking.app.status().banner;
        assert!(banner.reason.starts_with("chosen by you"), "{banner:?}");
        checking.has_left_the_card();
        // And answers.
        let sent = checking.app.send(None, "Hello").unwrap();
        checking.until("the reply has begun", |app| {
            let open = app.open_conversation(sent.conversation.id).unwrap();
            let reply = open.messages.last().unwrap();
            !reply.text.is_empty() || reply.state != MessageState::Writing
        });
        checking.app.stop(sent.turn);
        checking.until("it has ended", |app| {
            app.bootstrap().unwrap().turns.is_empty()
        });
        let open = checking
            .app
            .open_conversation(sent.conversation.id)
            .unwrap();
        let record = open.messages.last().unwrap().record.clone().unwrap();
        assert_eq!(record.backend, "CPU");
    }
);
