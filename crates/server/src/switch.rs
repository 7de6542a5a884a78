//! The server as a window switches it: on with these choices, off, or why not.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candor_app::service::{OfApp, OnRequest};
use candor_app::wire::{ServerSettings, ServerState};
use candor_app::{App, Clock, Phrase, Tongue};

use crate::config::{Access, Patience, QUEUE_DEFAULT, ServerConfig};
use crate::listen::{Running, StartError, bind};

/// Sequences that the window's engine writes at once.
const SLOTS: usize = 1;

/// What a composition root gives a server that a window switches.
#[derive(Clone)]
pub struct Parts {
    /// The clocks.
    pub clock: Clock,
    /// A seed for a request that names none.
    pub fresh_seed: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Version of the program.
    pub version: String,
}

/// At most one server, on this computer only. Off when dropped.
pub struct Switch {
    parts: Parts,
    seat: Mutex<Seat>,
}

#[derive(Default)]
enum Seat {
    #[default]
    Off,
    On(ServerSettings, Running),
    Refused(StartError),
}

impl Switch {
    /// A server that is off.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            seat: Mutex::default(),
        }
    }

    /// Makes it as it is wanted, and says how it is then. One that runs as wanted goes on; one that
    /// is changed is stopped first, with what it answers. A port that was taken is tried again.
    pub fn set(&self, wanted: &ServerSettings, app: &App) -> ServerState {
        let mut seat = self.seat();
        match &*seat {
            Seat::On(as_it_is, _) if as_it_is == wanted => {}
            _ => {
                // Before the next is bound: it may want the same port.
                *seat = Seat::Off;
                *seat = self.started(wanted, app);
            }
        }
        seat.state(app.tongue())
    }

    /// How it is, for a window of this language.
    pub fn state(&self, tongue: Tongue) -> ServerState {
        self.seat().state(tongue)
    }

    /// Ends it, with what it answers.
    pub fn stop(&self) {
        *self.seat() = Seat::Off;
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        // What is in there is replaced as a whole.
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, wanted: &ServerSettings, app: &App) -> Seat {
        if !wanted.on {
            return Seat::Off;
        }
        let on_request = match wanted.may_load {
            true => OnRequest::Load,
            false => OnRequest::Refuse,
        };
        let source = OfApp::new(app.clone(), on_request);
        let running = bind(self.config(wanted)).and_then(|bound| bound.serve(Arc::new(source)));
        match running {
            Ok(running) => Seat::On(wanted.clone(), running),
            Err(error) => Seat::Refused(error),
        }
    }

    fn config(&self, wanted: &ServerSettings) -> ServerConfig {
        let Parts {
            clock,
            fresh_seed,
            version,
        } = self.parts.clone();
        ServerConfig {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: wanted.port,
            access: Access {
                api_key: (!wanted.key.is_empty()).then(|| wanted.key.clone()),
                origins: wanted.origins.clone(),
                hosts: Vec::new(),
            },
            slots: SLOTS,
            queue: QUEUE_DEFAULT,
            // The window's model is the user's, however long no program asks.
            unload_after: None,
            patience: Patience::default(),
            clock,
            fresh_seed,
            version,
        }
    }
}

impl Seat {
    fn state(&self, tongue: Tongue) -> ServerState {
        match self {
            Self::Off => ServerState::Off,
            Self::On(_, running) => ServerState::Listening {
                address: format!("http://{}", running.address()),
                requests: u32::try_from(running.requests()).unwrap_or(u32::MAX),
            },
            Self::Refused(error) => refused(error, tongue),
        }
    }
}

fn refused(error: &StartError, tongue: Tongue) -> ServerState {
    let german = match error {
        StartError::PortTaken { port, free, .. } => {
            let (port, free) = (*port, *free);
            return ServerState::PortTaken { port, free };
        }
        StartError::Bind { address, source } => {
            format!("unter {address} lässt sich nicht antworten: {source}")
        }
        StartError::Thread(source) => format!("das System gibt keinen Thread mehr her: {source}"),
    };
    ServerState::Failed {
        why: Phrase::new(error.to_string(), german).to(tongue),
    }
}
