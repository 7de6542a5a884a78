//! A card is looked after: with a clock, a battery and a card that do what the test says.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use candor_backend::{Backend, CancelToken};
use candor_engine::guard::{AUDIT_THREADS_MAX, IDLE_MIN, NoAudit, Power};
use candor_testkit::TinyModel;
use candor_testkit::scripted::{Fault, HANG_LIMIT, Script};

use super::Upkeep;
use crate::wire::{BannerKind, Sampling, Settings, Unsent};
use crate::{App, AppConfig, AppPaths, Clock, Machine, ProbeCommand};

/// Seconds that the scripted clocks show.
#[derive(Default)]
struct Time {
    awake: AtomicU64,
    asleep: AtomicU64,
}

impl Time {
    fn awake(&self) -> Duration {
        Duration::from_secs(self.awake.load(Ordering::SeqCst))
    }

    fn with_sleep(&self) -> Duration {
        self.awake() + Duration::from_secs(self.asleep.load(Ordering::SeqCst))
    }

    fn pass(&self, seconds: u64) {
        self.awake.fetch_add(seconds, Ordering::SeqCst);
    }

    fn sleep(&self, seconds: u64) {
        self.asleep.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// An app whose model is served by a proven card.
struct Desk {
    app: App,
    card: Script,
    reference: Script,
    time: Arc<Time>,
    on_mains: Arc<AtomicU64>,
    /// Goes last.
    dir: tempfile::TempDir,
}

const ONE_CARD: &str = r#"{"found":"devices","devices":[{"ordinal":0,"name":"RTX 4090","capability":[8,9],"total_bytes":24000000000,"free_bytes":20000000000,"driver_version":12040}]}"#;

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (card, reference) = (Script::new(97..123), Script::new(97..123));
        card.on_a_card();
        let (time, on_mains) = (Arc::new(Time::default()), Arc::new(AtomicU64::new(1)));
        let app = open(&dir, (&card, &reference), (&time, &on_mains));
        let sampling = Sampling {
            temperature: 0.0,
            max_tokens: 8,
            ..Sampling::default()
        };
        let settings = Settings {
            sampling,
            ..app.settings()
        };
        app.save_settings(settings).unwrap();
        TinyModel::llama()
            .context(4_096)
            .write(&dir.path().join("tiny.gguf"))
            .unwrap();
        let desk = Self {
            app,
            card,
            reference,
            time,
            on_mains,
            dir,
        };
        desk.load();
        desk
    }

    fn load(&self) {
        let entry = self.app.add_model(&self.dir.path().join("tiny.gguf"));
        self.app.load_model(&entry.unwrap().id).unwrap();
        self.until("a card serves", || self.line().contains("proven on "));
    }

    /// The same folder opened once more.
    fn reopen(&mut self) {
        self.app.close();
        let scripts = (&self.card, &self.reference);
        self.app = open(&self.dir, scripts, (&self.time, &self.on_mains));
        self.load();
    }

