//! A place to work at: folders that are gone afterwards, tiny models, and a scripted backend.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use candor_app::wire::{
    BannerKind, Conversation, Message, MessageState, Role, Sampling, Sent, Settings, TurnBatch,
    TurnEvent, WireError,
};
use candor_app::{App, AppConfig, AppPaths, Attached, Clock, Machine, News, ProbeCommand};
use candor_arch::Graph;
use candor_backend::{
    Backend, DeviceInfo, DeviceKind, LoadError, Loaded, Model, OpenOptions, Part, Progress,
    Unavailable, Unsupported,
};
use candor_modelfile::Index;
use candor_testkit::scripted::{HANG_LIMIT, Script, ScriptedBackend};
use candor_testkit::{TURN_END, TinyModel};

/// Letters: replies that nobody planned are words of these.
const LETTERS: std::ops::Range<u32> = 97..123;

pub(crate) struct Desk {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) script: Script,
    pub(crate) model: PathBuf,
}

/// The end of a turn, as one reader was told it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) message: Message,
    pub(crate) error: Option<WireError>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with_model(&TinyModel::llama())
    }

    pub(crate) fn with_model(model: &TinyModel) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny.gguf");
        model.write(&path).unwrap();
        Self {
            dir,
            script: Script::new(LETTERS),
            model: path,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn config(&self) -> AppConfig {
        let now = Arc::new(AtomicI64::new(1_000_000));
        let script = self.script.clone();
        AppConfig {
            version: String::from("0.0.0"),
            clock: Clock {
                now_ms: Arc::new(move || now.fetch_add(1, Ordering::Relaxed)),
                instant: Arc::new(Instant::now),
            },
            machine: Machine::unknown(),
            free_memory: Arc::new(|| None),
            fresh_seed: Arc::new(|| 7),
            threads: 1,
            probe: answer_of_driver(r#"{"found":"no_driver"}"#),
            probe_limit: HANG_LIMIT,
            starters: Vec::new(),
            network: candor_app::Network::default(),
            backends: Arc::new(move |_| vec![Box::new(script.backend()) as Box<dyn Backend>]),
        }
    }

    pub(crate) fn open(&self) -> App {
        self.open_with(self.config())
    }

    /// An app that always takes the best token.
    pub(crate) fn open_with(&self, config: AppConfig) -> App {
        let app = App::open(AppPaths::below(&self.data()), config).unwrap();
        if app.settings().sampling.temperature > 0.0 {
            let sampling = Sampling {
                temperature: 0.0,
                ..Sampling::default()
            };
            app.save_settings(Settings {
                sampling,
                ..app.settings()
            })
            .unwrap();
        }
        app
    }

    /// An app whose model answers.
    pub(crate) fn open_ready(&self) -> App {
        let app = self.open();
        load(&app, &self.model);
        app
    }

    /// The next reply is this text, then the end.
    pub(crate) fn reply(&self, text: &str) {
        let end = TinyModel::llama().token_id(TURN_END).unwrap();
        let mut tokens: Vec<u32> = text.bytes().map(u32::from).collect();
        assert!(
            tokens.iter().all(|token| LETTERS.contains(token)),
            "letters only"
        );
        tokens.push(end);
        self.script.reply(&tokens);
    }

    /// What a kill leaves behind: the files as they are now.
    pub(crate) fn killed(&self) -> Self {
        let copy = Self::new();
        copy_dir(&self.data(), &copy.data());
        copy
    }
}

/// A probe that answers like the child process of a program.
pub(crate) fn answer_of_driver(line: &str) -> ProbeCommand {
    ProbeCommand {
        program: PathBuf::from("/bin/echo"),
        args: vec![line.into()],
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A driver that sees one card.
pub(crate) fn one_card() -> ProbeCommand {
    answer_of_driver(
        r#"{"found":"devices","devices":[{"ordinal":0,"name":"RTX 4090","capability":[8,9],"total_bytes":24000000000,"free_bytes":20000000000,"driver_version":12040}]}"#,
    )
}

/// A scripted backend that says it were a card.
pub(crate) struct Card {
    inner: ScriptedBackend,
    missing: Vec<Unsupported>,
}

impl Card {
    pub(crate) fn of(script: &Script) -> Self {
        let inner = script.backend();
        let missing = Vec::new();
        Self { inner, missing }
    }

    /// One that cannot run this.
    pub(crate) fn without(script: &Script, missing: Unsupported) -> Self {
        let missing = vec![missing];
        Self {
            missing,
            ..Self::of(script)
        }
    }
}

impl Backend for Card {
    fn probe(&self) -> Result<DeviceInfo, Unavailable> {
        let device = self.inner.probe()?;
        Ok(DeviceInfo {
            kind: DeviceKind::Gpu,
            name: String::from("RTX 4090"),
            ..device
        })
    }

    fn supports(&self, _: &Graph, _: &Index, _: &OpenOptions) -> Vec<Unsupported> {
        self.missing.clone()
    }

    fn load(
        &mut self,
        model: Arc<Model>,
        part: Part,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Loaded>, LoadError> {
        self.inner.load(model, part, progress)
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < HANG_LIMIT, "never so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn kind(app: &App) -> BannerKind {
    app.status().banner.kind
}

/// Opens a model and waits until it answers.
#[track_caller]
pub(crate) fn load(app: &App, path: &Path) {
    let entry = app.add_model(path).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the model answers", || {
        let status = app.status();
        matches!(status.banner.kind, BannerKind::Cpu | BannerKind::Gpu)
            && status.model.is_some_and(|model| model.id == entry.id)
    });
}

/// Follows a turn.
pub(crate) fn follow(app: &App, turn: i64, from_seq: u32) -> Receiver<TurnBatch> {
    let (sender, receiver) = mpsc::channel();
    let reader = move |batch| match sender.send(batch) {
        Ok(()) => Attached::Stay,
        Err(_) => Attached::Gone,
    };
    assert!(
        app.attach(turn, from_seq, Box::new(reader)),
        "turn {turn} is unknown"
    );
    receiver
}

/// Everything that a reader is told, the text joined, and the end.
#[track_caller]
pub(crate) fn hear_all(batches: &Receiver<TurnBatch>) -> (String, End) {
    let (mut text, mut end) = (String::new(), None);
    // The reader is dropped after the end, which ends this loop.
    loop {
        let batch = match batches.recv_timeout(HANG_LIMIT) {
            Ok(batch) => batch,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the turn did not end"),
        };
        for event in batch.events {
            assert_eq!(end, None, "something came after the end: {event:?}");
            match event {
                TurnEvent::Text { text: more, .. } => text.push_str(&more),
                TurnEvent::Waiting
                | TurnEvent::Checking { .. }
                | TurnEvent::Moved { .. }
                | TurnEvent::Thinking { .. }
                | TurnEvent::Thought { .. }
                | TurnEvent::TextWasThinking
                | TurnEvent::Repeats { .. }
                | TurnEvent::Reading { .. } => {}
                TurnEvent::Finished { message } => {
                    end = Some(End {
                        message,
                        error: None,
                    })
                }
                TurnEvent::Failed { message, error } => {
                    end = Some(End {
                        message,
                        error: Some(error),
                    });
                }
            }
        }
    }
    (text, end.expect("the reader went without an end"))
}

/// Waits for the end of a turn.
#[track_caller]
pub(crate) fn end_of(app: &App, turn: i64) -> End {
    hear_all(&follow(app, turn, 0)).1
}

/// Asks and waits for the answer.
#[track_caller]
pub(crate) fn ask(app: &App, conversation: Option<i64>, text: &str) -> (Sent, End) {
    let sent = app.send(conversation, text).unwrap();
    let end = end_of(app, sent.turn);
    (sent, end)
}

/// The messages of a conversation, short.
pub(crate) fn lines(conversation: &Conversation) -> Vec<(Role, MessageState, &str)> {
    conversation
        .messages
        .iter()
        .map(|m| (m.role, m.state, m.text.as_str()))
        .collect()
}

/// Collects the news.
pub(crate) fn listen(app: &App) -> Arc<Mutex<Vec<News>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    app.listen(Box::new(move |news| list.lock().unwrap().push(news)));
    heard
}
