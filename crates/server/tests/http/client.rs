//! A client that is nobody's library: bytes in, bytes out, and a connection that can be dropped at
//! any moment.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use candor_testkit::scripted::HANG_LIMIT;
use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("every body is UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut pairs = lines.filter_map(|line| line.split_once(": "));
        pairs
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The objects of a stream of events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let data = data.filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).expect("each event is JSON"))
            .collect()
    }
}

/// A request that was sent, with the connection that waits for its answer.
pub(crate) struct Sent(TcpStream);

impl Sent {
    /// Everything to the end of the answer.
    pub(crate) fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).expect("the answer ends");
        parse(&bytes)
    }

    /// Waits until a text has come, and gives what came.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        loop {
            let mut some = [0; 4_096];
            let count = self.0.read(&mut some).expect("something comes");
            assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&some[..count]);
            let found = String::from_utf8_lossy(&all);
            if found.contains(text) {
                return found.into_owned();
            }
        }
    }

    /// One byte more of what comes, and no further one is looked at.
    pub(crate) fn byte(&mut self) -> u8 {
        let mut one = [0];
        self.0.read_exact(&mut one).expect("something comes");
        one[0]
    }

    /// Everything to the end of the answer of which this was read.
    pub(crate) fn answer_after(mut self, mut begun: Vec<u8>) -> Answer {
        self.0.read_to_end(&mut begun).expect("the answer ends");
        parse(&begun)
    }

    /// The client is killed: the connection is gone without a word.
    pub(crate) fn leave(self) {
        drop(self);
    }
}

/// Sends bytes as they are.
pub(crate) fn send_raw(address: SocketAddr, bytes: &[u8]) -> Sent {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG_LIMIT)).unwrap();
    // A server that has heard enough may have closed already.
    stream.write_all(bytes).ok();
    Sent(stream)
}

pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Sent {
    let body = body.to_string();
    send_raw(address, &request("POST", path, "", body.as_bytes()))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    send_raw(address, &request("GET", path, "", b"")).answer()
}

/// How long a test waits between two looks.
pub(crate) const GLANCE: Duration = Duration::from_millis(2);

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let rest = &bytes[end + 4..];
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    Answer {
        status: status.expect("a status"),
        body: if is_chunked {
            unchunked(rest)
        } else {
            rest.to_vec()
        },
        head,
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|two| two == b"\r\n")
            .expect("a length");
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).expect("a length");
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
}