    fn line(&self) -> String {
        self.app.status().banner.reason
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(
                started.elapsed() < HANG_LIMIT,
                "never so: {what} ({})",
                self.line()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks something and waits for the whole reply.
    fn ask(&self, words: &str) {
        self.app.send(None, words).unwrap();
        self.until("no turn runs", || {
            self.app.bootstrap().unwrap().turns.is_empty()
        });
    }

    fn look(&self) {
        self.app.inner.look_after();
    }

    fn audits(&self) -> u32 {
        let chat = self.app.inner.models.state().chat();
        let audits = chat.and_then(|chat| self.app.inner.upkeep.audits(chat.loaded.id));
        audits.map_or(0, |audits| audits.prompts)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.card.release();
        self.reference.release();
    }
}

fn open(
    dir: &tempfile::TempDir,
    (card, reference): (&Script, &Script),
    (time, on_mains): (&Arc<Time>, &Arc<AtomicU64>),
) -> App {
    let now = Arc::new(AtomicI64::new(1));
    let (begun, awake, with_sleep) = (Instant::now(), Arc::clone(time), Arc::clone(time));
    let day = Arc::clone(time);
    let (card, reference, on_mains) = (card.clone(), reference.clone(), Arc::clone(on_mains));
    let config = AppConfig {
        version: String::from("0.0.0"),
        clock: Clock {
            now_ms: Arc::new(move || {
                now.fetch_add(1, Ordering::Relaxed) + day.with_sleep().as_millis() as i64
            }),
            instant: Arc::new(move || begun + awake.awake()),
        },
        machine: Machine {
            with_sleep: Arc::new(move || Some(with_sleep.with_sleep())),
            power: Arc::new(move || match on_mains.load(Ordering::SeqCst) {
                0 => Power::Battery,
                _ => Power::Mains,
            }),
        },
        free_memory: Arc::new(|| None),
        fresh_seed: Arc::new(|| 7),
        threads: 1,
        probe: ProbeCommand {
            program: PathBuf::from("/bin/echo"),
            args: vec![ONE_CARD.into()],
        },
        probe_limit: HANG_LIMIT,
        starters: Vec::new(),
        network: crate::Network::default(),
        backends: Arc::new(move |choice| {
            let card = choice.card.is_some().then(|| card.backend());
            let card = card.map(|card| Box::new(card) as Box<dyn Backend>);
            let reference: Box<dyn Backend> = Box::new(reference.backend());
            card.into_iter().chain([reference]).collect()
        }),
    };
    App::open(AppPaths::below(&dir.path().join("data")), config).unwrap()
}

#[test]
fn audits_take_their_share_of_an_hour_and_no_more() {
    let begun = Instant::now();
    let at = |seconds| begun + Duration::from_secs(seconds);
    let upkeep = Upkeep::default();
    let may = |seconds, power| {
        let allowed = upkeep.take_up(&CancelToken::new(), at(seconds), power);
        upkeep.state().running = None;
        allowed.map(|limit| limit.as_secs())
    };
    upkeep.written(300, at(0));
    assert_eq!(may(59, Power::Mains), Err(NoAudit::InUse));
    assert_eq!(may(60, Power::Battery), Err(NoAudit::OnBattery));
    assert_eq!(may(60, Power::Mains), Ok(72));
    upkeep.stir(at(60));
    assert_eq!(may(61, Power::Mains), Err(NoAudit::InUse));
    upkeep
        .state()
        .spent
        .push_back((at(130), Duration::from_secs(30)));
    assert_eq!(may(130, Power::Mains), Ok(42));
    upkeep
        .state()
        .spent
        .push_back((at(170), Duration::from_secs(30)));
    assert_eq!(may(300, Power::Mains), Err(NoAudit::EnoughThisHour));
    // The first of them is an hour ago.
    assert_eq!(may(3_735, Power::Mains), Ok(42));
    upkeep.written(0, at(3_735));
    assert_eq!(may(3_800, Power::Mains), Err(NoAudit::NothingWritten));
    // One at a time, and nobody is kept waiting by it.
    upkeep.written(300, at(3_800));
    let running = CancelToken::new();
    assert!(upkeep.take_up(&running, at(7_500), Power::Mains).is_ok());
    let second = upkeep.take_up(&CancelToken::new(), at(7_500), Power::Mains);
    assert_eq!(second, Err(NoAudit::InUse));
    upkeep.stir(at(7_501));
    assert!(running.is_cancelled());
    assert_eq!(AUDIT_THREADS_MAX, 2);
}

#[test]
fn after_a_sleep_nothing_is_written_before_the_card_was_proven_again() {
    let desk = Desk::new();
    desk.ask("Who?");
    let proven = |desk: &Desk| match &desk.app.inner.models.state().chat().unwrap().loaded.proof {
        candor_engine::Proof::Proven(report) => report.id,
        other => panic!("{other:?}"),
    };
    let before = proven(&desk);
    desk.look();
    desk.time.pass(10);
    desk.look();
    assert_eq!(proven(&desk), before, "it was awake all the time");
    let line = desk.line();
    assert!(line.ends_with(" · 1970-01-01"), "{line}");
    desk.time.sleep(25 * 3_600);
    // Nobody has looked yet: the question itself is the first.
    desk.ask("And now?");
    assert_ne!(proven(&desk), before);
    desk.until("the day is that of the proof", || {
        desk.line().ends_with(" · 1970-01-02")
    });
    assert_eq!(desk.app.status().banner.kind, BannerKind::Gpu);
    let conversations = desk.app.bootstrap().unwrap().conversations;
    let last = desk.app.open_conversation(conversations[0].id).unwrap();
    let record = last.messages.last().unwrap().record.clone().unwrap();
    assert!(record.proof.ends_with(", 1970-01-02"), "{}", record.proof);
    // A card that came back wrong writes nothing.
    desk.time.sleep(60);
    desk.card.wrong_from(Some(1));
    desk.ask("And now?");
    assert_eq!(desk.app.status().banner.kind, BannerKind::Cpu);
    let conversations = desk.app.bootstrap().unwrap().conversations;
    let last = desk.app.open_conversation(conversations[0].id).unwrap();
    let record = last.messages.last().unwrap().record.clone().unwrap();
    assert_eq!((record.backend.as_str(), record.moved), ("CPU", None));
}

#[test]
fn while_nobody_is_there_what_was_written_is_audited_and_it_is_kept() {
    let mut desk = Desk::new();
    let idle = IDLE_MIN.as_secs();
    let forwards = |desk: &Desk| desk.reference.counts().submitted;
    let none = forwards(&desk);
    desk.time.pass(idle);
    desk.look();
    assert_eq!(forwards(&desk), none, "nothing was written");
    desk.ask("Who are you, and what are you here for?");
    desk.look();
    assert_eq!(forwards(&desk), none, "somebody is there");
    desk.on_mains.store(0, Ordering::SeqCst);
    desk.time.pass(idle);
    desk.look();
    assert_eq!(forwards(&desk), none, "the power is the battery's");
    desk.on_mains.store(1, Ordering::SeqCst);
    desk.look();
    desk.until("it is audited", || desk.audits() == 1);
    assert!(forwards(&desk) > none);
    let line = desk.line();
    assert!(
        line.contains(" and on one of your prompts, to position "),
        "{line}"
    );
    let done = forwards(&desk);
    desk.time.pass(idle);
    desk.look();
    assert_eq!(forwards(&desk), done, "nothing new was written");
    desk.ask("And now?");
    desk.time.pass(idle);
    desk.look();
    desk.until("it is audited again", || desk.audits() == 2);
    // It is remembered with the model, the card and its driver.
    desk.reopen();
    desk.look();
    desk.until("it is remembered", || {
        desk.line()
            .contains(" and on 2 of your prompts, to position ")
    });
    // What an audit finds is acted on.
    desk.ask("And now?");
    desk.card.wrong_from(Some(10));
    desk.time.pass(idle);
    desk.look();
    desk.until("the processor serves", || {
        desk.app.status().banner.kind == BannerKind::Cpu
    });
}

/// Somebody comes while an audit runs.
#[track_caller]
fn check_interrupted(comes: impl FnOnce(&Desk)) {
    let desk = Desk::new();
    desk.ask("Who?");
    let at = desk.reference.counts().submitted;
    desk.reference.at_forward(at, Fault::Stall);
    desk.time.pass(IDLE_MIN.as_secs());
    std::thread::scope(|scope| {
        scope.spawn(|| desk.look());
        desk.reference.wait_until_stalled();
        comes(&desk);
    });
    // Not judged, and none the worse for it.
    assert_eq!(desk.audits(), 0);
    assert_eq!(desk.app.status().banner.kind, BannerKind::Gpu);
    // In another hour, which has its own share.
    desk.time.pass(3_600);
    desk.look();
    desk.until("it is done later", || desk.audits() == 1);
}

#[test]
fn an_audit_ends_at_once_when_somebody_types_or_asks_or_it_takes_too_long() {
    check_interrupted(|desk| {
        let unsent = r#"{"conversation":null,"text":"W","waiting":""}"#;
        let unsent: Unsent = serde_json::from_str(unsent).unwrap();
        desk.app.keep_unsent(&unsent).unwrap();
    });
    check_interrupted(|desk| desk.ask("And now?"));
    // Its share of the hour is used up.
    check_interrupted(|desk| desk.time.pass(72));
}
