//! Drives the real window as a person would: a small client of the W3C WebDriver protocol that
//! talks to WebKit's own driver, and the handful of steps that the tests are made of.
//!
//! What it deliberately does not do: look inside the program. It sees what a person sees, and the
//! files and processes that are left behind. It asserts order and counts, with a generous limit
//! for a hang, and prints times without judging them.
//!
//! Start reading at [`Window::open`]. The tests are in `tests/`; `cargo xtask test window` runs
//! them on a screen and a session bus of their own.

#![forbid(unsafe_code)]
// It talks to the driver of a test run, and finds the program by the environment of that run.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod driver;
mod home;
mod processes;
mod requirements;
mod steps;
mod wait;
mod window;

pub use home::Home;
pub use processes::{Family, is_alive, kill_hard, page_processes, resident_kb, running};
pub use requirements::{Model, Requirements};
pub use steps::{Banner, Reply};
pub use wait::{HANG_LIMIT, LOAD_LIMIT, eventually};
pub use window::Window;
