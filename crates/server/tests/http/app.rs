//! Programs on the engine that the window uses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_app::service::{OfApp, OnRequest};
use candor_app::{App, AppConfig, AppPaths, Clock, ProbeCommand};
use candor_backend::Backend;
use candor_server::{Access, Running, ServerConfig, bind};
use candor_testkit::TinyModel;
use candor_testkit::scripted::{HANG_LIMIT, Script};
use serde_json::json;

use super::client::{get, post};
use super::desk::{LETTERS, chat, wait_until};

struct Window {
    app: App,
    running: Running,
    _dir: tempfile::TempDir,
}

impl Window {
    fn new(on_request: OnRequest) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::new(LETTERS);
        let clock = Clock {
            now_ms: Arc::new(|| 1_000_000),
            instant: Arc::new(Instant::now),
        };
        let config = AppConfig {
            version: String::from("0.0.0"),
            clock: clock.clone(),
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
        let app = App::open(AppPaths::below(dir.path()), config).unwrap();
        for name in ["first", "second"] {
            let path = dir.path().join(format!("{name}.gguf"));
            TinyModel::llama().context(2_048).write(&path).unwrap();
            let entry = app.add_model(&path).unwrap();
            if name == "first" {
                app.load_model(&entry.id).unwrap();
            }
        }
        let config = ServerConfig {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            access: Access::default(),
            slots: 1,
            queue: 8,
            unload_after: Some(Duration::from_millis(1)),
            clock,
            fresh_seed: Arc::new(|| 7),
            version: String::from("0.0.0"),
        };
        let source = OfApp::new(app.clone(), on_request);
        let running = bind(config).unwrap().serve(Arc::new(source)).unwrap();
        let window = Self {
            app,
            running,
            _dir: dir,
        };
        wait_until("the model is loaded", || {
            window.answers() == Some(json!("first"))
        });
        window
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The model that answers.
    fn answers(&self) -> Option<serde_json::Value> {
        let model = get(self.address(), "/health").json()["model"].clone();
        (!model.is_null()).then_some(model)
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
    assert_eq!(window.answers(), Some(json!("first")));
    let names = get(window.address(), "/v1/models").json();
    let names = names["data"].as_array().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    // It stays, however long no program asks: idleness is the window's own affair.
    window.app.send(None, "Hello").unwrap();
    assert_eq!(window.answers(), Some(json!("first")));
}

#[test]
fn a_program_may_change_the_model_where_that_is_allowed() {
    let window = Window::new(OnRequest::Load);
    assert_eq!(window.ask("second"), 200);
    assert_eq!(window.answers(), Some(json!("second")));
    assert_eq!(window.ask("third"), 404);
    assert_eq!(window.ask("first"), 200);
}
