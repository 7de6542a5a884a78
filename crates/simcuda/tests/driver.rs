//! The simulated driver through unmodified cudarc: what it answers, when work runs, what a capture
//! takes, and every fault that can be asked for.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a test"
)]

#[path = "driver/basics.rs"]
mod basics;
#[path = "driver/calls.rs"]
mod calls;
#[path = "driver/capture.rs"]
mod capture;
#[path = "driver/faults.rs"]
mod faults;
#[path = "driver/more.rs"]
mod more;
#[path = "driver/rig.rs"]
mod rig;
#[path = "driver/time.rs"]
mod time;
