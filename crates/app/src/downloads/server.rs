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

/// What would be sent if all went well.
struct Sent<'a> {
    status: &'static str,
    headers: String,
    /// Where the body begins in the file.
    first: usize,
    body: &'a [u8],
}

impl<'a> Sent<'a> {
    fn of(request: &Request, bytes: &'a [u8], deed: &Deed) -> Self {
        let version = match deed {
            Deed::NewVersion(version) => version,
            _ => "\"one\"",
        };
        let asked = request.version.as_deref();
        let is_same = asked.is_none_or(|asked| asked == version);
        let heeds = is_same && !matches!(deed, Deed::IgnoresRanges);
        let from = request.from.filter(|from| heeds && *from < bytes.len());
        let mut headers = format!("etag: {version}\r\n");
        if let Some(first) = from {
            let told = match deed {
                Deed::AnotherRange => 0,
                _ => first,
            };
            let (last, all) = (bytes.len() - 1, bytes.len());
            headers += &format!("content-range: bytes {told}-{last}/{all}\r\n");
        }
        let first = from.unwrap_or(0);
        Self {
            status: from.map_or("200 OK", |_| "206 Partial Content"),
            headers,
            first,
            body: &bytes[first..],
        }
    }

    /// The head, with any length, and the first bytes of the body.
    fn begin(&self, mut stream: &TcpStream, length: usize, count: usize) -> std::io::Result<()> {
        let (status, headers) = (self.status, &self.headers);
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.body[..count.min(self.body.len())])?;
        stream.flush()
    }
}

/// A page for people, over and over.
const PAGE: &[u8] = b"<!doctype html><p>Please sign in</p>";

fn send_file(
    mut stream: &TcpStream,
    request: &Request,
    bytes: &[u8],
    deed: &Deed,
) -> std::io::Result<()> {
    let sent = Sent::of(request, bytes, deed);
    let (body, all) = (sent.body, sent.body.len());
    match deed {
        Deed::BreaksOffAfter(count) => sent.begin(stream, all, *count),
        Deed::OtherLength(length) => sent.begin(stream, *length, 0),
        Deed::StallsAfter(count, time) => {
            sent.begin(stream, all, *count)?;
            thread::sleep(*time);
            Ok(())
        }
        Deed::Stalls(time) => {
            thread::sleep(*time);
            Ok(())
        }
        Deed::Slowly => {
            sent.begin(stream, all, 0)?;
            for byte in body {
                stream.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
        Deed::WrongBytes => {
            // The beginning is that of a model, so that only the checksum tells.
            let kept = 4_usize.saturating_sub(sent.first).min(all);
            let wrong = body[kept..].iter().map(|byte| byte ^ 1);
            let mixed: Vec<u8> = body[..kept].iter().copied().chain(wrong).collect();
            send(stream, sent.status, &sent.headers, &mixed)
        }
        Deed::Page => {
            let kind = "content-type: text/html; charset=utf-8\r\n";
            send(stream, "200 OK", kind, PAGE)
        }
        Deed::PageAsFile => {
            let page: Vec<u8> = PAGE.iter().copied().cycle().take(bytes.len()).collect();
            let kind = "content-type: application/octet-stream\r\n";
            send(stream, "200 OK", kind, &page)
        }
        Deed::Redirects => {
            let location = format!("location: /elsewhere{}\r\n", request.path);
            send(stream, "302 Found", &location, b"")
        }
        Deed::Status(number) => send(stream, &format!("{number} So"), "retry-after: 0\r\n", b""),
        Deed::Whole | Deed::IgnoresRanges | Deed::AnotherRange | Deed::NewVersion(_) => {
            send(stream, sent.status, &sent.headers, body)
        }
    }
}
