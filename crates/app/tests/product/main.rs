//! The app as a shell sees it, over a scripted backend: what is kept, what is told, and what
//! happens when something goes wrong.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "this is a test"
)]

mod cards;
mod choices;
mod desk;
mod kept;
mod kept_models;
mod loads;
mod news;
mod real;
mod replies;
#[cfg(target_os = "linux")]
mod room;
mod rounds;
mod talks;
mod turns;
