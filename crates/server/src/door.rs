//! Who may come in: the name under which the server is called, the page that calls, and the key.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::config::Access;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;

/// Answered without a key, so that a supervisor can ask whether the server lives.
const OPEN_PATHS: [&str; 2] = ["/", "/health"];

/// Where every answer says what computes.
const BACKEND: HeaderName = HeaderName::from_static("x-candor-backend");
const VERDICT: HeaderName = HeaderName::from_static("x-candor-verdict");

/// Headers that a page of elsewhere may read, once it was let in.
const SHOWN: &str = "x-candor-backend, x-candor-verdict, retry-after";

/// Lets a request in or not, and writes what every answer has in common.
pub(crate) async fn pass(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let api = Api::of_path(request.uri().path());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| String::from("other"), |path| path.as_str().to_owned());
    let access = &shared.config.access;
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = access.calls(request.uri());
    let allowed = allowed.and_then(|()| access.allows(request.headers(), origin.as_ref()));
    let is_allowed = allowed.is_ok();
    let mut response = match allowed {
        Err(fault) => fault.response(api),
        Ok(()) if request.method() == Method::OPTIONS && origin.is_some() => preflight(),
        Ok(()) => {
            let is_open = OPEN_PATHS.contains(&request.uri().path());
            match is_open || access.has_key(request.headers()) {
                true => {
                    request.extensions_mut().insert(shared.config.patience);
                    next.run(request).await
                }
                false => no_key().response(api),
            }
        }
    };
    shared.metrics.answered(&route, response.status().as_u16());
    let headers = response.headers_mut();
    // The refusal of a page is not for that page.
    if let Some(origin) = origin.filter(|_| is_allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let shown = HeaderValue::from_static(SHOWN);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    }
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Some(opened) = shared.source.opened() {
        let computed = opened.computed();
        headers.insert(BACKEND, HeaderValue::from_static(computed.served()));
        let verdict = computed.judgement.kind.name();
        headers.insert(VERDICT, HeaderValue::from_static(verdict));
    }
    response
}

fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let pairs = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "*, authorization, content-type, x-api-key",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    for (name, value) in pairs {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn no_key() -> Fault {
    let message = "this server asks for an API key: send it as `Authorization: Bearer KEY` or \
                   `x-api-key: KEY`";
    Fault::new(FaultKind::Unauthorized, message)
}

impl Access {
    /// Whether a target that names a server, as one for a proxy does, names this one: there it counts
    /// more than the header (RFC 9112, section 3.2.2).
    fn calls(&self, target: &Uri) -> Result<(), Fault> {
        match target.authority().map(Authority::as_str) {
            Some(host) if !self.knows_host(host) => Err(unknown_host(host)),
            _ => Ok(()),
        }
    }

    /// Whether the server is called by a name of its own, and not by a page of somebody else.
    fn allows(&self, headers: &HeaderMap, origin: Option<&HeaderValue>) -> Result<(), Fault> {
        let forbidden = |message: String| Err(Fault::new(FaultKind::Forbidden, message));
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
        for name in [header::HOST, header::ORIGIN] {
            // Which of them counts would be for each program to guess.
            if headers.get_all(&name).iter().count() > 1 {
                return forbidden(format!("the request has more than one `{name}`"));
            }
        }
        let host = headers.get(header::HOST).map(text).unwrap_or_default();
        if !self.knows_host(&host) {
            return Err(unknown_host(&host));
        }
        let Some(origin) = origin.map(text) else {
            return Ok(());
        };
        let is_own = origin == format!("http://{host}");
        let is_named = |named: &String| named == "*" || named.eq_ignore_ascii_case(&origin);
        match is_own || self.origins.iter().any(is_named) {
            true => Ok(()),
            false => forbidden(format!(
                "pages of `{origin}` may not call this server; allow them with --allow-origin"
            )),
        }
    }

    /// A page of elsewhere can point a name of its own at this machine, but no address.
    fn knows_host(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, port)) => (name, port),
            None => host.split_at(host.rfind(':').unwrap_or(host.len())),
        };
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return false;
        }
        // With the root's dot it is the same name (RFC 1034, section 3.1).
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_named = |named: &String| named.eq_ignore_ascii_case(name);
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(is_named)
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let Some(key) = &self.api_key else {
            return true;
        };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
        });
        let own = headers.get("x-api-key").and_then(|key| key.to_str().ok());
        bearer.or(own).is_some_and(|given| same(given, key))
    }
}

fn unknown_host(host: &str) -> Fault {
    let message = format!(
        "this server is not called `{host}`; use its address, or name it with --allow-host"
    );
    Fault::new(FaultKind::Forbidden, message)
}

/// Takes the same time wherever the texts differ.
fn same(given: &str, key: &str) -> bool {
    let differ = given
        .bytes()
        .zip(key.bytes())
        .fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == key.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_known_name() {
        let access = Access {
            hosts: vec![String::from("box.lan")],
            ..Access::default()
        };
        let cases = [
            ("localhost", true),
            ("LOCALHOST:11711", true),
            ("127.0.0.1:11711", true),
            ("127.0.0.1", true),
            ("192.168.1.7:11711", true),
            ("[::1]:11711", true),
            ("[::1]", true),
            ("box.lan:80", true),
            ("box.lan.", true),
            ("localhost.", true),
            ("localhost.:11711", true),
            ("localhost..", false),
            (".", false),
            ("evil.example.", false),
            ("evil.example", false),
            ("evil.example:11711", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:11711", false),
            ("", false),
            ("[::1]evil.example", false),
            ("[::1]:80.evil.example", false),
            ("[::1", false),
            ("localhost:evil", false),
        ];
        for (host, want) in cases {
            assert_eq!(access.knows_host(host), want, "{host:?}");
        }
    }

    #[test]
    fn a_page_of_elsewhere_is_let_in_by_name_only() {
        let check = |origins: &[&str], origin: &str, want: bool| {
            let access = Access {
                origins: origins.iter().map(|origin| String::from(*origin)).collect(),
                ..Access::default()
            };
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:11711"));
            let origin = HeaderValue::from_str(origin).unwrap();
            assert_eq!(
                access.allows(&headers, Some(&origin)).is_ok(),
                want,
                "{origin:?}"
            );
        };
        check(&[], "http://evil.example", false);
        check(&[], "null", false);
        check(&[], "http://127.0.0.1:11711", true);
        check(&["http://localhost:3000"], "http://localhost:3000", true);
        check(&["http://localhost:3000"], "http://localhost:3001", false);
        check(&["*"], "http://evil.example", true);
    }

    #[test]
    fn a_key_is_asked_for_where_one_is_set() {
        let access = Access {
            api_key: Some(String::from("secret")),
            ..Access::default()
        };
        let check = |name: &'static str, value: &str, want: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            assert_eq!(access.has_key(&headers), want, "{name}: {value}");
            assert!(Access::default().has_key(&headers));
        };
        check("authorization", "Bearer secret", true);
        check("authorization", "bearer secret", true);
        check("x-api-key", "secret", true);
        check("authorization", "Basic secret", false);
        check("authorization", "Bearer secre", false);
        check("authorization", "Bearer secretx", false);
        check("x-api-key", "", false);
        check("other", "secret", false);
    }
}
