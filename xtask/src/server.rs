//! `candor serve` as other programs meet it: started, called, ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// No answer that is measured here takes this long unless it hangs.
const HANG_LIMIT: Duration = Duration::from_secs(300);

/// A server that runs. Ends when dropped.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// What its model is called.
    pub(crate) model: String,
}

/// An answer that was streamed.
pub(crate) struct Streamed {
    /// Its words.
    pub(crate) text: String,
    /// From the request to the first of them.
    pub(crate) first: Duration,
    /// Tokens that were written.
    pub(crate) tokens: u64,
}

impl Server {
    /// Starts it with a model on a free port.
    pub(crate) fn start(candor: &Path, model: &Path, words: &[&str]) -> Result<Self> {
        let mut command = Command::new(candor);
        command.args(["serve", "--json", "--backend", "cpu", "--port", "0"]);
        command.args(words).arg(model);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("candor could not be started")?;
        let mut line = String::new();
        let output = child.stdout.take().context("stdout")?;
        BufReader::new(output).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let address = ready["listening"].as_str().context("no address")?;
        let address = address.strip_prefix("http://").context("no http")?;
        Ok(Self {
            address: address.parse()?,
            model: ready["model"].as_str().unwrap_or_default().to_owned(),
            child,
        })
    }

    /// Bytes of memory that are its own now.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let count = line.and_then(|line| line.split_whitespace().next());
        Ok(count.context("RssAnon")?.parse::<u64>()? * 1024)
    }

    /// Asks and waits for the whole answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let mut answer = String::new();
        self.send(path, body)?.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("{head}\n{body}");
        }
        Ok(serde_json::from_str(body)?)
    }

    /// Asks for a stream of a chat completion and reads it to its end.
    pub(crate) fn stream(&self, body: &Value) -> Result<Streamed> {
        let begun = Instant::now();
        let mut streamed = Streamed {
            text: String::new(),
            first: Duration::ZERO,
            tokens: 0,
        };
        for line in BufReader::new(self.send("/v1/chat/completions", body)?).lines() {
            let line = line?;
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            let event: Value = serde_json::from_str(data)?;
            if event.get("error").is_some() {
                bail!("{event}");
            }
            let piece = event
                .pointer("/choices/0/delta/content")
                .and_then(Value::as_str);
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                if streamed.text.is_empty() {
                    streamed.first = begun.elapsed();
                }
                streamed.text.push_str(piece);
            }
            if let Some(tokens) = event.pointer("/usage/completion_tokens") {
                streamed.tokens = tokens.as_u64().unwrap_or(0);
            }
        }
        Ok(streamed)
    }

    fn send(&self, path: &str, body: &Value) -> Result<TcpStream> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(HANG_LIMIT))?;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())?;
        Ok(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which the measurement has said.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
