//! A server on a scripted engine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_app::Clock;
use candor_app::headless::{
    Assumed, BackendWish, CancelToken, Cards, Choice, ChosenCards, Mode, Precision, Recall, Setup,
    TextSide, Unavailable,
};
use candor_app::service::{OnRequest, Standalone};
use candor_backend::Backend;
use candor_engine::{Engine, EngineConfig};
use candor_server::{Access, Patience, Running, ServerConfig, bind};
use candor_testkit::TinyModel;
use candor_testkit::scripted::{HANG_LIMIT, Script};
use serde_json::{Value, json};

use super::client::{Answer, GLANCE, Sent, get, post};

/// Letters: replies that nobody planned are words of these.
pub(crate) const LETTERS: std::ops::Range<u32> = 97..123;

/// The day on which cards are judged here: the second after 2026 began.
const TODAY_MS: i64 = 1_767_225_601_000;

pub(crate) struct Desk {
    pub(crate) script: Script,
    pub(crate) address: SocketAddr,
    pub(crate) source: Standalone,
    pub(crate) dir: tempfile::TempDir,
    running: Option<Running>,
}

/// What a test decides of a server.
pub(crate) struct Plan {
    pub(crate) slots: usize,
    pub(crate) queue: usize,
    pub(crate) access: Access,
    /// Whether the model is loaded at once.
    pub(crate) loads: bool,
    pub(crate) unload_after: Option<Duration>,
    pub(crate) patience: Patience,
    pub(crate) context: usize,
    pub(crate) model: TinyModel,
    pub(crate) choice: Choice,
    /// What computes before the script, if something does.
    pub(crate) card: Option<Script>,
    /// What the command line says of when a card is judged, and what the window's settings say.
    pub(crate) check: Option<Mode>,
    pub(crate) chosen: ChosenCards,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            slots: 2,
            queue: 60,
            access: Access::default(),
            loads: true,
            unload_after: None,
            patience: Patience::default(),
            context: 4_096,
            model: TinyModel::llama(),
            choice: Choice {
                wish: BackendWish::Auto,
                card: Err(Unavailable::NoDriver),
            },
            card: None,
            check: None,
            chosen: ChosenCards::default(),
        }
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(Plan::default())
    }

    pub(crate) fn with(plan: Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("Tiny.gguf");
        plan.model.clone().context(8_192).write(&model).unwrap();
        let script = Script::new(LETTERS);
        let config = EngineConfig {
            clock: Arc::new(Instant::now),
            available_memory: Arc::new(|| None),
            with_sleep: Arc::new(|| None),
            today: Arc::new(|| TODAY_MS),
        };
        let scripts = plan.card.iter().chain([&script]);
        let backends = scripts.map(|script| Box::new(script.backend()) as Box<dyn Backend>);
        let engine = Engine::spawn(config, backends.collect()).unwrap();
        let folders = vec![dir.path().to_owned()];
        let source = Standalone::on(engine, setup(&plan), (Vec::new(), folders), OnRequest::Load);
        if plan.loads {
            source.load(&model, &CancelToken::new()).unwrap();
        }
        let config = ServerConfig {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            access: plan.access,
            slots: plan.slots,
            queue: plan.queue,
            unload_after: plan.unload_after,
            patience: plan.patience,
            clock: clock(),
            fresh_seed: Arc::new(|| 7),
            version: String::from("0.0.0"),
        };
        let running = bind(config)
            .unwrap()
            .serve(Arc::new(source.clone()))
            .unwrap();
        Self {
            script,
            address: running.address(),
            source,
            dir,
            running: Some(running),
        }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Sent {
        post(self.address, path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        get(self.address, path)
    }

    /// The reply to a question, greedy, of so many tokens.
    pub(crate) fn chat(&self, question: &str, max_tokens: usize) -> String {
        let answer = self
            .post("/v1/chat/completions", &chat(question, max_tokens))
            .answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let text = json["choices"][0]["message"]["content"].as_str();
        text.expect("a text").to_owned()
    }

    /// Requests that are inside.
    pub(crate) fn inside(&self) -> u64 {
        let health = self.get("/health").json();
        let count = |name: &str| health[name].as_u64().unwrap();
        count("requests_active") + count("requests_waiting")
    }

    /// Waits until so many requests are inside.
    pub(crate) fn wait_inside(&self, count: u64) {
        wait_until(&format!("{count} requests are inside"), || {
            self.inside() == count
        });
    }

    /// One of the server's counters.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let mut lines = metrics.text().lines();
        let line = lines.find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.expect("the counter").parse().unwrap()
    }

    pub(crate) fn stop(&mut self) {
        self.running.take().unwrap().stop();
    }
}

/// Waits for something that has to come.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < HANG_LIMIT,
            "not so within {HANG_LIMIT:?}: {what}"
        );
        std::thread::sleep(GLANCE);
    }
}

/// A body of a chat completion that takes the best tokens.
pub(crate) fn chat(question: &str, max_tokens: usize) -> Value {
    json!({
        "model": "tiny",
        "messages": [{ "role": "user", "content": question }],
        "temperature": 0,
        "max_tokens": max_tokens,
    })
}

/// The same as a stream.
pub(crate) fn chat_stream(question: &str, max_tokens: usize) -> Value {
    let mut body = chat(question, max_tokens);
    body["stream"] = json!(true);
    body
}

fn clock() -> Clock {
    Clock {
        now_ms: Arc::new(|| {
            // Of this machine: a test of idleness needs a clock that runs.
            let since = std::time::UNIX_EPOCH.elapsed().unwrap();
            i64::try_from(since.as_millis()).unwrap()
        }),
        instant: Arc::new(Instant::now),
    }
}

fn setup(plan: &Plan) -> Setup {
    Setup {
        threads: 1,
        precision: Precision::Fast,
        kv: None,
        text: TextSide::Needed,
        assumed: Assumed::default(),
        context: Some(plan.context),
        slots: plan.slots,
        kept: 2,
        cards: Cards {
            choice: plan.choice.clone(),
            verdicts: None,
            check: plan.check,
            chosen: plan.chosen.clone(),
            recall: Recall::Nothing,
            probe: None,
            unproven: None,
        },
        clock: clock(),
        free_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
    }
}

/// The ids of a text of letters, then the model's own end.
pub(crate) fn reply(desk: &Desk, bytes: &[u8]) {
    let end = TinyModel::llama()
        .token_id(candor_testkit::TURN_END)
        .unwrap();
    let tokens: Vec<u32> = bytes
        .iter()
        .map(|byte| u32::from(*byte))
        .chain([end])
        .collect();
    desk.script.reply(&tokens);
}
