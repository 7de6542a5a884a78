//! Who is let in.

use candor_server::Access;
use serde_json::json;

use super::client::{request, send_raw};
use super::desk::{Desk, Plan, chat};

#[test]
fn a_page_of_elsewhere_gets_nothing() {
    let desk = Desk::new();
    let check = |head: &str, want: u16| {
        let body = chat("Hello", 1).to_string();
        let bytes = format!(
            "POST /v1/chat/completions HTTP/1.1\r\n{head}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = send_raw(desk.address, bytes.as_bytes()).answer();
        assert_eq!(answer.status, want, "{head:?}: {}", answer.text());
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{head:?}"
        );
    };
    check("Host: localhost\r\n", 200);
    check("Host: 127.0.0.1:11711\r\n", 200);
    // A name that somebody pointed at this machine.
    check("Host: evil.example\r\n", 403);
    check("Host: localhost.evil.example:11711\r\n", 403);
    check("", 403);
    check("Host: localhost\r\nOrigin: http://evil.example\r\n", 403);
    check("Host: localhost\r\nOrigin: null\r\n", 403);
    // One that is right does not open the door for another beside it.
    check("Host: localhost\r\nHost: evil.example\r\n", 403);
    check("Host: [::1]evil.example\r\n", 403);
    check("Host: localhost.\r\n", 200);
    check("Host: evil.example.\r\n", 403);
    check(
        "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
        403,
    );
    assert_eq!(desk.script.counts().submitted, 3);
    // A target as for a proxy counts more than the header.
    for (target, status) in [
        ("http://evil.example/v1/models", 403),
        ("http://user@localhost/v1/models", 403),
        ("http://localhost:11711/v1/models", 200),
    ] {
        let bytes = request("GET", target, "", b"");
        let answer = send_raw(desk.address, &bytes).answer();
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
    }
}

#[test]
fn a_page_that_was_named_may_call() {
    let desk = Desk::with(Plan {
        access: Access {
            origins: vec![String::from("http://localhost:3000")],
            ..Access::default()
        },
        ..Plan::default()
    });
    let origin = "Origin: http://localhost:3000\r\n";
    let asks = "Access-Control-Request-Method: POST\r\n";
    let preflight = request(
        "OPTIONS",
        "/v1/chat/completions",
        &format!("{origin}{asks}"),
        b"",
    );
    let answer = send_raw(desk.address, &preflight).answer();
    assert_eq!(answer.status, 204);
    let allowed = answer.header("access-control-allow-origin");
    assert_eq!(allowed, Some("http://localhost:3000"));
    let shown = answer.header("access-control-expose-headers").unwrap();
    assert!(
        shown.contains("x-candor-verdict") && shown.contains("retry-after"),
        "{shown}"
    );
    assert!(
        answer
            .header("access-control-allow-methods")
            .unwrap()
            .contains("POST")
    );
    let body = chat("Hello", 1).to_string();
    let call = request("POST", "/v1/chat/completions", origin, body.as_bytes());
    let answer = send_raw(desk.address, &call).answer();
    assert_eq!(
        (answer.status, answer.header("vary")),
        (200, Some("origin"))
    );
    let other = request(
        "OPTIONS",
        "/v1/models",
        "Origin: http://localhost:3001\r\n",
        b"",
    );
    let answer = send_raw(desk.address, &other).answer();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn a_key_is_asked_for_everywhere_but_for_signs_of_life() {
    let desk = Desk::with(Plan {
        access: Access {
            api_key: Some(String::from("secret")),
            ..Access::default()
        },
        ..Plan::default()
    });
    let check = |method: &str, path: &str, headers: &str, want: u16| {
        let answer = send_raw(desk.address, &request(method, path, headers, b"{}")).answer();
        assert_eq!(answer.status, want, "{path} {headers:?}: {}", answer.text());
        answer.json()
    };
    for path in ["/v1/models", "/api/tags", "/api/version", "/nowhere"] {
        check("GET", path, "", 401);
    }
    for path in [
        "/v1/chat/completions",
        "/v1/messages",
        "/api/chat",
        "/tokenize",
    ] {
        check("POST", path, "", 401);
        check("POST", path, "Authorization: Bearer wrong\r\n", 401);
    }
    check("GET", "/health", "", 200);
    check("GET", "/v1/models", "Authorization: Bearer secret\r\n", 200);
    check("GET", "/api/tags", "x-api-key: secret\r\n", 200);
    let refused = check("POST", "/v1/messages", "", 401);
    assert_eq!(refused["error"]["type"], json!("authentication_error"));
    let refused = check("POST", "/v1/completions", "", 401);
    assert_eq!(refused["error"]["code"], json!("invalid_api_key"));
}
