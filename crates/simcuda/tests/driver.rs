//! The simulated driver through unmodified cudarc: what it answers, when work runs, what a capture
//! takes, and every fault that can be asked for.
#![cfg(target_os = "linux")]

#[path = "driver/basics.rs"]
mod basics;
