//! Many clients of the server at once, and ten thousand one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use candor_testkit::TinyModel;
use serde_json::{Value, json};

use super::Bench;
use super::figures::Figure;
use crate::project;
use crate::server::{Server, Streamed};

/// Clients at once.
const CLIENTS: [usize; 4] = [1, 4, 16, 64];

/// Requests of one token each.
const SHORT_REQUESTS: usize = 10_000;

/// What memory may grow by meanwhile.
const GROWTH_BYTES_MAX: u64 = 20_000_000;

/// Tokens of a reply.
const TOKENS: usize = 32;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let candor = project::target()?.join("release").join("candor");
    let server = Server::start(
        &candor,
        &bench.small,
        &["--slots", "16", "--context", "512"],
    )?;
    let all = CLIENTS.iter().copied().max().unwrap_or(1);
    // Alone first: what each client has to get, whoever else asks.
    let alone: Result<Vec<String>> = (0..all)
        .map(|client| Ok(server.stream(&body(&server, client))?.text))
        .collect();
    let alone = alone?;
    let mut figures = Vec::new();
    for clients in CLIENTS {
        figures.push(load(&server, clients, &alone)?);
    }
    drop(server);
    figures.push(short(bench, &candor)?);
    Ok(figures)
}

fn body(server: &Server, client: usize) -> Value {
    json!({
        "model": server.model,
        "messages": [{
            "role": "user",
            "content": format!("Client {client} asks: what is special about the number {client}?"),
        }],
        "seed": client,
        "max_tokens": TOKENS,
        "stream": true,
        "stream_options": { "include_usage": true },
    })
}

/// So many clients at once; timed is each one's first token.
fn load(server: &Server, clients: usize, alone: &[String]) -> Result<Figure> {
    let begun = Instant::now();
    let replies: Vec<Result<Streamed>> = thread::scope(|scope| {
        let ask = |client: usize| scope.spawn(move || server.stream(&body(server, client)));
        let asking: Vec<_> = (0..clients).map(ask).collect();
        let answered = asking.into_iter().map(|asking| asking.join());
        answered
            .map(|reply| reply.unwrap_or_else(|_| Err(anyhow::anyhow!("a client broke down"))))
            .collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let written: u64 = replies.iter().flatten().map(|reply| reply.tokens).sum();
    let rate = written as f64 / seconds;
    let mut figure = Figure::new(format!(
        "{clients} clients at once, {rate:.0} tokens/s in all; first token"
    ));
    for (client, reply) in replies.into_iter().enumerate() {
        match reply {
            Ok(reply) => {
                figure.timed(reply.first);
                if reply.text != alone[client] {
                    figure.fault(format!("client {client} of {clients} got another reply"));
                }
            }
            Err(error) => figure.fault(format!("client {client} of {clients}: {error:#}")),
        }
    }
    Ok(figure)
}

/// Short requests by four clients; timed is each, counted is the memory.
fn short(bench: &Bench, candor: &std::path::Path) -> Result<Figure> {
    let path = bench.scratch.join("tiny.gguf");
    TinyModel::llama().write(&path)?;
    let server = Server::start(candor, &path, &[])?;
    let body = json!({ "prompt": "Hello", "max_tokens": 1, "temperature": 0 });
    // What is made once, such as threads and their stacks, is no growth.
    for _ in 0..200 {
        server.post("/generate", &body)?;
    }
    let before = server.resident_bytes()?;
    let next = AtomicUsize::new(0);
    let times = thread::scope(|scope| {
        let work = || -> Result<Vec<std::time::Duration>> {
            let mut times = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < SHORT_REQUESTS {
                let begun = Instant::now();
                server.post("/generate", &body)?;
                times.push(begun.elapsed());
            }
            Ok(times)
        };
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let answered = asking.into_iter().map(|asking| asking.join().ok());
        answered
            .map(|times| times.context("a client broke down")?)
            .collect::<Result<Vec<_>>>()
    })?;
    let grown = server.resident_bytes()?.saturating_sub(before);
    let mut figure = Figure::new(format!(
        "{SHORT_REQUESTS} requests of one token on a tiny model, memory grown by {:.1} MB; each",
        grown as f64 / 1e6
    ));
    times
        .into_iter()
        .flatten()
        .for_each(|took| figure.timed(took));
    if grown > GROWTH_BYTES_MAX {
        figure.fault(format!("memory has grown by {grown} bytes"));
    }
    Ok(figure)
}
