//! A server on this machine that does what servers do at their worst.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What it does with one request for a file. Where nothing is left to do, it is [`Whole`].
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// Sends what is asked for.
    Whole,
    /// Sends so many bytes of it, and breaks off.
    BreaksOffAfter(usize),
    /// Sends all from the start, whatever is asked for.
    IgnoresRanges,
    /// Sends a part from somewhere else.
    AnotherRange,
    /// Sends other bytes.
    WrongBytes,
    /// Sends a page for people, and says so.
    Page,
    /// Sends a page for people as if it were the file.
    PageAsFile,
    /// Sends it on to another address.
    Redirects,
    /// Sends the file as another version.
    NewVersion(&'static str),
    /// Says nothing for so long.
    Stalls(Duration),
    /// Sends a few bytes, then nothing for so long.
    StallsAfter(usize, Duration),
    /// Answers with a number and nothing else.
    Status(u16),
    /// Says it has another length.
    OtherLength(usize),
    /// Sends a byte at a time, so slowly that somebody can stop it.
    Slowly,
}

#[derive(Default)]
struct Shared {
    files: Vec<(String, Vec<u8>)>,
    pages: Vec<(String, String)>,
    deeds: VecDeque<Deed>,
    /// First line and range of each request.
    heard: Vec<String>,
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: String,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let server = Self {
            address,
            shared: Arc::clone(&shared),
        };
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || answer(&stream, &shared));
            }
        });
        server
    }

    pub(super) fn file(&self, path: &str, bytes: &[u8]) {
        let mut shared = self.shared.lock().unwrap();
        shared.files.push((String::from(path), bytes.to_vec()));
    }

    pub(super) fn page(&self, begins: &str, json: impl ToString) {
        let mut shared = self.shared.lock().unwrap();
        shared
            .pages
            .insert(0, (String::from(begins), json.to_string()));
    }

    pub(super) fn does(&self, deeds: impl IntoIterator<Item = Deed>) {
        self.shared.lock().unwrap().deeds.extend(deeds);
    }

    /// Requests so far: "GET /a.gguf" and, with a range, " from 5" and, with a version, " of x".
    pub(super) fn heard(&self) -> Vec<String> {
        self.shared.lock().unwrap().heard.clone()
    }
}

struct Request {
    path: String,
    from: Option<usize>,
    version: Option<String>,
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut request = Request {
        path: String::from(first.split(' ').nth(1)?),
        from: None,
        version: None,
    };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let range = value.strip_prefix("bytes=")?.strip_suffix('-')?;
                request.from = Some(range.parse().ok()?);
            }
            "if-range" => request.version = Some(String::from(value)),
            _ => {}
        }
    }
    Some(request)
}

fn answer(stream: &TcpStream, shared: &Mutex<Shared>) {
    let Some(request) = read(stream) else { return };
    let (file, page, deed) = {
        let mut shared = shared.lock().unwrap();
        let mut line = format!("GET {}", request.path);
        if let Some(from) = request.from {
            line += &format!(" from {from}");
        }
        if let Some(version) = &request.version {
            line += &format!(" of {version}");
        }
        shared.heard.push(line);
        let path = request.path.trim_start_matches("/elsewhere");
        let file = shared.files.iter().find(|(name, _)| name == path);
        let file = file.map(|(_, bytes)| bytes.clone());
        let page = shared.pages.iter();
        let page = page
            .clone()
            .find(|(begins, _)| request.path.starts_with(begins.as_str()))
            .map(|(_, json)| json.clone());
        let deed = match file {
            Some(_) => shared.deeds.pop_front().unwrap_or(Deed::Whole),
            None => Deed::Whole,
        };
        (file, page, deed)
    };
    // Who breaks off hears nothing of it.
    let _ = match (file, page) {
        (Some(bytes), _) => send_file(stream, &request, &bytes, &deed),
        (None, Some(json)) => send(
            stream,
            "200 OK",
            "content-type: application/json\r\n",
            json.as_bytes(),
        ),
        (None, None) => send(stream, "404 Not Found", "", b""),
    };
}

fn send(mut stream: &TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn send_file(
    mut stream: &TcpStream,
    request: &Request,
    bytes: &[u8],
    deed: &Deed,
) -> std::io::Result<()> {
    let version = match deed {
        Deed::NewVersion(version) => version,
        _ => "\"one\"",
    };
    let is_same = request
        .version
        .as_deref()
        .is_none_or(|asked| asked == version);
    let wrong: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
    let from = request
        .from
        .filter(|_| is_same && !matches!(deed, Deed::IgnoresRanges));
    let from = from.filter(|from| *from < bytes.len());
    let (status, first) = match from {
        Some(first) => ("206 Partial Content", first),
        None => ("200 OK", 0),
    };
    let mut headers = format!("etag: {version}\r\n");
    if from.is_some() {
        let told = if matches!(deed, Deed::AnotherRange) {
            0
        } else {
            first
        };
        headers += &format!(
            "content-range: bytes {told}-{}/{}\r\n",
            bytes.len() - 1,
            bytes.len()
        );
    }
    let body = &bytes[first..];
    let begin = |mut stream: &TcpStream, length: usize| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
        stream.write_all(head.as_bytes())
    };
    match deed {
        Deed::BreaksOffAfter(count) => {
            begin(stream, body.len())?;
            stream.write_all(&body[..*count.min(&body.len())])
        }
        Deed::StallsAfter(count, time) => {
            begin(stream, body.len())?;
            stream.write_all(&body[..*count.min(&body.len())])?;
            stream.flush()?;
            thread::sleep(*time);
            Ok(())
        }
        Deed::Stalls(time) => {
            thread::sleep(*time);
            Ok(())
        }
        Deed::Slowly => {
            begin(stream, body.len())?;
            for byte in body {
                stream.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
        Deed::WrongBytes => {
            // The beginning is that of a model, so that only the checksum tells.
            let kept = 4.min(body.len());
            let mixed = [&body[..kept], &wrong[first + kept..]].concat();
            send(stream, status, &headers, &mixed)
        }
        Deed::Page => send(
            stream,
            "200 OK",
            "content-type: text/html; charset=utf-8\r\n",
            b"<!doctype html><p>Please sign in</p>",
        ),
        Deed::PageAsFile => {
            let page = b"<!doctype html><p>Please sign in</p>".iter();
            let page: Vec<u8> = page.copied().cycle().take(bytes.len()).collect();
            send(
                stream,
                "200 OK",
                "content-type: application/octet-stream\r\n",
                &page,
            )
        }
        Deed::Redirects => {
            let location = format!("location: /elsewhere{}\r\n", request.path);
            send(stream, "302 Found", &location, b"")
        }
        Deed::Status(number) => send(stream, &format!("{number} So"), "retry-after: 0\r\n", b""),
        Deed::OtherLength(length) => begin(stream, *length),
        Deed::Whole | Deed::IgnoresRanges | Deed::AnotherRange | Deed::NewVersion(_) => {
            send(stream, status, &headers, body)
        }
    }
}
