//! The server from outside, over real connections, on a scripted engine that counts its forwards.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod app;
mod backend;
mod bad_input;
mod begun;
mod cancel;
mod client;
mod contract;
mod desk;
mod door;
mod failed;
mod grammar;
mod loads;
mod protocols;
mod queue;
mod reuse;
mod several;
mod told;
mod tools;
mod vectors;
mod written;
