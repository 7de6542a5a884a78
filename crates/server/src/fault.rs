//! Why a request gets no answer, in the words and the shape of the protocol that it speaks.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use candor_app::headless::{Kind, RequestError};
use candor_app::service::{NotAsked, NotOpened};
use serde_json::{Value, json};

/// Seconds after which a request that found the queue full may be tried again.
const RETRY_AFTER_S: u32 = 2;

/// The protocols that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
    Ollama,
}

impl Api {
    /// Whose path this is.
    pub(crate) fn of_path(path: &str) -> Self {
        match path {
            _ if path.starts_with("/v1/messages") => Self::Anthropic,
            _ if path.starts_with("/api/") => Self::Ollama,
            _ => Self::OpenAi,
        }
    }
}

/// What kind of fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The request is wrong.
    Invalid,
    /// It asks for something that this server does not do.
    Unsupported,
    /// The prompt is longer than the context.
    TooLong,
    /// The key is missing or wrong.
    Unauthorized,
    /// This caller may not come in.
    Forbidden,
    /// There is no such path.
    NoRoute,
    /// There is no such model.
    NoModel,
    /// The path is called in another way.
    Method,
    /// The body did not come in time.
    TimedOut,
    /// The body is larger than is read.
    BodyTooLarge,
    /// Too many requests wait.
    QueueFull,
    /// Nothing answers now.
    Unavailable,
    /// The model was refused.
    Refused,
    /// Something broke down here.
    Internal,
}

impl FaultKind {
    fn status(self) -> StatusCode {
        match self {
            Self::Invalid | Self::Unsupported | Self::TooLong => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NoRoute | Self::NoModel => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::QueueFull => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Refused | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code of OpenAI's errors.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::TooLong => Some("context_length_exceeded"),
            Self::Unauthorized => Some("invalid_api_key"),
            Self::NoModel => Some("model_not_found"),
            Self::QueueFull => Some("queue_full"),
            Self::Unsupported => Some("unsupported"),
            Self::Refused => Some("model_refused"),
            _ => None,
        }
    }

    fn openai_type(self) -> &'static str {
        match self {
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::QueueFull => "rate_limit_error",
            Self::Unavailable | Self::Refused | Self::Internal => "server_error",
            _ => "invalid_request_error",
        }
    }

    fn anthropic_type(self) -> &'static str {
        match self {
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NoRoute | Self::NoModel => "not_found_error",
            Self::BodyTooLarge => "request_too_large",
            Self::QueueFull => "rate_limit_error",
            Self::Unavailable => "overloaded_error",
            Self::Refused | Self::Internal => "api_error",
            _ => "invalid_request_error",
        }
    }
}

/// Why a request gets no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) message: String,
    /// The field of the body that it is about.
    pub(crate) param: Option<String>,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            param: None,
        }
    }

    /// A field that is not as it has to be.
    pub(crate) fn field(name: impl Into<String>, what: &str) -> Self {
        let name = name.into();
        Self {
            kind: FaultKind::Invalid,
            message: format!("`{name}` {what}"),
            param: Some(name),
        }
    }

    /// A field that asks for something that is not done here. Left out, it would be a lie.
    pub(crate) fn unsupported(name: &str, what: &str) -> Self {
        Self {
            kind: FaultKind::Unsupported,
            ..Self::field(name, what)
        }
    }

    /// The error as the protocol writes it.
    pub(crate) fn json(&self, api: Api) -> Value {
        match api {
            Api::OpenAi => json!({ "error": {
                "message": self.message,
                "type": self.kind.openai_type(),
                "param": self.param,
                "code": self.kind.code(),
            } }),
            Api::Anthropic => json!({
                "type": "error",
                "error": { "type": self.kind.anthropic_type(), "message": self.message },
            }),
            Api::Ollama => json!({ "error": self.message }),
        }
    }

    /// The whole answer.
    pub(crate) fn response(&self, api: Api) -> Response {
        let mut response = (self.kind.status(), axum::Json(self.json(api))).into_response();
        let headers = response.headers_mut();
        if matches!(self.kind, FaultKind::QueueFull | FaultKind::Unavailable) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if matches!(self.kind, FaultKind::TimedOut | FaultKind::BodyTooLarge) {
            // The rest of the body is not read.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if matches!(
            self.kind,
            FaultKind::NoModel | FaultKind::Invalid | FaultKind::Unsupported | FaultKind::Refused
        ) {
            // Clients that try again by themselves would be told the same.
            let name = HeaderName::from_static("x-should-retry");
            headers.insert(name, HeaderValue::from_static("false"));
        }
        response
    }
}

impl From<NotOpened> for Fault {
    fn from(error: NotOpened) -> Self {
        let kind = match &error {
            NotOpened::Stopped => FaultKind::Unavailable,
            // Asking again changes nothing: a model has to be named.
            NotOpened::NoModel => FaultKind::Invalid,
            NotOpened::Unknown { .. } | NotOpened::NotAllowed { .. } => FaultKind::NoModel,
            NotOpened::Failed(failure) if failure.kind() == Kind::Usage => FaultKind::Invalid,
            NotOpened::Failed(_) | NotOpened::Refused { .. } => FaultKind::Refused,
        };
        let is_of_model = kind == FaultKind::NoModel || matches!(error, NotOpened::NoModel);
        let param = is_of_model.then(|| String::from("model"));
        Self {
            param,
            ..Self::new(kind, error.to_string())
        }
    }
}

impl From<NotAsked> for Fault {
    fn from(error: NotAsked) -> Self {
        let kind = match &error {
            NotAsked::Request(RequestError::PromptTooLong { .. }) => FaultKind::TooLong,
            NotAsked::Request(_) | NotAsked::Text(_) => FaultKind::Invalid,
            NotAsked::Engine(_) => FaultKind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}
