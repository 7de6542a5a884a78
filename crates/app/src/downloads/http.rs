//! The one place that speaks to the network: plain requests for pages and for parts of files.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use super::fault::Fault;

/// A server that has not said anything by then is taken for broken.
const STALL: Duration = Duration::from_secs(20);
/// Time for the name to be found and the connection to stand.
const CONNECT: Duration = Duration::from_secs(15);
/// A hub sends a file on to where it lies, and that place once more; beyond this it is a circle.
const REDIRECTS_MAX: u32 = 8;
/// Largest answer that is a description and not a file, in bytes: a listing of some thousand files.
const PAGE_BYTES_MAX: u64 = 16 << 20;

/// How the network is reached. Made by a composition root.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Address of a proxy, if requests have to go through one.
    pub proxy: Option<String>,
    /// The starter model, for who has none.
    pub starter: Option<StarterDownload>,
    /// How long a silent server is waited for; none for the usual time.
    pub patience: Option<Duration>,
}

/// A model that is downloaded as exactly this file or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterDownload {
    /// "owner/name" on the hub; which file there it is, its checksum tells.
    pub repo: String,
    /// What it is called here, in the program's folder of models.
    pub file: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Sends requests.
#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
}

/// A file as it comes.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Box<dyn Read>,
}

/// From where on a file is wanted.
pub(super) struct From<'a> {
    pub(super) byte: u64,
    /// The mark of the version of which the bytes before are here.
    pub(super) version: Option<&'a str>,
}

impl Client {
    pub(super) fn new(network: &Network) -> Result<Self, Fault> {
        let stall = network.patience.unwrap_or(STALL);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            // Companies that have mirrors have roots of their own, which only the system knows.
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let proxy = network.proxy.as_deref().map(ureq::Proxy::new).transpose();
        let proxy = proxy.map_err(|source| Fault::broke(&source))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(REDIRECTS_MAX)
            .tls_config(tls)
            .proxy(proxy)
            .user_agent(concat!("candor/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(stall))
            .timeout_per_read(Some(stall))
            // Not kept: a connection that stood idle while a download was paused is a broken one.
            .max_idle_connections(0)
            .build();
        Ok(Self {
            agent: config.into(),
        })
    }

    /// A description in JSON.
    pub(super) fn page(&self, url: &str) -> Result<serde_json::Value, Fault> {
        let answer = self.agent.get(url).header("accept", "application/json");
        let mut answer = answer.call().map_err(|source| Fault::broke(&source))?;
        let status = answer.status();
        if status != StatusCode::OK {
            return Err(Fault::of_status(status, answer.headers()));
        }
        let body = answer.body_mut().with_config().limit(PAGE_BYTES_MAX);
        let text = body.read_to_vec().map_err(|source| Fault::broke(&source))?;
        serde_json::from_slice(&text).map_err(|_| match text.starts_with(b"<") {
            true => Fault::WebPage,
            false => Fault::NotUnderstood,
        })
    }

    /// A file, from a byte on if the server can do that.
    pub(super) fn file(&self, url: &str, from: &From<'_>) -> Result<Answer, Fault> {
        let mut request = self.agent.get(url).header("accept", "*/*");
        if from.byte > 0 {
            request = request.header("range", format!("bytes={}-", from.byte));
            // A weak mark says no more than "about the same".
            if let Some(version) = from.version.filter(|mark| mark.starts_with('"')) {
                request = request.header("if-range", version);
            }
        }
        let answer = request.call().map_err(|source| Fault::broke(&source))?;
        let (parts, body) = answer.into_parts();
        let body = body.into_with_config().limit(u64::MAX).reader();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: Box::new(body),
        })
    }
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn fault(&self) -> Fault {
        Fault::of_status(self.status, &self.headers)
    }

    /// Bytes of the body, where the server says so.
    pub(super) fn length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// The first byte of a part, and the bytes of the whole.
    pub(super) fn range(&self) -> Option<(u64, Option<u64>)> {
        let words = self.header("content-range")?.strip_prefix("bytes ")?;
        let (range, whole) = words.split_once('/')?;
        let (first, _) = range.split_once('-')?;
        Some((first.trim().parse().ok()?, whole.trim().parse().ok()))
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}
