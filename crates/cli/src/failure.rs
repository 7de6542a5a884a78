//! How the program ends.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use candor_app::headless::{self, Kind};

/// The exit codes. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed while running.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// The guard rejected the GPU.
    Rejected = 3,
    /// The guard could not judge the GPU.
    NotJudged = 4,
    /// The model file was refused.
    Refused = 5,
    /// The GPU was asked for and cannot serve.
    NoGpu = 6,
    /// Interrupted with Ctrl-C.
    Interrupted = 130,
    /// The system wanted the program to end.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What is said of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// For scripts.
    pub(crate) code: &'static str,
    /// For a person.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) advice: Option<String>,
    /// The file that it is about.
    pub(crate) file: Option<PathBuf>,
}

impl Report {
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            advice: None,
            file: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }
}

/// Why a command did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads the output any more.
    BrokenPipe,
    /// Anything else.
    Report(Box<Report>),
}

impl Failure {
    /// A file beside the model that could not be read or written.
    pub(crate) fn file(path: &std::path::Path, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                "there is no such file or folder"
            }
            io::ErrorKind::IsADirectory => "this is a folder, not a file",
            io::ErrorKind::PermissionDenied => "there is no permission to use it",
            _ => &error.to_string(),
        };
        let message = format!("{}: {why}", path.display());
        Report {
            file: Some(path.to_owned()),
            ..Report::new(Exit::Failed, "io", message)
        }
        .into()
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Report::usage(message).into()
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Report(Box::new(report))
    }
}

impl From<headless::Failure> for Failure {
    fn from(failure: headless::Failure) -> Self {
        let exit = match failure.kind() {
            Kind::Refused => Exit::Refused,
            Kind::Usage => Exit::Usage,
            Kind::NoGpu => Exit::NoGpu,
            Kind::Rejected => Exit::Rejected,
            Kind::NotJudged => Exit::NotJudged,
            Kind::Stopped => Exit::Interrupted,
            Kind::Failed => Exit::Failed,
        };
        let report = Report {
            advice: failure.advice().map(|advice| advice.to_string()),
            file: failure.file().map(PathBuf::from),
            ..Report::new(exit, failure.code(), failure.to_string())
        };
        report.into()
    }
}

impl From<headless::DirectError> for Failure {
    fn from(error: headless::DirectError) -> Self {
        headless::Failure::from(error).into()
    }
}

/// Of the output: everything else names its file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Report::new(
            Exit::Failed,
            "output",
            format!("the output could not be written: {error}"),
        )
        .into()
    }
}
