//! What can stand against a download, in plain words.

use std::io;
use std::time::Duration;

use ureq::http::{HeaderMap, StatusCode};

use crate::words::{self, Bytes, German, Phrase, Tongue, phrase};

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
        reason: Phrase,
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

/// Fewer bytes came than were announced.
pub(super) fn broken_off() -> Phrase {
    phrase!("the server broke it off", "der Server hat sie abgebrochen")
}

fn silent() -> Phrase {
    phrase!("the server does not answer", "der Server antwortet nicht")
}

fn late() -> Phrase {
    phrase!("nothing came for too long", "zu lange kam nichts")
}

impl German for Fault {
    fn german(&self) -> String {
        match self {
            Self::Stopped => String::from("der Download wurde angehalten"),
            Self::Broke { reason } => format!(
                "die Verbindung ist abgebrochen: {}",
                words::capital(reason.in_tongue(Tongue::German))
            ),
            Self::Busy { status, .. } | Self::Status { status } => {
                format!("der Server antwortet mit {status}")
            }
            Self::Gone => String::from("der Server hat keine solche Datei"),
            Self::NeedsAccount => String::from(
                "der Anbieter verlangt ein Konto; hole die Datei mit einem Browser und öffne sie hier",
            ),
            Self::WebPage => String::from(
                "statt der Datei kam eine Webseite. Vielleicht verlangt dieses Netz erst eine \
                 Anmeldung",
            ),
            Self::NotUnderstood => {
                String::from("die Antwort war nicht zu verstehen; ist das die Adresse eines Hubs?")
            }
            Self::NotAModel => String::from("was kam, ist keine Modelldatei"),
            Self::WrongSize { expected, found } => format!(
                "die Datei hat {} statt der angekündigten {}",
                Phrase::written(Bytes(*found)).in_tongue(Tongue::German),
                Phrase::written(Bytes(*expected)).in_tongue(Tongue::German)
            ),
            Self::WrongChecksum => {
                String::from("was kam, passt nicht zur Prüfsumme und wurde deshalb verworfen")
            }
            Self::DiskFull { needed } => format!(
                "der Datenträger ist voll; nötig sind noch {}",
                Phrase::written(Bytes(*needed)).in_tongue(Tongue::German)
            ),
            Self::Disk { source } => {
                format!("die Datei ließ sich nicht auf den Datenträger schreiben: {source}")
            }
        }
    }
}

impl Fault {
    pub(super) fn broke(source: &ureq::Error) -> Self {
        let reason = match source {
            ureq::Error::HostNotFound => phrase!(
                "the server's name is not known",
                "der Name des Servers ist nicht bekannt",
            ),
            ureq::Error::ConnectionFailed => silent(),
            ureq::Error::Timeout(_) => late(),
            ureq::Error::TooManyRedirects => phrase!(
                "it is sent from place to place",
                "es geht von einer Adresse zur nächsten",
            ),
            ureq::Error::Io(source) => return Self::lost(source),
            other => Phrase::same(other.to_string()),
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
            io::ErrorKind::ConnectionRefused => silent(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => broken_off(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => late(),
            _ => Phrase::same(source.to_string()),
        };
        Self::Broke { reason }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::says_the_same;

    #[test]
    fn every_fault_is_said_in_both_languages_with_the_same_numbers() {
        let broke = [ureq::Error::HostNotFound, ureq::Error::ConnectionFailed];
        let broke = broke.iter().map(Fault::broke);
        let lost = [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::TimedOut,
            io::ErrorKind::Other,
        ];
        let lost = lost.map(|kind| Fault::lost(&kind.into()));
        let others = [
            Fault::Stopped,
            Fault::Busy {
                status: 503,
                after: None,
            },
            Fault::Gone,
            Fault::NeedsAccount,
            Fault::Status { status: 418 },
            Fault::WebPage,
            Fault::NotUnderstood,
            Fault::NotAModel,
            Fault::WrongSize {
                expected: 4_700_000_000,
                found: 2_100_000_000,
            },
            Fault::WrongChecksum,
            Fault::DiskFull {
                needed: 1_500_000_000,
            },
            Fault::Disk {
                source: io::ErrorKind::PermissionDenied.into(),
            },
        ];
        for fault in broke.chain(lost).chain(others) {
            says_the_same(&fault.to_string(), &fault.german());
        }
    }
}
