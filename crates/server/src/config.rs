//! What whoever starts the server decides.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use candor_app::Clock;

/// Requests that wait beside those that are written, where nobody asks for another number. The
/// engine takes 64 at once; with its slots this stays below.
pub const QUEUE_DEFAULT: usize = 60;

/// How a server is set up.
#[derive(Clone)]
pub struct ServerConfig {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 takes any.
    pub port: u16,
    /// Who may come in.
    pub access: Access,
    /// Requests that are written at once.
    pub slots: usize,
    /// Requests that wait beside them; more are refused.
    pub queue: usize,
    /// After so long without a request the model's memory is given back; never, if none.
    pub unload_after: Option<Duration>,
    /// How long a client may take.
    pub patience: Patience,
    /// The clocks.
    pub clock: Clock,
    /// A seed for a request that names none.
    pub fresh_seed: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Version of the program.
    pub version: String,
}

/// How long a client may take. A program on this machine needs milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the head of a request, also on a connection that was used before.
    pub head: Duration,
    /// For its body.
    pub body: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(20),
        }
    }
}

/// Who may come in.
#[derive(Clone, Default)]
pub struct Access {
    /// The key that every request has to carry, if one is asked for.
    pub api_key: Option<String>,
    /// Origins of web pages that may call, such as `http://localhost:3000`; `*` allows all.
    pub origins: Vec<String>,
    /// Names under which the server is called, beside `localhost` and addresses.
    pub hosts: Vec<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            // Nobody reads a key in a log.
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("origins", &self.origins)
            .field("hosts", &self.hosts)
            .finish()
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
