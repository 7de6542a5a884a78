//! What can stand against a download, in plain words.

use std::io;
use std::time::Duration;

use ureq::http::{HeaderMap, StatusCode};

use crate::words;

/// Longest time that a server may ask to be left alone; who says more is asked again after this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Why a file did not come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// It was stopped here.
    #[error("it was stopped")]
    Stopped,
    /// The connection gave nothing more.
    #[error("the connection broke: {reason}")]
    Broke {
        /// In a few words.
        reason: String,
    },
    /// The server is overburdened or out of order.
    #[error("the server answers {status}")]
    Busy {
        /// As a number.
        status: u16,
        /// When it wants to be asked again.
        after: Option<Duration>,
    },
    /// There is nothing of this name.
    #[error("the server has no such file")]
    Gone,
    /// It is not for everybody.
    #[error("its owner asks for an account; get the file with a browser, and open it here")]
    NeedsAccount,
    /// Another answer than one that is understood.
    #[error("the server answers {status}")]
    Status {
        /// As a number.
        status: u16,
    },
    /// A page for people in the place of data: a sign-in, a notice of a firewall.
    #[error(
        "a web page came in the place of the file. Perhaps this network asks you to sign in first"
    )]
    WebPage,
    /// No JSON, or none that says what is asked.
    #[error("the answer was not understood; is the address that of a hub?")]
    NotUnderstood,
    /// The first bytes are those of something else.
    #[error("what came is not a model file")]
    NotAModel,
    /// Another number of bytes than was announced.
    #[error(
        "the file has {} where {} were announced",
        words::size(*found),
        words::size(*expected)
    )]
    WrongSize {
        /// As announced.
        expected: u64,
        /// As said by the server, or as came.
        found: u64,
    },
    /// All came, and is not what it should be.
    #[error("what came does not match the checksum, so it was thrown away")]
    WrongChecksum,
    /// The disk has no room.
    #[error("the disk is full; {} more are needed", words::size(*needed))]
    DiskFull {
        /// Bytes that are still to come.
        needed: u64,
    },
    /// The disk does not take it.
    #[error("it could not be written to the disk: {source}")]
    Disk {
        /// As the system says.
        source: io::Error,
    },
}

impl Fault {
    pub(super) fn broke(source: &ureq::Error) -> Self {
        let reason = match source {
            ureq::Error::HostNotFound => String::from("the server's name is not known"),
            ureq::Error::ConnectionFailed => String::from("the server does not answer"),
            ureq::Error::Timeout(_) => String::from("nothing came for too long"),
            ureq::Error::TooManyRedirects => String::from("it is sent from place to place"),
            ureq::Error::Io(source) => return Self::lost(source),
            other => other.to_string(),
        };
        Self::Broke { reason }
    }

    /// The connection, while something was read from it.
    pub(super) fn lost(source: &io::Error) -> Self {
        let within = source
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ureq::Error>());
        if let Some(known @ ureq::Error::Timeout(_)) = within {
            return Self::broke(known);
        }
        let reason = match source.kind() {
            io::ErrorKind::ConnectionRefused => "the server does not answer",
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                "the server broke it off"
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "nothing came for too long",
            _ => {
                return Self::Broke {
                    reason: source.to_string(),
                };
            }
        };
        Self::Broke {
            reason: String::from(reason),
        }
    }

    pub(super) fn of_disk(source: io::Error, needed: u64) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { needed },
            _ => Self::Disk { source },
        }
    }

    pub(super) fn of_status(status: StatusCode, headers: &HeaderMap) -> Self {
        let number = status.as_u16();
        match number {
            401 | 403 => Self::NeedsAccount,
            404 | 410 => Self::Gone,
            408 | 425 | 429 | 500..=599 => {
                let after = headers.get("retry-after");
                let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
                Self::Busy {
                    status: number,
                    after: after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX)),
                }
            }
            _ => Self::Status { status: number },
        }
    }

    /// Whether another try may help without anybody doing anything.
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::Broke { .. } | Self::Busy { .. })
    }
}
