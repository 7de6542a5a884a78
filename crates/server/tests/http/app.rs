//! Programs on the engine that the window uses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_app::service::{OfApp, OnRequest};
use candor_app::wire::{ServerSettings, ServerState};
use candor_app::{App, AppConfig, AppPaths, Clock, ProbeCommand, Tongue};
use candor_backend::{Backend, Feed, Row};
use candor_server::{Access, Parts, Patience, Running, ServerConfig, Switch, bind};
use candor_testkit::TinyModel;
use candor_testkit::scripted::{Fault, HANG_LIMIT, Script};
use serde_json::json;

use super::client::{GLANCE, get, post};
use super::desk::{LETTERS, chat, wait_until};

struct Window {
    app: App,
    script: Script,
    running: Running,
    _dir: tempfile::TempDir,
}

fn clock() -> Clock {
    Clock {
        now_ms: Arc::new(|| 1_000_000),
        instant: Arc::new(Instant::now),
    }
}

/// The app of a window that has two models, the first of which it opens.
fn opened(dir: &Path, script: &Script) -> App {
    let script = script.clone();
    let config = AppConfig {
        version: String::from("0.0.0"),
        clock: clock(),
        machine: candor_app::Machine::unknown(),
        free_memory: Arc::new(|| None),
        fresh_seed: Arc::new(|| 7),
        threads: 1,
        probe: ProbeCommand {
            program: "/bin/echo".into(),
            args: vec![r#"{"found":"no_driver"}"#.into()],
        },
        probe_limit: HANG_LIMIT,
        starters: Vec::new(),
        network: candor_app::Network::default(),
        backends: Arc::new(move |_| vec![Box::new(script.backend()) as Box<dyn Backend>]),
    };
    let app = App::open(AppPaths::below(dir), config).unwrap();
    for name in ["first", "second"] {
        let path = dir.join(format!("{name}.gguf"));
        TinyModel::llama().context(2_048).write(&path).unwrap();
        let entry = app.add_model(&path).unwrap();
        if name == "first" {
            app.load_model(&entry.id).unwrap();
        }
    }
    app
}

/// The model that answers.
fn answers(address: SocketAddr) -> Option<serde_json::Value> {
    let model = get(address, "/health").json()["model"].clone();
    (!model.is_null()).then_some(model)
}

impl Window {
    fn new(on_request: OnRequest) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::new(LETTERS);
        let app = opened(dir.path(), &script);
        let config = ServerConfig {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            access: Access::default(),
            slots: 1,
            queue: 8,
            unload_after: Some(Duration::from_millis(1)),
            patience: Patience::default(),
            clock: clock(),
            fresh_seed: Arc::new(|| 7),
            version: String::from("0.0.0"),
        };
        let source = OfApp::new(app.clone(), on_request);
        let running = bind(config).unwrap().serve(Arc::new(source)).unwrap();
        let window = Self {
            app,
            script,
            running,
            _dir: dir,
        };
        wait_until("the model is loaded", || {
            answers(window.address()) == Some(json!("first"))
        });
        window
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
    }

    fn ask(&self, model: &str) -> u16 {
        let mut body = chat("Hello", 3);
        body["model"] = json!(model);
        post(self.address(), "/v1/chat/completions", &body)
            .answer()
            .status
    }
}

#[test]
fn the_window_has_the_engine_and_programs_use_it() {
    let window = Window::new(OnRequest::Refuse);
    assert_eq!(window.ask("first"), 200);
    assert_eq!(window.ask(""), 200);
    // Another model is the user's to choose.
    assert_eq!(window.ask("second"), 404);
    assert_eq!(window.ask("third"), 404);
    assert_eq!(answers(window.address()), Some(json!("first")));
    let names = get(window.address(), "/v1/models").json();
    let names = names["data"].as_array().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    // A program that wants its memory back hears that it stays.
    let unload = json!({ "model": "first", "keep_alive": 0 });
    let kept = post(window.address(), "/api/generate", &unload)
        .answer()
        .json();
    assert_eq!(kept["done_reason"], json!("load"), "{kept}");
    // It stays, however long no program asks: idleness is the window's own affair.
    window.app.send(None, "Hello").unwrap();
    assert_eq!(answers(window.address()), Some(json!("first")));
}

#[test]
fn a_program_may_change_the_model_where_that_is_allowed() {
    let window = Window::new(OnRequest::Load);
    assert_eq!(window.ask("second"), 200);
    assert_eq!(answers(window.address()), Some(json!("second")));
    assert_eq!(window.ask("third"), 404);
    assert_eq!(window.ask("first"), 200);
}

