//! The server from outside, over real connections, on a scripted engine that counts its forwards.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod app;
mod backend;
mod bad_input;
mod cancel;
mod client;
mod contract;
mod desk;
mod door;
mod grammar;
mod loads;
mod protocols;
mod queue;
mod reuse;
mod several;
mod tools;
mod written;
