//! The port, the connections, and the end of both.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use candor_app::service::Source;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};

use crate::config::ServerConfig;
use crate::gate::Gate;
use crate::routes;
use crate::shared::Shared;

/// The port where nobody asks for another.
pub const PORT_DEFAULT: u16 = candor_app::wire::SERVER_PORT_DEFAULT;

/// Ports after a taken one that are tried, to offer one.
const PORTS_TRIED: u16 = 20;

/// Connections at once. More wait to be accepted; those that say nothing are closed soon.
const CONNECTIONS_MAX: usize = 256;

/// Most headers of a request; browsers send some twenty.
const HEADERS_MAX: usize = 64;

/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Threads that translate. They compute nothing, so two keep up with every client.
const THREADS: usize = 2;

/// Threads for what may wait: rendering, encoding, and models that are being loaded.
const WAITING_THREADS_MAX: usize = 128;

/// How often it is looked whether the model has been idle for long.
const IDLE_GLANCE: Duration = Duration::from_secs(1);

/// How long the system may have no place for another connection before it is asked again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens there.
    #[error("port {port} of {host} is taken by another program{}", offer(.free))]
    PortTaken {
        /// The address.
        host: std::net::IpAddr,
        /// The port.
        port: u16,
        /// A port that is free.
        free: Option<u16>,
    },
    /// It cannot be listened at this address.
    #[error("{address} cannot be listened at: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("the system gives no thread: {0}")]
    Thread(io::Error),
}

fn offer(free: &Option<u16>) -> String {
    free.map_or_else(String::new, |port| format!("; {port} is free"))
}

/// A server that runs. Stops when dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    gate: Arc<Gate>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// A port that is held, on which nobody answers yet: whoever calls waits.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
}

/// Takes the port, so that it is known to be free before a model is loaded.
///
/// # Errors
/// [`StartError`].
pub fn bind(config: ServerConfig) -> Result<Bound, StartError> {
    let (host, port) = (config.host, config.port);
    let address = SocketAddr::new(host, port);
    let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            let mut next = (1..=PORTS_TRIED).filter_map(|more| port.checked_add(more));
            let is_free = |port: &u16| TcpListener::bind((host, *port)).is_ok();
            let free = next.find(is_free);
            StartError::PortTaken { host, port, free }
        }
        _ => StartError::Bind { address, source },
    })?;
    let prepared = listener
        .set_nonblocking(true)
        .and_then(|()| listener.local_addr());
    let address = prepared.map_err(|source| StartError::Bind { address, source })?;
    Ok(Bound {
        listener,
        address,
        config,
    })
}

impl Bound {
    /// Where it will listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(self, source: Arc<dyn Source>) -> Result<Running, StartError> {
        let Self {
            listener,
            address,
            config,
        } = self;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(WAITING_THREADS_MAX)
            .thread_name("server")
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let shared = Shared::new(source, config);
        let gate = Arc::clone(&shared.gate);
        let serve = move || {
            runtime.block_on(accept(listener, shared, stopped));
            // What still runs is dropped, and so stopped; nobody waits for a thread that loads.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new()
            .name(String::from("server-listen"))
            .spawn(serve)
            .map_err(StartError::Thread)?;
        Ok(Running {
            address,
            gate,
            stop,
            thread: Some(thread),
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that are being answered or wait.
    pub fn requests(&self) -> usize {
        self.gate.inside()
    }

    /// Ends it: every request that is under way is stopped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been said by the thread itself.
            thread.join().ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept(listener: TcpListener, shared: Shared, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let router = routes::router(&shared);
    let mut glance = tokio::time::interval(IDLE_GLANCE);
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            _ = stopped.changed() => return,
        };
        // It is never closed.
        let Ok(place) = place else { return };
        let stream = loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => break stream,
                    // Such as no free descriptor; that passes.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                _ = glance.tick() => unload_if_idle(&shared),
                _ = stopped.changed() => return,
            }
        };
        let (router, stopped) = (router.clone(), stopped.clone());
        let head_time = shared.config.patience.head;
        tokio::spawn(async move {
            serve((stream, head_time), router, stopped).await;
            drop(place);
        });
    }
}

/// One connection to its end. Dropping it drops the requests on it, and so stops them.
async fn serve(
    (stream, head_time): (TcpStream, Duration),
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    // A token is a small packet that nobody wants to wait for.
    stream.set_nodelay(true).ok();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::select! {
        // What a client does wrong is its own affair.
        _ = connection => {}
        _ = stopped.changed() => {}
    }
}

fn unload_if_idle(shared: &Shared) {
    let after = shared.config.unload_after;
    let is_idle = after.is_some_and(|after| {
        u128::try_from(shared.idle_ms()).is_ok_and(|idle| idle >= after.as_millis())
    });
    let wanted = shared.unloads_now();
    if wanted.is_some() || is_idle {
        let source = Arc::clone(&shared.source);
        let id = wanted.filter(|_| !is_idle);
        tokio::task::spawn_blocking(move || source.unload(id.as_deref()));
    }
}