/// The first forward that reads a question of this letter.
fn first_read(script: &Script, letter: u8) -> Option<usize> {
    let is_letter = |row: &Row| row.feed == Feed::Token(u32::from(letter));
    let batches = script.batches();
    batches
        .iter()
        .position(|batch| batch.rows.iter().filter(|row| is_letter(row)).count() > QUESTION / 2)
}

/// Letters of a question, more than a reply has of one kind.
const QUESTION: usize = 60;

#[test]
fn the_desktops_own_chat_comes_before_programs_that_came_before_it() {
    // So many that the person's question comes to the engine before the end, however slow the
    // machine is.
    const TOKENS: usize = 1_500;
    let window = Window::new(OnRequest::Refuse);
    let ask = |letter: &str, tokens: usize| {
        let mut body = chat(&letter.repeat(QUESTION), tokens);
        body["model"] = json!("first");
        post(window.address(), "/v1/chat/completions", &body)
    };
    window.script.at_forward(6, Fault::Stall);
    let first = ask("Q", TOKENS);
    window.script.wait_until_stalled();
    // One program is written to; these two wait for its place.
    let waiting = [ask("X", 4), ask("Y", 4)];
    wait_until("three are inside", || {
        let health = get(window.address(), "/health").json();
        let count = |name: &str| health[name].as_u64().unwrap();
        count("requests_active") + count("requests_waiting") == 3
    });
    window.app.send(None, &"Z".repeat(QUESTION)).unwrap();
    while first_read(&window.script, b'Z').is_none() {
        let next = window.script.counts().submitted;
        window.script.at_forward(next, Fault::Stall);
        window.script.release();
        window.script.wait_until_stalled();
        std::thread::sleep(GLANCE);
    }
    // It is read beside the program that is written to, and the others still wait.
    for letter in [b'X', b'Y'] {
        assert_eq!(first_read(&window.script, letter), None);
    }
    let both = window.script.batches();
    let rows = &both.last().unwrap().rows;
    assert!(rows.iter().any(|row| row.slot != rows[0].slot), "{rows:?}");
    window.script.release();
    assert_eq!(first.answer().status, 200);
    for sent in waiting {
        assert_eq!(sent.answer().status, 200);
    }
    let [next, last] = [b'X', b'Y'].map(|letter| first_read(&window.script, letter));
    assert!(next.is_some() && last.is_some(), "{next:?} {last:?}");
}

fn switch() -> Switch {
    Switch::new(Parts {
        clock: clock(),
        fresh_seed: Arc::new(|| 7),
        version: String::from("0.0.0"),
    })
}

/// Where a switched server listens.
#[track_caller]
fn address_of(state: &ServerState) -> SocketAddr {
    match state {
        ServerState::Listening { address, .. } => {
            let address = address.strip_prefix("http://").unwrap();
            address.parse().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_switch_starts_changes_and_ends_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (app, switch) = (opened(dir.path(), &Script::new(LETTERS)), switch());
    let wanted = ServerSettings {
        on: true,
        port: 0,
        ..ServerSettings::default()
    };
    let off = ServerSettings {
        on: false,
        ..wanted.clone()
    };
    assert_eq!(switch.set(&off, &app), ServerState::Off);
    let first = address_of(&switch.set(&wanted, &app));
    assert!(first.ip().is_loopback());
    assert_eq!(get(first, "/health").status, 200);
    // What is as it was wanted goes on.
    assert_eq!(address_of(&switch.set(&wanted, &app)), first);
    assert_eq!(switch.state(Tongue::English), switch.set(&wanted, &app));
    // With a key it is another server, and the one before is gone.
    let locked = ServerSettings {
        key: String::from("secret"),
        ..wanted.clone()
    };
    let second = address_of(&switch.set(&locked, &app));
    assert_eq!(get(second, "/v1/models").status, 401);
    assert!(first == second || TcpStream::connect(first).is_err());
    assert_eq!(switch.set(&off, &app), ServerState::Off);
    assert!(TcpStream::connect(second).is_err());
    // The app is not kept open by a server that was.
    let third = address_of(&switch.set(&wanted, &app));
    drop(switch);
    assert!(TcpStream::connect(third).is_err());
}

#[test]
fn a_port_that_another_program_has_is_told_with_a_free_one() {
    let dir = tempfile::tempdir().unwrap();
    let (app, switch) = (opened(dir.path(), &Script::new(LETTERS)), switch());
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let wanted = ServerSettings {
        on: true,
        port: other.local_addr().unwrap().port(),
        ..ServerSettings::default()
    };
    let taken = switch.set(&wanted, &app);
    let ServerState::PortTaken { port, free } = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(port, wanted.port);
    assert_eq!(
        switch.state(Tongue::English),
        ServerState::PortTaken { port, free }
    );
    // Tried again, it is free.
    drop(other);
    assert_eq!(address_of(&switch.set(&wanted, &app)).port(), port);
}
